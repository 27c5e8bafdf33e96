"""Calls that are refused in a Python orchestration, and their messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import runtime
from pto.runtime.extension import extension

fill = runtime.kernel(lambda out: out.fill(1), "out", name="fill")
touch = runtime.kernel(lambda x: None, "in", name="touch")
number = runtime.kernel(lambda n: None, "scalar", name="number")


def _x(*shape: int) -> Any:
    return np.zeros(shape or (16,), np.float32)


def _refused(orchestrate: Any, **more: Any) -> str:
    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(orchestrate, block_dim=more.pop("block_dim", 1), **more)
    assert {d.code for d in caught.value.diagnostics} == {"PTO-E2621"}
    return str(caught.value)


@pytest.mark.parametrize("value", [3.5, "4", [1], object()])
@pytest.mark.parametrize("name", ["block_dim", "threads", "schedulers", "task_window", "heap", "seed"])
def test_options_are_whole_numbers(name: str, value: Any) -> None:
    assert "must be a whole number" in _refused(lambda rt: None, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("task_window", 1 << 63), ("task_window", 1 << 70), ("heap", 1 << 64), ("seed", -1), ("seed", 1 << 64),
     ("threads", 100_000), ("schedulers", 5000), ("dep_pool", 1 << 40)],
)  # fmt: skip
def test_options_have_limits(name: str, value: int) -> None:
    """The window of 2^63 slots divided by zero, 100000 threads were started."""
    text = _refused(lambda rt: None, **{name: value})
    assert "must be in range" in text or "must be at least" in text


def test_numpy_numbers_are_options() -> None:
    options: dict[str, Any] = {"block_dim": np.int64(2), "seed": np.uint8(3)}
    run = runtime.run(lambda rt: rt.submit(fill, _x()), **options)
    assert run.stats["tasks"] == 1 and run.stats["block_dim"] == 2


def test_rings_that_this_machine_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*what: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(extension(), "Tensormap", full)
    assert "out of memory" in _refused(lambda rt: None, heap=1 << 46)


@pytest.mark.parametrize("shape", ["ab", 2.0, (4.0, 2), None, [[1]], (1, -1), (1,) * 6])
def test_shapes(shape: Any) -> None:
    assert "unsupported shape of a tensor" in _refused(lambda rt: rt.tensor(shape))


def test_shapes_of_numpy() -> None:
    shapes: list[Any] = [np.int64(4), np.array([2, 3]), range(1, 3)]
    made: list[Any] = []
    runtime.run(lambda rt: made.extend(rt.tensor(s).shape for s in shapes))
    assert made == [(4,), (2, 3), (1, 2)]


def test_element_types() -> None:
    assert "unsupported element type 3.5" in _refused(lambda rt: rt.tensor(4, 3.5))
    assert "unsupported shape of a tensor: (1, 1, 1, 1, 1, 1)" in _refused(
        lambda rt: rt.submit(touch, _x(*[1] * 6))
    )


def test_what_is_no_kernel() -> None:
    assert "expected a kernel, got function" in _refused(lambda rt: rt.submit(test_shapes, _x()))
    for source, args in ((5, "in"), (None, "in"), (test_shapes, None)):
        with pytest.raises(pto.DiagnosticError):
            runtime.kernel(source, args)  # pyright: ignore[reportArgumentType]


def test_arrays_that_nobody_may_write() -> None:
    """Also through a view; reading them is fine."""
    x = _x()
    x.flags.writeable = False
    assert "cannot write to parameter 0 of kernel fill: the array is read-only" in _refused(
        lambda rt: rt.submit(fill, x)
    )
    assert "read-only" in _refused(lambda rt: rt.submit(fill, rt.external(x).view((4,), (4,))))
    runtime.run(lambda rt: rt.submit(touch, x))
    assert not x.any()


def test_a_python_kernel_cannot_write_what_it_only_reads() -> None:
    """No task would wait for such a write. The line of the kernel is named."""
    x = _x()

    def wrong(x: Any) -> None:
        x[0] = 1

    with pytest.raises(pto.DiagnosticError, match="read-only") as caught:
        runtime.run(lambda rt: rt.submit(runtime.kernel(wrong, "in"), x))
    (problem,) = caught.value.diagnostics
    assert problem.code == "PTO-E2622" and not x.any()
    line = wrong.__code__.co_firstlineno + 1
    assert problem.notes[0][0] == f"raised at {__file__}:{line}"


def test_numbers() -> None:
    assert "expected an integer ('scalar') for parameter 0 of kernel number, got 0.5" in _refused(
        lambda rt: rt.submit(number, 0.5)
    )
    assert "does not fit in 64 bits" in _refused(lambda rt: rt.submit(number, 1 << 64))
    seen: list[float] = []
    note = runtime.kernel(seen.append, "float", name="note")
    runtime.run(lambda rt: [rt.submit(note, v) for v in (1e300, -1e300, np.float16(0.5))], seed=0)
    assert sorted(seen) == [-np.inf, 0.5, np.inf]


def test_after_the_end() -> None:
    kept: list[Any] = []
    runtime.run(lambda rt: (kept.append(rt), rt.submit(fill, _x())))
    (rt,) = kept
    for late in (
        lambda: rt.submit(fill, _x()), lambda: rt.submit(number, 1), lambda: rt.scope().__enter__(),
        rt.allocate_cluster, lambda: rt.free_cluster(0),
    ):  # fmt: skip
        with pytest.raises(pto.DiagnosticError, match="the run has ended"):
            late()


def test_pictures_of_nothing(tmp_path: Path) -> None:
    """A run without tasks was recorded all the same."""
    run = runtime.run(lambda rt: None, record=True)
    run.save_trace(str(tmp_path / "t.json"))
    run.save_swimlane(str(tmp_path / "s.html"))
    run.save_graph(str(tmp_path / "g.dot"))
    assert "traceEvents" in json.loads((tmp_path / "t.json").read_text())
    assert run.summary().startswith("0 tasks")


def test_one_block_is_a_block() -> None:
    """Records: the block is that of a block task, and -1 of another, however many blocks there are."""
    spmd = runtime.kernel(lambda x, blocks, block: None, "inout", name="spmd")
    run = runtime.run(lambda rt: (rt.submit(spmd, _x(), blocks=1), rt.submit(fill, _x())), record=True)
    assert run.records.tasks["block"].tolist() == [0, -1]
