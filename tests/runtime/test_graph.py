"""Graphs with explicit edges: host_build_graph and aicpu_build_graph, built by shared objects and from Python.

Kernels are Python functions, so a test sees what ran, in which order, on which data.
"""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto import _runtime

from .header_build import ABG, COMPILER, HBG, HERE, TMR, build

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

AIC, AIV = 0, 1
INVALID, FAILED, ORCHESTRATION, STUCK, CYCLE = 5, 200, 201, 203, 205
MODES = [{"host_threads": n} for n in (1, 2, 4)] + [
    {"deterministic": True, "seed": s, "schedulers": k} for s, k in ((0, 1), (1, 2), (2, 3))
]


class Graph:
    """A run whose kernels record their arguments."""

    def __init__(self, **options: Any) -> None:
        self.kernels = _runtime.Kernels()
        self.lines: list[str] = []
        self.ran: list[int] = []
        self.options = {"block_dim": 3, "host_threads": 2, "record": True, **options}
        self.add(0, "add", AIV, lambda a, b, out, n: floats(out, n, floats(a, n) + floats(b, n)))
        self.add(1, "add_scalar", AIV, lambda a, b, out, n: floats(out, n, floats(a, n) + scalar(b)))
        self.add(2, "mul", AIC, lambda a, b, out, n: floats(out, n, floats(a, n) * floats(b, n)))
        self.add(11, "nothing", -1, lambda *_: None)
        self.add(12, "fails", -1, self._fail)
        self.run = _runtime.TaskGraph(
            self.kernels, self.options, 2, lambda level, text: self.lines.append(text)
        )

    def add(self, func_id: int, name: str, core_type: int, function: Callable[..., Any]) -> None:
        def call(task: int, slots: list[int], *masks: int) -> None:
            self.ran.append(task)
            function(*slots)

        self.kernels.add_function(func_id, name, core_type, call)

    @staticmethod
    def _fail(*_: int) -> None:
        raise ArithmeticError("division by cucumber")

    @property
    def failure(self) -> tuple[int, str]:
        return self.run.failure()[:2]

    def edges(self) -> list[tuple[int, int]]:
        raw = np.frombuffer(
            self.run.records()["edges"],
            np.dtype([("p", "i8"), ("s", "i8"), ("a", "i4"), ("k", "i1")], align=True),
        )
        assert set(raw["k"].tolist()) <= {3} and set(raw["a"].tolist()) <= {-1}
        return list(zip(raw["p"].tolist(), raw["s"].tolist(), strict=True))


def floats(address: int, count: int, values: Any = None) -> Any:
    array = np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))
    if values is not None:
        array[:] = values
    return array


def scalar(slot: int) -> Any:
    return np.array([slot], "u4").view("f4")[0]


def addresses(*arrays: Any) -> list[int]:
    return [*(a.ctypes.data for a in arrays), arrays[0].size]


def line_of(source: str, text: str, nth: int = 0) -> int:
    lines = (HERE / "headers" / source).read_text().splitlines()
    return [n for n, line in enumerate(lines, 1) if text in line][nth]


# --- shared objects ------------------------------------------------------------------------------------------

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


@needs_compiler
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(
    ("runtime", "source", "entry", "concurrent"),
    [
        (HBG, "host_vector.cpp", "build_vector", False),
        (ABG, "device_vector.cpp", "orchestration", False),
        (ABG, "device_vector.cpp", "orchestration", True),
    ],
    ids=["host", "device0", "device1"],
)
def test_vector(runtime: str, source: str, entry: str, concurrent: bool, mode: dict[str, Any]) -> None:
    """Seed, three runtime backends: built by the host, or next to the schedulers with build_mode 0 and 1."""
    graph = Graph(concurrent=concurrent, **mode)
    a, b, out = (np.full(500, v, "f4") for v in (2, 3, -1))
    path = str(build(f"headers/{source}", runtime))
    graph.run.run_library(runtime, path, entry, addresses(a, b, out))
    assert graph.failure == (0, "")
    np.testing.assert_array_equal(out, np.full(500, 42, "f4"))
    assert sorted(graph.ran) == [0, 1, 2, 3] and graph.ran[0] == 0 and graph.ran[3] == 3
    assert graph.edges() == DIAMOND
    stats = graph.run.stats()
    assert (stats["tasks"], stats["completed"], stats["edges"]) == (4, 4, 4)
    assert stats["device_memory_peak"] == (6 if runtime == HBG else 3) * 2000
    added = [line_of(source, "add_task(", n) for n in range(4)]
    assert [s.rsplit("/", 1)[-1] for s in graph.run.records()["sites"]] == [f"{source}:{n}" for n in added]
    assert graph.lines == (["[INFO] build_vector: 4 tasks"] if runtime == HBG else [])


