"""One planted stall of each kind that a simulation can name: it is diagnosed as that kind, its twin is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.engine.vector import test_gemm as micro
from tests.perf.test_timeline import program, timed

import pto
from pto.perf.timeline import simulate as sim
from pto.perf.timeline.timeline import Timeline

#: Reasons that are not stalls: a pipe that works, and the time before the first work.
NO_STALL = {sim.PIPE, sim.LAUNCH, sim.BLOCK}
EVERY = {
    sim.ISSUE, sim.QUEUE, sim.FLAG, sim.TOKEN, sim.BARRIER_, sim.EMPTY, sim.FULL, sim.CROSS, sim.GRID, sim.UNIT,
    sim.ORDER, sim.TRANSFER, sim.BANDWIDTH,
}  # fmt: skip

_PLANTED: dict[str, Callable[[bool], Timeline]] = {}


def plants(reason: str) -> Callable[[Callable[[bool], Timeline]], None]:
    """A kernel with a stall, and without."""

    def keep(make: Callable[[bool], Timeline]) -> None:
        _PLANTED[reason] = make

    return keep


#: With an unneeded flag: a program without any is timed one instruction after another.
_END = "\nset MTE2 V 7\nwait MTE2 V 7"


@plants(sim.FLAG)
def _(stalls: bool) -> Timeline:
    wait = "set MTE2 V 0\nwait MTE2 V 0\n" if stalls else ""
    return timed(program("load a\nload b\n" + wait + "exp c d" + _END))


@plants(sim.BARRIER_)
def _(stalls: bool) -> Timeline:
    return timed(
        program("load a\nload b\n" + ("barrier ALL\n" if stalls else "") + "exp c d\nexp d c" + _END)
    )


@plants(sim.ISSUE)
def _(stalls: bool) -> Timeline:
    """A load behind what takes the scalar unit long to issue, or ahead of it."""
    many = ["exp c d"] * 30
    return timed(program("\n".join([*many, "load a"] if stalls else ["load a", *many]) + _END))


@plants(sim.QUEUE)
def _(stalls: bool) -> Timeline:
    """The same behind more than the queue of V holds."""
    many = ["exp c d"] * 80
    return timed(program("\n".join([*many, "load a"] if stalls else ["load a", *many]) + _END))


@plants(sim.ORDER)
def _(stalls: bool) -> Timeline:
    """A program without a flag is timed one instruction after another."""
    return timed(program("load a\nload b\nexp c d" + ("" if stalls else "\nset MTE2 V 0\nwait MTE2 V 0")))


@plants(sim.TOKEN)
def _(stalls: bool) -> Timeline:
    """V wants the buffer that MTE2 has, or another one."""
    other = 0 if stalls else 1
    return timed(
        program("take MTE2 0\nload a\nload b\nfree MTE2 0\n" + f"take V {other}\nexp c d\nfree V {other}")
    )


@plants(sim.BANDWIDTH)
def _(stalls: bool) -> Timeline:
    return timed(program("load a\nload b\nload c\nload d\nset MTE2 V 0\nwait MTE2 V 0"), 48 if stalls else 1)


_MEET = "pto.syncall {core_type = #pto.sync_core_type<aiv_only>, mode = #pto.sync_all_mode<hard>}"


@plants(sim.GRID)
def _(stalls: bool) -> Timeline:
    """The first block works, all others wait for it."""
    text = program("exp a b\nexp a b\nexp a b\nexp a b\nload c\nset MTE2 V 0\nwait MTE2 V 0")
    first = text.index("    pto.texp")
    then = text.index("    pto.tload")
    work = f"""\
    %block64 = pto.get_block_idx
    %block = arith.index_cast %block64 : i64 to index
    %first = arith.cmpi eq, %block, %c0 : index
    scf.if %first {{
{text[first:then]}    }}
"""
    return timed(text[:first] + work + (f"    {_MEET}\n" if stalls else "") + text[then:], blocks=4)


@plants(sim.CROSS)
def _(stalls: bool) -> Timeline:
    """Vector cores wait for a product of the cube before they load, or after it."""
    wait = "    pto.sync.wait #pto.pipe<PIPE_MTE2>, 0"
    products = "    pto.tmatmul ins(%a, %b : !left, !right) outs(%c : !acc)\n" * 20
    loads = "    pto.tload ins(%px : !window) outs(%t : !tile)\n" * 4
    text = f"""
