"""Files that tests build, kept for all test processes, now and later: by the content of all their inputs.

    made_once("native", key, "engine.o", make)            # a file; the first process that needs it makes it
    compiled([*command], source, target)                  # output and messages of a compiler

After a change of the headers, all files are built again; after one of Python, those with changed sources.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pto.engine.cpp import compiler
from pto.files import make_private

ROOT = Path(__file__).parents[1]
INCLUDE = ROOT / "native/include"
#: Modules that make libraries of kernels, besides the keys of the cache of kernels.
_BUILDERS = ("cache.py", "engine/cpp/*.py", "engine/compiled/*.py", "runtime/compile.py")
_WEEK = 7 * 24 * 3600


def digest(*parts: str | bytes) -> str:
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def _of_files(files: Sequence[Path]) -> str:
    return digest(*(part for p in sorted(files) for part in (p.name, p.read_bytes())))


def folder(kind: str, key: str) -> Path:
    """Return the folder for files of this content. Folders of other contents may be in use elsewhere; they
    are removed after a week without use."""
    found = Path(tempfile.gettempdir()) / f"pto-test-{kind}-{os.getuid()}" / key[:16]
    if not found.exists():
        with contextlib.suppress(FileNotFoundError):  # there is none yet, or another process cleans up, too
            for other in found.parent.iterdir():
                if time.time() - other.stat().st_mtime > _WEEK:
                    shutil.rmtree(other, ignore_errors=True)
    make_private(str(found))
    os.utime(found)
    return found


@contextlib.contextmanager
def held(kind: str, key: str) -> Iterator[Path]:
    """A folder that a test writes into and reads, the same one in every run: for one process at a time."""
    with open(folder(kind, "held") / f"{key[:16]}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder(kind, key)


def written(texts: Mapping[str, str]) -> Path:
    """Return a folder with these files, the same in every run, for tests that only read it."""
    key = digest(*(part for item in texts.items() for part in item))
    for name, text in texts.items():
        made_once("written", key, name, lambda part, text=text: part.write_text(text))
    return folder("written", key)


def made_once(kind: str, key: str, name: str, make: Callable[[Path], object]) -> Path:
    """A file that the first one who wants it makes, at the place that `make` is given; others wait."""
    where = folder(kind, key)
    with open(where / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target, part = where / name, where / f"{name}.part"
        if not target.exists():
            make(part)
            os.replace(part, target)
    return target


def _statements(text: str) -> str:
    """Return Python code without comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def kernels() -> Path:
    """The cache of kernels that tests share. The code that builds them is part of its name: after a change, all
    are built again."""
    files = sorted(p for pattern in _BUILDERS for p in (ROOT / "src/pto").glob(pattern))
    return folder("kernels", digest(*(part for p in files for part in (p.name, _statements(p.read_text())))))


@cache
def _headers() -> str:
    return _of_files([p for p in INCLUDE.rglob("*") if p.is_file()])


@cache
def _tool(command: str) -> str:
    """A compiler, and the processor that it compiles for."""
    said = subprocess.run([command, "--version"], capture_output=True, check=True)
    return digest(os.path.realpath(command), said.stdout, compiler._processor())


def compiled(
    command: Sequence[str | Path], source: Path | str, target: Path | None = None, reads: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Compile a source, a file or a text (for its standard input); return the output and the messages. It may
    include our headers, and other files that are named in `reads`."""
    words = [str(word) for word in command]
    name, text = (str(source), source.read_text()) if isinstance(source, Path) else ("", source)
    # Folders of a run are not the same in the next one.
    shown = "\0".join((*words, name))
    for place in {str(p.parent) for p in (source, target, *reads) if isinstance(p, Path)}:
        shown = shown.replace(place, "")
    key = digest(_tool(words[0]), _headers(), shown, text, *(p.read_bytes() for p in reads))

    def make(part: Path) -> None:
        file = [name] if name else ["-x", "c++", "-", "-x", "none"]
        made = part.with_name("made")
        rest = ["-o", str(made)] if target is not None else []
        done = subprocess.run(
            [words[0], *file, *words[1:], *rest], input=None if name else text, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        part.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))

    found = made_once("compiled", key, "said", make)
    code, out, problems = json.loads(found.read_text())
    if target is not None and found.with_name("made").exists():
        shutil.copy(found.with_name("made"), target)
    return subprocess.CompletedProcess(words, code, out, problems)