HOST_MISTAKES = {
    "build_lost_edge": (INVALID, r"\[Runtime\] Invalid to_task ID 7"),
    "build_failing": (FAILED, r"task 1 \(fails, AIV \d\): ArithmeticError: division by cucumber"),
    "build_unknown_kernel": (
        INVALID,
        r"task 1 \(func_id 20, added at .*host_vector.cpp:\d+\): no kernel has func_id 20",
    ),
    "build_wrong_core": (INVALID, r"task 0 \(mul, .*\): the kernel is for AIC cores and was added for AIV"),
    "build_code": (ORCHESTRATION, "Orchestration function failed with code 17"),
    "build_throws": (ORCHESTRATION, "no such thing"),
    "build_overrun": (INVALID, r"copy_to_device: 65 bytes at 0x\w+ are not inside an allocation"),
    "build_double_free": (INVALID, r"device_free: 0x\w+ was not allocated by device_malloc, or freed before"),
    "build_bad_pair": (INVALID, r"copy_from_device: 33 bytes at 0x\w+ are not inside an allocation"),
}


@needs_compiler
@pytest.mark.parametrize("entry", HOST_MISTAKES)
@pytest.mark.parametrize("mode", [MODES[1], MODES[4]], ids=str)
def test_host_mistakes(entry: str, mode: dict[str, Any]) -> None:
    """pto2-runtime 3: mistakes that are logged and ignored there end the run here, and are named; twice in
    one process."""
    code, text = HOST_MISTAKES[entry]
    data = np.zeros(500, "f4")
    for _ in range(2):
        graph = Graph(**mode)
        graph.run.run_library(
            HBG, str(build("headers/host_vector.cpp", HBG)), entry, addresses(data, data, data)
        )
        assert graph.failure[0] == code
        assert re.search(text, graph.failure[1]), graph.failure[1]
        assert code == FAILED or not graph.ran


@needs_compiler
def test_cycle_is_named() -> None:
    """pto2-runtime 3: cycles are not detected there; here the tasks of a cycle are listed before anything runs."""
    graph = Graph()
    graph.run.run_library(HBG, str(build("headers/host_vector.cpp", HBG)), "build_cycle", [])
    code, text = graph.failure
    place = (
        rf"\(nothing, added at .*host_vector.cpp:{line_of('host_vector.cpp', 'runtime->add_task(nullptr')}\)"
    )
    assert code == CYCLE and not graph.ran
    expected = (
        rf"^the graph has a cycle of 2 tasks:\n  task (\d) {place} comes before\n"
        rf"  task (\d) {place} comes before\n  task \1 {place}$"
    )
    assert re.search(expected, text), text


@needs_compiler
def test_a_graph_without_tasks() -> None:
    graph = Graph()
    graph.run.run_library(HBG, str(build("headers/host_vector.cpp", HBG)), "build_nothing", [])
    assert graph.failure == (0, "") and not graph.ran


@needs_compiler
def test_what_cannot_be_loaded() -> None:
    graph = Graph()
    with pytest.raises(ValueError, match=r"cannot load: .*no_such_library"):
        graph.run.run_library(HBG, "/no_such_library.so", "build", [])
    with pytest.raises(ValueError, match="does not export 'no_entry'"):
        graph.run.run_library(HBG, str(build("headers/host_vector.cpp", HBG)), "no_entry", [])
    with pytest.raises(ValueError, match=r"Too many arguments: 65 \(max 64\)"):
        graph.run.run_library(ABG, str(build("headers/device_vector.cpp", ABG)), "code", [0] * 65)


DEVICE_MISTAKES = {
    "unpublished": (
        STUCK,
        r"task 1 \(.*\) waits for task 0 \(nothing, added at .*\), which was never published",
    ),
    "cycle": (CYCLE, "the graph has a cycle of 2 tasks"),
    "bad_address": (INVALID, r"task 0 \(nothing, .*\): function_bin_addr is not the address of a kernel"),
    "code": (ORCHESTRATION, "Orchestration function failed with code 3"),
    "endless": (FAILED, r"task 0 \(fails, AIV \d\): ArithmeticError: division by cucumber"),
}


@needs_compiler
@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("entry", DEVICE_MISTAKES)
def test_device_mistakes(entry: str, concurrent: bool) -> None:
    """pto2-runtime 4. A builder that never ends is ended by the failure of a task, if tasks run meanwhile."""
    if entry == "endless" and not concurrent:
        pytest.skip("nothing runs before the builder returns")
    graph = Graph(concurrent=concurrent, host_threads=2, record=False)
    graph.run.run_library(ABG, str(build("headers/device_vector.cpp", ABG)), entry, [])
    code, text = DEVICE_MISTAKES[entry]
    assert graph.failure[0] == code
    assert re.search(text, graph.failure[1]), graph.failure[1]


@needs_compiler
@pytest.mark.parametrize("concurrent", [False, True])
def test_unpublished_tasks_are_invisible(concurrent: bool) -> None:
    """pto2-runtime 4: unpublished tasks do not run; here that is reported."""
    graph = Graph(concurrent=concurrent)
    graph.run.run_library(ABG, str(build("headers/device_vector.cpp", ABG)), "left_over", [])
    assert graph.failure == (0, "") and graph.ran == [0]
    assert graph.lines == ["[WARN] graph: 1 of 2 tasks were never published and do not run"]


