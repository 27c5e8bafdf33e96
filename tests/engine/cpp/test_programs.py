"""Programs whose cores and blocks depend on each other: the same on all engines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pto

from .. import test_comm, test_debug, test_dma, test_sync
from ..test_fifo import cube_to_vector, data


@pytest.mark.parametrize(("arch", "split", "slots"), [("a3", 0, 8), ("a3", 1, 4), ("a5", 2, 4)])
def test_fifos(arch: str, split: int, slots: int) -> None:
    """11 products through 4 or 8 slots; also what the slots in global memory hold afterwards."""
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
        "the program is stuck: waits for a free slot of C2V FIFO 0: all 4 slots hold entries nobody freed (AIC)"
    )
    waits = "waits for entry 4 of C2V FIFO 0, which nobody has pushed"
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
    assert d.code == "PTO-E2104" and "waits for a signal ge 1" in d.message


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
