"""Clusters and blocks.

Sections of the description: function groups, cluster allocation, scheduler changes, block_incore expansion,
cube + vector blocks, and spec 2.13.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.runtime import Run, Runtime, kernel, run

from .seed_kit import fails, quiet, touch, touch_aic, vector

MODES = [{"threads": 1}, {"threads": 3}, {"seed": 4}]


def cluster_of_core(core: int, block_dim: int) -> int:
    """Cluster c = {AIC c, AIV 2c, AIV 2c+1}; workers 0..block_dim-1 are the AICs."""
    return core if core < block_dim else (core - block_dim) // 2


def pinned_right(done: Run, block_dim: int) -> bool:
    tasks = done.records.tasks
    pinned = tasks[tasks["cluster"] >= 0]
    assert len(pinned)
    return all(cluster_of_core(int(t["core"]), block_dim) == int(t["cluster"]) for t in pinned)


# -- groups --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("block_dim", [1, 2, 5, 24])
def test_a_group_runs_on_its_cluster(block_dim: int, how: dict[str, Any]) -> None:
    """Function groups: every task of a group executes on the cores of its cluster, others on any."""
    pipes = [vector() for _ in range(block_dim)]

    def orchestrate(rt: Runtime) -> None:
        for _ in range(3):
            ids = [rt.allocate_cluster() for _ in range(block_dim)]
            assert sorted(ids) == list(range(block_dim))
            with rt.scope():
                for c, x in zip(ids, pipes, strict=True):
                    for k in (touch, touch_aic, touch, touch_aic):
                        rt.submit(k, x, cluster=c)
                    rt.submit(touch, vector())
            for c in ids:
                rt.free_cluster(c)

    done, _ = quiet(orchestrate, block_dim=block_dim, record=True, **how)
    assert pinned_right(done, block_dim)
    free = done.records.tasks[done.records.tasks["cluster"] < 0]
    assert len(free) == 3 * block_dim


def test_dependencies_order_a_group() -> None:
    """Scheduler changes: pinning decides the cluster, TensorMap the time."""
    order: list[int] = []
    x = vector()

    def step(core: str) -> Any:
        return kernel(lambda t, n: order.append(n), "inout scalar", core=core, name=f"step_{core}")

    on = {"aic": step("aic"), "aiv": step("aiv")}

    def orchestrate(rt: Runtime) -> None:
        with rt.cluster() as c:
            for n in range(20):
                rt.submit(on["aic" if n % 2 else "aiv"], x, n, cluster=c)

    for seed in range(10):
        order.clear()
        run(orchestrate, block_dim=3, seed=seed)
        assert order == list(range(20))


def test_cube_and_vector_of_a_block_on_one_cluster() -> None:
    """block_incore with cube + vector: both tasks of a block are on its cluster; the vector task waits."""
    blocks = 4
    a, out = np.arange(4 * 16, dtype=np.float32).reshape(4, 16), np.zeros((4, 16), np.float32)
    cube = kernel(
        lambda x, y, n, b: np.multiply(x, 2, out=y), "in out scalar scalar", core="aic", name="cube"
    )
    vec = kernel(lambda x, y, n, b: np.add(x, b, out=y), "in out scalar scalar", name="vec")

    def orchestrate(rt: Runtime) -> None:
        ids = [rt.allocate_cluster() for _ in range(blocks)]
        with rt.scope():
            for b in range(blocks):
                middle = rt.tensor((1, 16))
                rt.submit(cube, rt.external(a).view([1, 16], [b, 0]), middle, blocks, b, cluster=ids[b])
                rt.submit(vec, middle, rt.external(out).view([1, 16], [b, 0]), blocks, b, cluster=ids[b])
        for c in ids:
            rt.free_cluster(c)

    done, _ = quiet(orchestrate, block_dim=4, record=True)
    np.testing.assert_array_equal(out, a * 2 + np.arange(4)[:, None])
    assert pinned_right(done, 4)
    tasks = done.records.tasks
    assert tasks["cluster"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert tasks["core_type"].tolist() == [0, 1] * 4


# -- allocation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", MODES)
def test_allocation_waits_for_a_cluster(how: dict[str, Any]) -> None:
    """Cluster allocation: blocks while none is free, and goes on when one comes back."""
    x = [vector() for _ in range(2)]
    given: list[int] = []

    def orchestrate(rt: Runtime) -> None:
        for i in range(40):
            c = rt.allocate_cluster()
            given.append(c)
            with rt.scope():
                rt.submit(touch, x[i % 2], cluster=c)
                rt.submit(touch_aic, x[i % 2], cluster=c)
            rt.free_cluster(c)  # deferred: its tasks have not run

    done, _ = quiet(orchestrate, block_dim=2, record=True, **how)
    assert len(given) == 40 and set(given) == {0, 1}
    assert pinned_right(done, 2)
    if "threads" in how and how["threads"] == 1:
        assert done.stats["blocked"]["clusters"] > 0


def test_free_is_deferred_to_the_last_task() -> None:
    """Spec 2.13: freeing does not wait; the cluster comes back when the group has finished."""
    gate = threading.Event()
    slow = kernel(lambda t: gate.wait(600), "inout", name="slow")

    def orchestrate(rt: Runtime) -> None:
        c = rt.allocate_cluster()
        d = rt.allocate_cluster()
        rt.submit(slow, vector(), cluster=c)
        rt.free_cluster(c)
        rt.free_cluster(d)
        e = rt.allocate_cluster()  # the one that no task holds
        assert e == d
        gate.set()
        assert rt.allocate_cluster() == c

    quiet(orchestrate, block_dim=2, threads=3)


def test_scope_end_releases() -> None:
    """Cluster allocation: automatic release at the end of the scope it was allocated in."""

    def orchestrate(rt: Runtime) -> None:
        for _ in range(10):
            with rt.scope():
                for _ in range(3):
                    rt.submit(touch, vector(), cluster=rt.allocate_cluster())

    done, _ = quiet(orchestrate, block_dim=3, record=True)
    assert done.stats["tasks"] == 30
    assert pinned_right(done, 3)


@pytest.mark.parametrize("how", MODES)
def test_deadlock_of_clusters(how: dict[str, Any]) -> None:
    """Cluster allocation: BLOCKED, then FATAL, when only the orchestrator could free one."""
    logged: list[str] = []

    def orchestrate(rt: Runtime) -> None:
        for _ in range(3):
            c = rt.allocate_cluster()
            rt.submit(touch, vector(), cluster=c)

    text = fails(orchestrate, block_dim=2, log=lambda level, line: logged.append(line), **how)
    assert "FATAL: Cluster allocation deadlock — all clusters occupied" in text
    assert "All 2 clusters are allocated" in text
    assert re.search(rf"the orchestrator, at \S+{Path(__file__).name}:\d+, waits for a cluster", text)
    assert re.search(r"clusters +used 2 of 2 blocks \(free 0, peak 2\)", text)
    (line,) = [line for line in logged if "BLOCKED" in line]
    assert re.fullmatch(r"\[WARN\] \w+: \[Cluster\] BLOCKED: no free cluster, spins=\d+", line)


def test_wrong_clusters_are_refused() -> None:
    """Cluster allocation: a cluster that was not allocated, or was freed, has no owner."""
    x = vector()
    text = fails(lambda rt: rt.submit(touch, x, cluster=2), code="PTO-E2621")
    assert text.endswith("cluster 2 has not been allocated")
    for cluster in (-1, 3, 0):
        text = fails(lambda rt, c=cluster: rt.free_cluster(c), code="PTO-E2621")
        assert text.startswith(f"cluster {cluster} is freed at") and "has not been allocated" in text

    def twice(rt: Runtime) -> None:
        c = rt.allocate_cluster()
        rt.free_cluster(c)
        rt.free_cluster(c)

    assert "or was freed before" in fails(twice, code="PTO-E2621")

    def late(rt: Runtime) -> None:
        with rt.cluster() as c:
            pass
        rt.submit(touch, x, cluster=c)

    assert "has not been allocated" in fails(late, code="PTO-E2621")


# -- blocks --------------------------------------------------------------------------------------------------


def _rows(block_dim: int) -> Any:
    return np.zeros((block_dim, 8), np.float32)


def _mark(x: Any, factor: int, blocks: int, block: int) -> None:
    assert 0 <= block < blocks == len(x)
    x[block] += factor * (block + 1)


mark = kernel(_mark, "inout scalar", name="mark")
marked = kernel(_mark, "inout scalar scalar scalar", name="marked")
double = kernel(lambda t: np.multiply(t, 2, out=t), "inout", name="double")
add = kernel(lambda t, s: np.copyto(s, t.sum()), "in out", name="add")


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("blocks", [1, 2, 7, 24, 100])
def test_blocks_as_one_task(blocks: int, how: dict[str, Any]) -> None:
    """block_incore: block_dim and block_id are the last two scalars; every block runs once."""
    x = _rows(blocks)
    done, _ = quiet(lambda rt: rt.submit(mark, x, 3, blocks=blocks), record=True, **how)
    np.testing.assert_array_equal(x, np.repeat(3 * np.arange(1, blocks + 1)[:, None], 8, 1))
    tasks = done.records.tasks
    assert done.stats["tasks"] == 1 and len(tasks) == blocks
    if blocks > 1:
        assert sorted(tasks["block"].tolist()) == list(range(blocks))


@pytest.mark.parametrize("blocks", [1, 5, 24])
def test_expanded_and_batch_form_are_the_same(blocks: int) -> None:
    """block_incore: N tasks with block_id 0..N-1, or one batch descriptor; tasks before and after wait in the
    same way."""
    results = []
    for batch in (False, True):
        x, total = _rows(blocks), vector(1)

        def orchestrate(rt: Runtime, batch: bool = batch, x: Any = x, total: Any = total) -> None:
            with rt.scope():
                rt.submit(mark, x, 1, blocks=blocks)
                rt.submit(double, x)
                if batch:
                    rt.submit(mark, x, 5, blocks=blocks)
                else:
                    for b in range(blocks):
                        rt.submit(marked, x, 5, blocks, b)
                rt.submit(double, x)
                rt.submit(add, x, total)

        for seed in range(5):
            x[:] = 0
            run(orchestrate, block_dim=3, seed=seed)
            results.append((x.copy().tolist(), float(total[0])))
    assert all(r == results[0] for r in results)
    assert results[0][1] == sum((b + 1) * (2 + 5) * 2 for b in range(blocks)) * 8


def test_a_batch_takes_one_slot() -> None:
    """Optimisation of block_incore: one descriptor, one TensorMap entry per tensor, no ring pressure."""
    x = _rows(200)

    def orchestrate(rt: Runtime) -> None:
        for _ in range(20):
            with rt.scope():
                rt.submit(mark, x, 1, blocks=200)

    done, _ = quiet(orchestrate, task_window=4, tensormap_pool=16, dep_pool=16)
    assert done.stats["tasks"] == 20
    assert x[199, 0] == 20 * 200


@pytest.mark.parametrize("how", MODES)
def test_blocks_on_clusters_of_their_own(how: dict[str, Any]) -> None:
    """block_incore with clusters: block b runs on cluster_ids[b]; the clusters come back afterwards."""
    blocks = 4
    x = _rows(blocks)
    taken: dict[int, list[int]] = {}  # they come back in any order

    def orchestrate(rt: Runtime) -> None:
        for _ in range(5):
            ids = [rt.allocate_cluster() for _ in range(blocks)][::-1]
            taken[rt.submit(mark, x, 1, blocks=blocks, clusters=ids)] = ids
            for c in ids:
                rt.free_cluster(c)

    done, _ = quiet(orchestrate, block_dim=blocks, record=True, **how)
    assert x[3, 0] == 20
    for t in done.records.tasks:
        assert cluster_of_core(int(t["core"]), blocks) == taken[int(t["task_id"])][int(t["block"])]


def test_all_blocks_on_one_cluster() -> None:
    """block_incore in a function group: each block carries the cluster of the group."""
    x = _rows(30)

    def orchestrate(rt: Runtime) -> None:
        rt.allocate_cluster()
        rt.submit(mark, x, 1, blocks=30, cluster=rt.allocate_cluster())

    done, _ = quiet(orchestrate, block_dim=3, record=True)
    assert set(done.records.tasks["core"].tolist()) <= {3 + 2, 3 + 3}


def test_numbers_of_blocks() -> None:
    """block_incore: the range; clusters must have been allocated."""
    text = fails(lambda rt: rt.submit(mark, _rows(1), 1, blocks=40000), code="PTO-E2621")
    assert text.endswith("the number of blocks must be in range [1, 32767]")
    text = fails(lambda rt: rt.submit(mark, _rows(2), 1, blocks=2, clusters=[0, 1]), code="PTO-E2621")
    assert "cluster 0 of block 0 has not been allocated" in text
    for clusters in ([], [0], [0, 0, 0]):
        text = fails(lambda rt, c=clusters: _on(rt, c), code="PTO-E2621")
        assert text == f"expected a cluster for each of 2 blocks, got {len(clusters)}"


def _on(rt: Runtime, clusters: list[int]) -> None:
    assert rt.allocate_cluster() == 0
    rt.submit(mark, _rows(2), 1, blocks=2, clusters=clusters)


def test_more_blocks_than_slots_on_one_cluster() -> None:
    """block_incore in a function group: blocks pinned to one cluster are not limited by the window."""
    x = _rows(3000)

    def orchestrate(rt: Runtime) -> None:
        rt.submit(mark, x, 1, blocks=3000, clusters=[rt.allocate_cluster()] * 3000)

    quiet(orchestrate, task_window=4)
    assert x[:, 0].tolist() == list(range(1, 3001))
