"""Tests of the list of problems, and of the names of memory in messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto.diag import Diagnostic, Source, Span
from pto.engine.memory import Buffer, Pointer, Tile
from pto.engine.sanitize.reports import MOST, MOST_NOTES, Reports, bytes_of
from pto.ir.types import ScalarType, TileBufType

SOURCE = Source("t.pto", "line\n" * 100)


def line(number: int) -> Span:
    return Span(SOURCE, 5 * number, 5 * number + 4)


def problem(text: str = "wrong") -> Diagnostic:
    return Diagnostic("PTO-E2201", text, line(0))


def test_a_problem_is_kept_once_and_counted() -> None:
    reports = Reports()
    for _ in range(3):
        reports.add("key", problem())
    (found,) = reports.all()
    assert found.notes == [("seen 3 times; this is the first", None)]


def test_further_sides_become_notes() -> None:
    reports = Reports()
    assert not reports.again("key", ("tload writes %t", line(1)))
    first = problem()
    first.notes.append(("tload writes %t", line(1)))
    reports.add("key", first)
    assert reports.again("key", ("tload writes %t", line(1)))  # nothing new
    assert reports.again("key", ("tload writes %u", line(2)))
    assert [text for text, _ in first.notes] == ["tload writes %t", "tload writes %u"]
    for n in range(10):
        reports.again("key", ("more", line(n + 3)))
    assert len(first.notes) == MOST_NOTES


def test_what_is_too_much_is_counted() -> None:
    reports = Reports()
    for n in range(MOST + 7):
        reports.add(n, problem(str(n)))
    found = reports.all()
    assert len(found) == MOST
    assert found[-1].notes == [("7 further problems are not shown", None)]


# -- places ------------------------------------------------------------------------------------------------


@pytest.fixture
def ub() -> Buffer:
    return Buffer("UB", "vec", np.zeros(4096, np.uint8), 0, 1024)


def tile(buffer: Buffer, address: int, name: str = "t") -> Tile:
    type = TileBufType(ScalarType("f32"), "vec", 8, 16, 8, 16)
    return Tile(type, buffer, address, (8, 16), name)


def test_placed_tiles_are_located(ub: Buffer) -> None:
    assert bytes_of(tile(ub, 256), 256, 320) == "bytes 256..320 of UB (%t)"


def test_other_tiles_are_named(ub: Buffer) -> None:
    """Tiles without an address lie after the capacity, at addresses that mean nothing to the program."""
    there = tile(ub, 1536)
    assert bytes_of(there, 1536, 2048) == "%t (UB)"
    assert bytes_of(there, 1600, 1664) == "bytes 64..128 of %t (UB)"


def test_global_memory_is_named_after_the_argument() -> None:
    buffer = Buffer("%x", "gm", np.zeros(64, np.uint8))
    assert bytes_of(Pointer(buffer, 0, "f32", "p"), 8, 16) == "bytes 8..16 of %x"


def test_pointers_into_buffers(ub: Buffer) -> None:
    assert bytes_of(Pointer(ub, 0, "f32"), 0, 4) == "bytes 0..4 of UB"


# -- messages ----------------------------------------------------------------------------------------------

LOADS = """!tile = !pto.tile_buf<vec, 8x16xf32>
!view = !pto.partition_tensor_view<8x16xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !view, %y: !view) attributes {pto.entry} {
    %a = arith.constant 0 : i64
    %b = arith.constant 512 : i64
    %t = pto.alloc_tile addr = %a : !tile
    %u = pto.alloc_tile addr = %b : !tile
    pto.tload ins(%x : !view) outs(%t : !tile)
    pto.tload ins(%x : !view) outs(%u : !tile)
    pto.tadd ins(%t, %u : !tile, !tile) outs(%t : !tile)
    pto.tneg ins(%u : !tile) outs(%u : !tile)
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%t : !tile) outs(%y : !view)
    return
  }
}
"""


def run(text: str, **options: Any) -> list[Diagnostic]:
    x = np.ones((8, 16), np.float32)
    return pto.kernel(pto.parse(text), engine="reference").run(x, np.zeros_like(x), **options).diagnostics


def test_one_missing_flag_is_one_report() -> None:
    """Both loads race with tadd, for reading and writing, and with tneg: one flag repairs it all."""
    found = [d for d in run(LOADS, sanitize="race") if "MTE2" in d.message]
    (d,) = found
    assert d.span is not None and d.span.place[0] == 11
    assert sorted(span.place[0] for _, span in d.notes if span is not None) == [9, 10]
    assert "after line 10 and" in d.help and "before line 11" in d.help


def test_the_event_id_is_a_free_one() -> None:
    used = LOADS.replace(
        "    pto.tload ins(%x : !view) outs(%t : !tile)",
        "    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n"
        "    pto.tload ins(%x : !view) outs(%t : !tile)",
    )
    assert "EVENT_ID1" in next(d.help for d in run(used, sanitize="race") if "MTE2" in d.message)


def test_where_ids_may_be_any_the_last_one_is_taken() -> None:
    used = LOADS.replace(
        "    pto.tload ins(%x : !view) outs(%t : !tile)",
        "    %c0 = arith.constant 0 : index\n    pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %c0]\n"
        "    pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %c0]\n    pto.tload ins(%x : !view) outs(%t : !tile)",
    )
    assert "EVENT_ID7" in next(d.help for d in run(used, sanitize="race") if "MTE2" in d.message)


FLAGS = """module attributes {{pto.target_arch = "a3"}} {{
  func.func @k(%x: !pto.partition_tensor_view<8x64xf32>, %y: !pto.partition_tensor_view<8x64xf32>) {{
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 2048 : i64
    %t = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, 8x64xf32>
    %u = pto.alloc_tile addr = %a1 : !pto.tile_buf<vec, 8x64xf32>
    pto.tload ins(%x : !pto.partition_tensor_view<8x64xf32>) outs(%t : !pto.tile_buf<vec, 8x64xf32>)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    {before}
    pto.tneg ins(%t : !pto.tile_buf<vec, 8x64xf32>) outs(%u : !pto.tile_buf<vec, 8x64xf32>)
    {after}
    pto.barrier <PIPE_ALL>
    return
  }}
}}
"""
WAIT = "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]"


def test_a_flag_that_is_set_needs_only_its_wait() -> None:
    import numpy as np

    import pto

    def help(before: str, after: str) -> list[str]:
        kernel = pto.kernel(pto.parse(FLAGS.format(before=before, after=after)), engine="reference")
        arrays = np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32)
        return [d.help for d in kernel.run(*arrays, sanitize="race").diagnostics]

    assert help(WAIT, "") == []
    (forgotten,) = help("", "")
    assert f"line 8 sets a flag for this, and nothing waits for it: put '{WAIT}' before line 10" == forgotten
    (late,) = help("", WAIT)
    assert (
        late == "line 8 sets a flag for this, and line 11 waits for it too late: move line 11 before line 10"
    )


def test_what_a_missing_wait_of_a_loop_leads_to_is_one_report() -> None:
    """The race, with what becomes of its flag as notes; a wait behind the loop is not one to move."""
    flag = WAIT.replace("wait", "set")
    text = FLAGS.format(before="", after="}\n" + WAIT).replace(
        "    pto.tload", f"    {flag}\n    %n = arith.constant 3 : index\n    %z = arith.constant 0 : index\n"
        "    %o = arith.constant 1 : index\n    scf.for %i = %z to %n step %o {\n    pto.tload", 1,
    )  # fmt: skip
    arrays = np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32)
    read, overwritten = (
        pto.kernel(pto.parse(text), engine="reference").run(*arrays, sanitize="race,sync").diagnostics
    )
    assert read.message.startswith("tneg: RAW race") and overwritten.message.startswith("tload: WAR race")
    assert [m.partition(" (")[0] for m, _ in read.notes if m.startswith("so ")] == [
        "so flag PIPE_MTE2 -> PIPE_V, id 3 is set although it is set already",
        "so flag PIPE_MTE2 -> PIPE_V, id 3 is still set when the kernel ends",
    ]
    assert "and nothing waits for it: put" in read.help


# -- which iteration, which tile, which element -------------------------------------------------------------

LATER = """!t = !pto.tile_buf<vec, 8x16xf32>
!v = !pto.tensor_view<64x16xf32>
!w = !pto.partition_tensor_view<8x16xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @copy(%x: !v, %y: !v, %r: index, %t: !t) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %q = pto.partition_view %y, offsets = [%r, %c0], sizes = [%c8, %c16] : !v -> !w
    pto.tstore ins(%t : !t) outs(%q : !w)
    return
  }
  func.func @k(%x: !v, %y: !v) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %a0 = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a0 : !t
    scf.for %i = %c0 to %c4 step %c2 {
      scf.for %j = %c0 to %c2 step %c1 {
        %n = arith.addi %i, %j : index
        %r = arith.muli %n, %c8 : index
        %p = pto.partition_view %x, offsets = [%r, %c0], sizes = [%c8, %c16] : !v -> !w
        %late = arith.cmpi eq, %n, %c1 : index
        pto.tload ins(%p : !w) outs(%t : !t)
        scf.if %late {
        } else {
          pto.barrier <PIPE_ALL>
        }
        func.call @copy(%x, %y, %r, %t) : (!v, !v, index, !t) -> ()
        pto.barrier <PIPE_ALL>
      }
    }
    return
  }
}
"""


def test_a_report_says_which_iteration_block_and_core_it_is_of() -> None:
    x = np.ones((64, 16), np.float32)
    kernel = pto.kernel(pto.parse(LATER), engine="reference")
    (d,) = kernel.run(x, np.zeros_like(x), sanitize="race").diagnostics
    assert d.message.endswith("may not have written yet (%i = 0, %j = 1)"), d.message
    (d, *_) = kernel.run(x, np.zeros_like(x), sanitize="race", blocks=2).diagnostics
    assert d.message.endswith("(block 0, %i = 0, %j = 1)"), d.message


WAITING = """module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !pto.partition_tensor_view<8x16xf32>, %y: !pto.partition_tensor_view<8x16xf32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %a0 = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, 8x16xf32>
    scf.for %i = %c0 to %c3 step %c1 {
      pto.wait_flag[<PIPE_S>, <PIPE_MTE2>, <EVENT_ID0>]
      pto.tload ins(%x : !pto.partition_tensor_view<8x16xf32>) outs(%t : !pto.tile_buf<vec, 8x16xf32>)
    }
    return
  }
}
"""


def test_what_waits_knows_the_iteration_it_was_issued_in() -> None:
    """The scalar unit is through with the loop when its first wait is found stuck."""
    (d, *_) = run(WAITING)
    assert d.code == "PTO-E2104" and "(%i = 0)" in d.message, d.message


COLLIDING = """!t = !pto.tile_buf<vec, 8x16xf32>
!v = !pto.partition_tensor_view<8x16xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !v, %y: !v) attributes {pto.entry} {
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 256 : i64
    %one = arith.constant 1.0 : f32
    %a = pto.alloc_tile addr = %a0 : !t
    %b = pto.alloc_tile addr = %a1 : !t
    pto.tload ins(%x : !v) outs(%a : !t)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    pto.texpands ins(%one : f32) outs(%b : !t)
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    pto.barrier <PIPE_ALL>
    return
  }
}
"""


def test_two_tiles_that_collide_are_told_apart_first() -> None:
    (d,) = run(COLLIDING, sanitize="race")
    assert d.help.startswith("%a and %b share bytes 0x100-0x1ff of UB: give one of them another address;"), (
        d.help
    )
    assert "move line" not in d.help
    (d,) = run(COLLIDING.replace("%b : !t", "%a : !t"), sanitize="race")  # one tile: only the wait is late
    assert d.help.startswith("line 11 sets a flag for this") and "share" not in d.help


def test_an_accumulator_that_nobody_wrote_needs_a_first_step() -> None:
    from .corpus import load

    (d,) = load("accumulator.bad").run(sanitize="undef")[0].diagnostics
    assert d.help.startswith("first K step: pto.tmatmul") and "%c" in d.help


LANES = """!ub = !pto.ptr<f32, ub>
!v = !pto.vreg<64xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
    %zero = arith.constant 0 : index
    %c96 = arith.constant 96 : index
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 4096 : i64
    %one = arith.constant 1 : i64
    %len = arith.constant 256 : i64
    %t = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, 8x32xf32>
    %p = pto.tile_buf_addr %t : !pto.tile_buf<vec, 8x32xf32> -> !ub
    %b = pto.castptr %a1 : i64 -> !ub
    pto.vecscope {
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %v = pto.vlds %p[%c96] : !ub -> !v
      pto.vsts %v, %b[%zero], %m {dist = "NORM_B32"} : !v, !ub, !pto.mask<b32>
    }
    pto.barrier <PIPE_ALL>
    pto.mte_ub_gm %b, %y, %len nburst(%one, %len, %len) : !ub, !pto.ptr<f32>, i64, i64, i64, i64
    return
  }
}
"""


def test_notes_give_the_element_of_the_tile_and_not_the_lane() -> None:
    (d,) = run(LANES, sanitize="undef")
    assert any("element (3, 0) of %t, which was never written" in text for text, _ in d.notes), d.notes
