"""Parts of the runtime, seen from inside: native/tests/test_runtime.cpp and test_runtime_runs.cpp.

Each check belongs to a topic of the runtime's description; the table here says which must exist.
"""

from __future__ import annotations

import subprocess

import pytest

from .header_build import COMPILER
from .native_build import program

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

#: Check -> topic.
CHECKS = {
    "shared_memory_layout": "Shared memory layout",
    "shared_memory_defaults": "Shared memory layout, constants",
    "constants_that_sources_may_name": "Platform constants, constants",
    "slot_of_a_task": "Task ring",
    "a_window_of_16_recycles_its_slots": "Task ring",
    "heap_ring_wraps_whole_blocks": "Heap ring",
    "heap_ring_random": "Heap ring",
    "dep_pool_never_gives_what_is_in_use": "Dependency pool",
    "tensor_map_covered_and_other": "TensorMap",
    "tensor_map_inout_takes_over": "TensorMap",
    "tensor_map_truncates_stale_chains": "TensorMap, layer 1",
    "tensor_map_pool": "TensorMap, layers 2 and 3",
    "descriptor_counts_and_lists": "Task descriptor, dependency pool",
    "states_0_to_3": "State machine",
    "a_finished_producer_is_counted_at_once": "Lock protocol",
    "every_consumer_is_counted_once": "Lock protocol",
    "watermark_and_heap_tail_advance_in_order": "Watermark",
    "registers": "Handshake registers",
    "registers_during_a_task": "Handshake registers",
    "machine_sizes": "Platform constants, clusters",
    "cores_are_divided_among_schedulers": "Threads",
    "queue_is_first_in_first_out": "Ready queues",
    "own_shard_first_then_the_others": "Ready queues",
    "clusters_pool": "Clusters",
    "groups_of_clusters_are_in_the_descriptor": "Clusters",
}


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(program("test_runtime")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("name", CHECKS)
def test_part(name: str) -> None:
    """The topic of each check is in the table."""
    done = _run(name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"ok {name}\n"


def test_all_checks_have_a_topic() -> None:
    listed = dict(line.split("\t") for line in _run("--list").stdout.splitlines())
    assert listed == CHECKS


def test_an_unknown_name_is_an_error() -> None:
    assert _run("nothing").returncode == 2
