"""Kernels of a graph under watch: reports name the task, the kernel and the line; hazards are errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pto.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "runtime"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for the folders of all tests: an orchestration that did not change is not compiled again."""
    return tmp_path_factory.mktemp("examples")


@pytest.fixture
def folder(place: Path) -> Path:
    for name in ("vector_dag", "common"):
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(EXAMPLES / name, place / name)
    return place / "vector_dag"


def test_a_correct_graph_has_nothing_to_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "run", str(folder), "--sanitize", "all"]) == 0
    assert "TEST PASSED" in capsys.readouterr().out


def test_a_race_names_task_kernel_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "kernels" / "aiv" / "mul.cpp"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("TMUL(z, x, y);", "\n    TMUL(z, x, y);\n    TADD(z, z, x);"), encoding="utf-8"
    )
    moved = folder.with_name("moved")
    for at in (folder, moved):  # the second time with libraries that were built in a folder that is gone
        assert main(["runtime", "run", str(at), "--sanitize", "race"]) == 1
        shown = capsys.readouterr().err
        said = rf"{at.name}/.*/mul\.cpp:\d+:5: error\[PTO-E2201\]: TADD: .*PIPE_V.* in task \d+ \(mul\)"
        assert re.search(said, shown), shown
        calls = r"dag\.cpp:17 in binary, called at \S*dag\.cpp:\d+ in aicpu_orchestration_entry"
        assert re.search(rf"note: task \d+ is submitted at \S*{calls}", shown), shown
        at.rename(moved)


def test_a_task_that_fails_names_who_submitted_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "kernels" / "orchestration" / "vector_dag.cpp"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("(x.numel())", "(4 * x.numel())"), encoding="utf-8")
    for option in (), ("--sanitize", "oob"), ("--check-hazards",):
        assert main(["runtime", "run", str(folder), *option]) == 1
        shown = capsys.readouterr().err
        assert re.search(r"(SA-0353|PTO-E2101)\]: task 0 \(add, AIV", shown), shown
        said = r"note: the task was submitted at \S*dag\.cpp:17 in binary, called at \S*dag\.cpp:37 in aicpu"
        assert re.search(said, shown), shown


def test_hazards_are_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "kernels" / "orchestration" / "vector_dag.cpp"
    text = path.read_text(encoding="utf-8")
    changed = text.replace("add_scalar(rt, sum, 2.0f, two_more);", "add_scalar(rt, sum, 2.0f, sum);")
    changed = changed.replace(
        "binary(rt, MUL, one_more, two_more, product)", "binary(rt, MUL, one_more, sum, product)"
    )
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    assert main(["runtime", "run", str(folder), "--sanitize", "all"]) == 1
    assert "error[PTO-E2611]" in capsys.readouterr().err


def test_memory_that_no_task_wrote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "kernels" / "aiv" / "add_scalar.cpp"
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "TSTORE(" not in line]
    assert len(lines) == len(text.splitlines()) - 1
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["runtime", "run", str(folder), "--sanitize", "undef"]) == 1
    shown = capsys.readouterr().err
    assert re.search(
        r"rows\.h:\d+:3: error\[PTO-E2203\]: TLOAD: reads 65536 bytes .* in task 3 \(mul\)", shown
    ), shown


def test_a_reversed_edge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task comes before the one whose result it reads: ordered, and wrong."""
    path = folder / "host_build_graph" / "vector_dag.cpp"
    given = ["runtime", "run", str(folder), "-k", str(path.parent), "--sanitize", "undef"]
    assert main(given) == 0
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("add_successor(t1, t3)", "add_successor(t3, t1)"), encoding="utf-8")
    assert main(given) == 1
    shown = capsys.readouterr().err
    assert re.search(
        r"rows\.h:\d+:3: error\[PTO-E2203\]: TLOAD: reads 65536 bytes .* in task 3 \(mul\)", shown
    ), shown


def test_what_ends_a_run_has_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(folder.rglob("rows.h"))
    text = path.read_text(encoding="utf-8")
    changed = text.replace("tensor_at<float>(slot),", "tensor_at<float>(slot) + 64,")
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    assert main(["runtime", "run", str(folder), "--sanitize", "oob"]) == 1
    shown = capsys.readouterr().err
    said = r"rows\.h:\d+:3: error\[PTO-E2101\]: task 0 \(add, AIV \d+\): TLOAD: .* of parameter 0, which has 65536"
    assert re.search(said, shown), shown
    assert "TLOAD(x, gx);" in shown
