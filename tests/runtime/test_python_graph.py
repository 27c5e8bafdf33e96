"""Graphs with explicit edges from Python: results, refusals, and missing edges."""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto import knobs, runtime
from pto.runtime import graph

ADD = runtime.kernel(lambda x, y, out: np.add(x, y, out=out), "in in out", name="add")
SCALE = runtime.kernel(lambda x, by, out: np.multiply(x, by, out=out), "in float out", name="scale")
TOUCH = runtime.kernel(lambda x: None, "inout", name="touch")
GRAPHS = ["host_build_graph", "aicpu_build_graph"]
X = np.arange(64, dtype=np.float32)


def _build(rt: Any, x: Any, out: Any, missing: int = -1) -> None:
    """out = 2.5 (x + x) + x; every task is published when its edges are there."""
    y, z = rt.tensor(x.shape), rt.tensor(x.shape, np.float32)
    tasks = [rt.add_task(ADD, x, x, y)]
    rt.publish_task(tasks[0])
    for i, (kernel, values) in enumerate([(SCALE, (y, 2.5, z)), (ADD, (z, x, out))]):
        tasks.append(rt.add_task(kernel, *values))
        if i != missing:
            rt.add_successor(tasks[i], tasks[i + 1])
        rt.publish_task(tasks[i + 1])


def _refused(build: Any, runtime_: str = "host_build_graph", **more: Any) -> str:
    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(build, runtime=runtime_, **more)
    return caught.value.diagnostics[0].message


