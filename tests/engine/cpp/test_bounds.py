"""Accesses outside the arrays of a launch are errors on engine cpp as on the reference engine, never damage."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import pto
from pto.engine.compiled.library import FAILED, Library

ENGINES = ("reference", "cpp")
_TILE = "!pto.tile_buf<vec, 16x64xf32>"
_WINDOW = "!pto.partition_tensor_view<?x?xf32>"
_VIEW = "!pto.tensor_view<?x?xf32>"
_HEAD = 'module attributes {pto.target_arch = "a3"} {\n'

#: Tiles of `rows` x 64 from %x to %y, `steps` times; the windows start at a row and are `pitch` apart.
COPY = f"""{_HEAD}
func.func @copy(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %steps: index, %first: index, %pitch: index, %rows: index)
    attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %start = arith.muli %first, %pitch : index
  %p = pto.addptr %x, %start : !pto.ptr<f32> -> !pto.ptr<f32>
  %q = pto.addptr %y, %start : !pto.ptr<f32> -> !pto.ptr<f32>
  %from = pto.make_tensor_view %p, shape = [%c64, %c64] strides = [%pitch, %c1] : {_VIEW}
  %to = pto.make_tensor_view %q, shape = [%c64, %c64] strides = [%pitch, %c1] : {_VIEW}
  %t = pto.alloc_tile valid_row = %rows valid_col = %c64 : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
  scf.for %i = %c0 to %steps step %c1 {{
    %o = arith.muli %i, %c16 : index
    %a = pto.partition_view %from, offsets = [%o, %c0], sizes = [%rows, %c64] : {_VIEW} -> {_WINDOW}
    %b = pto.partition_view %to, offsets = [%o, %c0], sizes = [%rows, %c64] : {_VIEW} -> {_WINDOW}
    pto.tload ins(%a : {_WINDOW}) outs(%t : !pto.tile_buf<vec, 16x64xf32, valid=?x?>)
    pto.tstore ins(%t : !pto.tile_buf<vec, 16x64xf32, valid=?x?>) outs(%b : {_WINDOW})
  }}
  return
}}
}}
"""
SCALARS = f"""{_HEAD}
func.func @scalars(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %from: index, %to: index)
    attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %v = pto.load_scalar %x[%from] : !pto.ptr<f32> -> f32
  pto.store_scalar %v, %y[%to] : !pto.ptr<f32>, f32
  return
}}
}}
"""
_TABLE = "!pto.partition_tensor_view<16x64xf32>"
_INDEX = "!pto.tile_buf<vec, 16x64xi32>"
_INDICES = "!pto.partition_tensor_view<16x64xi32>"


def gather(how: str) -> str:
    """%y[r, c] = element %i[r, c] of %x."""
    return f"""{_HEAD}
