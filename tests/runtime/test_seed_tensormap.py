"""Edges that follow from the tensors that tasks read and write, and unordered accesses.

Sections of the description: TensorMap, Submit steps, Orchestration API (parameters), and spec 2.3, 2.4, 2.5.
A gate holds tasks of these graphs back if producers must still be alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.runtime import Run, Runtime, kernel, run

from .seed_kit import bump, copy, edges, fails, quiet, read, touch, vector, write


def graph(orchestrate: Callable[..., Any], *args: Any, **options: Any) -> Run:
    """A recorded run. All tasks stay alive: none retires before the outer scope ends."""
    return quiet(orchestrate, *args, record=True, **options)[0]


def kinds(done: Run) -> dict[tuple[int, int], str]:
    names = ("RAW", "WAW", "WAR", "explicit")
    return {(int(e["pred"]), int(e["succ"])): names[e["kind"]] for e in done.records.edges}


# -- table 2.5 -----------------------------------------------------------------------------------------------


def test_input_depends_on_every_overlapping_writer() -> None:
    """Spec 2.5, INPUT: every live overlapping producer, older covered ones too; readers leave no trace."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        rt.submit(write, x)  # 0
        rt.submit(write, x)  # 1: no edge, though it writes the same
        rt.submit(read, x)  # 2: both
        rt.submit(read, x)  # 3: both, not the reader

    assert edges(graph(orchestrate)) == {(0, 2), (1, 2), (0, 3), (1, 3)}


def test_inout_chain() -> None:
    """Spec 2.5, INOUT: waits for overlapping writers and takes the place of INOUTs it covers, not of OUTPUT."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        rt.submit(write, x)  # 0
        rt.submit(touch, x)  # 1
        rt.submit(touch, x)  # 2: the OUTPUT stays, 1 is covered and goes
        rt.submit(touch, x)  # 3
        rt.submit(read, x)  # 4: the OUTPUT and the last INOUT

    assert edges(graph(orchestrate)) == {(0, 1), (0, 2), (1, 2), (0, 3), (2, 3), (0, 4), (3, 4)}


def test_output_looks_nothing_up() -> None:
    """Spec 2.5, OUTPUT: neither WAW nor WAR, also where the address is given."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        t = rt.tensor(4)
        rt.submit(write, t)
        rt.submit(write, t)
        rt.submit(touch, x)
        rt.submit(read, x)
        rt.submit(write, x)

    assert edges(graph(orchestrate)) == {(2, 3)}


def test_scalars_make_no_edges() -> None:
    """Spec 2.5, SCALAR; an address passed as a number is only a number."""
    x = vector()
    got: list[int] = []
    both = kernel(lambda t, s: got.append(s), "inout scalar", name="both")

    def orchestrate(rt: Runtime) -> None:
        rt.submit(write, x)
        rt.submit(both, vector(), x.ctypes.data)

    assert edges(graph(orchestrate)) == set()
    assert got == [x.ctypes.data]


def test_a_task_does_not_wait_for_itself() -> None:
    """Spec 2.3: lookup precedes insert."""
    x = vector()
    twice = kernel(lambda a, b: None, "in out", name="twice")
    assert edges(graph(lambda rt: rt.submit(twice, x, x))) == set()


def test_one_edge_for_each_producer() -> None:
    """Task descriptor: fanin_count counts producers, not parameters."""
    x = vector()
    many = kernel(lambda *a: None, "in in inout", name="many")

    def orchestrate(rt: Runtime) -> None:
        rt.submit(write, x)
        rt.submit(many, x, x, x)

    assert edges(graph(orchestrate)) == {(0, 1)}
    assert len(graph(orchestrate).records.edges) == 1


# -- regions -------------------------------------------------------------------------------------------------


