"""Accesses of tasks to memory: recorded exactly, compared with edges and with declarations of tasks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto import runtime
from pto.cli.main import main as pto
from pto.perf import hazards
from pto.perf.hazards import READ, WRITE
from pto.runtime import graph, recorded

EXAMPLES = Path(__file__).parents[2] / "examples" / "runtime"

#: y = x + x over rows x cols elements, each side with its own pitch; x by rows, y by rows or by columns.
COPY = """\
#include <pto/pto-inst.hpp>
using namespace pto;
template <class To>
AICORE void copy(__gm__ float* x, To& to, int64_t rows, int64_t cols, int64_t pitch) {
  using Any = Shape<1, 1, 1, -1, -1>;
  GlobalTensor<float, Any, Stride<1, 1, 1, -1, 1>> from(x, Any(rows, cols), Stride<1, 1, 1, -1, 1>(pitch));
  Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, -1, -1> tile(rows, cols);
  TASSIGN(tile, 0);
  TLOAD(tile, from);
  TADD(tile, tile, tile);
  TSTORE(to, tile);
}
// x, y, rows, cols, pitch of x, pitch of y, whether y lies by columns
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* x = reinterpret_cast<__gm__ float*>(args[0]);
  auto* y = reinterpret_cast<__gm__ float*>(args[1]);
  using Any = Shape<1, 1, 1, -1, -1>;
  if (args[6] == 0) {
    using By = Stride<1, 1, 1, -1, 1>;
    GlobalTensor<float, Any, By> to(y, Any(args[2], args[3]), By(args[5]));
    copy(x, to, args[2], args[3], args[4]);
  } else {
    using By = Stride<1, 1, 1, 1, -1>;
    GlobalTensor<float, Any, By, Layout::DN> to(y, Any(args[2], args[3]), By(args[5]));
    copy(x, to, args[2], args[3], args[4]);
  }
}
"""
#: y += x, sixteen numbers, atomically where the last argument says so.
SUM = """\
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Line = GlobalTensor<float, Shape<1, 1, 1, 1, 16>, Stride<1, 1, 1, 16, 1>>;
  Line x(reinterpret_cast<__gm__ float*>(args[0])), y(reinterpret_cast<__gm__ float*>(args[1]));
  using Row = Tile<TileType::Vec, float, 1, 16>;
  Row tile;
  TASSIGN(tile, 0);
  TLOAD(tile, x);
  if (args[2] != 0) {
    TSTORE<Row, Line, AtomicType::AtomicAdd>(y, tile);
  } else {
    TSTORE(y, tile);
  }
}
"""
#: out = x, and then scratch numbers in the place of x.
CARELESS = """\
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto at = [&](int i) {
    auto* tensor = reinterpret_cast<TensorData*>(args[i]);
    return reinterpret_cast<__gm__ float*>(tensor->buffer.addr) + tensor->start_offset;
  };
  using Line = GlobalTensor<float, Shape<1, 1, 1, 1, 16>, Stride<1, 1, 1, 16, 1>>;
  Line x(at(0)), out(at(1));
  Tile<TileType::Vec, float, 1, 16> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, x);
  TSTORE(out, tile);
  if (args[2] != 0) TSTORE(x, tile);
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runtime.Kernel]:
    folder = tmp_path_factory.mktemp("uses")
    for name, text in (("copy", COPY), ("sum", SUM), ("careless", CARELESS)):
        (folder / f"{name}.cpp").write_text(text)
    numbers = " scalar" * 5
    return {
        "copy": runtime.kernel(folder / "copy.cpp", "in inout" + numbers),
        "sum": runtime.kernel(folder / "sum.cpp", "in inout scalar"),
        "careless": runtime.kernel(folder / "careless.cpp", "in out scalar"),
    }


def _uses(run: runtime.Run) -> list[tuple[int, int, int, int]]:
    """Task, use, first byte and the byte behind the last, as recorded."""
    found = recorded.uses(run._runtime._run.records())
    return [(u["task_id"], u["use"], int(u["first"]), int(u["last"])) for u in found]