!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<16x64xf32>
!window = !pto.partition_tensor_view<16x64xf32>
!left = !pto.tile_buf<left, 64x64xf16, slayout=row_major>
!right = !pto.tile_buf<right, 64x64xf16, slayout=col_major>
!acc = !pto.tile_buf<acc, 64x64xf32, blayout=col_major, slayout=row_major, fractal=1024>
module attributes {{pto.target_arch = "a3"}} {{
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
    func.call @multiply() : () -> ()
    func.call @load(%x) : (!pto.ptr<f32>) -> ()
    return
  }}
  func.func private @multiply() attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    %at = arith.constant 0 : i64
    %a = pto.alloc_tile addr = %at : !left
    %b = pto.alloc_tile addr = %at : !right
    %c = pto.alloc_tile addr = %at : !acc
{products}    pto.set_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
    pto.sync.set #pto.pipe<PIPE_FIX>, 0
    return
  }}
  func.func private @load(%x: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %at = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %at : !tile
    %vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !window
{wait if stalls else ""}
{loads}{wait if not stalls else ""}
    return
  }}
}}
"""
    x, y = np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    return pto.kernel(pto.parse(text), engine="reference")(x, y, timeline=True, dry=True).timeline


def _fifo(slow: str) -> Timeline:
    """Return a timeline: the cube pushes, vector cores pop and do not store; the slow side works twenty times
    as long."""
    lines = Path("examples/kernels/mixed_fifo.pto").read_text().splitlines()
    made: list[str] = []
    for line in lines:
        if "PIPE_MTE3" not in line and "pto.tstore" not in line:
            made += [line] * (20 if line.strip().startswith(f"pto.{slow} ") else 1)
    kernel = pto.kernel(pto.parse("\n".join(made)), engine="reference")
    half, single = np.zeros(1 << 19, np.float16), np.zeros(1 << 19, np.float32)
    found = kernel.run(half, half.copy(), single, single.copy(), single.copy(), 4096, timeline=True, dry=True)
    assert found.ok, found.diagnostics
    return found.timeline


@plants(sim.EMPTY)
def _(stalls: bool) -> Timeline:
    return _fifo("tmatmul" if stalls else "texp")


@plants(sim.FULL)
def _(stalls: bool) -> Timeline:
    return _fifo("texp" if stalls else "tmatmul")


@plants(sim.UNIT)
def _(stalls: bool) -> Timeline:
    """The write-back waits for a product, by a unit flag or not at all."""
    set_, clear = (" unit_flag(check_and_set)", ", unit_flag(check_and_clear)") if stalls else ("", "")
    body = micro.POINTERS + micro.loads("f16", 16, 512, 32)
    body += (micro.MAD.format("mad", set_) + micro.STORE.format("c", clear)) * (20 if stalls else 1)
    a, b = micro.matrices(16, 16, 16)
    args = a, b, np.zeros((16, 16), np.float32)
    return micro.run(micro.program(micro.ARGUMENTS, body), *args, timeline=True, dry=True).timeline


@plants(sim.TRANSFER)
def _(stalls: bool) -> Timeline:
    """A wait right after a transfer is idle time; before a wait at the end there is a load meanwhile."""
    session = """\
    %at8 = arith.constant 163840 : i64
    %scratch = pto.alloc_tile addr = %at8 : !pto.tile_buf<vec, 1x256xi8>
    %ws = pto.castptr %y : !pto.ptr<f32> -> !pto.ptr<i8>
    %session = pto.build_async_session(%scratch, %ws : !pto.tile_buf<vec, 1x256xi8>, !pto.ptr<i8>) -> !pto.async_session
    %flat = pto.make_tensor_view %x, shape = [%c128], strides = [%c1] : !pto.tensor_view<128xf32>
    %far = pto.make_tensor_view %y, shape = [%c128], strides = [%c1] : !pto.tensor_view<128xf32>
    %e = pto.tput_async(%far, %flat, %session : !pto.tensor_view<128xf32>, !pto.tensor_view<128xf32>, !pto.async_session) -> !pto.async_event
"""
    wait = "    %ok = pto.wait_async_event(%e, %session : !pto.async_event, !pto.async_session) -> i1\n"
    text = program("load a\nload b\nset MTE2 V 0\nwait MTE2 V 0")
    at = text.index("    pto.tload")
    body = wait + text[at:] if stalls else text[at:].replace("    return", wait + "    return")
    x, y = np.zeros((1024, 128), np.float32), np.zeros((1024, 128), np.float32)
    kernel = pto.kernel(pto.parse(text[:at] + session + body), engine="reference")
    return kernel(x, y, timeline=True).timeline


#: Who waits, where only some cores do.
_WHO = {sim.FULL: "cube", sim.EMPTY: "vector"}


def diagnosed(timeline: Timeline, reason: str) -> dict[str, float]:
    """Idle cycles by cause of those who are to wait."""
    who = _WHO.get(reason)
    return timeline.causes_of(n for n, c in enumerate(timeline.trace.cores) if who in (None, c.kind))


@pytest.mark.parametrize("reason", sorted(EVERY))
def test_a_planted_stall_is_diagnosed_as_its_kind(reason: str):
    found = diagnosed(_PLANTED[reason](True), reason)
    assert next(iter(found)) == reason, found
    twin = diagnosed(_PLANTED[reason](False), reason)
    assert twin.get(reason, 0.0) < 0.1 * found[reason], (found, twin)


def test_every_reason_is_planted():
    names = {name for name in vars(sim) if name.isupper() or name == "BARRIER_"}
    reasons = {getattr(sim, name) for name in names if isinstance(getattr(sim, name), str)}
    assert reasons - NO_STALL == EVERY == set(_PLANTED)
