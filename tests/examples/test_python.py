"""The examples of the Python language: each gives the numbers of NumPy, and is in the list."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
from tests.each import each

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted((EXAMPLES / "python").glob("*.py"))


def test_each_is_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The graphs write a picture if that is requested."""

    def run(path: Path) -> None:
        folder = tmp_path / path.stem
        folder.mkdir()
        monkeypatch.setattr(
            sys, "argv", [str(path), *([str(folder)] if "FOLDER" in path.read_text() else [])]
        )
        runpy.run_path(str(path), run_name="__main__")
        said = capsys.readouterr().out.splitlines()
        compared = [line for line in said if "NumPy" in line]
        assert compared and all(line.endswith("NumPy: True") for line in compared), said
        assert len(sys.argv) == 1 or (folder / "run.html").stat().st_size

    each(run, PROGRAMS)


def test_the_list_has_each() -> None:
    text = (EXAMPLES / "README.md").read_text()
    assert re.findall(r"^\| \[(\S+)\]\(python/\1\)", text, re.MULTILINE) == [p.name for p in PROGRAMS]