def _bytes(array: Any) -> set[int]:
    start, places = array.__array_interface__["data"][0], np.zeros(array.shape, np.int64)
    for axis, (n, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        places += (np.arange(n) * step).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    return {int(start + p + k) for p in places.ravel() for k in range(array.itemsize)}


@examples(40)
@given(st.data())
def test_every_byte_and_no_other(kernels: dict[str, runtime.Kernel], data: st.DataObject) -> None:
    rows, cols = data.draw(st.integers(0, 16)), data.draw(st.integers(0, 16))
    by_columns = data.draw(st.booleans())
    short, long = (rows, cols) if by_columns else (cols, rows)
    pitch_x = data.draw(st.integers(max(cols, 1), 24))
    pitch_y = data.draw(st.integers(max(short, 1), 24))
    x, y = np.ones(24 * 16, np.float32), np.zeros(24 * 16, np.float32)
    run = runtime.run(
        lambda rt: rt.add_task(kernels["copy"], x, y, rows, cols, pitch_x, pitch_y, int(by_columns)),
        runtime="host_build_graph", check_hazards=True, threads=1, block_dim=1,
    )  # fmt: skip
    lie = np.lib.stride_tricks.as_strided
    read = lie(x, (rows, cols), (4 * pitch_x, 4))
    written = lie(y, (long, short), (4 * pitch_y, 4))
    assert (written == 2).all() and y.sum() == 2 * rows * cols
    seen: dict[int, set[int]] = {READ: set(), WRITE: set()}
    for _, use, first, last in _uses(run):
        seen[use] |= set(range(first, last))
    assert seen == {READ: _bytes(read), WRITE: _bytes(written)}


def test_what_tasks_do_is_held_against_edges(kernels: dict[str, runtime.Kernel]) -> None:
    """Columns beside each other are not a hazard, overlapping ones are; declarations do not matter."""
    whole, x = np.zeros((16, 24), np.float32), np.ones(16 * 16, np.float32)
    reads = runtime.kernel(
        str(kernels["copy"].source), "in in" + " scalar" * 5
    )  # a lie: it writes the second

    def build(rt: Any, second: int, edge: bool) -> None:
        tasks = [rt.add_task(reads, x, whole[0, at:], 16, 8, 16, 24, 0) for at in (0, second)]
        if edge:
            rt.add_successor(*tasks)

    for second, edge, expected in ((8, False, []), (7, False, ["WAW"]), (7, True, [])):
        run = runtime.run(build, second, edge, runtime="host_build_graph", check_hazards=True)
        assert [h.kind for h in run.hazards] == expected
        assert all(h.arg == 1 and (h.earlier, h.later) == (0, 1) for h in run.hazards)


def test_sums_may_come_in_any_order(kernels: dict[str, runtime.Kernel]) -> None:
    undeclared = runtime.kernel(str(kernels["sum"].source), "in in scalar")
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)

    def build(rt: Any, *atomic: bool) -> None:
        for a in atomic:
            rt.add_task(undeclared, x, y, int(a))

    assert runtime.run(build, True, True, True, runtime="host_build_graph", check_hazards=True).hazards == []
    assert (y == 3).all()
    (found,) = runtime.run(build, True, False, runtime="host_build_graph", check_hazards=True).hazards
    assert found.kind == "WAW"


def test_nothing_is_recorded_unless_asked_for(kernels: dict[str, runtime.Kernel]) -> None:
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    run = runtime.run(
        lambda rt: rt.add_task(kernels["sum"], x, y, 0), runtime="host_build_graph", record=True
    )
    assert _uses(run) == [] and run.hazards == []


