"""The removal of a line with a flag or a barrier from a C++ example is reported. The text without the line is
compiled, and run as users run it. `make emitted` removes every one.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.each import each
from tests.engine.cpp.test_traced import EXAMPLE

import pto
from pto.cli.main import main
from pto.verifier.apply import applied

GRAPHS = Path(__file__).parents[2] / "examples" / "runtime"
FOLDERS = ("vector_dag", "matmul_exp", "bgemm", "paged_attention")
_ORDERS = re.compile(r"^\s*(?:set_flag|wait_flag|pipe_barrier)\(.*\);\s*(?://.*)?$")

#: The last lines of kernels: behind them a task is over, and with it all of its pipes.
_LAST = re.compile(r"pipe_barrier\(PIPE_ALL\);")


def lines(path: Path) -> list[int]:
    """The lines of a file that order something, counted from 0."""
    text = path.read_text(encoding="utf-8").splitlines()
    found = [n for n, line in enumerate(text) if _ORDERS.match(line)]
    return [n for n in found if not (_LAST.search(text[n]) and text[n + 1].startswith("}"))]


def removable(folder: str) -> list[tuple[str, str, int]]:
    files = sorted(p for p in (GRAPHS / folder).rglob("*") if p.suffix in (".cpp", ".h"))
    return [(folder, str(p.relative_to(GRAPHS / folder)), n) for p in files for n in lines(p)]


def without(path: Path, line: int) -> None:
    text = path.read_text(encoding="utf-8").splitlines()
    text[line] = ""
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def test_of_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = "PTO_TEST_EMITTED" in os.environ
    some = (
        [one for folder in FOLDERS for one in removable(folder)] if everything else removable(FOLDERS[0])[:1]
    )

    def missed(folder: str, file: str, line: int) -> None:
        place = tmp_path / f"{folder}-{Path(file).stem}-{line}"
        shutil.copytree(GRAPHS / folder, place / folder)
        shutil.copytree(GRAPHS / "common", place / "common")
        without(place / folder / file, line)
        status = main(["runtime", "run", str(place / folder), "--sanitize", "race,sync", "--silent"])
        shown = capsys.readouterr().err
        assert status == 1 and re.search(r"error\[PTO-E(21|22|08)\d\d\]", shown), (
            f"nobody misses line {line + 1}"
        )
        shutil.rmtree(place)

    each(missed, some)


def test_of_a_kernel(tmp_path: Path) -> None:
    """The example with a race, mended as the report says."""
    a = np.ones((64, 128), np.float32)
    (found,) = pto.kernel(str(EXAMPLE)).run(a, np.zeros_like(a), sanitize="all").diagnostics
    path = tmp_path / "mended.cpp"
    path.write_text(applied(EXAMPLE.read_text(encoding="utf-8"), found.help) or "", encoding="utf-8")
    some = lines(path) if "PTO_TEST_EMITTED" in os.environ else lines(path)[:1]
    assert some

    def missed(line: int) -> None:
        broken = tmp_path / f"without{line}.cpp"
        shutil.copy(path, broken)
        without(broken, line)
        result = pto.kernel(str(broken)).run(a, np.zeros_like(a), sanitize="race,sync")
        assert not result.ok, f"nobody misses line {line + 1}"

    each(missed, some)
