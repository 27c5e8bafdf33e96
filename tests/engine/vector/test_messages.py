"""Messages for the usual mistakes in vector code: the origin of an address, the remedy, and the number of
occurrences; and the locations of pointers in the memory map.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto.diag import Diagnostic

SILU = """\
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
!ub = !pto.ptr<f32, ub>
!gm = !pto.ptr<f32>
module attributes {pto.target_arch = "a5"} {
  func.func @silu(%x: !gm, %y: !gm, %n: i32) attributes {pto.entry} {
    %zero = arith.constant 0 : index
    %lanes = arith.constant 64 : index
    %l2 = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %four = arith.constant 4 : i64
    %f1 = arith.constant 1.0 : f32
    %at_x = arith.constant 0 : i64
    %at_y = arith.constant 65536 : i64
    %count = arith.index_cast %n : i32 to index
    %n64 = arith.extsi %n : i32 to i64
    %bytes = arith.muli %n64, %four : i64
    %ux = pto.castptr %at_x : i64 -> !ub
    %uy = pto.castptr %at_y : i64 -> !ub
    pto.mte_gm_ub %x, %ux, %l2, %bytes nburst(%one, %bytes, %bytes) : !gm, !ub, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !m
      %none = scf.for %i = %zero to %count step %lanes iter_args(%left = %n) -> (i32) {
        %on, %rest = pto.plt_b32 %left : i32 -> !m, i32
        %vx = pto.vlds %ux[%i] : !ub -> !v
        %minus = pto.vneg %vx, %on : !v, !m -> !v
        %e = pto.vexp %minus, %on : !v, !m -> !v
        %d = pto.vadds %e, %f1, %on : !v, f32, !m -> !v
        %vy = pto.vdiv %vx, %d, %on : !v, !v, !m -> !v
        pto.vsts %vy, %uy[%i], %on : !v, !ub, !m
        scf.yield %rest : i32
      }
    }
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %uy, %y, %bytes nburst(%one, %bytes, %bytes) : !ub, !gm, i64, i64, i64, i64
    return
  }
}
"""
N = 1000


def edited(*edits: tuple[str, str]) -> str:
    text = SILU
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def run(text: str, n: int = N, room: int = N, **options: Any) -> Any:
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    y = np.zeros(room, np.float32)
    result = pto.kernel(pto.parse(text), engine="reference").run(x, y, n, **{"sanitize": "all", **options})
    if result.ok and options.get("sanitize", "all") == "all" and room == n:
        np.testing.assert_allclose(y, x / (1 + np.exp(-x)), atol=1e-6)
    return result


def only(text: str, code: str, **options: Any) -> Diagnostic:
    found = [d for d in run(text, **options).diagnostics if d.code == code]
    assert len(found) == 1
    return found[0]


def notes(d: Diagnostic) -> list[str]:
    return [text for text, _ in d.notes]


@pytest.mark.parametrize("n", [1, 63, 64, 65, N])
def test_silu(n: int) -> None:
    assert run(SILU, n, n).ok


def test_misaligned_store() -> None:
    d = only(edited(("constant 65536", "constant 65540")), "PTO-E2102")
    assert (
        d.message == "vsts: expects an effective address that is a multiple of 32 bytes, got 65540 (%i = 0)"
    )
    assert notes(d) == ["%uy is made from %at_y here"]
    assert d.help.startswith("the nearest are 65536 and 65568; ")
    assert "pto.vstus" in d.help


def test_misaligned_load() -> None:
    d = only(
        edited(("%at_x = arith.constant 0", "%at_x = arith.constant 36"), ("%ux, %l2", "%uy, %l2")),
        "PTO-E2102",
    )
    assert d.message == "vlds: expects an effective address that is a multiple of 32 bytes, got 36 (%i = 0)"
    assert d.help.startswith("the nearest are 32 and 64; ")
    assert "pto.vldus" in d.help


def test_misaligned_copy() -> None:
    d = only(edited(("%at_x = arith.constant 0", "%at_x = arith.constant 4")), "PTO-E2102")
    assert d.message == "mte_gm_ub: expects an on-chip address that is a multiple of 32 bytes, got 4"
    assert notes(d) == ["%ux is made from %at_x here"]
    assert d.help == "the nearest are 0 and 32"


def test_burst_too_long() -> None:
    d = only(SILU, "PTO-E2102", n=600000, room=600000)
    assert d.message == "mte_gm_ub: expects len_burst to fit 21 bits without a sign, got 2400000"
    assert "n_burst" in d.help


def test_first_address_outside() -> None:
    """The address itself is outside: an element of it is named, whatever lanes are on."""
    d = only(edited(("constant 65536", "constant 262144")), "PTO-E2101")
    assert d.message == "vsts: touches bytes 262144..262148 of UB, which has 262144 bytes (%i = 0)"


@pytest.mark.parametrize("options", [{}, {"shadow": "f64"}])
def test_granularity_is_counted_once_per_execution(options: dict[str, Any]) -> None:
    """Undefined data and the float64 shadow run instructions again: those runs do not count."""
    text = edited(("mask<b32>", "mask"), ("plt_b32", "plt_b16"))
    (found,) = [d for d in run(text, **options).diagnostics if d.code == "PTO-E2208"]
    assert found.message.startswith("vneg")  # five instructions use the mask, 16 times each
    assert notes(found) == ["%on is made here", "seen 80 times; this is the first"]


def test_undefined_lanes() -> None:
    """Lanes behind the end of the data, stored with all of them on."""
    bytes = ("%at_x =", "%more = arith.constant 4096 : i64\n    %at_x =")
    copy = ("%uy, %y, %bytes nburst(%one, %bytes, %bytes)", "%uy, %y, %more nburst(%one, %more, %more)")
    d = only(edited((", %on :", ", %all :"), bytes, copy), "PTO-E2203", room=1024)
    assert "24 of 1024 elements" in d.message
    assert d.help.startswith("write what %ux points to before it is read, or keep the lanes ")


def test_undefined_bytes() -> None:
    d = only(edited(("%uy[%i], %on", "%ux[%i], %on")), "PTO-E2203")
    assert d.help == "write what %uy points to before it is read, for example by pto.mte_gm_ub or pto.vsts"


def test_register_after_its_vecscope() -> None:
    text = edited(
        (
            '    pto.set_flag["PIPE_V"',
            '    pto.vsts %vy, %uy[%zero], %on : !v, !ub, !m\n    pto.set_flag["PIPE_V"',
        )
    )
    with pytest.raises(pto.DiagnosticError) as caught:
        pto.parse(text)
    found = caught.value.diagnostics
    assert [d.code for d in found] == ["PTO-E0201", "PTO-E0201"]
    assert all("out of a vecscope, store it to memory" in d.help for d in found)


def test_flag_in_vecscope() -> None:
    flag = '    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID1"]\n'
    d = next(
        d for d in pto.verify(pto.parse(edited(("      %all", f"{flag}      %all")))) if d.code == "PTO-E1002"
    )
    assert d.help == "move it before or after the vecscope; inside, pto.mem_bar orders loads and stores"


def test_map_has_a_row_per_pointer() -> None:
    """Copies and vector accesses through one pointer are one place."""
    lives = run(SILU, memory_map=True).memory_map.tiles("core", "vec")
    assert [(v.name, v.address, v.end, v.writes, v.reads) for v in lives] == [
        ("ux", 0, 4096, 1, 16),
        ("uy", 65536, 69536, 16, 1),
    ]


def test_map_shows_pointers_that_overlap() -> None:
    found = run(edited(("constant 65536", "constant 2048")), memory_map=True, sanitize="").memory_map
    (overlap,) = found.overlaps("core", "vec")
    assert overlap.text().startswith("%ux and %uy share bytes 2048..4096 while both are in use")


def test_map_shape_of_a_tile_reached_by_a_pointer_first() -> None:
    text = """\