def test_views_of_one_tensor() -> None:
    """TensorMap, overlap: sub-tensors of a base meet only where they overlap, in every dimension."""
    x = np.zeros((8, 8), np.float32)

    def orchestrate(rt: Runtime) -> None:
        whole = rt.external(x)
        rt.submit(write, whole.view([4, 8], [0, 0]))  # 0: upper half
        rt.submit(write, whole.view([4, 8], [4, 0]))  # 1: lower half
        rt.submit(read, whole.view([2, 2], [0, 6]))  # 2: in the upper half
        rt.submit(read, whole.view([2, 2], [3, 3]))  # 3: both
        rt.submit(touch, whole.view([8, 1], [0, 7]))  # 4: the last column: both (partial overlap)
        rt.submit(read, whole.view([8, 1], [0, 6]))  # 5: the column before: not 4
        rt.submit(read, whole)  # 6: all

    assert edges(graph(orchestrate)) == {
        (0, 2), (0, 3), (1, 3), (0, 4), (1, 4), (0, 5), (1, 5), (0, 6), (1, 6), (4, 6),
    }  # fmt: skip


def test_views_add_up() -> None:
    """Spec 2.4: offsets of a view of a view add to those of the first; elements are those of the buffer."""
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    seen: list[list[float]] = []
    look = kernel(lambda t: seen.append(t.ravel().tolist()), "in", name="look")

    def orchestrate(rt: Runtime) -> None:
        inner = rt.external(x).view([4, 4], [2, 3]).view([2, 2], [1, 2])
        assert inner.shape == (2, 2) and inner.offsets == (3, 5)
        assert inner.start_offset == 3 * 8 + 5
        rt.submit(look, inner)

    quiet(orchestrate)
    assert seen == [x[3:5, 5:7].ravel().tolist()]


@pytest.mark.parametrize(
    ("shape", "offsets", "text"),
    [
        ([4, 8], [5, 0], "view: 4 elements from 5 on, of 8 in dimension 0"),
        ([8, 9], [0, 0], "view: 9 elements from 0 on, of 8 in dimension 1"),
        ([1, 1], [2**63, 0], "in dimension 0"),
        ([8], [0], "shape has 1 numbers, expected 2"),
        ([-1, 8], [0, 0], "not negative"),
    ],
)
def test_a_view_stays_inside(shape: list[int], offsets: list[int], text: str) -> None:
    """Spec 2.4: offsets + shapes are checked against the region."""
    x = np.zeros((8, 8), np.float32)
    with pytest.raises(ValueError, match=text):
        quiet(lambda rt: rt.external(x).view(shape, offsets))
    with pytest.raises(ValueError, match="1 elements from 2 on, of 2"):
        quiet(lambda rt: rt.external(x).view([2, 2], [0, 0]).view([1, 2], [2, 0]))


def test_a_view_of_an_intermediate() -> None:
    """Spec 2.3: views after the producing submit have its address; one taken before has none."""

    def orchestrate(rt: Runtime) -> None:
        t = rt.tensor((4, 4))
        stale = t.view([1, 4], [0, 0])
        rt.submit(write, t)
        assert t.address != 0 and stale.address == 0
        rt.submit(touch, t.view([1, 4], [3, 0]))
        rt.submit(read, t.view([1, 4], [2, 0]))
        rt.submit(read, stale)

    text = fails(orchestrate, code="PTO-E2621")
    assert "task 3" in text and "INPUT param must have a non-NULL buffer address" in text
    assert edges(graph(lambda rt: _with_views(rt))) == {(0, 1), (0, 2)}


def _with_views(rt: Runtime) -> None:
    t = rt.tensor((4, 4))
    rt.submit(write, t)
    rt.submit(touch, t.view([1, 4], [3, 0]))
    rt.submit(read, t.view([1, 4], [2, 0]))


