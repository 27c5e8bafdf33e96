"""Imports go down only, as docs/architecture.md draws it, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pto

#: Floor -> the floors that its modules may import, anywhere in them. A floor is a folder or file of src/pto.
SEES = {
    "shown": "",
    "diag": "shown",
    "files": "",
    "wire": "diag",
    "signals": "",
    "trials": "diag signals",
    "isa": "diag",
    "knobs": "diag isa",
    "cache": "diag files knobs isa",
    "symbolic": "diag",
    "perf": "shown diag files knobs isa",
    "ir": "shown diag knobs isa",
    "asm": "diag knobs isa ir",
    "bytecode": "diag knobs isa ir asm",
    "reading": "diag knobs isa ir asm bytecode",
    "verifier": "diag knobs isa ir",
    "witness": "diag knobs isa ir asm",
    "passes": "shown diag knobs isa ir perf",
    "driver": "shown diag knobs isa ir verifier perf passes",
    "codegen": "shown diag knobs isa ir verifier perf passes driver",
    "checking": "diag knobs isa ir asm bytecode reading verifier perf passes driver codegen",
    "lsp": "shown diag files signals trials isa knobs cache perf ir asm bytecode reading verifier witness passes driver codegen checking program image objects engine symbolic proof runtime language",
    "program": "diag isa ir",
    "image": "shown diag knobs isa ir asm bytecode verifier witness perf passes driver codegen program",
    "objects": "shown diag knobs isa ir asm bytecode verifier witness perf passes driver codegen program image",
    "engine": "shown diag files wire signals knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects",
    "explore": "shown diag files wire signals trials isa knobs cache perf ir asm bytecode reading verifier witness passes driver codegen checking lsp program image objects engine symbolic proof runtime language",
    "host": "shown diag files wire signals knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine",
    "proof": "shown diag files signals knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine symbolic",
    "runtime": "shown diag files signals knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine",
    "language": "shown diag files signals trials knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine symbolic proof runtime",
    "tune": "shown diag files signals trials knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine symbolic proof runtime language",
    "compat": "shown diag files signals trials knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine symbolic proof runtime language",
    "display": "shown diag files signals trials isa knobs cache perf ir asm bytecode reading verifier witness passes driver codegen checking lsp program image objects engine symbolic proof runtime language",
    "cli": "shown diag files wire signals trials knobs cache isa ir asm bytecode reading verifier witness perf passes driver codegen program image objects engine host symbolic proof runtime language compat tune checking lsp explore display",
}
#: Floors that stand beside the others, below them all: the drawing leaves them out.
BESIDE = ("shown", "diag", "files", "wire", "signals", "trials", "knobs", "cache")
#: Circles that are there still. Add none; remove those that are gone.
KNOWN_CIRCLES: tuple[str, ...] = ()
ROOT = Path(pto.__file__).parent
DRAWN = Path(__file__).parents[1] / "docs/architecture.md"


def modules() -> dict[str, Path]:
    """The modules of the package by their names inside it, without the package itself: it imports on demand."""
    found = {p.relative_to(ROOT).with_suffix("").parts: p for p in ROOT.rglob("*.py")}
    names = {".".join(n[:-1] if n[-1] == "__init__" else n): p for n, p in found.items()}
    return {name: p for name, p in names.items() if name}


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports anywhere in a module, but for those that only a type checker sees."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
            continue
        inner = ["body", "orelse", "finalbody", "handlers", "cases"]  # expressions hold none
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            inner.remove("body")
        for field in inner:
            found = getattr(node, field, ())
            todo += found if isinstance(found, list) else ()


def imported(name: str, path: Path, names: Iterable[str]) -> set[str]:
    """The modules of ours that a module imports."""
    found: set[str] = set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for s in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(s, ast.Import):
            found |= {a.name.removeprefix("pto.") for a in s.names if a.name.startswith("pto.")}
        elif s.level or (s.module or "").split(".")[0] == "pto":
            base = package[: len(package) - s.level + 1] if s.level else []
            base += (s.module or "").removeprefix("pto").removeprefix(".").split(".") if s.module else []
            base = [part for part in base if part]
            for a in s.names:
                inner = ".".join([*base, a.name])
                found.add(inner if inner in names else ".".join(base))
    return {other for other in found if other in names and other != name}


@cache
def graph() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports."""
    found = modules()
    return {name: imported(name, path, found) for name, path in found.items()}


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Modules that import one another, directly or around: the strongly connected parts of more than one."""

    def reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
        seen, todo = {start}, [start]
        while todo:
            new = set(edges.get(todo.pop(), ())) - seen
            seen |= new
            todo += new
        return seen

    back: dict[str, set[str]] = {}
    for name, others in graph.items():
        for other in others:
            back.setdefault(other, set()).add(name)
    left, found = set(graph), list[list[str]]()
    while left:
        start = min(left)
        part = reached(start, graph) & reached(start, back)
        left -= part
        if len(part) > 1:
            found.append(sorted(part))
    return sorted(found)


def drawn() -> dict[str, set[str]]:
    """Return the drawing as floor -> all floors below it. `a, b  <-  c` puts c above a and b."""
    section = DRAWN.read_text(encoding="utf-8").split("\n## Layers\n")[1]
    block = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert block is not None
    below: dict[str, set[str]] = {}
    for line in block[1].splitlines():
        steps = [set(re.findall(r"\w+", step)) for step in line.split("<-")]
        for floor in set().union(*steps):
            below.setdefault(floor, set())
        for lower, upper in pairwise(steps):
            for floor in upper:
                below[floor] |= lower
    while more := [(f, b) for f in below for b in below[f] if not below[b] <= below[f]]:
        for floor, lower in more:
            below[floor] |= below[lower]
    return below


def test_the_drawing_is_the_table() -> None:
    assert {f: set(seen.split()) - set(BESIDE) for f, seen in SEES.items() if f not in BESIDE} == drawn()


def test_imports_go_down() -> None:
    found = graph()
    assert {name.split(".")[0] for name in found} == set(SEES), "a floor is missing in SEES, or gone"
    wrong: list[str] = []
    for name, others in found.items():
        floor = name.split(".")[0]
        seen = {floor, *SEES[floor].split()}
        wrong += [f"{name} imports {other}" for other in sorted(others) if other.split(".")[0] not in seen]
    assert not wrong
    assert {o.split(".")[0] for o in found["verifier.flags"]} == {
        "verifier",
        "diag",
        "ir",
        "isa",
    }  # it sees them


def test_no_module_imports_itself_around_others() -> None:
    assert circles({"a": "b", "b": "cd", "c": "a", "d": "e", "e": ""}) == [["a", "b", "c"]]
    found = [" ".join(part) for part in circles(graph())]
    new = set(found) - set(KNOWN_CIRCLES)
    assert not new, "modules that import one another"
    gone = set(KNOWN_CIRCLES) - set(found)
    assert not gone, "this circle is gone: take it out of KNOWN_CIRCLES"


def test_imports_are_seen_wherever_they_stand() -> None:
    text = """
if TYPE_CHECKING:
    import unseen
else:
    import a
def f():
    try:
        import b
    except ImportError:
        import c
    class G:
        with x:
            from d import e
"""
    found = list(_imports(ast.parse(text)))
    assert {s.module if isinstance(s, ast.ImportFrom) else s.names[0].name for s in found} == set("abcd")


def test_the_readme_names_every_folder() -> None:
    readme = (DRAWN.parents[1] / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^src/pto/(\w+)/ ", readme, re.M)
    assert sorted(named) == sorted(p.parent.name for p in ROOT.glob("*/__init__.py"))
