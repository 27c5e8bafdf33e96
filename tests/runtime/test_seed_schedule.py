"""Threads, schedulers and cores: any number of them, the same result, and schedules that come back.

Sections of the description: Threads, Scheduler loop, Ready queues, Startup, Platform constants, and spec 2.8,
2.10, 5.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import Run, Runtime, kernel, run

from .seed_kit import bump, quiet, touch, touch_aic, vector

TIMES = ("submit", "ready", "dispatch", "start", "end", "finish")


def _graph(rt: Runtime, x: Any, y: Any, rounds: int = 6) -> None:
    """Two chains that meet, on both kinds of cores, in nested scopes."""
    add = kernel(lambda a, b, c: np.add(a, b, out=c), "in in out", name="add")
    times = kernel(lambda a, b: np.multiply(a, 2, out=b), "in out", core="aic", name="times")
    for _ in range(rounds):
        with rt.scope():
            s, t = rt.tensor(len(x)), rt.tensor(len(x))
            rt.submit(times, x, s)
            with rt.scope():
                rt.submit(add, s, y, t)
                rt.submit(add, t, x, y)
            rt.submit(bump, x)


def _expected(n: int = 16, rounds: int = 6) -> tuple[Any, Any]:
    x, y = np.ones(n, np.float32), np.zeros(n, np.float32)
    for _ in range(rounds):
        y = 2 * x + y + x
        x = x + 1
    return x, y


def _check(**options: Any) -> Run:
    x, y = np.ones(16, np.float32), vector()
    done, _ = quiet(_graph, x, y, track_war=True, **options)
    ex, ey = _expected()
    np.testing.assert_array_equal(x, ex)
    np.testing.assert_array_equal(y, ey)
    return done


# -- sizes of the machine ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_dim", range(1, 25))
def test_any_block_dim(block_dim: int) -> None:
    """Platform constants: 1 to 24 blocks of one AIC and two AIVs; spec 2.10: no need to divide evenly."""
    done = _check(block_dim=block_dim, record=True)
    cores = done.records.tasks["core"]
    aic = done.records.tasks["core_type"] == 0
    assert np.all(cores[aic] < block_dim) and np.all(cores[~aic] >= block_dim)
    assert np.all(cores < 3 * block_dim)


@pytest.mark.parametrize("schedulers", [1, 2, 3, 4, 7, 30])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads: int, schedulers: int) -> None:
    """Threads: any number of schedulers and host threads, 1 included."""
    done = _check(threads=threads, schedulers=schedulers, block_dim=3, record=True)
    assert set(done.records.tasks["thread"].tolist()) <= set(range(threads))
    assert set(done.records.tasks["scheduler"].tolist()) <= set(range(schedulers))


@pytest.mark.parametrize("shards", [1, 2, 3, 4])
def test_any_number_of_shards(shards: int) -> None:
    """Ready queues: 1 to 4 shards for each kind of core."""
    _check(shards=shards)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"block_dim": 0}, "block_dim (0) must be in range [1, 24]"),
        ({"block_dim": 25}, "block_dim (25) must be in range [1, 24]"),
        ({"threads": -1}, "host_threads (-1) must be at least 1"),
        ({"schedulers": 0}, "schedulers (0) must be at least 1"),
        ({"shards": 0}, "shards (0) must be at least 1"),
        ({"task_window": 2}, "task_window (2) must be at least 4"),
        ({"task_window": 17}, "task_window (17) must be a power of 2"),
        ({"heap": 1023}, "heap (1023) must be at least 1024"),
        ({"dep_pool": 15}, "dep_pool (15) must be at least 16"),
    ],
)
def test_impossible_configurations(options: dict[str, Any], text: str) -> None:
    """Environment, spec 5: refused before anything starts."""
    with pytest.raises(DiagnosticError) as caught:
        run(lambda rt: None, **options)
    assert text in [d.message for d in caught.value.diagnostics]


def test_a_window_larger_than_65536() -> None:
    """Spec 2.11: supported."""
    x = vector(1)
    done, _ = quiet(lambda rt: [rt.submit(bump, x) for _ in range(100)], task_window=1 << 18)
    assert x[0] == 100 and done.stats["task_window"] == 1 << 18


# -- the loop of a scheduler ---------------------------------------------------------------------------------


def test_times_of_a_task() -> None:
    """Scheduler loop, State machine: submit, ready, dispatch, start, end, finish come in this order."""
    done = _check(record=True, block_dim=3)
    tasks = done.records.tasks
    assert tasks["task_id"].tolist() == list(range(24))
    for a, b in pairwise(TIMES):
        assert np.all(tasks[a] <= tasks[b]), (a, b)
    assert np.all(tasks["submit"] >= 0)
    at = {int(t["task_id"]): t for t in tasks}
    for e in done.records.edges:
        assert at[int(e["pred"])]["end"] <= at[int(e["succ"])]["start"]


def test_one_task_at_a_time_on_a_core() -> None:
    """Spec 2.10: one task in flight per core."""
    done, _ = quiet(lambda rt: [rt.submit(touch, vector(4)) for _ in range(60)], record=True, block_dim=2)
    tasks = done.records.tasks
    for core in set(tasks["core"].tolist()):
        mine = np.sort(tasks[tasks["core"] == core], order="dispatch")
        assert np.all(mine["finish"][:-1] <= mine["dispatch"][1:])


def test_independent_tasks_use_all_cores() -> None:
    """Scheduler loop, dispatch: every idle core gets a task when there are enough."""
    done, _ = quiet(
        lambda rt: [rt.submit(k, vector(4)) for _ in range(200) for k in (touch, touch_aic)],
        record=True,
        block_dim=4,
        seed=1,
    )
    assert set(done.records.tasks["core"].tolist()) == set(range(12))
    assert set(done.records.tasks["scheduler"].tolist()) == {0, 1, 2}


def test_phases_of_schedulers() -> None:
    """Scheduler loop: complete, dispatch and scan are seen, and add up to all tasks."""
    done = _check(record=True, block_dim=3)
    phases = done.records.phases
    mine = phases[phases["actor"] >= 0]
    assert set(mine["phase"].tolist()) >= {0, 1, 2}
    assert mine[mine["phase"] == 0]["count"].sum() == 24
    assert mine[mine["phase"] == 1]["count"].sum() == 24
    assert (phases["start"][1:] >= phases["start"][:-1]).all()  # of all threads, in the order of time


def test_the_orchestrator_runs_beside_the_schedulers() -> None:
    """Threads, Startup: a task runs while its orchestration is still going on."""
    ran = threading.Event()
    tell = kernel(lambda x: ran.set(), "inout", name="tell")

    def orchestrate(rt: Runtime) -> None:
        rt.submit(tell, vector(4))
        assert ran.wait(600)

    quiet(orchestrate, threads=2)


def test_nothing_to_do() -> None:
    """Startup and shutdown without a task."""
    for how in ({"threads": 1}, {"threads": 4}, {"seed": 0}):
        done, lines = quiet(lambda rt: None, **how)
        assert (done.stats["tasks"], lines) == (0, [])


# -- the same again ------------------------------------------------------------------------------------------


def _schedule(seed: int) -> tuple[Any, ...]:
    done = _check(seed=seed, record=True, block_dim=3, task_window=8)
    tasks = done.records.tasks
    order = np.argsort(tasks["start"], kind="stable")
    fields = ("task_id", "core", "scheduler", "thread")
    steps = [tuple(int(tasks[f][i]) for f in fields) for i in order]
    phases = [(int(p["actor"]), int(p["phase"]), int(p["count"])) for p in done.records.phases]
    counters = [(int(c["which"]), int(c["value"])) for c in done.records.counters]
    edges = [tuple(int(v) for v in e) for e in done.records.edges]
    return steps, phases, counters, edges, done.stats["scheduler_rounds"]


def test_a_seed_gives_the_same_schedule() -> None:
    """Deterministic mode: the same seed, the same order, cores, phases and edges."""
    for seed in (0, 1, 12345):
        assert _schedule(seed) == _schedule(seed)


def test_seeds_give_different_schedules() -> None:
    """Deterministic mode: other seeds, other schedules, the same result."""
    assert len({str(_schedule(seed)[0]) for seed in range(12)}) > 6


def test_one_thread_in_deterministic_mode() -> None:
    """Deterministic mode: everything happens on the thread of the caller."""
    seen: set[int] = set()
    who = kernel(lambda x: seen.add(threading.get_ident()), "inout", name="who")
    quiet(lambda rt: [rt.submit(who, vector(4)) for _ in range(20)], seed=9, threads=4)
    assert seen == {threading.get_ident()}


def test_launches_in_one_process_are_equal() -> None:
    """Spec 5, defect (b): nothing of an earlier launch is left in a later one."""
    for _ in range(40):
        _check(task_window=8, heap=4096, dep_pool=16, threads=2)
    first = _schedule(3)
    with pytest.raises(ZeroDivisionError):
        run(lambda rt: 1 / 0, seed=3)
    assert _schedule(3) == first