# --- built from Python ---------------------------------------------------------------------------------------


def random_graph(rng: random.Random) -> tuple[int, list[tuple[int, int]]]:
    """Tasks and edges without a cycle; ids are not in the order of the edges, pairs may come twice."""
    count = rng.randrange(1, 40)
    order = rng.sample(range(count), count)
    pairs = (
        [sorted(rng.sample(range(count), 2)) for _ in range(rng.randrange(3) * count)] if count > 1 else []
    )
    return count, [(order[a], order[b]) for a, b in pairs]


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_random_graphs(mode: dict[str, Any], concurrent: bool) -> None:
    """Every task runs once, and after all the tasks it waits for; whatever the mode, threads and order."""
    rng = random.Random(str(mode))
    for number in range(15):
        count, edges = random_graph(rng)
        seed = {"seed": number} if mode.get("deterministic") else {}
        graph = Graph(concurrent=concurrent, **{**mode, **seed})

        def orchestrate(
            graph: Graph = graph, count: int = count, edges: list[tuple[int, int]] = edges
        ) -> None:
            for id in range(count):
                assert graph.run.add_task(11, id % 2, [id]) == id
            for pair in edges:
                graph.run.add_edge(*pair)
            for id in rng.sample(range(count), count):
                graph.run.publish(id)

        graph.run.run_function(orchestrate)
        assert graph.failure == (0, "")
        assert sorted(graph.ran) == list(range(count))
        when = {task: n for n, task in enumerate(graph.ran)}
        assert all(when[a] < when[b] for a, b in edges)
        assert sorted(graph.edges()) == sorted(edges)


def test_the_same_seed_gives_the_same_order() -> None:
    def order(seed: int) -> list[int]:
        graph = Graph(deterministic=True, seed=seed, concurrent=True, schedulers=3)

        def orchestrate() -> None:
            for id in range(30):
                graph.run.add_task(11, id % 2, [])
                if id % 3:
                    graph.run.add_edge(id - 1, id)
                graph.run.publish(id)

        graph.run.run_function(orchestrate)
        assert graph.failure == (0, "")
        return graph.ran

    assert [order(7), order(7)] == [order(7)] * 2 and len({tuple(order(s)) for s in range(5)}) > 1


def test_an_orchestration_that_raises() -> None:
    graph = Graph(concurrent=True)

    def orchestrate() -> None:
        graph.run.publish(graph.run.add_task(11, AIV, []))
        raise LookupError("lost")

    graph.run.run_function(orchestrate)
    code, _, thrown = graph.run.failure()[:3]
    assert code == ORCHESTRATION and isinstance(thrown, LookupError)


def test_records() -> None:
    """Times of a task in order; the site is where it was added."""
    graph = Graph(concurrent=True)

    def orchestrate() -> None:
        graph.run.set_site("here.py", 12)
        graph.run.publish(graph.run.add_task(11, AIV, [1]))

    graph.run.run_function(orchestrate)
    from pto.runtime import recorded

    tasks = recorded.records(graph.run.records(), {11: "nothing"}, graph.run.stats()).tasks
    (task,) = tasks
    times = [int(task[name]) for name in ("submit", "ready", "dispatch", "start", "end", "finish")]
    assert times == sorted(times) and times[0] >= 0
    assert (task["func_id"], task["core_type"], task["scope"], task["cluster"], task["block"]) == (
        11,
        1,
        -1,
        -1,
        -1,
    )
    assert graph.run.records()["sites"] == ["here.py:12"]


# --- cycles --------------------------------------------------------------------------------------------------


@needs_compiler
@examples(200)
@given(st.data())
def test_found_cycles_are_cycles(data: st.DataObject) -> None:
    """Against a reachability matrix: a cycle is found if and only if a task reaches itself, and it is a shortest
    one through its first task."""
    source = str(HERE.parents[1] / "native/runtime")
    find = ctypes.CDLL(str(build("headers/cycle.cpp", TMR, "-std=c++20", f"-I{source}"))).cycle
    count = data.draw(st.integers(1, 9))
    ids = st.integers(0, count - 1)
    edges = data.draw(st.lists(st.tuples(ids, ids), max_size=16))
    gone = (
        data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
        if data.draw(st.booleans())
        else [False] * count
    )
    out = (ctypes.c_int * count)()
    flat = [id for pair in edges for id in pair]
    length = find(count, (ctypes.c_int * (len(flat) + 1))(*flat), len(edges), bytes(gone), out)
    step = np.zeros((count, count), bool)
    for a, b in edges:
        step[a, b] = not gone[a] and not gone[b]
    paths = [step]
    for _ in range(count):
        paths.append((paths[-1].astype(int) @ step) > 0)
    found = list(out)[:length]
    if length == 0:
        assert not any(np.diag(p).any() for p in paths)
        return
    assert len(set(found)) == length and all(
        step[a, b] for a, b in zip(found, found[1:] + found[:1], strict=True)
    )
    assert not any(paths[n][found[0], found[0]] for n in range(length - 1))