@pytest.mark.parametrize(("role", "word"), [(read, "INPUT"), (touch, "INOUT")])
def test_nobody_has_written_it(role: Any, word: str) -> None:
    """Spec 2.2: the texts for tensors without memory."""
    text = fails(lambda rt: rt.submit(role, rt.tensor(4)), code="PTO-E2621")
    assert f"parameter 0: {word} param must have a non-NULL buffer address" in text


def test_the_key_is_the_base_address() -> None:
    """TensorMap, key: arrays of different memory never meet; slices of one array do."""
    x, y = vector(32), vector(32)

    def orchestrate(rt: Runtime) -> None:
        rt.submit(write, x[:16])
        rt.submit(read, y)
        rt.submit(read, x[8:24])
        rt.submit(read, x[16:])

    assert edges(graph(orchestrate)) == {(0, 2)}


# -- nothing is lost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("producers", [16, 17, 40, 300])
def test_more_than_16_producers(producers: int) -> None:
    """Spec 2.5: a lookup and a task keep all their producers, not 16."""
    x = vector(producers)
    started = threading.Event()
    ones = kernel(lambda t, s: (started.wait(600), t.fill(1))[0], "out scalar", name="ones")
    total: list[float] = []
    add = kernel(lambda t: total.append(float(t.sum())), "in", name="add")

    def orchestrate(rt: Runtime) -> None:
        for i in range(producers):
            rt.submit(ones, rt.external(x).view([1], [i]), i)
        rt.submit(add, x)
        started.set()

    done = graph(orchestrate, block_dim=24)
    assert edges(done) == {(i, producers) for i in range(producers)}
    assert total == [producers]


def test_more_edges_than_the_pool_has_entries() -> None:
    """Dependency pool: a chain with far more edges than entries; each edge was honoured."""
    x = vector(1)

    def orchestrate(rt: Runtime) -> None:
        for _ in range(500):
            with rt.scope():
                for _ in range(4):
                    rt.submit(bump, x)

    done, _ = quiet(orchestrate, dep_pool=16)
    assert x[0] == 2000
    assert done.stats["dep_pool_peak"] <= 16


def test_a_retired_producer_makes_no_edge() -> None:
    """TensorMap: entries are valid while producer_task_id >= last_task_alive."""
    x = vector()
    ran: list[int] = []
    note = kernel(lambda t: ran.append(1), "inout", name="note")

    def orchestrate(rt: Runtime) -> None:
        for _ in range(200):
            with rt.scope():
                rt.submit(note, x)

    done = graph(orchestrate, threads=1, task_window=4)
    assert len(ran) == 200
    distance = [int(e["succ"] - e["pred"]) for e in done.records.edges]
    assert max(distance) <= 3  # number alive at one time in a window of 4


# -- order of execution --------------------------------------------------------------------------------------


def test_a_diamond_computes() -> None:
    """Submit steps: order comes from data, not from the order of submission."""
    a, out = np.full(64, 2, np.float32), vector(64)
    square = kernel(lambda x, y: np.multiply(x, x, out=y), "in out", name="square")
    plus = kernel(lambda x, s, y: np.add(x, s, out=y), "in scalar out", name="plus")
    times = kernel(lambda x, y, z: np.multiply(x, y, out=z), "in in out", name="times")

    def orchestrate(rt: Runtime) -> None:
        s, p, q = rt.tensor(64), rt.tensor(64), rt.tensor(64)
        rt.submit(square, a, s)
        rt.submit(plus, s, 1, p)
        rt.submit(plus, s, 2, q)
        rt.submit(times, p, q, out)

    for seed in range(20):
        out[:] = 0
        run(orchestrate, block_dim=2, seed=seed)
        assert np.all(out == 30)


def test_steps_of_every_submission() -> None:
    """Submit steps: each is gone through once for each task."""
    x = vector()
    done = graph(lambda rt: [rt.submit(touch, x) for _ in range(9)])
    phases = done.records.phases
    for step in range(16, 24):
        mine = phases[phases["phase"] == step]
        assert mine["actor"].tolist() == [-1] * 9
        assert mine["count"].tolist() == list(range(9))
    assert np.count_nonzero(phases["phase"] == 24) == 1  # the end of the outer scope


