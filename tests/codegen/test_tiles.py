"""Tiles and views: types, addresses, valid regions, windows, GlobalTensors."""

from __future__ import annotations

import pytest

from .shapes import body, emit, has, in_order, tile

VEC = "!pto.tile_buf<vec, 32x32xf32>"


def placed(type: str, use: str, before: str = "") -> str:
    """A function with one placed tile `%t` of a type and a use of it."""
    return (
        f"func.func @k(%p: !pto.ptr<f32>, %r: index, %c: index, %b: i1) {{\n  %a = arith.constant 4096 : i64\n"
        f"{before}  %t = pto.alloc_tile addr = %a : {type}\n{use}\n  return\n}}\n"
    )


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        (VEC, tile("Vec", "float", 32, 32)),
        ("!pto.tile_buf<vec, 32x32xbf16, valid=16x8>", tile("Vec", "bfloat16_t", 32, 32, v_row=16, v_col=8)),
        ("!pto.tile_buf<vec, 32x32xui8, blayout=col_major>", tile("Vec", "uint8_t", 32, 32, blayout="ColMajor")),
        ("!pto.tile_buf<mat, 32x32xf16, blayout=col_major, slayout=row_major>",
         tile("Mat", "half", 32, 32, blayout="ColMajor", slayout="RowMajor")),
        ("!pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>",
         tile("Acc", "float", 32, 32, blayout="ColMajor", slayout="RowMajor", fractal=1024)),
        ("!pto.tile_buf<vec, 16x32xi32, pad=2>", tile("Vec", "int32_t", 16, 32, pad="Max")),
        ("!pto.tile_buf<vec, 1x16xf16, compact=1>", tile("Vec", "half", 1, 16, compact="Normal")),
        ("!pto.tile_buf<vec, 1x16xf16, compact=2>", tile("Vec", "half", 1, 16, compact="RowPlusOne")),
    ],
)  # fmt: skip
def test_types(written: str, spelled: str) -> None:
    use = f"  func.call @use(%t) : ({written}) -> ()"
    text = body(emit(placed(written, use) + f"func.func private @use(%t: {written})\n"))
    in_order(text, "const int64_t %a = 4096;", f"{spelled} %t;", "TASSIGN(%t, %a);", "use(%t);")
    assert text.count("TASSIGN") == 1 and ".data()" not in text


@pytest.mark.parametrize(("target", "blayout"), [("a3", "RowMajor"), ("a5", "ColMajor")])
@pytest.mark.parametrize("written", ["row_major", "col_major"])
def test_the_target_decides_the_layout_of_left(target: str, blayout: str, written: str) -> None:
    left = f"!pto.tile_buf<left, 32x32xf16, blayout={written}, slayout=row_major>"
    right = "!pto.tile_buf<right, 32x32xf16, slayout=col_major>"
    acc = "!pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>"
    text = emit(
        f"""\
func.func @k() {{
  %a = arith.constant 0 : i64
  %l = pto.alloc_tile addr = %a : {left}
  %r = pto.alloc_tile addr = %a : {right}
  %d = pto.alloc_tile addr = %a : {acc}
  pto.tmatmul ins(%l, %r : {left}, {right}) outs(%d : {acc})
  return
}}
""",
        target,
    )
    assert tile("Left", "half", 32, 32, blayout=blayout, slayout="RowMajor") in text


def test_a_tile_nobody_uses_is_left_out() -> None:
    assert "Tile<" not in emit(placed(VEC, ""))


def test_run_time_extents_are_constructor_arguments() -> None:
    both = "!pto.tile_buf<vec, 32x32xf32, valid=?x?>"
    one = "!pto.tile_buf<vec, 32x32xf32, valid=32x?>"
    text = body(
        emit(f"""\
func.func @k(%r: index, %c: index) {{
  %a = arith.constant 0 : i64
  %c16 = arith.constant 16 : index
  %t = pto.alloc_tile addr = %a valid_row = %r valid_col = %c : {both}
  %u = pto.alloc_tile addr = %a valid_col = %c : {one}
  %v = pto.alloc_tile addr = %a valid_col = %c16 : {one}
  %w = pto.alloc_tile addr = %a valid_row = %c16 valid_col = %c16 : {both}
  pto.tprint ins(%t : {both})
  pto.tprint ins(%u : {one})
  pto.tprint ins(%v : {one})
  pto.tprint ins(%w : {both})
  return
}}
""")
    )
    open_both = tile("Vec", "float", 32, 32, v_row=-1, v_col=-1)
    open_one = tile("Vec", "float", 32, 32, v_col=-1)
    in_order(text, "(int32_t %r, int32_t %c)", "const int32_t %n = 16;", f"{open_both} %t = {open_both}(%r, %c);",
             f"{open_one} %u = {open_one}(%c);", f"{tile('Vec', 'float', 32, 32, v_col=16)} %v;",
             f"{open_both} %w = {open_both}(%n, %n);")  # fmt: skip


