"""The native task runtime: its parts under stress, its behaviour in bad circumstances, random graphs.

Programs of native/tests, compiled once per content: stress_parts (each part alone against a model), stress_engine
(waits, tiny and huge rings, odd machines, failures), stress_libraries (orchestrations in shared objects, right and
wrong, again and again), fuzz_runtime and fuzz_graph (random graphs against an oracle that runs the tasks one after the
other). `make sanitize` runs the same ones under the sanitizers, and for longer.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tests.made import made_once

from .header_build import ABG, HBG, TMR, build
from .native_build import COMPILER, key, program

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

PARTS = (
    "queue_is_a_bounded_fifo", "queue_loses_and_doubles_nothing", "queue_refuses_only_when_it_is_full",
    "spin_lock_lets_one_in", "parking_ping_pong", "parking_loses_no_wake_up", "parking_wakes_all",
    "heap_ring_against_marked_bytes",
    "heap_ring_has_room_for_anything_when_empty", "dep_pool_against_a_queue", "tensor_map_against_a_list",
    "hazards_against_all_pairs", "clusters_against_a_table", "clusters_come_back", "fibers_keep_their_place",
    "fibers_have_their_own_exceptions", "fibers_can_be_given_up",
)  # fmt: skip
ENGINE_TESTS = (
    "cores_hand_over_data", "vector_memory_is_there_before_its_core_runs", "waiting_for_nobody_is_found",
    "waiting_for_nobody_is_found_behind_others",
    "waiting_for_a_slow_one_is_fine", "a_core_waits_for_a_task_behind_a_full_ring", "kernels_come_while_tasks_run",
    "a_blocked_orchestrator_is_woken", "a_sleeping_orchestrator_is_woken",
    "an_orchestrator_that_falls_asleep_is_woken", "a_failure_wakes_everybody",
    "a_late_end_of_scope_retires", "a_cluster_wakes_who_waits_for_it", "a_scan_that_lags",
    "every_machine_gives_the_same",
    "many_blocks_on_one_cluster", "sizes_of_outputs", "nonsense_after_a_deadlock",
    "a_kernel_cannot_orchestrate",
    "deadlocks_are_told_while_others_work", "failures_anywhere", "a_graph_that_throws_ends_the_run",
)  # fmt: skip
LIBRARIES = {"host_vector": HBG, "device_vector": ABG, "vector_dag": TMR, "clusters": TMR}
LIBRARY_TESTS = (
    "host_graphs", "device_graphs", "what_cannot_be_loaded", "tensor_graphs", "clusters_and_blocks",
)  # fmt: skip


@cache
def libraries() -> Path:
    """A folder with the orchestrations of tests/runtime/headers as shared objects."""
    for name, variant in LIBRARIES.items():
        built = build(f"headers/{name}.cpp", variant)
        found = made_once("native", key(), f"{name}.so", lambda part, built=built: shutil.copy(built, part))
    return found.parent


def output(name: str, *arguments: str) -> str:
    command = [str(program(name)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nreturn code {done.returncode}"
    return done.stdout


@pytest.mark.parametrize("name", PARTS)
def test_part(name: str) -> None:
    assert output("stress_parts", name).split() == ["ok", name]


@pytest.mark.parametrize("name", ENGINE_TESTS)
def test_engine(name: str) -> None:
    assert output("stress_engine", name).split() == ["ok", name]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", LIBRARY_TESTS)
def test_libraries(name: str) -> None:
    assert output("stress_libraries", str(libraries()), name).split() == ["ok", name]


def test_no_test_is_forgotten() -> None:
    assert tuple(output("stress_parts", "--list").split()) == PARTS
    assert tuple(output("stress_engine", "--list").split()) == ENGINE_TESTS
    assert tuple(output("stress_libraries", str(libraries()), "--list").split()) == LIBRARY_TESTS


@pytest.mark.parametrize("program", ["fuzz_runtime", "fuzz_graph"])
@pytest.mark.parametrize(("seeds", "threads"), [(300, 0), (50, 1), (50, 2), (50, 4)])
def test_random_graphs_equal_the_oracle(program: str, seeds: int, threads: int) -> None:
    """Threads 0 is the deterministic mode: another interleaving with each seed."""
    text = output(program, "0", str(seeds), *([str(threads)] if threads else []))
    assert text.startswith(f"{seeds} graphs, ")


@pytest.mark.parametrize("program", ["fuzz_runtime", "fuzz_graph"])
def test_random_graphs_in_virtual_time_equal_the_oracle(program: str) -> None:
    for threads in ("1", "3"):
        assert output(program, "0", "40", threads, "virtual").startswith("40 graphs, ")
