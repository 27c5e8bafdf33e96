"""Task ring, heap ring and pools: flow control, its messages, and deadlocks.

Sections of the description: Task ring, Heap ring, Dependency pool, Back-pressure, Deadlock detection, Sizing
guideline, Environment (window), and spec 2.6, 2.7, 2.9.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import Runtime, kernel, run

from .header_build import PTO2, TMR
from .seed_kit import bump, edges, fails, quiet, read, touch, vector, write

RULE = "========================================"


def _chunks(rt: Runtime, x: Any, chunks: int, tasks: int) -> None:
    for _ in range(chunks):
        with rt.scope():
            for _ in range(tasks):
                rt.submit(bump, x)


# -- task ring -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 2}, {"seed": 5}])
def test_window_16_with_208_tasks(how: dict[str, Any]) -> None:
    """Task ring, Back-pressure: 16 chunks of 13 tasks go through a window of 16; the orchestrator waits."""
    x = vector(1)
    done, lines = quiet(_chunks, x, 16, 13, task_window=16, record=True, **how)
    assert x[0] == 208
    assert done.stats["tasks"] == 208
    assert done.stats["blocked"]["task_ring"] <= 193  # all but the first window - 1
    assert how == {"threads": 2} or done.stats["blocked"]["task_ring"] > 0  # the other thread may keep up
    assert 13 <= done.stats["task_window_peak"] <= 15  # window - 1
    assert done.stats["max_scope_tasks"] == 13
    slots = np.bincount(done.records.tasks["task_id"] & 15)
    assert slots.tolist() == [13] * 16  # each used 13 times
    assert not [text for _, text in lines if "FATAL" in text]


def test_task_ids_grow_by_one() -> None:
    """Task ring: current_index is monotonic, whatever slots are used."""
    ids: list[int] = []
    run(lambda rt: [_one(rt, ids) for _ in range(100)], block_dim=1, threads=1, task_window=4)
    assert ids == list(range(100))


def _one(rt: Runtime, ids: list[int]) -> None:
    with rt.scope():
        ids.append(rt.submit(touch, rt.external(SHARED)))


SHARED = vector(4)


@pytest.mark.parametrize("tasks", range(1, 20))
def test_a_scope_needs_one_slot_more_than_it_has_tasks(tasks: int) -> None:
    """Deadlock detection, Sizing guideline: 13 tasks need a window of at least 14, which is 16."""
    x = vector(1)
    need = 4
    while need < tasks + 1:
        need *= 2
    quiet(_chunks, x, 3, tasks, task_window=need)
    assert x[0] == 3 * tasks
    assert need == 16 or tasks != 13
    if need > 4:
        text = fails(_chunks, vector(1), 3, tasks, task_window=need // 2)
        assert "FATAL: Flow Control Deadlock Detected!" in text


def test_flow_control_deadlock_text() -> None:
    """Deadlock detection: the message, its numbers, and the recommendation of twice the active tasks."""
    text = fails(_chunks, vector(1), 1, 16, task_window=16)
    lines = text.splitlines()
    assert lines[:3] == [RULE, "FATAL: Flow Control Deadlock Detected!", RULE]
    assert re.fullmatch(r"Task Ring is FULL and no progress after \d+ spins\.", lines[3])
    status = dict(re.findall(r"^  - ([A-Z][a-z ]+): +(\S+)$", text, re.MULTILINE))
    assert status == {
        "Current task index": "15",
        "Last task alive": "0",
        "Active tasks": "15",
        "Window size": "16",
        "Window utilization": "93.8%",
    }
    words = " ".join(text.split())
    assert "Root Cause: Tasks cannot transition to CONSUMED state because fanout_count includes 1" in words
    assert "for the owning scope, and scope_end() requires the orchestrator to continue" in words
    assert "circular dependency" in words
    assert "Solution: Recommended: 32 (at least 2x current active tasks): PTO2_RING_TASK_WINDOW=32" in words
    assert lines[-1] == RULE


def _recommended(text: str) -> dict[str, int]:
    """The sizes that a report names, as options of a run."""
    names = {"PTO2_RING_TASK_WINDOW": "task_window", "PTO2_RING_HEAP": "heap"}
    return {names[name]: int(size) for name, size in re.findall(r"(PTO2_RING_\w+)=(\d+)", text)}


@pytest.mark.parametrize("tasks", [4, 20, 31, 32, 100])
def test_the_recommended_window_works(tasks: int) -> None:
    """Deadlock detection: the recommended size is enough, and not twice the smallest one."""
    text = fails(_chunks, vector(1), 2, tasks, task_window=4)
    window = _recommended(text)["task_window"]
    assert f"open ones hold {tasks} tasks at one time, at most 3 fit" in text
    x = vector(1)
    quiet(_chunks, x, 2, tasks, task_window=window)
    assert x[0] == 2 * tasks and window < 2 * (tasks + 1) + 4


def _growing(rt: Runtime, x: Any, sizes: list[int], floats: int) -> None:
    for size in sizes:
        with rt.scope():
            for _ in range(size):
                out = rt.tensor(floats)
                rt.submit(write, out)
                rt.submit(bump, x)


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 3}, {"seed": 1}])
def test_the_recommended_sizes_are_those_of_the_largest_scope(how: dict[str, Any]) -> None:
    """Deadlock detection: the scopes that come after the one that does not fit count as well; so does the heap."""
    sizes = [1, 9, 2, 40, 3]
    text = fails(_growing, vector(1), sizes, 1024, task_window=16, heap=1 << 16, **how)
    assert "FATAL: Flow Control Deadlock Detected!" in text and "hold 80 tasks at one time" in text
    found = _recommended(text)
    assert found == {
        "task_window": 128,
        "heap": 1 << 18,
    }  # 40 outputs of 4096, and one for the end of the ring
    x = vector(1)
    quiet(_growing, x, sizes, 1024, **found, **how)
    assert x[0] == sum(sizes)
    # The other way round: first the heap is full.
    text = fails(_growing, vector(1), sizes, 1024, task_window=32, heap=1 << 14, **how)
    assert "FATAL: Heap Ring Deadlock Detected!" in text
    assert "Solution: Increase the heap: PTO2_RING_HEAP=262144 and PTO2_RING_TASK_WINDOW=128," in text
    assert "open ones hold 163840 bytes at one time" in text


def test_what_an_orchestration_does_after_a_deadlock() -> None:
    """Deadlock detection: it goes on to show its needs. Its own errors then do not matter, clusters end
    it."""

    def raises(rt: Runtime) -> None:
        with rt.scope():
            for _ in range(20):
                rt.submit(touch, vector(1))
            raise ValueError("an error of its own")

    text = fails(raises, task_window=16)
    assert "hold more than 20 tasks at one time" in text and "PTO2_RING_TASK_WINDOW=32" in text

    def clusters(rt: Runtime) -> None:
        with rt.scope():
            for _ in range(20):
                rt.submit(touch, vector(1))
            with rt.cluster():
                raise AssertionError("not reached")

    assert "hold more than 20 tasks at one time" in fails(clusters, task_window=16)

    def deep(rt: Runtime) -> None:
        for _ in range(20):
            rt.submit(touch, vector(1))
        with contextlib.ExitStack() as stack:
            for _ in range(80):  # more than there may be
                stack.enter_context(rt.scope())

    assert "hold more than 20 tasks at one time" in fails(deep, task_window=16)

    def leaves(rt: Runtime) -> None:
        for _ in range(20):
            rt.submit(touch, vector(1))
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run(leaves, block_dim=1, task_window=16)


@pytest.mark.parametrize("how", [{"threads": 1}, {"seed": 1}])
def test_an_orchestration_that_does_not_end_after_a_deadlock(how: dict[str, Any]) -> None:
    """Deadlock detection: it is counted for a while."""

    def endless(rt: Runtime) -> None:
        x = vector(1)
        with rt.scope():
            while True:
                rt.submit(touch, x)

    text = fails(endless, task_window=16, **how)
    assert ", or more: the orchestration was not seen to its end," in text

    def scopes(rt: Runtime) -> None:
        for _ in range(20):
            rt.submit(touch, vector(1))
        while True:
            with rt.scope():
                pass

    assert "hold more than 20 tasks at one time" in fails(scopes, task_window=16, **how)


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 2}, {"seed": 1}])
def test_the_recommended_heap_has_room_for_its_end(how: dict[str, Any]) -> None:
    """Heap ring: a block that does not fit before the end is put after it, wherever that falls in a larger heap."""

    def orchestrate(rt: Runtime) -> None:
        def task(kib: int) -> None:
            rt.submit(write, rt.tensor(kib * 256))

        for kib in (20, 50, *[1] * 146):
            with rt.scope():
                task(kib)
        with rt.scope():
            for kib in (1, 40, *[1] * 199):
                task(kib)

    text = fails(orchestrate, heap=1 << 16, block_dim=1, **how)
    assert "open ones hold 245760 bytes at one time" in text
    quiet(orchestrate, **_recommended(text), block_dim=1, **how)


def test_recommended_pools() -> None:
    """Dependency pool, TensorMap: a scope that needs a larger window needs larger pools as well."""

    def chain(rt: Runtime, x: Any) -> None:
        for _ in range(300):
            rt.submit(bump, x)

    small = {"task_window": 32, "dep_pool": 64, "tensormap_pool": 64}
    with pytest.raises(DiagnosticError) as caught:
        run(chain, vector(1), block_dim=1, **small)
    (problem,) = caught.value.diagnostics
    assert problem.help == "runtime.run(..., task_window=512, dep_pool=512, tensormap_pool=512)"
    x = vector(1)
    run(chain, x, block_dim=1, task_window=512, dep_pool=512, tensormap_pool=512)
    assert x[0] == 300


def _pinned(rt: Runtime, x: Any) -> None:
    rt.submit(touch, x)  # in the outer scope
    for _ in range(40):
        with rt.scope():
            rt.submit(touch, x)


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 3}, {"seed": 1}])
def test_a_task_of_the_outer_scope_pins_the_ring(how: dict[str, Any]) -> None:
    """Spec 2.7: a task outside any user scope blocks the reclamation of all younger ones."""
    logged: list[str] = []
    text = fails(_pinned, vector(), task_window=16, log=lambda level, line: logged.append(line), **how)
    assert "FATAL: Flow Control Deadlock Detected!" in text
    assert "Last task alive:     0" in text
    found = re.search(r"no progress after (\d+) spins", text)
    assert found is not None and int(found[1]) < 100_000  # by proof, not by time
    (line,) = [line for line in logged if "BLOCKED" in line]
    pattern = (
        r"\[WARN\] \w+: \[TaskRing\] BLOCKED \(Flow Control\): current=15, last_alive=0, active=15/16 "
        r"\(93\.8%\), spins=" + found[1]
    )
    assert re.fullmatch(pattern, line)


def test_who_waits_for_whom() -> None:
    """Deadlock detection: the chain from the orchestrator over the oldest task to the scope, with places."""
    text = fails(_pinned, vector(), task_window=16)
    here = Path(__file__).name
    assert re.search(rf"the orchestrator, at \S+{here}:\d+, waits for a task slot", text)
    assert re.search(rf"waits for the oldest, task 0 \(touch, submitted at \S+{here}:\d+\): completed", text)
    assert "held by its scope, opened at the start of the orchestration" in text
    assert re.search(rf"depth 2, 0 tasks, opened at \S+{here}:\d+", text)
    assert re.search(r"task ring +used 15 of 15 tasks \(free 0, peak 15\)", text)


# -- messages while waiting ----------------------------------------------------------------------------------


def test_blocked_every_10000_spins_and_unblocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlock detection: a WARN every 10,000 spins; spec 2.9: an INFO when it goes on."""
    monkeypatch.setenv("PTO_LOG_LEVEL", "info")
    said = threading.Event()
    lines: list[tuple[int, str]] = []

    def log(level: int, text: str) -> None:
        lines.append((level, text))
        if "BLOCKED" in text:
            said.set()

    def hold(x: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            said.wait(600)

    slow = kernel(hold, "inout", name="slow")

    def orchestrate(rt: Runtime) -> None:
        end = time.monotonic() + 600
        while not said.is_set() and time.monotonic() < end:
            with rt.scope():
                rt.submit(slow, SHARED)

    run(orchestrate, block_dim=1, threads=2, task_window=4, log=log)
    blocked = [(level, text) for level, text in lines if "BLOCKED" in text]
    assert blocked, lines
    level, text = blocked[0]
    assert level == 1
    found = re.fullmatch(
        r"\[WARN\] \w+: \[TaskRing\] BLOCKED \(Flow Control\): current=(\d+), last_alive=(\d+), "
        r"active=3/4 \(75\.0%\), spins=10000",
        text,
    )
    assert found is not None and int(found[1]) - int(found[2]) == 3
    infos = [text for level, text in lines if level == 2 and "Unblocked" in text]
    assert re.fullmatch(
        r"\[INFO\] \w+: \[TaskRing\] Unblocked after \d{5,} spins, task_id=" + found[1], infos[0]
    )


def test_blocked_is_said_also_by_who_does_not_spin() -> None:
    """Deadlock detection: the one thread there is executes the task that it waits for, for more than a second."""
    lines: list[str] = []
    slow = kernel(lambda x: time.sleep(1.05), "inout", name="slow")

    def orchestrate(rt: Runtime) -> None:
        for _ in range(4):
            with rt.scope():
                rt.submit(slow if not lines else touch, SHARED)

    run(orchestrate, block_dim=1, threads=1, task_window=4, log=lambda level, text: lines.append(text))
    assert re.search(
        r"\[TaskRing\] BLOCKED \(Flow Control\): current=3, last_alive=0, active=3/4 \(75.0%\), spins=\d0000$",
        lines[0],
    )


def test_numbers_of_the_spin_rules() -> None:
    """Deadlock detection: notify every 10,000 spins, limit 100,000, in the header that users can name."""
    text = (PTO2 / TMR / "pto_runtime2_types.h").read_text()
    defined = dict(re.findall(r"#define (PTO2_\w+) (\w+)$", text, re.MULTILINE))
    assert defined["PTO2_BLOCK_NOTIFY_INTERVAL"] == "10000"
    assert defined["PTO2_FLOW_CONTROL_SPIN_LIMIT"] == "100000"
    assert defined["PTO2_HEAP_SPIN_LIMIT"] == "100000"


# -- heap ring -----------------------------------------------------------------------------------------------


def _outputs(rt: Runtime, count: int, size: int) -> None:
    for _ in range(count):
        rt.submit(write, rt.tensor(size, "u8"))


def test_heap_deadlock_text() -> None:
    """Back-pressure, Deadlock detection: the heap ring's lines and their numbers."""
    logged: list[str] = []
    text = fails(_outputs, 20, 4096, heap=65536, log=lambda level, line: logged.append(line))
    assert "FATAL: Heap Ring Deadlock Detected!" in text
    assert re.search(r"Orchestrator blocked waiting for heap space after \d+ spins\.", text)
    status = dict(re.findall(r"^  - ([A-Z][a-z ]+): +(\d+)", text, re.MULTILINE))
    assert status == {
        "Requested": "4096",
        "Available": "0",
        "Heap top": "0",
        "Heap tail": "0",
        "Heap size": "65536",
    }
    assert "Solution: Increase the heap: PTO2_RING_HEAP=" in text
    (line,) = [line for line in logged if "BLOCKED" in line]
    pattern = r"\[HeapRing\] BLOCKED: requesting 4096 bytes, available=0, top=0, tail=0, spins=\d+"
    assert re.search(pattern + "$", line)
    found = re.search(r"PTO2_RING_HEAP=(\d+)", text)
    assert found is not None
    quiet(_outputs, 20, 4096, heap=int(found[1]))


def test_heap_top_and_tail_are_places_in_the_heap() -> None:
    """Heap ring: after laps around it, the message still gives offsets."""

    def orchestrate(rt: Runtime) -> None:
        for _ in range(7):
            with rt.scope():
                _outputs(rt, 1, 3 * 1024)
        _outputs(rt, 9, 3 * 1024)

    text = fails(orchestrate, heap=8 * 1024, threads=1)
    status = dict(re.findall(r"^  - ([A-Z][a-z ]+): +(\d+)", text, re.MULTILINE))
    top, tail, available = (int(status[k]) for k in ("Heap top", "Heap tail", "Available"))
    assert (top, tail, available) in ((6144, 0, 2048), (3072, 3072, 0))  # two blocks in either order


def test_a_request_larger_than_the_heap() -> None:
    """Spec 2.9: it can never succeed; reported at once."""
    text = fails(_outputs, 1, 2000, heap=1024)
    assert "after 0 spins" in text and re.search(r"Requested: +20(00|48) bytes", text)
    assert "the oldest" not in text  # there is no task to wait for


def test_heap_is_used_again() -> None:
    """Heap ring: tail follows packed_buffer_end of retired tasks; no block straddles the end."""
    seen: list[tuple[int, int]] = []

    def orchestrate(rt: Runtime) -> None:
        for size in (1000, 3000, 2048, 5000, 100) * 40:
            with rt.scope():
                t = rt.tensor(size, "u8")
                rt.submit(write, t)
                seen.append((t.address, size))

    done, _ = quiet(orchestrate, heap=16 * 1024, threads=1)
    assert done.stats["blocked"]["heap_ring"] > 0
    low = min(address for address, _ in seen)
    assert all(address + size <= low + 16 * 1024 for address, size in seen)
    assert len({address for address, _ in seen}) < 60
    assert done.stats["heap_peak"] <= 16 * 1024


def test_packed_outputs() -> None:
    """Packed output alignment 1024: outputs of one task share a block, in the order of the parameters."""
    many = kernel(lambda *a: None, "out in out scalar out", name="many")

    def orchestrate(rt: Runtime) -> None:
        a, b, c = rt.tensor(100, "u8"), rt.tensor((3, 500), "i16"), rt.tensor(1024, "u8")
        d = rt.tensor(1)
        rt.submit(many, a, SHARED, b, 7, c)
        assert (b.address - a.address, c.address - b.address) == (1024, 3072)
        assert a.address % 64 == 0
        rt.submit(write, d)
        assert d.address - c.address == 1024
        x = vector()
        rt.submit(many, x, SHARED, x, 7, c)  # a tensor with an address keeps it
        assert rt.external(x).address == x.ctypes.data

    done, _ = quiet(orchestrate)
    assert done.stats["heap_peak"] == 1024 + 3072 + 1024 + 1024


def test_output_memory_is_not_cleared() -> None:
    """Spec 2.6: buffers are not zeroed; `poison` makes that visible."""
    found: list[float] = []
    look = kernel(lambda x: found.append(float(x[0])), "in", name="look")

    def orchestrate(rt: Runtime) -> None:
        t = rt.tensor(4)
        rt.submit(write, t)
        rt.submit(look, t)

    quiet(orchestrate, poison=True)
    assert np.isnan(found[0])


# -- pools ---------------------------------------------------------------------------------------------------


def _fan(rt: Runtime, chunks: int, producers: int, whole: Any) -> None:
    for _ in range(chunks):
        with rt.scope():
            for i in range(producers):
                rt.submit(write, rt.external(whole).view([1], [i]))
            rt.submit(read, whole)


def test_dependency_pool_goes_around() -> None:
    """Dependency pool: entries are used again as tasks retire; at least 16; edges are never lost."""
    done, _ = quiet(_fan, 50, 10, vector(16), dep_pool=16, record=True, threads=1)
    own = {(chunk * 11 + i, chunk * 11 + 10) for chunk in range(50) for i in range(10)}
    assert own <= edges(done)
    assert done.stats["dep_pool_peak"] <= 16
    assert done.stats["blocked"]["dep_pool"] > 0


def test_dependency_pool_deadlock() -> None:
    """Dependency pool: an error if no task can retire, or one task wants more than there is."""
    text = fails(_fan, 1, 17, vector(32), dep_pool=16)
    assert "FATAL: Dependency Pool Deadlock Detected!" in text
    assert "The task needs 17 entries, 16 are free of 16." in text
    assert "Solution: PTO2_RING_DEP_POOL=64,\n  or end scopes earlier" in text

    def twice(rt: Runtime) -> None:
        _fan_in(rt, vector(16), 10)
        _fan_in(rt, vector(16), 10)

    logged: list[str] = []
    text = fails(twice, dep_pool=16, log=lambda level, line: logged.append(line))
    assert "FATAL: Dependency Pool Deadlock Detected!" in text
    assert any("[DepPool] BLOCKED: requesting 10 entries, available=6" in line for line in logged)


def _fan_in(rt: Runtime, x: Any, count: int) -> None:
    for i in range(count):
        rt.submit(write, rt.external(x).view([1], [i]))
    rt.submit(read, x)


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 2}, {"seed": 3}])
def test_tensormap_pool_of_one_task(how: dict[str, Any]) -> None:
    """A task that waits for room in the map does not hold its producers, because they have to be retired."""
    all_bump = kernel(
        lambda *parts: [x.__iadd__(1) for x in parts], " ".join(["inout"] * 16), name="all_bump"
    )
    xs = [np.zeros(4, np.float32) for _ in range(16)]

    def orchestrate(rt: Runtime) -> None:
        for _ in range(30):
            with rt.scope():
                rt.submit(all_bump, *xs)

    run(orchestrate, tensormap_pool=16, **how)
    assert all((x == 30).all() for x in xs)