func.func @gather(%x: !pto.ptr<f32>, %i: !pto.ptr<i32>, %y: !pto.ptr<f32>)
    attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %vx = pto.make_tensor_view %x, shape = [%c16, %c64] strides = [%c64, %c1] : {_VIEW}
  %vi = pto.make_tensor_view %i, shape = [%c16, %c64] strides = [%c64, %c1] : !pto.tensor_view<?x?xi32>
  %vy = pto.make_tensor_view %y, shape = [%c16, %c64] strides = [%c64, %c1] : {_VIEW}
  %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : {_VIEW} -> {_TABLE}
  %pi = pto.partition_view %vi, offsets = [%c0, %c0], sizes = [%c16, %c64]
    : !pto.tensor_view<?x?xi32> -> {_INDICES}
  %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c64] : {_VIEW} -> {_TABLE}
  %t = pto.alloc_tile : {_TILE}
  %k = pto.alloc_tile : {_INDEX}
  pto.tload ins(%pi : {_INDICES}) outs(%k : {_INDEX})
  pto.mgather ins(%px, %k : {_TABLE}, {_INDEX}) outs(%t : {_TILE}) {how}
  pto.tstore ins(%t : {_TILE}) outs(%py : {_TABLE})
  return
}}
}}
"""


@cache
def kernel(text: str, engine: str) -> pto.Kernel:
    return pto.kernel(pto.parse(text), engine=engine)


def array(count: int) -> np.ndarray:
    """Return an array between pages of its own, so that accesses beyond it do not depend on other arrays."""
    room = np.zeros(count + (1 << 18), np.float32)[1 << 17 :][:count]
    room[:] = np.arange(count)
    return room


def said(text: str, *args: object) -> list[str]:
    """Return the common diagnostics of both engines; the text of the operation follows the message."""
    found = []
    for engine in ENGINES:
        diagnostics = kernel(text, engine).run(*args).diagnostics
        lines = []
        for d in diagnostics:
            assert d.code == "PTO-E2101"
            assert d.span is not None
            message = re.sub(
                r" \(AIV0(, %\w+ = \d+)*\)$", "", d.message
            )  # the reference engine says where it is, too
            lines.append(f"{message} | {d.span.source.text[d.span.start : d.span.end].split()[0]}")
        found.append(lines)
    assert found[0] == found[1]
    return found[1]


def copy(x: int, y: int, steps: int = 4, first: int = 0, pitch: int = 64, rows: int = 16) -> list[str]:
    """Return the diagnostics of a copy with arrays of so many elements."""
    return said(COPY, array(x), array(y), steps, first, pitch, rows)


def test_exact_fit() -> None:
    x, y = array(64 * 64), np.zeros(64 * 64, np.float32)
    assert kernel(COPY, "cpp").run(x, y, 4, 0, 64, 16).ok
    assert np.array_equal(x, y)
    assert copy(4096, 4096) == []


def test_an_output_that_is_too_small() -> None:
    assert copy(4096, 768, 1) == ["tstore: touches bytes 0..4096 of %y, which has 3072 bytes | pto.tstore"]


def test_an_input_that_is_too_small() -> None:
    assert copy(4095, 4096) == ["tload: touches bytes 12288..16384 of %x, which has 16380 bytes | pto.tload"]


def test_a_loop_past_the_end() -> None:
    assert copy(4096, 4096, 5) == [
        "tload: touches bytes 16384..20480 of %x, which has 16384 bytes | pto.tload"
    ]


def test_a_negative_offset() -> None:
    assert copy(4096, 4096, 1, -1) == [
        "tload: touches bytes -256..3840 of %x, which has 16384 bytes | pto.tload"
    ]


def test_the_end_of_a_strided_view() -> None:
    exact = 15 * 100 + 64
    assert copy(exact, exact, 1, pitch=100) == []
    assert copy(exact, exact - 1, 1, pitch=100) == [
        f"tstore: touches bytes 0..{4 * exact} of %y, which has {4 * exact - 4} bytes | pto.tstore"
    ]


def test_an_empty_window_touches_nothing() -> None:
    assert copy(0, 0, 3, rows=0) == []
    assert copy(1024, 1024, 1, pitch=1 << 40, rows=1) == []  # a stride that is not used


def test_strides_that_leave_the_address_space() -> None:
    for pitch in (1 << 40, 1 << 60, -(1 << 60), (1 << 63) - 1):
        found = kernel(COPY, "cpp").run(array(4096), array(4096), 1, 0, pitch, 16).diagnostics
        assert [d.code for d in found] == ["PTO-E2101"], pitch


def test_scalars() -> None:
    x, y = array(100), array(50)
    assert said(SCALARS, x, y, 99, 49) == []
    for engine in ENGINES:
        for at in ((100, 0), (-1, 0), (0, 50), (0, -1), (1 << 62, 0), (0, -(1 << 62))):
            found = kernel(SCALARS, engine).run(x, y, *at).diagnostics
            assert [d.code for d in found] == ["PTO-E2101"], (engine, at)
    assert said(SCALARS, x, y, 3, 50)[0].startswith(
        "store_scalar: touches bytes 200..204 of %y, which has 200"
    )


def test_gather() -> None:
    x = array(1024)
    for index, how, refused in (
        (1023, "", False),
        (1024, "", True),
        (-1, "", True),
        (1 << 30, "{gatherOob = #pto<gather_oob clamp>}", False),
    ):
        for engine in ENGINES:
            indices = np.arange(1024, dtype=np.int32)
            indices[77] = index
            found = kernel(gather(how), engine).run(x, indices, array(1024)).diagnostics
            assert [d.code for d in found] == ["PTO-E2101"] * refused, (index, how, engine)


def test_fifty_failures_leave_the_process_as_it_was() -> None:
    k = kernel(COPY, "cpp")
    for n in range(50):
        guard = np.full(4096 + 768 + 4096, 7, np.float32)  # what lies around the output
        y = guard[4096 : 4096 + 768]
        result = k.run(array(4096), y, 4, 0, 64, 16, blocks=1 + n % 3, threads=1 + n % 2)
        assert [d.code for d in result.diagnostics] == ["PTO-E2101"]
        assert (guard == 7).all()
    assert k.run(array(4096), array(4096), 4, 0, 64, 16).ok


def test_the_block_is_named() -> None:
    (found,) = kernel(COPY, "cpp").run(array(768), array(768), 1, 0, 64, 16, blocks=2).diagnostics
    assert found.message == "tload: touches bytes 0..4096 of %x, which has 3072 bytes (block 0)"


def test_a_launch_without_arrays_is_not_checked(machine: Library) -> None:
    """A caller of a library passes the arrays, or none."""
    out = np.zeros(8, np.int64)
    assert machine.call("pto_launch_misbehave", [0, 0, out.ctypes.data], 3).status != FAILED


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_help(engine: str) -> None:
    (found,) = kernel(COPY, engine).run(array(768), array(768), 1, 0, 64, 16).diagnostics
    assert "too small" in found.help
    assert found.expected == "addresses below 3072"


def test_an_access_of_a_called_function() -> None:
    text = """
func.func private @h(%a: !pto.ptr<i32>, %n: index) {
  %c1 = arith.constant 1 : i32
  pto.store_scalar %c1, %a[%n] : !pto.ptr<i32>, i32
  return
}
func.func @k(%a: !pto.ptr<i32>, %n: index) attributes {pto.entry} {
  func.call @h(%a, %n) : (!pto.ptr<i32>, index) -> ()
  return
}
"""
    (d,) = pto.kernel(pto.parse(text), engine="cpp").run(np.zeros(4, np.int32), 100).diagnostics
    assert d.code == "PTO-E2101" and d.message.startswith("store_scalar: ") and d.span is not None
    assert d.span.line == 4