!t = !pto.tile_buf<vec, 1x64xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @k() attributes {pto.entry} {
    %zero = arith.constant 0 : index
    %at = arith.constant 0 : i64
    %f1 = arith.constant 1.0 : f32
    %a = pto.alloc_tile addr = %at : !t
    %p = pto.tile_buf_addr %a : !t -> !pto.ptr<f32, ub>
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %v = pto.vdup %f1, %all : f32, !pto.mask<b32> -> !pto.vreg<64xf32>
      pto.vsts %v, %p[%zero], %all : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
    }
    pto.tabs ins(%a : !t) outs(%a : !t)
    return
  }
}
"""
    (life,) = (
        pto.kernel(pto.parse(text), engine="reference").run(memory_map=True).memory_map.tiles("core", "vec")
    )
    assert (life.name, life.shape) == ("a", "1x64xf32")


FOREIGN = """
!t = !pto.tile_buf<vec, 8x32xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32>, %far: i64, %which: index) attributes {pto.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %number = arith.constant 7.0 : f32
    %bytes = arith.constant 1024 : i64
    %p = pto.castptr %far : i64 -> !pto.ptr<f32, ub>
    %u = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %columns = pto.castptr %zero : i64 -> !pto.ptr<i32, ub>
    scf.index_switch %which
    case 0 {
      pto.vbitsort %p, %u, %columns, %two : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<i32, ub>, index
    }
    case 1 {
      pto.mte_gm_ub %x, %p, %zero, %bytes nburst(%one, %bytes, %bytes)
        : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    }
    case 2 {
      pto.store_scalar %number, %p[%c0] : !pto.ptr<f32, ub>, f32
    }
    default {
      %t = pto.alloc_tile addr = %far : !t
      pto.texpands ins(%number : f32) outs(%t : !t)
    }
    return
  }
}
"""


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_addresses_of_other_memory(engine: str) -> None:
    """An address of the host is not an offset into a buffer: no byte is written there."""
    k = pto.kernel(pto.parse(FOREIGN), engine=engine)
    y = np.ones(512, np.float32)
    far = -(-y.ctypes.data // 32) * 32
    for which in range(4):
        (found,) = k.run(np.zeros(256, np.float32), far, which).diagnostics
        assert found.code in ("PTO-E2101", "SA-0353"), found
    assert (y == 1).all()


PLANES = """\
module attributes {pto.target_arch = "a5"} {
  func.func @planes(%n: index) attributes {pto.entry} {
    %at = arith.constant 261888 : i64
    %one = arith.constant 1 : i8
    %p = pto.castptr %at : i64 -> !pto.ptr<i8, ub>
    pto.vecscope {
      %all = pto.pset_b8 "PAT_ALL" : !pto.mask<b8>
      %words = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %v = pto.vdup %one, %all : i8, !pto.mask<b8> -> !pto.vreg<256xi8>
      pto.vsts %v, %p[%n], %words {dist = "MRG4CHN_B8"} : !pto.vreg<256xi8>, !pto.ptr<i8, ub>, !pto.mask<b32>
    }
    return
  }
}
"""


@pytest.mark.parametrize("engine", ["reference", "native", "cpp"])
def test_a_store_of_planes_beyond_its_buffer(engine: str) -> None:
    k = pto.kernel(pto.parse(PLANES), engine=engine)
    assert k.run(0).ok
    (found,) = k.run(32).diagnostics
    assert found.code == "PTO-E2101", found
