"""Kernels of a graph under watch: reports name the task, the kernel and the line; hazards are errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import pto.language as pl
from pto import knobs
from pto.cli.main import main
from pto.compat.pypto.session import ProgramListener
from pto.engine import journal

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
        assert re.search(rf"note: task \d+ was submitted at \S*{calls}", shown), shown
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
    run = ["runtime", "run", str(folder), "--sanitize", "undef"]
    assert main(run) == 1
    shown = capsys.readouterr().err
    found = r"rows\.h:\d+:3: error\[PTO-E2203\]: TSTORE: stores undefined data to .* in task 4 \(add\)"
    assert re.search(found, shown), shown
    stored = (
        r"rows\.h:\d+:3: note: TSTORE reads element \(0, 0\) of 'z', which is undefined, in task 3 \(mul\)"
    )
    assert re.search(stored, shown), shown
    read = r"rows\.h:\d+:3: note: TLOAD reads element \(0, 0\) of 'gx', which no task has written before"
    assert re.search(read, shown), shown

    assert main([*run, "--strict-undef"]) == 1
    shown = capsys.readouterr().err
    assert re.search(
        r"rows\.h:\d+:3: error\[PTO-E2203\]: TLOAD: reads 65536 bytes .* in task 3 \(mul\)", shown
    ), shown


@pl.jit
def padded(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.create_tile([16, 64], dtype=pl.FP32)
        rows[0:8, :] = pl.load(x, [0, 0], [8, 64])
        pl.store(pl.mul(rows, 2.0), [0, 0], t)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.add(pl.load(t, [0, 0], [8, 64]), 1.0), [0, 0], y)
    return y


@pytest.mark.parametrize("door", ["run", "execute"])
def test_padding_between_tasks_is_an_error_only_where_it_has_an_effect(door: str) -> None:
    """Rows 8 to 15 of a tensor between tasks hold undefined data, which no task reads."""
    values = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)

    def found(**options: bool) -> list[str]:
        if door == "run":
            return [d.message for d in padded.run(*values, sanitize="undef", **options).diagnostics]
        run = padded.compile(*values).execute(list(values), sanitize="undef", **options)
        return [d.message for d in run.diagnostics]

    assert found() == []
    (message,) = found(strict_undef=True)
    assert "stores undefined data to" in message and "512 of 1024 elements, the first at (8, 0)" in message
    with knobs.override(PTO_STRICT_UNDEF="1"):
        assert found() == [message]
    with knobs.override(PTO_STRICT_UNDEF="1"):
        assert found(strict_undef=False) == []


def test_a_reversed_edge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task comes before the one whose result it reads: ordered, and wrong."""
    path = folder / "host_build_graph" / "vector_dag.cpp"
    given = ["runtime", "run", str(folder), "-k", str(path.parent), "--sanitize", "undef"]
    assert main(given) == 0
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("add_successor(t1, t3)", "add_successor(t3, t1)"), encoding="utf-8")
    assert main(given) == 1
    shown = capsys.readouterr().err
    found = r"rows\.h:\d+:3: error\[PTO-E2203\]: TSTORE: stores undefined data to .* in task 3 \(mul\)"
    assert re.search(found, shown), shown
    read = r"rows\.h:\d+:3: note: TLOAD reads element \(0, 0\) of 'gx', which no task has written before"
    assert re.search(read, shown), shown


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


@pl.jit
def rows_by_count(x: pl.Tensor, counts: pl.Tensor, y: pl.Out[pl.Tensor]):
    """Each task has a trace of its own: the number of its iterations comes from memory."""
    for r in pl.parallel(12):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [1, 64])
            for _ in pl.range(pl.read(counts, [r])):
                t = pl.add(t, 1.0)
            pl.store(t, [r, 0], y)
    return y