@pytest.mark.parametrize("mode", ["0", "1"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("how", [{}, {"threads": 1}, {"seed": 3}])
def test_results(name: str, mode: str, how: dict[str, int]) -> None:
    out = np.zeros_like(X)
    with knobs.override(PTO_AICPU_BUILD_GRAPH_BUILD_MODE=mode):
        run = runtime.run(_build, X, out, runtime=name, block_dim=3, record=True, **how)
    assert np.array_equal(out, 6 * X)
    assert run.stats["tasks"] == run.stats["completed"] == 3
    assert run.records.names == {0: "add", 1: "scale"}
    assert "3 tasks, 2 dependencies" in run.summary()


def test_host_build_graph_needs_no_publishing() -> None:
    out = np.zeros_like(X)

    def build(rt: Any) -> None:
        y = rt.tensor(X.shape)
        first, second = rt.add_task(ADD, X, X, y), rt.add_task(ADD, y, X, out)
        rt.add_successor_conditional(first, second)

    runtime.run(build, runtime="host_build_graph")
    assert np.array_equal(out, 3 * X)


def test_a_task_that_is_never_published() -> None:
    def build(rt: Any) -> None:
        rt.publish_task(rt.add_task(ADD, X, X, np.zeros_like(X)))
        rt.add_task(SCALE, X, 1.0, np.zeros_like(X))

    message = "task 1 (scale) was never published: 1 of 2 do not run"
    assert _refused(build, "aicpu_build_graph") == message


def test_words_of_the_other_runtimes() -> None:
    for name, build, words in (
        (
            "host_build_graph",
            lambda rt: rt.submit(ADD, X, X, X),
            "host_build_graph has no submit: tasks come from",
        ),
        (
            "tensormap_and_ringbuffer",
            lambda rt: rt.add_task(ADD, X, X, X),
            "has no add_task: submit adds tasks",
        ),
        ("host_build_graph", lambda rt: rt.nothing, "'Graph' object has no attribute 'nothing'"),
    ):
        with pytest.raises(AttributeError, match=words):
            runtime.run(build, runtime=name)


def test_a_function_that_nobody_defines_and_a_header_that_is_not_there(tmp_path: Path) -> None:
    lost, other = tmp_path / "lost.cpp", tmp_path / "other.cpp"
    lost.write_text(
        '#include <cstdint>\nvoid helper();\nextern "C" void kernel_entry(int64_t*) { helper(); }\n'
    )
    other.write_text('#include <cstdint>\n#include "tensor.h"\nextern "C" void kernel_entry(int64_t*) {}\n')
    kernel = runtime.kernel(lost, "in")
    message = _refused(lambda rt: rt.add_task(kernel, X))
    assert "kernel lost (" in message and "undefined symbol" in message
    kernel = runtime.kernel(other, "in")
    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(lambda rt: rt.add_task(kernel, X), runtime="host_build_graph")
    assert "passes addresses to kernels, not TensorData" in (caught.value.diagnostics[0].help or "")


def test_compiled_kernels_get_addresses(tmp_path: Path) -> None:
    source = tmp_path / "twice.cpp"
    source.write_text("""\
#include <pto/pto-inst.hpp>
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace pto;
  auto* from = reinterpret_cast<__gm__ float*>(args[0]);
  auto* to = reinterpret_cast<__gm__ float*>(args[1]);
  GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>> in(from), out(to);
  Tile<TileType::Vec, float, 1, 64> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, in);
  TMULS(tile, tile, static_cast<float>(args[2]));
  TSTORE(out, tile);
}
""")
    times = runtime.kernel(source, "in out scalar")
    out = np.zeros((3, 64), np.float32)

    def build(rt: Any) -> None:
        y = rt.tensor(64)
        rt.add_successor(rt.add_task(times, X, y, 2), rt.add_task(times, y, out[1], -5))

    runtime.run(build, runtime="host_build_graph")
    assert np.array_equal(out[1], -10 * X) and not out[::2].any()
    message = "expected a contiguous array for parameter 0 of kernel twice: a task gets only its address"
    assert _refused(lambda rt: rt.add_task(times, np.zeros(128, np.float32)[::2], out[0], 1)) == message


@pytest.mark.parametrize("name", ["host_build_graph", "aicpu_build_graph"])
def test_a_compiled_kernel_stays_in_its_array(name: str, tmp_path: Path) -> None:
    """In `aicpu_build_graph` also while the graph grows."""
    source = tmp_path / "far.cpp"
    source.write_text("""\
#include <pto/pto-inst.hpp>
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace pto;
  auto* to = reinterpret_cast<__gm__ float*>(args[0]);
  GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>> out(to);
  Tile<TileType::Vec, float, 1, 64> tile;
  TASSIGN(tile, 0);
  TEXPANDS(tile, 1.0f);
  TSTORE(out, tile);
}
""")
    far = runtime.kernel(source, "out")
    array = np.zeros(100, np.float32)
    build = lambda rt, at: rt.publish_task(rt.add_task(far, array[at:]))  # noqa: E731
    runtime.run(build, 36, runtime=name)
    assert array.sum() == 64
    with pytest.raises(pto.DiagnosticError, match=r"TSTORE: touches bytes 148\.\.404 of its array"):
        runtime.run(build, 37, runtime=name)


@pytest.mark.parametrize("dtype", [">f4", "O", "f8"])
def test_elements_that_no_kernel_knows(dtype: str, tmp_path: Path) -> None:
    source = tmp_path / "nothing.cpp"
    source.write_text('#include <cstdint>\nextern "C" void kernel_entry(int64_t*) {}\n')
    kernel = runtime.kernel(source, "inout")
    assert "unsupported element type" in _refused(lambda rt: rt.add_task(kernel, np.zeros(4, dtype)))


def test_an_edge_into_a_task_that_may_have_run() -> None:
    def build(rt: Any) -> None:
        a, b = rt.add_task(TOUCH, X.copy()), rt.add_task(TOUCH, X.copy())
        rt.publish_task(b)
        rt.add_successor(a, b)

    assert "cannot add an edge from task 0: task 1 is already published" in _refused(
        build, "aicpu_build_graph"
    )


def test_as_many_successors_as_a_device_has_room_for() -> None:
    def build(rt: Any, count: int) -> None:
        first = rt.add_task(TOUCH, X.copy())
        for _ in range(count):
            rt.add_successor(first, rt.add_task(TOUCH, X.copy()))

    assert runtime.run(build, 512, runtime="host_build_graph").stats["edges"] == 512
    assert "too many successors of task 0: at most 512" in _refused(lambda rt: build(rt, 513))


def test_builders_with_threads() -> None:
    kernel = runtime.kernel(lambda x, n: np.add(x, n, out=x), "inout scalar")
    cells = np.zeros(400, np.int64)

    def build(rt: Any) -> None:
        def part(begin: int) -> None:
            for i in range(begin, 400, 4):
                rt.add_task(kernel, cells[i : i + 1], i)

        workers = [threading.Thread(target=part, args=(n,)) for n in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            cells[:] = 0
            runtime.run(build, runtime="host_build_graph")
            assert cells.tolist() == list(range(400))
    finally:
        sys.setswitchinterval(before)


def test_subclasses_of_arrays_and_odd_numbers() -> None:
    seen: list[Any] = []
    note = runtime.kernel(lambda x, n: seen.append((type(x), x.shape, n)), "in scalar")

    def build(rt: Any) -> None:
        rt.add_task(note, np.ma.ones((2, 3)), np.True_)
        rt.add_task(note, np.ones(()), np.array(7))

    assert runtime.run(build, runtime="host_build_graph", check_hazards=True).hazards == []
    assert sorted(seen, key=lambda s: s[2]) == [(np.ndarray, (2, 3), 1), (np.ndarray, (), 7)]
    for bad in (np.array(1.5), 1.5, 1 << 64, "3", None):
        assert (
            "parameter 1" in (m := _refused(lambda rt, b=bad: rt.add_task(note, X, b)))
            or "unsupported argument of a task" in m
        )
    real = runtime.kernel(lambda x: None, "float")
    assert "parameter 0 of kernel" in _refused(lambda rt: rt.add_task(real, 10**400))


def test_python_kernels_get_views_and_cannot_write_to_inputs() -> None:
    seen: list[Any] = []

    def note(x: Any, y: Any, number: int, real: float) -> None:
        seen.append((x.shape, x.flags.writeable, y.flags.writeable, number, real))
        y += 1

    whole = np.zeros((4, 8))
    kernel = runtime.kernel(note, "in inout scalar float")
    runtime.run(
        lambda rt: rt.add_task(kernel, whole.T, whole[:, 1], -7, 0.5),
        runtime="host_build_graph",
    )
    assert seen == [((8, 4), False, True, -7, 0.5)]
    assert whole.sum() == whole[:, 1].sum() == 4 and whole.flags.writeable


def test_memory_that_nobody_wrote() -> None:
    def build(rt: Any) -> None:
        assert np.isnan(rt.tensor((2, 3))).all() and rt.tensor(4, "bf16").dtype.itemsize == 2

    runtime.run(build, runtime="host_build_graph", poison=1)


def test_what_is_refused() -> None:
    fixed = X.copy()
    fixed.flags.writeable = False
    cases = {
        "expected 3 arguments for kernel add, got 2": lambda rt: rt.add_task(ADD, X, X),
        "expected an array for parameter 1 of kernel add, got int": lambda rt: rt.add_task(ADD, X, 3, X),
        "expected a number for parameter 1 of kernel scale, got an array": lambda rt: rt.add_task(
            SCALE, X, X, X
        ),
        "cannot write to parameter 2 of kernel add: the array is read-only": lambda rt: rt.add_task(
            ADD, X, X, fixed
        ),
        "expected the number of a task, got 'x'": lambda rt: rt.add_successor("x", 0),
        "unknown task 4294967296: 0 were added so far": lambda rt: rt.publish_task(1 << 32),
        "unknown task 0: 0 were added so far": lambda rt: rt.add_successor(0, 1),
        "expected the number of a task, got array([0])": lambda rt: rt.publish_task(np.array([0])),
        "expected a kernel, got function": lambda rt: rt.add_task(lambda x: x, X),
        "unsupported element type float64": lambda rt: rt.tensor(3, np.float64),
    }
    for message, build in cases.items():
        assert message in _refused(build)


def test_options_that_such_a_runtime_does_not_have() -> None:
    nothing = lambda rt: None  # noqa: E731
    assert "unsupported option track_war" in _refused(nothing, track_war=True)
    assert "unsupported option heap" in _refused(nothing, heap=4096)
    assert "unknown runtime 'host_graph'" in _refused(nothing, "host_graph")


def test_a_circle_is_named() -> None:
    def build(rt: Any) -> None:
        a, b = rt.add_task(TOUCH, X.copy()), rt.add_task(TOUCH, X.copy())
        rt.add_successor(a, b)
        rt.add_successor(b, a)

    message = _refused(build)
    assert "the graph has a cycle of 2 tasks" in message and f"added at {__file__}:" in message


def test_a_kernel_that_raises_and_a_builder_that_raises() -> None:
    def fail(x: Any) -> None:
        raise KeyError("no such thing")

    kernel = runtime.kernel(fail, "in")
    with pytest.raises(pto.DiagnosticError, match="no such thing"):
        runtime.run(lambda rt: rt.add_task(kernel, X), runtime="host_build_graph")

    def build(rt: Any) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        runtime.run(build, runtime="aicpu_build_graph")


def test_nothing_is_added_after_the_run() -> None:
    kept: list[Any] = []
    runtime.run(kept.append, runtime="host_build_graph")
    for late in (
        lambda rt: rt.add_task(TOUCH, X),
        lambda rt: rt.tensor(3),
        lambda rt: rt.add_successor(0, 0),
    ):
        with pytest.raises(pto.DiagnosticError, match="the run has ended"):
            late(kept[0])


def test_as_many_kernels_and_tasks_as_a_device_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.zeros(33, np.int64)
    kernels = [runtime.kernel(lambda x: np.add(x, 1, out=x), "inout", name=f"k{i}") for i in range(33)]

    def build(rt: Any, kernels: Any) -> None:
        for i, k in enumerate(kernels):
            rt.add_task(k, counts[i : i + 1])

    runtime.run(build, kernels[:32], runtime="host_build_graph")
    assert counts.tolist() == [1] * 32 + [0]
    assert _refused(lambda rt: build(rt, kernels)) == "too many kernels: host_build_graph has at most 32"

    idle = runtime.kernel(lambda: None, "", name="idle")

    def many(rt: Any, tasks: int) -> None:
        for _ in range(tasks):
            rt.add_task(idle)

    monkeypatch.setattr(graph, "_TASKS", 1 << 30)
    with pytest.raises(pto.DiagnosticError, match="131072"):  # the message of the engine itself
        runtime.run(many, 131073, runtime="host_build_graph")
    monkeypatch.undo()
    assert graph._TASKS == 131072
    monkeypatch.setattr(graph, "_TASKS", 100)
    message = _refused(lambda rt: many(rt, 101), "aicpu_build_graph")
    assert message == "too many tasks: aicpu_build_graph has at most 100"


@pytest.mark.parametrize(
    "missing, kind, pair, arg", [(0, "RAW", (0, 1), 0), (1, "RAW", (1, 2), 0), (-1, "", (), 0)]
)
def test_an_edge_that_is_missing(missing: int, kind: str, pair: tuple[int, ...], arg: int) -> None:
    out = np.zeros_like(X)
    run = runtime.run(_build, X, out, missing, runtime="host_build_graph", check_hazards=True)
    assert [(h.kind, (h.earlier, h.later), h.arg) for h in run.hazards] == (
        [(kind, pair, arg)] if kind else []
    )
    for h in run.hazards:
        assert f"task {h.later} ({h.names[1]}) at {__file__}:" in str(h)
        assert "reads, as parameter 0, memory that task" in str(h) and "" not in h.names
    assert runtime.run(_build, X, out, missing, runtime="host_build_graph").hazards == []


def test_columns_that_lie_between_each_other_share_nothing() -> None:
    whole = np.zeros((8, 4), np.float32)

    def build(rt: Any, second: int) -> None:
        rt.add_task(TOUCH, whole[:, 1])
        rt.add_task(TOUCH, whole[:, second])

    for second, expected in ((2, []), (1, ["WAW"])):
        run = runtime.run(build, second, runtime="host_build_graph", check_hazards=True)
        assert [h.kind for h in run.hazards] == expected


@examples(60)
@given(st.data())
def test_random_graphs_find_what_is_not_ordered(data: st.DataObject) -> None:
    """Against the definition: two tasks that share memory, one to write, and no path between them. Not all pairs are
    named: to order those that are, and what comes after them, orders the rest."""
    count = data.draw(st.integers(1, 8))
    memory = np.zeros(32, np.int64)
    tasks = [
        (
            data.draw(st.sampled_from(["in", "inout", "out"])),
            data.draw(st.integers(0, 28)),
            data.draw(st.integers(0, 4)),
        )
        for _ in range(count)
    ]
    edges = [(a, b) for a, b in itertools.combinations(range(count), 2) if data.draw(st.integers(0, 3)) == 0]
    kernels = {role: runtime.kernel(lambda x: None, role) for role in ("in", "inout", "out")}

    def build(rt: Any) -> None:
        for role, at, size in tasks:
            rt.add_task(kernels[role], memory[at : at + size])
        for a, b in edges:
            rt.add_successor(a, b)

    found = runtime.run(build, runtime="host_build_graph", check_hazards=True, seed=1).hazards
    path = {(a, b) for a, b in edges}
    for k, a, b in itertools.product(range(count), repeat=3):  # k is the outermost: Warshall
        if (a, k) in path and (k, b) in path:
            path.add((a, b))
    expected = set()
    for a, b in itertools.combinations(range(count), 2):
        (role_a, at_a, size_a), (role_b, at_b, size_b) = tasks[a], tasks[b]
        shared = set(range(at_a, at_a + size_a)) & set(range(at_b, at_b + size_b))
        if shared and (a, b) not in path and {role_a, role_b} != {"in"}:
            expected.add((a, b, "RAW" if role_b == "in" else "WAR" if role_a == "in" else "WAW"))
    named = {(h.earlier, h.later, h.kind) for h in found}
    assert named <= expected
    pairs = {frozenset(h[:2]) for h in named}
    since = [{a, *(b for b in range(count) if (a, b) in path)} for a in range(count)]
    for a, b, _ in expected:
        assert any(frozenset(pair) in pairs for pair in itertools.product(since[a], since[b])), (a, b, named)


def test_a_writer_beside_a_reader_and_its_writer() -> None:
    """Both are in conflict with it; the one that comes after the other is named at least: an edge there orders both."""
    memory = np.zeros(4, np.int64)
    read = runtime.kernel(lambda x: None, "in")

    def build(rt: Any) -> None:
        rt.add_successor(rt.add_task(read, memory), rt.add_task(TOUCH, memory))
        rt.add_task(TOUCH, memory)

    found = runtime.run(build, runtime="host_build_graph", check_hazards=True, seed=1).hazards
    assert {(1, 2, "WAW")} <= {(h.earlier, h.later, h.kind) for h in found} <= {(0, 2, "WAR"), (1, 2, "WAW")}


@examples(40)
@given(st.data(), st.sampled_from(GRAPHS), st.integers(0, 99))
def test_random_graphs_equal_the_order_of_the_program(data: st.DataObject, name: str, seed: int) -> None:
    """With an edge for every pair that shares memory, any schedule gives what one task after another gives."""
    count = data.draw(st.integers(1, 10))
    tasks = [tuple(data.draw(st.integers(0, 5)) for _ in range(3)) for _ in range(count)]
    cells = np.arange(6, dtype=np.int64)
    expected = cells.copy()
    for x, y, out in tasks:
        expected[out] = 3 * expected[x] + expected[y] + 1

    def step(x: Any, y: Any, out: Any) -> None:
        out[:] = 3 * x + y + 1

    kernel = runtime.kernel(step, "in in inout")

    def build(rt: Any) -> None:
        for i, (x, y, out) in enumerate(tasks):
            task = rt.add_task(kernel, cells[x : x + 1], cells[y : y + 1], cells[out : out + 1])
            for j in range(i):
                if tasks[j][2] in (x, y, out) or out in tasks[j]:
                    rt.add_successor(j, task)
            rt.publish_task(task)

    run = runtime.run(build, runtime=name, seed=seed, check_hazards=True)
    assert np.array_equal(cells, expected) and run.hazards == []