# -- hazards that the TensorMap does not order ---------------------------------------------------------------


def _reader_then_writer(rt: Runtime, x: Any, y: Any) -> None:
    rt.submit(copy, x, y)
    rt.submit(bump, x)


def test_write_after_read_is_found() -> None:
    """Spec 2.5: WAR is not ordered; it is reported with both places, and ordered on request."""
    x, y = vector(), vector()
    done = graph(_reader_then_writer, x, y, check_hazards=True)
    assert edges(done) == set()
    (hazard,) = done.hazards
    assert (hazard.kind, hazard.earlier, hazard.later, hazard.arg) == ("WAR", 0, 1, 0)
    first, second = hazard.places
    assert first.rsplit(":", 1)[0] == second.rsplit(":", 1)[0] == __file__
    assert int(second.rsplit(":", 1)[1]) - int(first.rsplit(":", 1)[1]) == 1
    assert "no dependency orders them" in str(hazard) and first in str(hazard) and second in str(hazard)


def test_track_war_orders_it() -> None:
    """Spec 2.5: with track_war the writer waits for the reader, under any schedule."""
    for seed in range(30):
        x, y = vector(), vector()
        done, _ = quiet(_reader_then_writer, x, y, seed=seed, track_war=True, check_hazards=True)
        assert done.hazards == []
        assert y[0] == 0 and x[0] == 1
        assert kinds(done) == {(0, 1): "WAR"}


def test_without_it_some_schedule_shows_the_hazard() -> None:
    """Spec 2.5: the two may run in either order, which the seed decides."""
    found = set()
    for seed in range(60):
        x, y = vector(), vector()
        quiet(_reader_then_writer, x, y, seed=seed)
        found.add(float(y[0]))
    assert found == {0.0, 1.0}


def test_write_after_write_is_found() -> None:
    """Spec 2.5: an OUTPUT over an earlier writer."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        rt.submit(write, x)
        rt.submit(write, x)

    (hazard,) = graph(orchestrate, check_hazards=True).hazards
    assert (hazard.kind, hazard.earlier, hazard.later) == ("WAW", 0, 1)
    done = graph(orchestrate, track_war=True)
    assert kinds(done) == {(0, 1): "WAW"}


def test_ordered_accesses_are_no_hazard() -> None:
    """A path between the two, of whatever length, or regions that do not meet."""
    x, y, z = vector(), vector(), vector()

    def orchestrate(rt: Runtime) -> None:
        rt.submit(copy, x, y)  # reads x
        rt.submit(copy, y, z)
        rt.submit(kernel(lambda a, b: None, "in inout", name="late"), z, x)  # after both
        rt.submit(read, rt.external(x).view([4], [0]))
        rt.submit(touch, rt.external(x).view([4], [8]))

    assert graph(orchestrate, check_hazards=True).hazards == []


def test_what_is_found_does_not_depend_on_speed() -> None:
    """Spec 2.5: tasks that were retired long ago, and memory that was used before, are not hazards."""
    x = vector()

    def orchestrate(rt: Runtime) -> None:
        for _ in range(100):
            with rt.scope():
                t = rt.tensor(256)
                rt.submit(touch, x)
                rt.submit(write, t)
                rt.submit(touch, t)
                rt.submit(read, x)
        rt.submit(write, x)

    readers, writers = range(3, 400, 4), range(0, 401, 4)
    expected = {("WAR", r, w) for r in readers for w in writers if r < w} | {("WAW", 396, 400)}
    for how in ({"threads": 1}, {"threads": 2}, {"seed": 3}):
        done, _ = quiet(orchestrate, heap=2048, task_window=8, check_hazards=True, **how)
        assert {(h.kind, h.earlier, h.later) for h in done.hazards} == expected