def test_e2611_an_input_that_is_written_to(kernels: dict[str, runtime.Kernel]) -> None:
    x, out = np.ones((2, 16), np.float32), np.zeros((2, 16), np.float32)

    def submit(rt: Any, careless: int, source: Any, target: Any) -> None:
        rt.submit(kernels["careless"], source, target, careless)

    for values, expected in (((1, x[0], out[0]), [("input", 0, 0, 0)]), ((0, x[0], out[0]), [])):
        run = runtime.run(submit, *values, check_hazards=True)
        assert [(h.kind, h.earlier, h.later, h.arg) for h in run.hazards] == expected
    for h in runtime.run(submit, 1, x[0], out[0], check_hazards=True).hazards:
        assert f"task 0 (careless) at {__file__}:" in str(
            h
        ) and "writes to parameter 0, which it has as an input" in str(h)
        (problem,) = hazards.problems([h])
        assert problem.code == "PTO-E2611" and "INOUT" in (problem.help or "")
    # An output in the same memory was declared so.
    assert runtime.run(submit, 1, out[1], out[1], check_hazards=True).hazards == []


def test_e2611_an_edge_that_a_folder_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("common", "vector_dag"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    folder = tmp_path / "vector_dag" / "host_build_graph"
    assert pto(["runtime", "run", str(folder), "--check-hazards"]) == 0
    assert "PTO-E2611" not in capsys.readouterr().err
    source = folder / "vector_dag.cpp"
    edge = "runtime->add_successor(t1, t3);"
    assert source.read_text().count(edge) == 1
    source.write_text(source.read_text().replace(edge, ""))
    pto(["runtime", "run", str(folder), "--check-hazards", "--seed", "1"])
    shown = capsys.readouterr()
    assert "warning[PTO-E2611]: RAW: task 3 (mul) at" in shown.err + shown.out
    assert "order tasks 1 and 3 with add_successor" in shown.err + shown.out


@examples(100)
@given(st.data())
def test_runs_are_the_bytes_of_an_array(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=3))
    array = np.zeros(shape, data.draw(st.sampled_from(["u1", "i2", "f8"])))
    for axis in range(array.ndim):
        step = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    if data.draw(st.booleans()):
        array = np.broadcast_to(array, (3, *array.shape))
    runs = list(graph._runs(array))
    assert set().union(*(range(a, b) for a, b in runs)) == _bytes(array)
    assert sum(b - a for a, b in runs) == len(_bytes(array)) or array.strides[:1] == (0,)


@examples(100)
@given(st.data())
def test_conflicts_are_those_that_nothing_orders(data: st.DataObject) -> None:
    """Every conflict that is there is found, unless one with a write that comes after is; and nothing else."""
    count = data.draw(st.integers(1, 8))
    edges = [
        (a, b) for a in range(count) for b in range(count) if a < b and data.draw(st.integers(0, 4)) == 0
    ]
    name = data.draw(st.permutations(range(count)))  # ids say nothing about the order
    edges = [(name[a], name[b]) for a, b in edges]
    part = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, count - 1), st.integers(0, 4))
    drawn = data.draw(st.lists(part, max_size=14))
    uses = [(first, first + size, task, n, use) for n, (first, size, task, use) in enumerate(drawn)]
    after = set(edges)
    for k in range(count):
        after |= {(a, b) for a in range(count) for b in range(count) if (a, k) in after and (k, b) in after}
    clash = {
        (a[3], b[3])
        for a in uses
        for b in uses
        if a[2] != b[2] and a[0] < b[1] and b[0] < a[1] and (a[4] != b[4] or a[4] == WRITE)
        and (a[2], b[2]) not in after and (b[2], a[2]) not in after
    }  # fmt: skip
    found = {(a[3], b[3]) for a, b in hazards.conflicts(uses, hazards.PartialOrder(count, edges))}
    assert found <= clash and {(b, a) for a, b in found} <= clash
    task = [use[2] for use in uses]
    pairs = {(task[a], task[b]) for a, b in found}
    pairs |= {(b, a) for a, b in pairs}
    for a, b in clash:
        one, other = task[a], task[b]
        later = {t for t in range(count) if (one, t) in after} | {one}
        other_later = {t for t in range(count) if (other, t) in after} | {other}
        assert any((x, y) in pairs for x in later for y in other_later)


