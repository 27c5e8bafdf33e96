"""`pto examples`: list and copy the examples of the package."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..diag import did_you_mean
from .common import FAILED, OK, CommandParser

_EXAMPLES = """\
  pto examples                            list the examples, each with its first line
  pto examples copy 12_race.pto           copy one example to this folder
  pto examples copy runtime/vector_dag .  copy a folder of examples
  pto examples copy all pto-examples      copy everything to a new folder
"""
#: File that marks the folder of a task graph. It lies in the folder `kernels`, or in one folder per runtime.
_WHOLE = "kernel_config.py"
_SUFFIXES = (".pto", ".py", ".cpp", ".c")


def main(arguments: Sequence[str]) -> int:
    p = CommandParser("pto examples", "List or copy the examples that come with pto.", _EXAMPLES)
    p.add_argument("what", nargs="?", choices=["list", "copy"], default="list", metavar="list|copy")
    p.add_argument("name", nargs="?", help="with copy: an example or folder from the list, or 'all'")
    p.add_argument(
        "folder", nargs="?", default=".", help="with copy: the target folder (default: this folder)"
    )
    options = p.parse_args(arguments)
    root = _root()
    if root is None:
        print("pto examples: cannot find the examples: this installation has none\n"
              "help: pip install --force-reinstall pto-*.whl", file=sys.stderr)  # fmt: skip
        return FAILED
    if options.what == "list":
        found = list(_listed(root))
        width = max(len(name) for name, _ in found)
        print("\n".join(f"{name:<{width}}  {doc}" for name, doc in found))
        return OK
    if options.name is None:
        p.error("missing NAME of an example; 'pto examples' lists them, 'all' is everything")
    return _copy(root, options.name, Path(options.folder))


def _root() -> Path | None:
    """Return the folder of examples in the installed package or the checkout."""
    package = Path(__file__).resolve().parent.parent
    places = (package / "examples", package.parent.parent / "examples")
    return next((place for place in places if (place / "01_vec_add.pto").is_file()), None)


def _listed(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and first line of each example; a task graph is one example."""
    graphs = {path.parent.parent for path in root.rglob(_WHOLE)}
    whole = [g for g in graphs if not graphs.intersection(g.parents)]
    for path in sorted(root.rglob("*"), key=lambda path: (len(path.relative_to(root).parts) > 1, path)):
        name = path.relative_to(root).as_posix()
        if path in whole:
            yield f"{name}/", "a task graph: pto runtime run"
        elif path.suffix in _SUFFIXES and path.is_file() and not any(g in path.parents for g in whole):
            yield name, _first_line(path)


def _first_line(path: Path) -> str:
    line = path.read_text(encoding="utf-8").partition("\n")[0]
    return line.strip("/#*\" '")


def _copy(root: Path, name: str, folder: Path) -> int:
    source = root if name == "all" else root / name
    inside = os.path.normpath(name).partition(os.sep)[0] != os.pardir and not os.path.isabs(name)
    if not inside or not source.exists():
        hint = did_you_mean(name, [n for n, _ in _listed(root)]) or "'pto examples' lists them"
        print(f"pto examples: unknown example '{name}'; {hint}", file=sys.stderr)
        return FAILED
    target = folder if name == "all" else folder / source.name
    if target.exists() and (name != "all" or any(target.iterdir())):
        print(f"pto examples: cannot copy to '{target}': it exists; name another folder", file=sys.stderr)
        return FAILED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    except OSError as e:
        print(f"pto examples: cannot copy to '{target}': {(e.strerror or str(e)).lower()}", file=sys.stderr)
        return FAILED
    print(target)
    return OK
