"""Blocks of tasks with equal traces are executed once, and still one by one where that matters."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from pto.cli.main import main
from pto.engine.region import Region, blocked
from pto.engine.traced.contents import by_contents
from pto.runtime import task_traces as hearing
from pto.runtime.equal_tasks import BlockTrace, ByteUse, KnownFindings, TaskAccess
from pto.runtime.task_sanitizers import _Uses
from pto.runtime.task_traces import TaskArray
from pto.runtime.written_bytes import Written

EXAMPLES = Path(__file__).parents[2] / "examples" / "runtime"
ONCE = "add_scalar(rt, sum, 2.0f, two_more);"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for the folders of all tests: an orchestration that did not change is not compiled again."""
    return tmp_path_factory.mktemp("examples")


@pytest.fixture
def folder(place: Path) -> Path:
    for name in ("vector_dag", "common"):
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(EXAMPLES / name, place / name)
    path = place / "vector_dag" / "kernels" / "orchestration" / "vector_dag.cpp"
    text = path.read_text(encoding="utf-8")
    assert ONCE in text
    more = "for (int i = 0; i < 30; ++i) { Tensor t = make_tensor(shape, 1); add_scalar(rt, sum, 2.0f, t); }"
    path.write_text(text.replace(ONCE, ONCE + more), encoding="utf-8")
    return place / "vector_dag"


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with an entry for every block that was executed."""
    found: list[int] = []
    run = hearing.Execution.run

    def counted(self: hearing.Execution, *args: object, **options: object) -> object:
        found.append(1)
        return run(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(hearing.Execution, "run", counted)
    return found


def test_thirty_tasks_that_do_the_same_are_executed_once(
    folder: Path, executed: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runtime", "run", str(folder), "--sanitize", "all"]) == 0
    assert "TEST PASSED" in capsys.readouterr().out
    assert len(executed) <= 4  # add, mul, and add_scalar with two scalars


def test_what_is_wrong_is_said_of_all_of_them(
    folder: Path, executed: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "kernels" / "aiv" / "add_scalar.cpp"
    text = path.read_text(encoding="utf-8")
    broken = re.sub(r"(TADDS\((\w+), .*\);)", r"\1 TADDS(\2, \2, 0.0f);", text)
    assert broken != text
    path.write_text(broken, encoding="utf-8")
    assert main(["runtime", "run", str(folder), "--sanitize", "race"]) == 1
    shown = capsys.readouterr().err
    assert re.search(r"the same in task \d+ \(add_scalar\); task .*, and 28 more", shown), shown
    assert len(executed) <= 4


def region(base: int, rows: int, cols: int, stride: int, bits: int = 32) -> Region:
    return Region(base, blocked(0, rows, 1, stride, 1), blocked(0, cols, 1, 1, 1), bits)


def told(address: int, size: int, *places: int) -> BlockTrace:
    return BlockTrace(b"key", [TaskArray(address, size, "a", None)], [np.array(places, np.uint64)])


def test_others_stay_within_their_own_arrays() -> None:
    alike = KnownFindings()
    alike.keep(told(0x10000, 4096, 512), [], [TaskAccess(False, 0, 512, region(512, 4, 64, 128))])
    assert alike.find(told(0x90000, 4096, 0), None) is not None
    assert alike.find(told(0x90000, 4096, 2048), None) is not None
    assert alike.find(told(0x90000, 4096, 2560), None) is None  # its last row ends behind the array
    assert alike.find(told(0x90000, 1024, 0), None) is None
    assert alike.find(told(0x90000, 4096, 0)._replace(key=b"other"), None) is None


def test_others_read_what_was_written() -> None:
    alike, written = KnownFindings(), Written()
    read, write = region(512, 4, 64, 128), region(4096, 4, 64, 128)
    alike.keep(
        told(0x10000, 8192, 512), [], [TaskAccess(False, 0, 512, read), TaskAccess(True, 0, 512, write)]
    )
    other = told(0x90000, 8192, 0)
    assert alike.find(other, written) is None
    written.add(read, 0x90000 - 512)
    assert written.lacks(write, 0x90000 - 512) == 1024
    assert alike.find(other, written) is not None
    assert written.lacks(write, 0x90000 - 512) == 0


def test_places_of_an_array_that_is_only_read_may_lie_anywhere() -> None:
    accesses = [TaskAccess(False, 0, at, region(at, 4, 64, 64)) for at in (512, 2048)]
    alike = KnownFindings()
    alike.keep(told(0x10000, 8192, 512, 2048), [], accesses)
    assert alike.find(told(0x90000, 8192, 4096, 0), None) is not None
    assert alike.find(told(0x90000, 8192, 4096, 7680), None) is None  # behind the end
    assert alike.find(told(0x90000, 8192, 4096, 8), None) is None  # not aligned as it was
    twice = KnownFindings()  # a page that the first one has twice
    twice.keep(told(0x10000, 8192, 512, 512), [], accesses[:1])
    assert twice.find(told(0x90000, 8192, 1024, 4096), None) is not None
    assert twice.find(told(0x90000, 8192, 1024, 7680), None) is None
    alike = KnownFindings()
    alike.keep(told(0x10000, 8192, 512, 2048), [], [*accesses[:1], accesses[1]._replace(write=True)])
    assert alike.find(told(0x90000, 8192, 4096, 0), None) is None
    assert alike.find(told(0x90000, 8192, 1024, 2560), None) is not None


@pytest.mark.parametrize("start", [0x1000, (1 << 28) - 700])
def test_written_bytes(start: int) -> None:
    """Against a mask of all of them; the second memory lies across two pieces of marks."""
    random = np.random.default_rng(7)
    written, mask = Written(), np.zeros(4096, bool)
    for _ in range(60):
        base, rows, cols = (int(random.integers(*r)) for r in ((0, 1500), (1, 6), (1, 40)))
        bits = int(random.choice([8, 16, 32, 64]))
        where = region(base, rows, cols, int(random.choice([cols, cols + 3])), bits)
        at = where.byte_offsets()
        assert written.lacks(where, start) == np.count_nonzero(~mask[at])
        assert written.lacks(at, start) == np.count_nonzero(~mask[at])
        how = random.integers(4)
        if how == 0:
            written.add(where, start)
        elif how == 1:
            written.add(at, start)
        elif how == 2:
            part = random.random(64) < 0.5
            written.add_where(start + base, part)
            mask[base : base + 64] |= part
            continue
        else:
            written.add_all(start + base, 16)
            mask[base : base + 16] = True
            continue
        mask[at] = True
    for _ in range(40):
        low, size = int(random.integers(0, 4000)), int(random.integers(1, 90))
        assert written.knows(start + low, size) == mask[low : low + size].any()


def test_tasks_that_share_a_tensor_and_keep_apart() -> None:
    """They declare that they use all of it: their accesses are more precise."""
    uses, arrays = _Uses(), [TaskArray(4096, 1024, "parameter 0", None)]
    for task, first, last, write in ((1, 0, 256, True), (2, 256, 512, True), (3, 256, 512, False)):
        uses.add(task, arrays, [ByteUse(0, 4096 + first, 4096 + last, write)])
    uses.add(4, arrays, [])  # it did something with pointers, or nothing
    uses.add(5, [*arrays, TaskArray(0, 16, "parameter 1", None)], [ByteUse(1, 0, 16, True)])
    assert uses.apart(1, 2, 0)
    assert not uses.apart(2, 3, 0)
    assert not uses.apart(1, 3, 0)  # it reads output of task 2
    assert not uses.apart(1, 4, 0)
    assert not uses.apart(4, 5, 0)
    assert uses.apart(1, 5, 0)
    assert not uses.apart(1, 2, 7)


def test_calls_that_memory_decides_on() -> None:
    assert all(by_contents(n) for n in ("tgather", "tscatter", "mgather", "mscatter", "twait", "vgather2"))
    assert not any(by_contents(n) for n in ("tload", "tstore", "tadd", "tmatmul", "set_flag", "no such row"))
