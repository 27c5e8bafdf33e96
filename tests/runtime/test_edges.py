"""Order of tasks besides their tensors: explicit edges, dummies, reads and writes by the orchestration,
manual scopes, parameters that are not tracked, predicates. Values and recorded edges, the same for every
schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import runtime

from .seed_kit import bump, copy, fails, vector, write

SCHEDULES: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, *({"seed": s} for s in range(6))]
double = runtime.kernel(lambda x: np.multiply(x, 2, out=x), "inout", name="double")
by_blocks = runtime.kernel(lambda x, count, block: np.add(x, 1, out=x), "inout", name="by_blocks")
AUTO, EXPLICIT = 0, 3


def _edges(run: runtime.Run) -> set[tuple[int, int, int]]:
    return {(int(e["pred"]), int(e["succ"]), int(e["kind"])) for e in run.records.edges}


def _same(orchestrate: Callable[..., Any], expected: float, edges: set[tuple[int, int, int]]) -> None:
    """The same value and the same edges for every schedule."""
    for how in SCHEDULES:
        x = vector()
        run = runtime.run(orchestrate, x, block_dim=2, record=True, check_hazards=True, **how)
        assert set(x) == {expected}, how
        assert _edges(run) == edges, how
        assert run.hazards == [], how


def test_explicit_edges() -> None:
    """Besides the automatic ones; one that is both is explicit, and None is ignored."""

    def orchestrate(rt: Any, x: Any) -> None:
        y, z = rt.tensor(16), rt.tensor(16)
        first = rt.submit(copy, x, y)
        second = rt.submit(copy, x, z)
        third = rt.submit(bump, x, deps=[first, None, second, first])  # they read its output
        rt.submit(double, x, deps=[third])

    _same(orchestrate, 2, {(0, 2, EXPLICIT), (1, 2, EXPLICIT), (2, 3, EXPLICIT)})


def test_an_edge_to_a_task_that_is_long_over() -> None:
    """The number of a task stays good when its slot has been used again many times."""

    def orchestrate(rt: Any, x: Any) -> None:
        with rt.scope():
            first = rt.submit(bump, x)
        for _ in range(20):
            with rt.scope():
                rt.submit(write, vector())
        rt.submit(bump, x, deps=[first, first])

    for how in SCHEDULES:
        x = vector()
        run = runtime.run(orchestrate, x, block_dim=2, record=True, task_window=4, **how)
        assert x[0] == 2 and _edges(run) >= {(0, 21, EXPLICIT)}, how
        assert len([e for e in run.records.edges if e["kind"] == EXPLICIT]) == 1


def test_a_dummy_joins() -> None:
    """It takes no core, and a chain of them no stack."""

    def orchestrate(rt: Any, x: Any) -> None:
        parts = [rt.external(x).view([4], [4 * i]) for i in range(4)]
        with rt.manual_scope():
            begun = rt.task_dummy()
            done = [rt.submit(bump, part, deps=[begun]) for part in parts]
            join = rt.task_dummy([None, *done])
            for _ in range(40):  # one behind the other
                join = rt.task_dummy([join])
            assert rt.task_dummy([None, None]) is None
            rt.submit(double, x, deps=[join, rt.task_dummy([None])])

    chain = {(0, n, EXPLICIT) for n in range(1, 5)} | {(n, 5, EXPLICIT) for n in range(1, 5)}
    _same(orchestrate, 2, chain | {(n, n + 1, EXPLICIT) for n in range(5, 46)})
    run = runtime.run(orchestrate, vector(), block_dim=1, record=True, seed=1)
    dummies = run.records.tasks[run.records.tasks["func_id"] == -1]
    assert len(dummies) == 42 and set(dummies["core"]) == {-1}
    assert "dummy" in run.summary() and "no core" in run.summary()


def test_read_and_write() -> None:
    """The orchestration branches on outputs of tasks, and writes numbers for them."""

    def orchestrate(rt: Any, x: Any) -> None:
        n = rt.tensor((2, 3), "i32")
        rt.submit(fill, n, -7)
        y = rt.tensor(16)
        rt.submit(copy, x, y)
        rt.write(x, 3, 1)  # waits for the reader: y has none of it
        rt.submit(copy, y, x)
        if rt.read(n, (1, 2)) == -7:
            rt.submit(bump, x)
        assert rt.read(rt.external(x).view([1], [3]), 0) == 1.0
        rt.write(n, (0, 0), 5)
        rt.submit(add_first, n, x)

    fill = runtime.kernel(lambda out, by: out.fill(by), "out scalar", name="fill")
    add_first = runtime.kernel(lambda n, x: np.add(x, n[0, 0], out=x), "in inout", name="add_first")
    for how in SCHEDULES:
        x = vector()
        run = runtime.run(orchestrate, x, block_dim=2, check_hazards=True, **how)
        assert set(x) == {6.0} and run.hazards == [], how


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u8"])
def test_elements_of_every_type(dtype: str) -> None:
    def orchestrate(rt: Any) -> None:
        t = rt.tensor(4, dtype)
        rt.submit(write, t)
        for value in (3, 0, 100):
            rt.write(t, 2, value)
            found = rt.read(t, 2)
            assert found == value and isinstance(found, float if "f" in dtype else int)
        if dtype.startswith("i"):
            rt.write(t, 0, -5)
            assert rt.read(t, 0) == -5

    runtime.run(orchestrate, seed=1)


def test_manual_scope() -> None:
    """Its tasks neither look up nor insert: what comes later does not see them either."""

    def orchestrate(rt: Any, x: Any) -> None:
        rt.submit(bump, x)
        with rt.manual_scope():
            one = rt.submit(double, x, deps=[0])
            two = rt.submit(bump, x, deps=[one])
        rt.submit(double, x, deps=[two])  # waits for task 0 because of x

    _same(orchestrate, 6, {(0, 1, EXPLICIT), (1, 2, EXPLICIT), (2, 3, EXPLICIT), (0, 3, AUTO)})


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_an_edge_that_a_manual_scope_lacks_is_found(missing: int) -> None:
    def orchestrate(rt: Any, x: Any) -> None:
        def after(*tasks: int) -> list[int]:
            return [t for t in tasks if t != missing]

        with rt.manual_scope():
            y = rt.tensor(16)
            rt.submit(bump, x)
            rt.submit(copy, x, y, deps=after(0))  # RAW
            rt.submit(bump, x, deps=after(1))  # WAR
            rt.submit(bump, x, deps=after(2))  # RAW
        rt.submit(double, x, deps=after(3))  # RAW with a task that is not in the map

    found = runtime.run(orchestrate, vector(), seed=0, check_hazards=True).hazards
    kinds = {0: "RAW", 1: "WAR", 2: "RAW", 3: "RAW"}
    assert (kinds[missing], missing, missing + 1) in [(h.kind, h.earlier, h.later) for h in found]
    assert all(h.places[0].startswith(__file__) for h in found)


def test_no_dep() -> None:
    """Parts that the author declares independent: both tasks have the whole."""

    def half(rt: Any, x: Any, no_dep: tuple[int, ...]) -> None:
        for _ in range(2):
            rt.submit(bump, x, no_dep=no_dep)

    for no_dep, edges in (((), {(0, 1, AUTO)}), ((0,), set())):
        run = runtime.run(half, vector(), no_dep, seed=0, record=True)
        assert _edges(run) == edges
    assert runtime.run(half, vector(), (0,), seed=0, check_hazards=True).hazards[0].kind == "RAW"

    def manual(rt: Any, x: Any) -> None:
        t = rt.tensor(16, manual_dep=True)
        first = rt.submit(copy, x, t)
        rt.submit(bump, t.view([8], [8]), deps=[first])
        rt.submit(bump, t.view([8], [0]), deps=[first])
        rt.submit(copy, t, x, deps=[rt.task_dummy([1, 2])])

    _same(
        manual, 1, {(0, 1, EXPLICIT), (0, 2, EXPLICIT), (1, 3, EXPLICIT), (2, 3, EXPLICIT), (3, 4, EXPLICIT)}
    )


def test_memory_that_several_tasks_write() -> None:
    def orchestrate(rt: Any, x: Any) -> None:
        for _ in range(4):
            with rt.scope():
                whole = rt.alloc(16)
                for i in range(4):
                    rt.submit(copy, rt.external(x).view([4], [4 * i]), whole.view([4], [4 * i]))
                rt.submit(bump, whole)
                rt.submit(copy, whole, x)

    for how in SCHEDULES:
        x = vector()
        run = runtime.run(orchestrate, x, heap=1024, block_dim=2, record=True, track_war=True, **how)
        assert set(x) == {4.0}, how
        assert set(run.records.edges["kind"]) <= {0, 1, 2}


def test_memory_stays_as_long_as_somebody_uses_it() -> None:
    """A task that has memory of another without waiting for it keeps that memory from reuse."""
    out = np.zeros((40, 256), np.float32)

    def orchestrate(rt: Any) -> None:
        for i in range(len(out)):
            with rt.scope():
                t = rt.tensor(256)
                first = rt.submit(number, t, i)
                middle = rt.submit(bump, vector(), deps=[first])
                rt.submit(copy, t, out[i], no_dep=(0,), deps=[middle])

    number = runtime.kernel(lambda x, i: x.fill(i), "out scalar", name="number")
    for how in SCHEDULES:
        out[:] = -1
        runtime.run(orchestrate, heap=2048, block_dim=2, **how)
        assert np.array_equal(out, np.arange(40)[:, None] + np.zeros((1, 256))), how


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
def test_predicates(op: str) -> None:
    """Evaluated when all producers are done; a task that does not run releases its consumers."""
    flags = np.array([[-1, 0, 1]], np.int16)

    def orchestrate(rt: Any, x: Any) -> None:
        made = rt.tensor(flags.shape, "i16")
        rt.submit(copy, flags, made)
        for i in range(3):
            part = rt.external(x).view([1], [i])
            rt.submit(bump, part, predicate=(made, (0, i), op, 0))
            rt.submit(double, part)
            rt.submit(by_blocks, part, blocks=3, predicate=(made, (0, i), op, 0))

    grow = [(2 + 3) * runs for runs in (eval(f"{flag} {op} 0") for flag in (-1, 0, 1))]
    for how in SCHEDULES:
        x = vector()
        run = runtime.run(orchestrate, x, block_dim=2, record=True, **how)
        assert x[:3].tolist() == grow, how
        assert {(0, n) for n in (1, 3, 4, 6, 7, 9)} <= {(a, b) for a, b, _ in _edges(run)}


def test_a_predicate_in_a_manual_scope_waits_for_deps_only() -> None:
    def orchestrate(rt: Any, deps: bool, count: int) -> None:
        flag = np.zeros(1, np.int32)
        with rt.manual_scope():
            first = rt.submit(bump, flag)
            last = runtime.kernel(lambda *slots: None, "inout" + " scalar" * (count - 1))
            rest = [0] * (count - 1)
            rt.submit(last, vector(), *rest, predicate=(flag, 0, ">", 0), deps=[first] if deps else [])

    for count in (1, 64):  # 64 is the most
        found = runtime.run(orchestrate, False, count, seed=2, check_hazards=True).hazards
        assert [(h.kind, h.earlier, h.later) for h in found] == [("RAW", 0, 1)]
        assert runtime.run(orchestrate, True, count, seed=2, check_hazards=True).hazards == []


@pytest.mark.parametrize(
    ("orchestrate", "words"),
    [
        (lambda rt, x: rt.submit(bump, x, deps=[5]), "dependency 5 is not an earlier task"),
        (lambda rt, x: rt.submit(bump, x, deps=["a"]), "expected the number of a task, got 'a'"),
        (lambda rt, x: rt.task_dummy([3]), r"task 0 (dummy, submitted at"),
        (lambda rt, x: rt.submit(bump, x, no_dep=(1,)), "parameter 1 of kernel bump is not a tensor"),
        (lambda rt, x: rt.submit(bump, x, sync_start=True), "missing blocks= for sync_start"),
        (lambda rt, x: rt.submit(bump, x, predicate=(x, 0, ">", 0)), "expected a tensor of integers for a predicate"),
        (lambda rt, x: rt.submit(bump, x, predicate=(ints(), 0, "in", 0)), "unknown comparison 'in'"),
        (lambda rt, x: rt.submit(bump, x, predicate=(ints(), 4, ">", 0)), "index (4,) is out of bounds"),
        (lambda rt, x: rt.submit(bump, x, predicate=(ints(), 0, ">", 0.5)), "expected an integer of 64 bits for a predicate"),
        (lambda rt, x: rt.submit(bump, x, predicate=5), "expected a predicate, got 5"),
        (
            lambda rt, x: rt.submit(bump, x, predicate=(rt.tensor(1, "i32"), 0, ">", 0)),
            "the tensor of the predicate has no memory",
        ),
        (lambda rt, x: rt.read(rt.tensor(4), 0), "of a tensor without memory"),
        (lambda rt, x: rt.read(x, (0, 0)), "index (0, 0) is out of bounds of a tensor of shape (16,)"),
        (lambda rt, x: rt.write(ints(), 0, 1 << 40), "cannot store 1099511627776 in int32: out of range"),
        (lambda rt, x: rt.write(ints(), 0, "x"), "expected int32, got 'x'"),
        (lambda rt, x: rt.write(np.broadcast_to(x, (16,)), 0, 1), "the array is read-only"),
    ],
)  # fmt: skip
def test_misuse(orchestrate: Callable[..., Any], words: str) -> None:
    assert words in fails(orchestrate, vector(), code="PTO-E2621")


def ints() -> Any:
    return np.zeros(4, np.int32)


def test_no_automatic_scope_in_a_manual_scope() -> None:
    def orchestrate(rt: Any) -> None:
        with rt.manual_scope(), rt.scope():
            pass

    text = fails(orchestrate, code="PTO-E2621")
    assert "inside the manual scope of" in text and Path(__file__).name in text


def test_a_manual_scope_in_a_manual_scope() -> None:
    """Both leave the order to edges; what comes after the inner one is in the outer one again."""

    def orchestrate(rt: Any, x: Any) -> None:
        with rt.manual_scope():
            first = rt.submit(bump, x)
            with rt.manual_scope():
                second = rt.submit(bump, x, deps=[first])
            rt.submit(bump, x, deps=[second])

    x = vector()
    run = runtime.run(orchestrate, x, record=True)
    edges = {(int(e["pred"]), int(e["succ"])) for e in run.records.edges}
    assert edges == {(0, 1), (1, 2)} and set(run.records.edges["kind"]) == {3}


def test_read_of_a_task_that_fails() -> None:
    def explode(x: Any) -> None:
        raise ValueError("boom")

    bad = runtime.kernel(explode, "inout", name="bad")

    def orchestrate(rt: Any, x: Any) -> None:
        rt.submit(bad, x)
        rt.read(x, 0)

    with pytest.raises(pto.DiagnosticError, match="boom"):
        runtime.run(orchestrate, vector(), threads=2)