def test_a_long_chain_takes_no_time() -> None:
    """Each task conflicts with the one before only: not all pairs are compared."""
    count = 30_000
    uses = [(0, 64, task, 0, WRITE) for task in range(count)]
    order = hazards.PartialOrder(count, [(t, t + 1) for t in range(count - 1)])
    assert list(hazards.conflicts(uses, order)) == []


def test_what_a_task_repeats_is_kept_once(kernels: dict[str, runtime.Kernel], tmp_path: Path) -> None:
    source = tmp_path / "again.cpp"
    source.write_text(COPY.replace("TLOAD(tile, from);", "for (int i = 0; i < 5000; ++i) TLOAD(tile, from);"))
    again = runtime.kernel(source, "in inout" + " scalar" * 5)
    x, y = np.ones(24 * 16, np.float32), np.zeros(24 * 16, np.float32)
    run = runtime.run(
        lambda rt: [rt.add_task(again, x, y, 16, 8, 16, 16, 0) for _ in range(3)],
        runtime="host_build_graph", check_hazards=True, threads=1, block_dim=1,
    )  # fmt: skip
    # the last one may have some that were not thrown out yet
    assert len(_uses(run)) <= 2 * 32 + 2 * 4096


def test_kernels_that_use_pointers_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("common", "vector_dag"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    kernel = tmp_path / "vector_dag" / "kernels" / "aiv" / "mul.cpp"
    kernel.write_text(
        '#include <cstdint>\nextern "C" void kernel_entry(int64_t* args) {\n'
        "  auto at = [&](int i) { return reinterpret_cast<float*>(args[i]); };\n"
        "  for (int i = 0; i < 128 * 128; ++i) at(2)[i] = at(0)[i] * at(1)[i];\n}\n"
    )
    pto(["runtime", "run", str(tmp_path / "vector_dag" / "host_build_graph"), "--check-hazards"])
    shown = capsys.readouterr()
    assert "cannot check 1 task: no accesses were recorded" in shown.err + shown.out


def test_waiting_for_a_signal_reads_it(tmp_path: Path) -> None:
    """Many tasks wait and are polled again and again, on any thread: their access is noted once, as a
    read."""
    source = tmp_path / "wait.cpp"
    source.write_text("""\
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* at = reinterpret_cast<__gm__ int32_t*>(args[0]);
  GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>> signal(at);
  if (args[1] != 0) {
    comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
  } else {
    comm::TWAIT(signal, 3, comm::WaitCmp::GE);
  }
}
""")
    kernel = runtime.kernel(source, "inout scalar")
    for threads in (1, 2, 3):
        signal = np.zeros(1, np.int32)

        def build(rt: Any, signal: Any = signal) -> None:
            for i in range(12):
                rt.add_task(kernel, signal, int(i >= 9))

        run = runtime.run(
            build, runtime="host_build_graph", check_hazards=True, threads=threads, block_dim=24
        )
        uses = _uses(run)
        assert sorted(task for task, *_ in uses) == list(range(12))
        assert [use for task, use, *_ in sorted(uses)] == [READ] * 9 + [2] * 3


def test_atomic_scatter_loses_nothing(tmp_path: Path) -> None:
    source = tmp_path / "scatter.cpp"
    source.write_text("""\
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Line = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 16>, Stride<1, 1, 1, 16, 1>>;
  Line sums(reinterpret_cast<__gm__ int32_t*>(args[0]));
  Tile<TileType::Vec, int32_t, 1, 16> ones, where;
  TASSIGN(ones, 0);
  TASSIGN(where, 1024);
  TEXPANDS(ones, 1);
  TCI<decltype(where), int32_t, 0>(where, 0);
  for (int64_t i = 0; i < args[1]; ++i) MSCATTER<Coalesce::Elem, ScatterAtomicOp::Add>(sums, ones, where);
}
""")
    kernel = runtime.kernel(source, "inout scalar")
    sums = np.zeros(16, np.int32)
    runtime.run(
        lambda rt: [rt.add_task(kernel, sums, 20_000) for _ in range(4)],
        runtime="host_build_graph",
        threads=2,
    )
    assert sums.tolist() == [80_000] * 16
