"""The watch itself: the allowed operations, and the refused ones."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..each import each
from .watch import SideEffect, no_side_effects


def test_files_of_the_folder_are_allowed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    inside = tmp_path / "inside"
    elsewhere.mkdir(), inside.mkdir()
    with no_side_effects(inside, also=[elsewhere], commands=[sys.executable]):
        Path("made.txt").write_text("1")
        os.rename("made.txt", "moved.txt")
        (elsewhere / "made.txt").write_text("1")
        subprocess.run([sys.executable, "-c", ""], check=True)
        Path(__file__).read_text()
    assert (inside / "moved.txt").exists()
    (tmp_path / "after.txt").write_text("nothing is watched behind the block")


def test_everything_else_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
    inside.mkdir(), outside.write_text("")
    attempts: dict[str, Callable[[], object]] = {
        "writes": lambda: outside.write_text("1"),
        "appends": lambda: open(outside, "a"),
        "removes": lambda: outside.unlink(),
        "renames": lambda: os.rename(outside, "mine.txt"),
        "leaves by ..": lambda: Path("../made.txt").write_text("1"),
        "links": lambda: os.symlink("x", tmp_path / "link"),
        "starts": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        "asks a shell": lambda: os.system("true"),
        "forks": lambda: os.fork() or os._exit(0),
        "connects": lambda: socket.socket(),
        "evaluates": lambda: eval("'pwned'"),
        "leaves the canary": lambda: Path("pwned").touch(),
    }

    def refused(name: str) -> None:
        with pytest.raises(SideEffect), no_side_effects(inside), contextlib.suppress(Exception):
            attempts[name]()
        (inside / "pwned").unlink(missing_ok=True)

    each(refused, attempts)
    assert outside.read_text() == "" and not (tmp_path / "made.txt").exists()
