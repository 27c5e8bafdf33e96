"""C++ kernels in virtual time: without a table their durations follow from the cost model of their
instructions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto import runtime
from pto.diag import DiagnosticError
from pto.isa.costs import charge, tile
from pto.isa.timing import MACHINES
from pto.runtime.kernels import Pair
from pto.runtime.virtual import Virtual

from .header_build import COMPILER
from .test_virtual_time import THREADS, trace

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

#: As many exponentials as the first element of x says; works on addresses and on tensors.
SOURCE = """\
#include <pto/pto-inst.hpp>
#if __has_include("tensor.h")
#include "tensor.h"
#endif
using namespace pto;

__gm__ float* at(int64_t slot) {
#if __has_include("tensor.h")
  const auto& t = *reinterpret_cast<const TensorData*>(slot);
  return reinterpret_cast<__gm__ float*>(t.buffer.addr) + t.start_offset;
#else
  return reinterpret_cast<__gm__ float*>(slot);
#endif
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
  Global in(at(args[0])), out(at(args[1]));
  Tile<TileType::Vec, float, 16, 64> x, y;
  TASSIGN(x, 0);
  TASSIGN(y, 16384);
  TLOAD(x, in);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  for (int i = 0; i < static_cast<int>(at(args[0])[0]); ++i) TEXP(y, x);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(out, y);
}
"""
#: The same as a program, with one exponential.
PROGRAM = """\
!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<16x64xf32>
!window = !pto.partition_tensor_view<16x64xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %vy = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %at0 = arith.constant 0 : i64
    %at1 = arith.constant 16384 : i64
    %a = pto.alloc_tile addr = %at0 : !tile
    %b = pto.alloc_tile addr = %at1 : !tile
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !window
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !window
    pto.tload ins(%px : !window) outs(%a : !tile)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.texp ins(%a : !tile) outs(%b : !tile)
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%b : !tile) outs(%py : !window)
    return
  }
}
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> runtime.Kernel:
    path = tmp_path_factory.mktemp("kernels") / "steps.cpp"
    path.write_text(SOURCE)
    return runtime.kernel(path, "in out", name="steps")


def inputs(*counts: int) -> Any:
    found = np.zeros((len(counts), 16, 64), np.float32)
    found[:, 0, 0] = counts
    return found


def spent(run: runtime.Run) -> list[int]:
    return (run.records.tasks["end"] - run.records.tasks["start"]).tolist()


def test_a_task_takes_what_it_did(steps: runtime.Kernel) -> None:
    x, found = inputs(1, 1, 4, 1), set()
    whole = tile("f32", 16, 64)
    exp = charge("texp", MACHINES["a2a3"], dst=whole, src=whole).busy

    def orchestrate(rt: Any, y: Any) -> None:
        for i in range(len(x)):
            rt.submit(steps, x[i], y[i])

    for threads in THREADS:
        y = np.zeros_like(x)
        run = runtime.run(orchestrate, y, virtual_time=True, record=True, block_dim=2, threads=threads)
        assert np.allclose(y, np.exp(x))
        found.add((trace(run.records), run.summary()))
        assert not run.records.check()
    assert len(found) == 1
    first, second, longer, last = spent(run)
    assert first == second == last
    assert longer - first == pytest.approx(3 * exp / 1.85, abs=2)
    # the same as the program that does the same
    program = runtime.kernel(PROGRAM, "in out", name="program")
    other = runtime.run(
        lambda rt: rt.submit(program, x[0], y[0]), virtual_time=True, record=True, block_dim=2
    )
    assert spent(other) == [first]
    assert "the cost model" in run.summary()


def test_tasks_that_told_the_same_are_simulated_once(steps: runtime.Kernel) -> None:
    x, virtual = inputs(1, 2, 1, 2, 1), Virtual()
    y = np.zeros_like(x)

    def orchestrate(rt: Any) -> None:
        for i in range(len(x)):
            rt.submit(steps, x[i], y[i])

    for _ in range(2):
        runtime.run(orchestrate, virtual_time=virtual)
    assert virtual._timed is not None and virtual._timed.simulated == 2


def test_graphs_whose_tasks_know_addresses_only(steps: runtime.Kernel) -> None:
    x = inputs(1, 4)
    y = np.zeros_like(x)

    def build(rt: Any) -> None:
        rt.add_successor(rt.add_task(steps, x[0], y[0]), rt.add_task(steps, x[1], y[1]))

    given = {"virtual_time": True, "record": True, "runtime": "host_build_graph"}
    run = runtime.run(build, **given)
    assert np.allclose(y, np.exp(x)) and spent(run)[1] > spent(run)[0] > 0
    table = runtime.run(build, durations={"steps": 3}, **given)
    assert spent(table) == [3000, 3000]


def test_a_machine_and_a_table_go_before_the_model(steps: runtime.Kernel, tmp_path: Path) -> None:
    x = inputs(1)
    y = np.zeros_like(x)
    slow = tmp_path / "slow.toml"
    slow.write_text("mhz = 925\n")

    def one(**given: Any) -> int:
        run = runtime.run(lambda rt: rt.submit(steps, x[0], y[0]), virtual_time=True, record=True, **given)
        return spent(run)[0]

    plain = one()
    assert one(machine=str(slow)) == pytest.approx(2 * plain, abs=2)
    assert one(durations={"steps": 7}) == 7000
    assert one(durations=lambda task: 8) == 8000
    assert one(durations=lambda task: None) == plain


def test_halves_of_a_mixed_task_end_together(steps: runtime.Kernel) -> None:
    path = str(steps.source)
    cube, vector = (runtime.kernel(path, "in out", core, name=f"half_{core}") for core in ("aic", "aiv"))
    x = inputs(2)
    y = np.zeros_like(x)
    pair = Pair(cube, vector, "pair")
    run = runtime.run(lambda rt: rt.submit(pair, x[0], y[0]), virtual_time=True, record=True)
    ends = run.records.tasks["end"]
    assert len(ends) == 2 and ends[0] == ends[1] and np.allclose(y, np.exp(x))


def test_what_is_not_computed_tells_nothing(steps: runtime.Kernel) -> None:
    x = inputs(1)
    with pytest.raises(
        DiagnosticError, match=r"the trace of a C\+\+ kernel, but nothing is computed"
    ) as error:
        runtime.run(lambda rt: rt.submit(steps, x[0], x[0].copy()), virtual_time=True, compute=False)
    assert error.value.diagnostics[0].code == "PTO-E2626"
