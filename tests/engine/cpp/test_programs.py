"""Programs whose cores and blocks depend on each other: the same on all engines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

import pto
from pto.diag import DiagnosticError

from .. import test_comm, test_debug, test_dma, test_sync
from ..test_fifo import cube_to_vector, data


@pytest.mark.parametrize(("arch", "split", "slots"), some([("a3", 1, 4), ("a5", 2, 4), ("a3", 0, 8)], 3))
def test_fifos(arch: str, split: int, slots: int) -> None:
    """11 products through 4 or 8 slots; also the content of the slots in global memory afterwards."""
    text = cube_to_vector(arch, 11, slots, split)
    x, eye, out, gm = data(11)
    pto.kernel(pto.parse(text), engine="cpp")(x, eye, out, gm)
    assert np.array_equal(out, x.astype(np.float32))
    _, _, want, slots_want = data(11)
    pto.kernel(pto.parse(text), engine="reference")(x, eye, want, slots_want)
    assert np.array_equal(gm, slots_want) and (arch == "a5" or gm.any())


def test_a_ring_that_nobody_frees_is_stuck() -> None:
    x, eye, out, gm = data(5)
    k = pto.kernel(pto.parse(cube_to_vector("a5", 5, 4, 1, free=False)), engine="cpp")
    (d,) = k.run(x, eye, out, gm).diagnostics
    assert d.code == "PTO-E2104"
    assert d.message == (
        "the program is stuck: waits for a free slot of C2V FIFO 0: all 4 slots hold entries not freed (AIC)"
    )
    waits = "waits for entry 4 of C2V FIFO 0, which was not pushed"
    assert [text for text, _ in d.notes] == [f"AIV0: {waits}", f"AIV1: {waits}"]
    assert d.span is not None and "pto.tpush" in d.span.source.line(d.span.line)


SIGNALS = """module attributes {pto.target_arch = "a3"} {
func.func @relay(%flags: !pto.ptr<i32>, %out: !pto.ptr<i32>)
    attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %block = pto.get_block_idx
  %b = arith.index_cast %block : i64 to index
  %next = arith.addi %b, %c1 : index
  %n = arith.constant 64 : index
  %v = pto.make_tensor_view %flags, shape = [%n], strides = [%c1] : !pto.tensor_view<?xi32>
  %mine = pto.partition_view %v, offsets = [%b], sizes = [%c1] : !pto.tensor_view<?xi32> -> !pto.partition_tensor_view<1xi32>
  %its = pto.partition_view %v, offsets = [%next], sizes = [%c1] : !pto.tensor_view<?xi32> -> !pto.partition_tensor_view<1xi32>
  pto.twait(%its, %one : !pto.partition_tensor_view<1xi32>, i32) {cmp = #pto<wait_cmp ge>}
  %sum = pto.load_scalar %out[%next] : !pto.ptr<i32> -> i32
  %more = arith.addi %sum, %one : i32
  pto.store_scalar %more, %out[%b] : !pto.ptr<i32>, i32
  pto.tnotify(%mine, %one : !pto.partition_tensor_view<1xi32>, i32) {notifyOp = #pto<notify_op set>}
  return
}
}
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_that_wait_for_later_blocks(threads: int) -> None:
    """Block b waits for block b + 1: all of them have to be alive at once."""
    k = pto.kernel(pto.parse(SIGNALS), engine="cpp")
    flags, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    flags[40], out[40] = 1, 100
    k(flags, out, blocks=40, threads=threads)
    assert out[:41].tolist() == list(range(140, 99, -1))
    (d,) = k.run(np.zeros(64, np.int32), out, blocks=2, threads=threads).diagnostics
    assert d.code == "PTO-E2104" and "waits for a signal of %flags at byte 4 ge 1 (holds 0)" in d.message


# -- programs of the reference engine's tests, with their own expectations ----------------------------------


#: What has forms without C++: copies between ranks through no tile.
NATIVE_ONLY = ("test_a_program_of_copies_and_events",)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (test_comm, "test_a_program_of_all_collectives"),
        (test_comm, "test_signals_of_a_program"),
        (test_comm, "test_a_program_of_copies_and_events"),
        (test_dma, "test_registers_stay_until_overwritten"),
        (test_debug, "test_a_trap_of_one_block_names_it"),
        (test_sync, "test_signals_in_memory_order_blocks"),
        (test_sync, "test_a_cube_core_waits_for_both_vector_cores"),
    ],
)
def test_as_on_the_reference_engine(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    def run(text: str, *args: Any, engine: str, **options: Any) -> Any:
        options.pop("sanitize", None)
        return pto.kernel(pto.parse(text), options.pop("entry", None), engine=engine).run(*args, **options)

    for engine in ("native",) if name in NATIVE_ONLY else ("cpp", "native"):
        monkeypatch.setattr(module, "run", partial(run, engine=engine))
        getattr(module, name)()


WINDOWS = """
!wide = !pto.tile_buf<vec, 8x32xf32>
!half = !pto.tile_buf<vec, 8x16xf32, valid=8x11>
!small = !pto.tile_buf<vec, 8x8xf32>
!view = !pto.partition_tensor_view<8x32xf32>
!part = !pto.partition_tensor_view<8x11xf32>
module attributes {pto.target_arch = "cpu"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c11 = arith.constant 11 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1.0 : f32
    %vx = pto.make_tensor_view %x, shape = [%c8, %c32], strides = [%c32, %c1] : !pto.tensor_view<8x32xf32>
    %vy = pto.make_tensor_view %y, shape = [%c8, %c32], strides = [%c32, %c1] : !pto.tensor_view<8x32xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c8, %c32] : !pto.tensor_view<8x32xf32> -> !view
    %pp = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c8, %c11] : !pto.tensor_view<8x32xf32> -> !part
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c8, %c32] : !pto.tensor_view<8x32xf32> -> !view
    %a = pto.alloc_tile : !wide
    pto.tload ins(%px : !view) outs(%a : !wide)
    %left = pto.subview %a[%c0, %c0] sizes [8, 16] : !wide -> !half
    %right = pto.subview %a[%c0, %c16] sizes [8, 16] : !wide -> !half
    %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %left, %q = %right) -> (!half, !half) {
      %first = pto.subview %p[%c0, %c0] sizes [8, 8] : !half -> !small
      pto.tadds ins(%first, %one : !small, f32) outs(%first : !small)
      scf.yield %q, %p : !half, !half
    }
    pto.tload ins(%pp : !part) outs(%r#0 : !half)
    pto.tstore ins(%a : !wide) outs(%py : !view)
    return
  }
}
"""


def test_windows_end_where_they_end() -> None:
    """One that is padded leaves its neighbour alone; loops hand windows on with the lines of their tile."""
    x = np.arange(256, dtype=np.float32).reshape(8, 32)
    found = [np.zeros_like(x) for _ in range(3)]
    for engine, y in zip(("reference", "native", "cpp"), found, strict=True):
        pto.kernel(pto.parse(WINDOWS), engine=engine)(x, y)
    assert (found[0][:, 11:16] == 0).all() and (found[0][:, 16:24] == x[:, 16:24] + 4).all()
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


def test_windows_that_have_no_type_in_common() -> None:
    """The C++ type of a window has the length of the lines of its tile, so one variable holds no two of
    them."""
    text = WINDOWS.replace(
        "%r:2 =",
        """%t = arith.cmpi eq, %c0, %c1 : index
    %other = pto.alloc_tile : !half
    %chosen = scf.if %t -> (!half) {
      scf.yield %left : !half
    } else {
      scf.yield %other : !half
    }
    pto.tadds ins(%chosen, %one : !half, f32) outs(%chosen : !half)
    %r:2 =""",
    )
    with pytest.raises(DiagnosticError, match=r"no C.. spelling of a window among tiles whose lines"):
        pto.kernel(pto.parse(text), engine="cpp")
    x = np.ones((8, 32), np.float32)
    found = [np.zeros_like(x) for _ in range(2)]
    for engine, y in zip(("reference", "native"), found, strict=True):
        pto.kernel(pto.parse(text), engine=engine)(x, y)
    assert (found[0] == found[1]).all()
