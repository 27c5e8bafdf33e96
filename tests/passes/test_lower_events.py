"""Events and barriers of instruction classes become flags and barriers of pipes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.each import together

from pto.isa.enums import SYNC_OP_PIPE

from .running import runs_alike, text

PASS = "lower-events"


def body(lines: str, arch: str = "a3") -> str:
    return (
        f'module attributes {{pto.target_arch = "{arch}"}} {{\nfunc.func @f() {{\n{lines}\nreturn\n}}\n}}\n'
    )


#: The map as the manual has it, written once more.
PIPES = {
    "TLOAD": "PIPE_MTE2", "TSTORE_VEC": "PIPE_MTE3", "TSTORE_ACC": "PIPE_FIX", "TMOV_M2S": "PIPE_FIX",
    "TMOV_V2M": "PIPE_FIX", "TMOV_M2L": "PIPE_MTE1", "TMOV_M2B": "PIPE_MTE1", "TMATMUL": "PIPE_M",
    "TMOV_M2V": "PIPE_V", "TVEC": "PIPE_V", "TVECWAIT_EVENT": "PIPE_V",
}  # fmt: skip


def test_the_map_is_complete() -> None:
    assert set(PIPES) == set(SYNC_OP_PIPE)


@together("src", PIPES)
@together("form", ["pipe_event_type", "sync_op_type"])
def test_events(src: str, form: str) -> None:
    dst = "TVEC" if PIPES[src] != "PIPE_V" else "TLOAD"
    names = f"#pto.{form}<{src}>, #pto.{form}<{dst}>"
    found = text(
        body(
            f"pto.record_event[{names}, #pto.event<EVENT_ID3>]\npto.wait_event[{names}, #pto.event<EVENT_ID3>]"
        ),
        PASS,
    )
    ends = f"[<{PIPES[src]}>, <{PIPES[dst]}>, <EVENT_ID3>]"
    assert f"pto.set_flag{ends}" in found and f"pto.wait_flag{ends}" in found
    assert "record_event" not in found and "wait_event" not in found


@together("op", PIPES)
@together("arch", ["a3", "a5"])
def test_barriers(op: str, arch: str) -> None:
    """A5 has no barrier of its vector pipe, which runs in order."""
    found = text(body(f"pto.barrier_sync[#pto.sync_op_type<{op}>]", arch), PASS)
    assert "barrier_sync" not in found
    gone = arch == "a5" and PIPES[op] == "PIPE_V"
    assert (f"pto.barrier <{PIPES[op]}>" in found) is not gone
    assert ("pto.barrier" in found) is not gone


def test_a5_drops_barriers_of_the_vector_pipe_only() -> None:
    pipes = ("V", "ALL", "M", "MTE3")
    source = "\n".join(f"pto.barrier #pto.pipe<PIPE_{p}>" for p in pipes)
    a5, a3 = text(body(source, "a5"), PASS), text(body(source, "a3"), PASS)
    assert [f"<PIPE_{p}>" in a5 for p in pipes] == [False, True, True, True]
    assert all(f"<PIPE_{p}>" in a3 for p in pipes)


def test_inside_loops_and_branches() -> None:
    found = text(
        body("""%c = arith.constant true
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        scf.for %i = %c0 to %c1 step %c1 {
          scf.if %c {
            pto.barrier_sync[#pto.sync_op_type<TLOAD>]
          } else {
            pto.barrier_sync[#pto.sync_op_type<TMATMUL>]
          }
        }"""),
        PASS,
    )
    assert "pto.barrier <PIPE_MTE2>" in found and "pto.barrier <PIPE_M>" in found


VEC = "!pto.tile_buf<vec, 16x16xf32>"
WINDOW = "!pto.partition_tensor_view<16x16xf32>"


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_results(arch: str) -> None:
    source = f"""module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 1024 : i64
  %t = pto.alloc_tile addr = %a0 : {VEC}
  %u = pto.alloc_tile addr = %a1 : {VEC}
  %xv = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  %ov = pto.make_tensor_view %out, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {WINDOW}
  %op = pto.partition_view %ov, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {WINDOW}
  pto.tload ins(%xp : {WINDOW}) outs(%t : {VEC})
  pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]
  pto.wait_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]
  pto.texp ins(%t : {VEC}) outs(%u : {VEC})
  pto.barrier_sync[#pto.sync_op_type<TVEC>]
  pto.tadd ins(%u, %t : {VEC}, {VEC}) outs(%u : {VEC})
  pto.record_event[#pto.pipe_event_type<TVEC>, #pto.pipe_event_type<TSTORE_VEC>, #pto.event<EVENT_ID0>]
  pto.wait_event[#pto.pipe_event_type<TVEC>, #pto.pipe_event_type<TSTORE_VEC>, #pto.event<EVENT_ID0>]
  pto.tstore ins(%u : {VEC}) outs(%op : {WINDOW})
  return
}}
}}
"""
    x = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    runs_alike(source, [x, np.zeros_like(x)], PASS, sanitize="all")
    runs_alike(source, [x, np.zeros_like(x)], sanitize="all")
