"""Moves between column-major vector tiles on A5."""

from __future__ import annotations

import numpy as np
import pytest
from tests.each import together

from .running import errors, runs_alike, text

PASS = "normalize-tmov"


def program(tile: str, arch: str = "a5", dst: str = "", valid: str = "", after: str = "") -> str:
    dst = dst or tile
    return f"""module attributes {{pto.target_arch = "{arch}"}} {{
func.func @f(%n: index, %m: index) {{
  %a = pto.alloc_tile {valid} : {tile}
  %b = pto.alloc_tile {valid} : {dst}
  {after}
  pto.tmov ins(%a : {tile}) outs(%b : {dst})
  return
}}
}}
"""


def column(rows: int, cols: int, valid: str = "", dtype: str = "f32") -> str:
    return (
        f"!pto.tile_buf<vec, {rows}x{cols}x{dtype}{', valid=' + valid if valid else ''}, blayout=col_major>"
    )


def test_through_rows() -> None:
    found = text(program(column(16, 4, "12x3")), PASS)
    turned = "!pto.tile_buf<vec, 4x16xf32, valid=3x12>"
    assert f"%a_rows = pto.treshape %a : {column(16, 4, '12x3')} -> {turned}" in found
    assert f"%b_rows = pto.treshape %b : {column(16, 4, '12x3')} -> {turned}" in found
    assert f"pto.tmov ins(%a_rows : {turned}) outs(%b_rows : {turned})" in found


@pytest.mark.parametrize(
    ("tile", "arch"),
    [(column(16, 4), "a3"), ("!pto.tile_buf<vec, 16x16xf32>", "a5")],
)
def test_others_stay(tile: str, arch: str) -> None:
    assert "treshape" not in text(program(tile, arch), PASS)


def test_a_valid_region_of_the_allocation() -> None:
    found = text(program(column(16, 4, "?x?"), valid="valid_row = %n valid_col = %m"), PASS)
    turned = "!pto.tile_buf<vec, 4x16xf32, valid=?x?>"
    assert f"pto.set_validshape %a_rows, %m, %n : {turned}" in found
    assert f"pto.tmov ins(%a_rows : {turned}) outs(%b_rows : {turned})" in found
    half = text(program(column(16, 4, "?x3"), valid="valid_row = %n"), PASS)
    assert f"pto.treshape %a : {column(16, 4, '?x3')} -> {turned}" in half
    assert "arith.constant 3 : index" in half


def test_a_valid_region_that_changes() -> None:
    source = program(column(16, 4, "?x?"), valid="valid_row = %n valid_col = %m",
                     after=f"pto.set_validshape %b, %m, %n : {column(16, 4, '?x?')}")  # fmt: skip
    (found,) = errors(source, PASS)
    assert found.code == "PTO-E0501"
    assert "cannot normalize A5 vec->vec col_major TMOV: requires static 2D tile_buf shape" in found.message


def test_a_window_of_columns_is_not_dense() -> None:
    """A window of fewer rows has gaps between its columns; one of whole columns has none."""

    def windowed(rows: int, cols: int) -> str:
        return f"""module attributes {{pto.target_arch = "a5"}} {{
func.func @f() {{
  %c0 = arith.constant 0 : index
  %whole = pto.alloc_tile : {column(32, 4)}
  %a = pto.subview %whole[%c0, %c0] sizes [{rows}, {cols}] : {column(32, 4)} -> {column(rows, cols)}
  %b = pto.alloc_tile : {column(rows, cols)}
  pto.tmov ins(%a : {column(rows, cols)}) outs(%b : {column(rows, cols)})
  return
}}
}}
"""  # fmt: skip

    (found,) = errors(windowed(16, 4), PASS)
    assert found.code == "PTO-E0501" and "are not contiguous" in found.message
    assert errors(windowed(32, 2), PASS) == []


@together("shape", [(16, 4), (16, 16), (64, 1)])
@together("dynamic", [False, True])
def test_results(shape: tuple[int, int], dynamic: bool) -> None:
    """A copy of the valid region and nothing else, whatever the shape."""
    rows, cols = shape
    vr, vc = rows - 3, max(1, cols - 1)
    tile = column(rows, cols, "?x?" if dynamic else f"{vr}x{vc}")
    valid = "valid_row = %vr valid_col = %vc" if dynamic else ""
    window = f"!pto.partition_tensor_view<{vr}x{vc}xf32>"
    source = f"""module attributes {{pto.target_arch = "a5"}} {{
func.func @k(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %vr = arith.constant {vr} : index
  %vc = arith.constant {vc} : index
  %a = pto.alloc_tile {valid} : {tile}
  %b = pto.alloc_tile {valid} : {tile}
  %xv = pto.make_tensor_view %x, shape = [%vr, %vc], strides = [%c1, %vr] : !pto.tensor_view<?x?xf32>
  %ov = pto.make_tensor_view %out, shape = [%vr, %vc], strides = [%c1, %vr] : !pto.tensor_view<?x?xf32>
  %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%vr, %vc] : !pto.tensor_view<?x?xf32> -> {window}
  %op = pto.partition_view %ov, offsets = [%c0, %c0], sizes = [%vr, %vc] : !pto.tensor_view<?x?xf32> -> {window}
  pto.tload ins(%xp : {window}) outs(%a : {tile})
  pto.tmov ins(%a : {tile}) outs(%b : {tile})
  pto.tstore ins(%b : {tile}) outs(%op : {window})
  return
}}
}}
"""
    x = np.random.default_rng(1).standard_normal(vr * vc).astype(np.float32)
    module = runs_alike(source, [x, np.zeros_like(x)])
    assert any(op.name == "pto.treshape" for op in module.walk())