def test_tensormap_pool_waits_and_tells() -> None:
    """Back-pressure, TensorMap layer 3: an exhausted pool waits for the watermark; spec 2.5: or reports
    FATAL."""
    x = vector(1)
    done, _ = quiet(_chunks, x, 60, 10, tensormap_pool=16, threads=1)
    assert x[0] == 600
    assert done.stats["tensormap_peak"] <= 16
    assert done.stats["blocked"]["tensormap"] > 0
    logged: list[str] = []
    text = fails(_chunks, vector(1), 1, 17, tensormap_pool=16, log=lambda level, line: logged.append(line))
    assert "FATAL: TensorMap Pool Deadlock Detected!" in text
    assert "The task needs 1 entries, 0 are free of 16." in text
    assert any("[TensorMap] BLOCKED: requesting 1 entries, available=0" in line for line in logged)


def test_tensormap_is_cleaned_every_64_tasks() -> None:
    """TensorMap layer 2: entries of retired tasks come back in lots of 64 tasks, one entry each here."""

    def orchestrate(rt: Runtime) -> None:
        for _ in range(500):
            with rt.scope():
                rt.submit(touch, SHARED)

    done, _ = quiet(orchestrate, threads=1, record=True, task_window=1024)
    counters = done.records.counters
    used = counters[counters["which"] == 3]["value"]
    falls = np.diff(used)[np.diff(used) < 0]
    assert len(falls) > 1
    assert np.all(falls <= -63)
    assert done.stats["tensormap_peak"] < 64 + 128
