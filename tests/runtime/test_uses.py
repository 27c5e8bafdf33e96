"""What tasks really do to memory: recorded exactly, held against edges and against what tasks declare."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto import runtime
from pto.cli.main import main as pto
from pto.runtime import graph, hazards
from pto.runtime.hazards import COMBINE, READ, WRITE

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
    found = hazards._read(run._runtime._native.records())
    return [(u["task_id"], u["use"], int(u["first"]), int(u["last"])) for u in found]


def _bytes(array: Any) -> set[int]:
    start, places = array.__array_interface__["data"][0], np.zeros(array.shape, np.int64)
    for axis, (n, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        places += (np.arange(n) * step).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    return {int(start + p + k) for p in places.ravel() for k in range(array.itemsize)}


@settings(max_examples=40, deadline=None)
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
    seen: dict[int, set[int]] = {READ: set(), WRITE: set(), COMBINE: set()}
    for _, use, first, last in _uses(run):
        seen[use] |= set(range(first, last))
    assert seen == {READ: _bytes(read), WRITE: _bytes(written), COMBINE: set()}


def test_what_tasks_do_is_held_against_edges(kernels: dict[str, runtime.Kernel]) -> None:
    """Columns beside each other are no hazard, those that meet are; and what was declared says nothing."""
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
        assert f"task 0 at {__file__}:" in str(
            h
        ) and "writes to parameter 0, which it has as an input" in str(h)
        (problem,) = hazards.problems([h])
        assert problem.code == "PTO-E2611" and "INOUT" in (problem.help or "")
    # Where an output is the same memory, that is what was declared.
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
    assert "warning[PTO-E2611]: RAW: task 3 at" in shown.err + shown.out
    assert "add_successor(1, 3)" in shown.err + shown.out


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


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 8), st.integers(0, 5), st.integers(0, 2)), max_size=25
    )
)
def test_meetings_are_all_pairs_that_conflict(drawn: list[tuple[int, int, int, int]]) -> None:
    uses = [(first, first + size, task, n, use) for n, (first, size, task, use) in enumerate(drawn)]
    found = {frozenset((a[3], b[3])) for a, b in hazards.meetings(uses)}
    expected = {
        frozenset((a[3], b[3]))
        for a in uses
        for b in uses
        if a[3] < b[3]
        and a[0] < b[1]
        and b[0] < a[1]
        and (a[4], b[4]) not in ((READ, READ), (COMBINE, COMBINE))
    }
    assert found == expected
