"""Detect side effects of code that reads untrusted input: processes, sockets, files outside its folder.

    with no_side_effects(folder):              # changes the working directory to `folder`
        pto.cli.main.main(["check", "hostile.pto"])

A side effect that is not allowed raises `SideEffect` where it happens, and again at the end of the block in case
the code under test caught it. Audit hooks see Python only: programs that machine code runs betray themselves by the
canary, a file whose name contains `pwned`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: Hostile inputs try to make a file whose name contains this word, and have it in the code that would do so.
CANARY = "pwned"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Events that start processes; the value is the argument that names the program, or None where there is none.
_PROCESSES = {
    "subprocess.Popen": 0, "os.system": None, "os.exec": 0, "os.posix_spawn": 0, "os.spawn": 1, "os.fork": None,
    "os.forkpty": None, "os.startfile": None, "pty.spawn": None,
}  # fmt: skip
#: Events that change files, and which of their arguments name what changes.
_CHANGES = {
    "os.remove": (0,), "os.rename": (0, 1), "os.mkdir": (0,), "os.rmdir": (0,), "os.link": (1,), "os.symlink": (1,),
    "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "shutil.rmtree": (0,), "shutil.move": (0, 1),
    "shutil.copyfile": (1,),
}  # fmt: skip
_NETWORK = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")


class SideEffect(AssertionError):
    """A side effect that is not allowed."""


class _Watch:
    """One block under watch."""

    def __init__(self, places: Sequence[Path], commands: Sequence[str]) -> None:
        self.places = [os.path.realpath(p) for p in places]
        self.commands = {name for c in commands for name in (os.path.basename(c), os.path.realpath(c))}
        self.found: list[str] = []

    def event(self, name: str, arguments: tuple[Any, ...]) -> None:
        problem = self._problem(name, arguments)
        if problem:
            self.found.append(problem)
            raise SideEffect(problem)

    def _problem(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name == "open":
            path, _, flags = arguments
            return f"writes {path!r}" if flags & _WRITING and not self._inside(path) else ""
        if name in _PROCESSES:
            at = _PROCESSES[name]
            program = os.fsdecode(arguments[at]) if at is not None and arguments[at] else ""
            known = {os.path.basename(program), os.path.realpath(program)} & self.commands
            return "" if known else f"{name} {arguments!r:.300}"
        if name in _CHANGES:
            outside = [arguments[k] for k in _CHANGES[name] if not self._inside(arguments[k])]
            return f"{name} {outside!r}" if outside else ""
        if name == "compile" and CANARY in str(arguments[0]):
            return f"compiles {arguments[0]!r:.300}"
        return f"{name} {arguments!r:.300}" if name.startswith(_NETWORK) else ""

    def _inside(self, path: Any) -> bool:
        if isinstance(path, int) or path is None:  # a descriptor, open already
            return True
        place = os.path.realpath(os.fsdecode(path))
        return place == os.devnull or any(place == p or place.startswith(p + os.sep) for p in self.places)


_now: list[_Watch] = []
_installed = False


def _hook(name: str, arguments: tuple[Any, ...]) -> None:
    if _now:
        _now[-1].event(name, arguments)


@contextlib.contextmanager
def no_side_effects(
    folder: Path, *, also: Sequence[Path] = (), commands: Sequence[str] = ()
) -> Iterator[None]:
    """Allow files to be written in `folder` and in the folders `also`, and only `commands` to be started. The block
    runs in `folder`, with its temporary files there."""
    global _installed
    if not _installed:  # a hook cannot be removed
        _installed = True
        sys.addaudithook(_hook)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    before = os.getcwd(), tempfile.tempdir, os.environ.get("TMPDIR"), sys.dont_write_bytecode
    watch = _Watch((folder, *also), commands)
    os.chdir(folder)
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    sys.dont_write_bytecode = True  # modules that the block is the first to import
    _now.append(watch)
    try:
        yield
    finally:
        _now.remove(watch)
        os.chdir(before[0])
        tempfile.tempdir = before[1]
        os.environ.pop("TMPDIR") if before[2] is None else os.environ.update(TMPDIR=before[2])
        sys.dont_write_bytecode = before[3]
    made = [str(p.relative_to(folder)) for p in folder.rglob(f"*{CANARY}*")]
    if watch.found or made:
        raise SideEffect("; ".join([*watch.found, *(f"the canary {name} exists" for name in made)]))
