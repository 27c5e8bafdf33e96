"""The native task runtime: its parts one by one and under stress, its behaviour in bad circumstances, random
graphs.

Programs of tests/native/programs: test_runtime (parts, and their behaviour in a run), stress_parts (each part alone
against a model), stress_engine (waits, tiny and huge rings, odd machines, failures), fuzz_runtime and
fuzz_graph (random graphs against an oracle that runs the tasks one after the other), stress_libraries
(orchestrations in shared objects, right and wrong, again and again). `make sanitize` runs the same ones under
the sanitizers, and for longer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache, partial
from pathlib import Path

import pytest
from tests.made import digest, made_once
from tests.sampling import EVERY, matrix

from .header_build import ABG, COMPILER, HBG, TMR, build

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

NATIVE = Path(__file__).parents[2] / "native"
PROGRAMS = Path(__file__).parents[1] / "native/programs"
#: Orchestrations from shared objects: each has its own idea of a Runtime.
LOADERS = tuple(
    NATIVE / "runtime" / f"{p}.cpp" for p in ("graph/device", "graph/host", "tensormap/orchestration")
)
#: Sizes of the machine are defined first, else headers have their defaults.
MACHINE = NATIVE / "runtime/exec/machine.cpp"
ENGINE = sorted({*NATIVE.glob("runtime/*/*.cpp")} - {MACHINE, *LOADERS})
LIBRARIES = {"host_vector": HBG, "device_vector": ABG, "vector_dag": TMR, "clusters": TMR}
STRESS = ("stress_parts", "stress_engine", "fuzz_runtime", "fuzz_graph")
#: Seconds of processor time each; `make matrix` runs them. The others of their programs sample them.
LONG = (
    "a_scan_that_lags",
    "a_blocked_orchestrator_is_woken",
    "failures_anywhere",
    "parking_loses_no_wake_up",
)
#: The engine, as the build of the package has compiled it.
BUILT = NATIVE.parent.glob("build/*/CMakeFiles/_runtime.dir/Unity/unity_runtime_cxx.cxx.o")
#: Checks of test_runtime -> the topic of the runtime's description that they belong to.
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
    "run_groups": "Runs that wait for one another",
}


@cache
def built() -> tuple[Path, ...]:
    """The compiled engine, unless there is none, it is older than its sources, or `make matrix` compiles everything."""
    folders = ("runtime", "include/pto2", "include/pto/core")
    sources = [p for f in folders for p in (NATIVE / f).rglob("*") if p.is_file()]
    changed = max(p.stat().st_mtime for p in sources)
    return () if EVERY else tuple(p for p in sorted(BUILT) if p.stat().st_mtime > changed)[:1]


def _all() -> str:
    """Return all programs but stress_libraries, each in a namespace of its own, as one source: most of the time that
    compiling takes goes into the headers that they share. An engine that is not built yet comes last: it brings names
    that they have, too.
    """
    programs = {name: [PROGRAMS / f"{name}.cpp"] for name in STRESS}
    programs["test_runtime"] = sorted(PROGRAMS.glob("test_runtime*.cpp"))
    texts = [path.read_text() for files in programs.values() for path in files]
    heads = {line for text in texts for line in re.findall(r"#include .*", text)} - {'#include "check.hpp"'}
    engine = [] if built() else ENGINE
    lines = [*([f'#include "{MACHINE}"'] if engine else []), *sorted(heads)]
    for name, files in programs.items():
        if name == "test_runtime":
            lines += ["#undef CHECK", '#include "check.hpp"']  # which has another one
        lines += [f"namespace {name} {{", *(f'#include "{path}"' for path in files), "}"]
    lines += [f'#include "{path}"' for path in engine]
    calls = (f'if (program == "{name}") return {name}::main(count - 1, words + 1);' for name in programs)
    main = ["int main(int count, char** words) {", "std::string program = words[1];", *calls, "}"]
    return "\n".join((*lines, *main))


@cache
def program(name: str) -> Path:
    """Compile a program, once per content, with the engine."""
    folders = NATIVE / "runtime", NATIVE / "include", PROGRAMS
    files = [p for folder in folders for p in sorted(folder.rglob("*.[ch]*"))]
    files += built()
    libraries = [MACHINE, *ENGINE, *LOADERS, PROGRAMS / "stress_libraries.cpp"]
    sources = libraries if name == "stress_libraries" else ["-x", "c++", "-", "-x", "none", *built()]
    includes = (f"-I{p}" for p in (PROGRAMS, *folders[:2], NATIVE / "include/pto2/tensormap_and_ringbuffer"))
    flags = ("-std=c++20", "-O1" if EVERY else "-O0", "-Wall", "-Wextra", *includes)
    command = [str(COMPILER), *flags, *map(str, sources), "-lpthread", "-ldl", "-o"]

    def make(part: Path) -> None:
        done = subprocess.run([*command, str(part)], input=_all(), capture_output=True, text=True)
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr

    return made_once("native", digest(*command, _all(), *(p.read_bytes() for p in files)), name, make)


def output(name: str, *arguments: str, status: int = 0) -> str:
    command = [program("all"), name] if name != "stress_libraries" else [program(name)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == status, f"{done.stdout}\n{done.stderr}\nreturn code {done.returncode}"
    return done.stdout


def test_parts_of_the_runtime() -> None:
    """The topic of each check is in the table."""
    listed = dict(line.split("\t") for line in output("test_runtime", "--list").splitlines())
    assert listed == CHECKS
    assert sorted(output("test_runtime").splitlines()) == sorted(f"ok {name}" for name in CHECKS)
    output("test_runtime", "nothing", status=2)


def passes(name: str, *arguments: str, but: tuple[str, ...] = ()) -> None:
    names = [n for n in output(name, *arguments, "--list").split() if n not in but]
    assert len(names) > 4
    assert output(name, *arguments, *names).split() == [word for n in names for word in ("ok", n)]


@pytest.mark.parametrize("name", ["stress_parts", "stress_engine"])
def test_under_stress(name: str) -> None:
    passes(name, but=() if EVERY else LONG)


@matrix
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_libraries() -> None:
    """test_phases samples it: orchestrations that fail in every way, again and again in one process."""
    made = {name: build(f"headers/{name}.cpp", variant) for name, variant in LIBRARIES.items()}
    key = digest(*(library.read_bytes() for library in made.values()))
    files = [
        made_once("native", key, f"{name}.so", partial(shutil.copy, library))
        for name, library in made.items()
    ]
    passes("stress_libraries", str(files[0].parent))


@pytest.mark.parametrize("name", ["fuzz_runtime", "fuzz_graph"])
def test_random_graphs_equal_the_oracle(name: str) -> None:
    """Without threads, in the deterministic mode: another interleaving with each seed."""
    for seeds, *mode in ((300,), (50, 1), (50, 2), (50, 4), (40, 1, "virtual"), (40, 3, "virtual")):
        count = seeds if EVERY else seeds // 4
        assert output(name, "0", str(count), *map(str, mode)).startswith(f"{count} graphs, ")