@pytest.mark.parametrize("door", ["run", "execute"])
def test_a_sample_of_each_kind_is_checked(door: str) -> None:
    """Blocks with different traces are checked up to the sample, then when their number doubles; the result says
    how many were not."""
    counts = np.arange(12, dtype=np.int32)
    values = np.ones((12, 64), np.float32), counts, np.zeros((12, 64), np.float32)
    compiled = rows_by_count.compile(*values)

    def left(sample: int | str | None) -> list[str]:
        options = {"sanitize": "race,undef", "sample": sample}
        run = (
            compiled.run(list(values), **options)
            if door == "run"
            else compiled.execute(list(values), **options)
        )
        assert run.diagnostics == []
        assert (values[2] == 1 + counts[:, None]).all()
        return list(run.unchecked.values())

    assert left(None) == left("all") == []
    (why,) = left(2)
    assert why == "8 of 12 blocks, beyond the sample of 2"  # checked: number 1, 2, 4, 8
    with knobs.override(PTO_SAMPLE="2"):
        assert left(None) == [why]
    with pytest.raises(ValueError, match="expected a number of blocks or 'all' for sample, got 0"):
        left(0)


def test_a_task_beyond_the_sample_raises_no_false_alarm() -> None:
    """Its outputs count as written, and its accesses as ordered."""
    x, y = np.ones((12, 64), np.float32), np.zeros((12, 64), np.float32)
    for sample in (1, 3):
        assert through_one_tensor.run(x, y, sanitize="all", sample=sample).diagnostics == []
        run = through_one_tensor.compile(x, y).execute([x, y], sanitize="all", sample=sample)
        assert run.diagnostics == []


@pl.jit
def through_one_tensor(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([12, 64], dtype=pl.FP32)
    for r in pl.parallel(12):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.add(pl.load(x, [r, 0], [1, 64]), 1.0), [r, 0], t)
    for r in pl.parallel(12):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.add(pl.load(t, [r, 0], [1, 64]), 1.0), [r, 0], y)
    return y


@pl.jit
def in_blocks(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    """The last of 7 blocks stores an element of its tile that it never wrote."""
    t = pl.create_tensor([7, 64], dtype=pl.FP32)
    for b in pl.spmd(7):
        pl.store(pl.add(pl.load(x, [b, 0], [1, 64]), 1.0), [b, 0], t)
    for b in pl.spmd(7):
        row = pl.create_tile([1, 64], dtype=pl.FP32)
        if b < 6:
            row = pl.load(t, [b, 0], [1, 64])
        pl.store(row, [b, 0], y)
    return y


def test_a_sample_of_the_blocks_of_a_task() -> None:
    """The sample and the last block of a task with many blocks run under watch; all other blocks run without."""
    x, y = np.arange(448, dtype=np.float32).reshape(7, 64), np.zeros((7, 64), np.float32)
    for sample, left in ((1, 3), (2, 3), (5, 1), (7, 0)):
        run = in_blocks.run(x, y, sanitize="undef", sample=sample)
        assert [d.code for d in run.diagnostics] == ["PTO-E2203"] and not run.ok
        assert np.array_equal(y[:6], x[:6] + 1)
        assert set(run.unchecked.values()) == (
            {f"{left} of 7 blocks, beyond the sample of {sample}"} if left else set()
        )


@pl.jit
def meeting(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for b in pl.spmd(4):
        t = pl.load(x, [b, 0], [1, 64])
        pl.system.syncall(core_type="aiv_only")
        pl.store(pl.add(t, 1.0), [b, 0], y)
    return y


def test_blocks_that_wait_for_each_other_are_all_checked() -> None:
    x, y = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    run = meeting.run(x, y, sanitize="undef", sample=1)
    assert run.ok and not run.unchecked and (y == 2).all()


def test_a_called_program_says_what_was_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = np.arange(12, dtype=np.int32)
    values = np.ones((12, 64), np.float32), counts, np.zeros((12, 64), np.float32)
    saved = pl.Compiled.load(rows_by_count.compile(*values).save(tmp_path / "saved", dumps=False))
    for program in (rows_by_count, saved):
        with journal.listening(ProgramListener()), knobs.override(PTO_SANITIZE="race", PTO_SAMPLE="2"):
            program(*values)
        said = r"pto: rows_by_count: checked for race but not \w+ \(8 of 12 blocks, beyond the sample of 2\)"
        assert re.search(said, capsys.readouterr().err)