@pytest.mark.parametrize("branches", [False, True])
def test_set_validshape_on_a_planned_tile(branches: bool) -> None:
    """The whole tile is placed, then a second one with the run-time region is bound to its storage."""
    type = "!pto.tile_buf<vec, 32x32xf32, valid=?x?>"
    change = f"pto.set_validshape %t, %r, %c : {type}"
    if branches:
        change = f"scf.if %b {{\n    {change}\n  }} else {{\n    {change}\n  }}"
    text = body(
        emit(f"""\
func.func @k(%r: index, %c: index, %b: i1) {{
  %t = pto.alloc_tile valid_row = %r valid_col = %c : {type}
  {change}
  pto.tadd ins(%t, %t : {type}, {type}) outs(%t : {type})
  return
}}
""")
    )
    dynamic = tile("Vec", "float", 32, 32, v_row=-1, v_col=-1)
    in_order(text, f"{tile('Vec', 'float', 32, 32)} %base;", "TASSIGN(%base, %a);", f"{dynamic} %t = {dynamic}(%, %);",
             "__ubuf__ float* %d = %base.data();", "uint64_t %at = reinterpret_cast<uint64_t>(%d);",
             "TASSIGN(%t, %at);", *["%t.SetValidShape(%, %);"] * (2 if branches else 1),
             "TADD(%t, %t, %t);")  # fmt: skip


def test_a_tile_may_be_rebound_in_a_loop() -> None:
    text = body(
        emit(
            f"""\
func.func @k(%a: i64) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %zero : {VEC}
  scf.for %i = %c0 to %c4 step %c1 {{
    %u = pto.tassign %t, %a : {VEC} -> {VEC}
    pto.tprint ins(%u : {VEC})
  }}
  return
}}
""",
            "a5",
        )
    )
    in_order(text, "Tile<", "> %t;", "for (", "TASSIGN(%t, (uint64_t) %a);", "TPRINT(%t);")
    assert text.count("Tile<") == 1


def test_other_readings_of_a_tile() -> None:
    wide, flat = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 1x1024xf32>"
    bits = "!pto.tile_buf<vec, 16x64xi16>"
    text = body(
        emit(f"""\
func.func @k() {{
  %a = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %a : {wide}
  %f = pto.treshape %t : {wide} -> {flat}
  %i = pto.bitcast %t : {wide} -> {bits}
  pto.texp ins(%f : {flat}) outs(%f : {flat})
  pto.tnot ins(%i : {bits}) outs(%i : {bits})
  return
}}
""")
    )
    in_order(text, "TASSIGN(%t, %);", f"{tile('Vec', 'float', 1, 1024)} %f;", "TRESHAPE(%f, %t);",
             f"{tile('Vec', 'int16_t', 16, 64)} %i;", "TASSIGN(%i, reinterpret_cast<uint64_t>(%t.data()));",
             "TEXP(%f, %f);", "TNOT(%i, %i);")  # fmt: skip


def test_a_window_keeps_the_pitch_of_its_tile() -> None:
    whole, part = "!pto.tile_buf<vec, 32x64xf32>", "!pto.tile_buf<vec, 16x32xf32>"
    text = body(
        emit(f"""\
func.func @k(%r: index) {{
  %a = arith.constant 0 : i64
  %c32 = arith.constant 32 : index
  %t = pto.alloc_tile addr = %a : {whole}
  %w = pto.subset %t[%r, %c32] sizes [16, 32] : {whole}
  %v = pto.subview %t[%r, %c32] sizes [16, 32] : {whole} -> {part}
  pto.texp ins(%w : {part.replace("xf32", "xf32, valid=?x32")}) outs(%w : {part.replace("xf32", "xf32, valid=?x32")})
  pto.texp ins(%v : {part}) outs(%v : {part})
  return
}}
""")
    )
    in_order(text, "unsigned %z = 0;", "__ubuf__ float* %d = %t.data();",
             "uint64_t %at = reinterpret_cast<uint64_t>((__ubuf__ float*) (%d + (%z + (unsigned) % * % + % * %)));",
             "TASSIGN(%w, %at);", f"{tile('Vec', 'float', 16, 64, v_col=32)} %v;",
             "TSUBVIEW(%v, %t, %, %);")  # fmt: skip
    assert tile("Vec", "float", 16, 64, v_row=-1, v_col=32) in text


# -- views --------------------------------------------------------------------------------------------------


def viewed(
    shape: str,
    strides: str,
    view: str,
    offsets: str,
    sizes: str,
    window: str,
    layout: str = "",
    tile: str = "!pto.tile_buf<vec, 16x64xf32>",
) -> str:
    return body(
        emit(f"""\
func.func @k(%p: !pto.ptr<f32>, %n: index, %s: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %a = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %a : {tile}
  %v = pto.make_tensor_view %p, shape = [{shape}], strides = [{strides}]{layout} : !pto.tensor_view<{view}xf32>
  %w = pto.partition_view %v, offsets = [{offsets}], sizes = [{sizes}]
    : !pto.tensor_view<{view}xf32> -> !pto.partition_tensor_view<{window}xf32>
  pto.tload ins(%w : !pto.partition_tensor_view<{window}xf32>) outs(%t : {tile})
  return
}}
""")
    )


def test_a_constant_view() -> None:
    text = viewed("%c64, %c64", "%c64, %c1", "64x64", "%c16, %c0", "%c16, %c64", "16x64")
    shape, stride = "pto::Shape<1, 1, 1, 16, 64>", "pto::Stride<1024, 1024, 1024, 64, 1>"
    type = f"GlobalTensor<float, {shape}, {stride}, pto::Layout::ND>"
    in_order(text, "k(__gm__ float* %p,", f"{shape} %sh = {shape}();", f"{stride} %st = {stride}();",
             f"{type} %g = {type}(%p + (%z + %o * (unsigned) %r + %z * (unsigned) %c), %sh, %st);",
             "TLOAD(%t, %g);")  # fmt: skip
    assert has(text, "unsigned % = 0;") and has(text, "unsigned % = 16;")


def test_run_time_extents_and_strides() -> None:
    text = viewed("%n, %c64", "%s, %c1", "?x64", "%n, %c0", "%n, %c64", "?x64")
    shape, stride = "pto::Shape<1, 1, 1, -1, 64>", "pto::Stride<-1, -1, -1, -1, 1>"
    in_order(text, "int32_t %n, int32_t %s)", f"{shape} %sh = {shape}(%n);",
             f"{stride} %st = {stride}(%n * %s, %n * %s, %n * %s, %s);",
             "(% + (% + (unsigned) %n * (unsigned) %s + % * (unsigned) %), %sh, %st);")  # fmt: skip


def test_five_dimensions() -> None:
    text = viewed("%c1, %c1, %c1, %c16, %c64", "%n, %n, %n, %c64, %c1", "1x1x1x16x64",
                  "%c0, %c0, %c0, %c0, %c0", "%c1, %c1, %c1, %c16, %c64", "1x1x1x16x64")  # fmt: skip
    assert has(text, "pto::Stride<-1, -1, -1, 64, 1>(%n, %n, %n);")


def test_a_layout_the_author_chose() -> None:
    """One row of elements is both row and column major: nd and dn are equally right."""
    text = viewed("%c1, %c64", "%c64, %c1", "1x64", "%c0, %c0", "%c1, %c64", "1x64", " {layout = #pto.layout<dn>}",
                  "!pto.tile_buf<vec, 1x64xf32>")  # fmt: skip
    assert "pto::Layout::DN" in text


def test_sums_of_pointers_come_first() -> None:
    text = body(
        emit("""\
func.func @k(%p: !pto.ptr<f32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = arith.constant 0 : i64
  %q = pto.addptr %p, %n : !pto.ptr<f32> -> !pto.ptr<f32>
  %t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 1x64xf32>
  %v = pto.make_tensor_view %q, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<1x64xf32>
  pto.tload ins(%v : !pto.tensor_view<1x64xf32>) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
  return
}
""")
    )
    in_order(text, "(__gm__ float* %p, int32_t %n)", "__gm__ float* %q = %p + %n;", "GlobalTensor<", ">(%q, %, %);",
             "TLOAD(")  # fmt: skip


def test_64_bit_indices() -> None:
    program = """\
func.func @k(%p: !pto.ptr<f32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 1x64xf32>
  %v = pto.make_tensor_view %p, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>
  %w = pto.partition_view %v, offsets = [%n, %n], sizes = [%c1, %c64]
    : !pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<1x64xf32>
  pto.tload ins(%w : !pto.partition_tensor_view<1x64xf32>) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
  return
}
"""
    text = body(emit(program, index_type="int64_t"))
    assert "unsigned" not in text and "int32_t" not in text
    in_order(text, "int64_t %n) {", "(% + (% + %n * % + %n * %), %, %);")
