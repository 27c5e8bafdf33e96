"""Type texts: every accepted spelling, its canonical print, and the diagnostics of bad ones."""

from __future__ import annotations

import pytest
from tests.each import together

from pto.asm.type_text import TypeTextError, parse_type

LONG = "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=8, v_col=?, blayout=row_major, slayout=none_box, fractal=512, pad=1>"

CANONICAL = {
    LONG: "!pto.tile_buf<vec, 16x64xf32, valid=8x?, pad=1>",
    '!pto.tile_buf<"vec", 16 x 64 x f32, pad=1, valid=8x?>': "!pto.tile_buf<vec, 16x64xf32, valid=8x?, pad=1>",
    LONG.replace("v_col=?", "v_col=-1"): "!pto.tile_buf<vec, 16x64xf32, valid=8x?, pad=1>",
    "!pto.tile<f32, 16, 16>": "!pto.tile_buf<vec, 16x16xf32>",
    "!pto.tile<16x16xf32>": "!pto.tile_buf<vec, 16x16xf32>",
    "!pto.tile_buf<loc=vec, f32, 16, 16, RowMajor, NoneBox, None, Zero>": "!pto.tile_buf<vec, 16x16xf32, pad=1>",
    "!pto.tile<loc=acc, f32, 16, 16>": "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>",
    "!pto.tile_buf<mat, 16x16xf16, compact=2>": "!pto.tile_buf<mat, 16x16xf16, compact=2>",
    "!pto.tile_buf<vec, 16x32xf8E4M3>": "!pto.tile_buf<vec, 16x32xf8E4M3FN>",
    "!pto.tile_buf<vec, 16x32x!pto.hif8>": "!pto.tile_buf<vec, 16x32xhif8>",
    "!pto.ptr<f32, gm>": "!pto.ptr<f32>",
    "!pto.ptr<f32, vec>": "!pto.ptr<f32, ub>",
    "!pto.ptr<bf16, #pto.address_space<vec>>": "!pto.ptr<bf16, ub>",
    "!pto.tensor_view<?x16xf32>": "!pto.tensor_view<?x16xf32>",
    "!pto.partition_tensor_view<1x1x1x16x16xf32>": "!pto.partition_tensor_view<1x1x1x16x16xf32>",
    "!pto.vreg<64xf32>": "!pto.vreg<64xf32>",
    "!pto.vreg<256xui8>": "!pto.vreg<256xui8>",
    "!pto.vreg<256x!pto.f4E1M2x2>": "!pto.vreg<256x!pto.f4E1M2x2>",
    "!pto.ptr<!pto.f4E2M1x2, l1>": "!pto.ptr<!pto.f4E2M1x2, l1>",
    "!pto.ptr<f4E2M1FN>": "!pto.ptr<f4E2M1FN>",
    "!pto.tile_buf<vec, 16x64x!pto.f4E2M1x2>": "!pto.tile_buf<vec, 16x64xf4E2M1FN>",
    "!pto.mask<b16>": "!pto.mask<b16>",
    "!pto.mask": "!pto.mask",
    "!pto.align": "!pto.align",
    "!pto.eventid_array<4>": "!pto.eventid_array<4>",
    "!pto.async_session": "!pto.async_session",
    "!pto.memref<f32, 1x16x16>": "!pto.tensor_view<1x16x16xf32>",
    "memref<16x?xf32, strided<[64, 1], offset: ?>, #pto.address_space<vec>>": (
        "memref<16x?xf32, strided<[64, 1], offset: ?>, #pto.address_space<vec>>"
    ),
    "vector<4xi16>": "vector<4xi16>",
    "index": "index",
    "si8": "si8",
    "ui8": "ui8",
    "i7": "i7",
    "!other.thing<a, b>": "!other.thing<a, b>",
}


@together("text", CANONICAL)
def test_canonical_print_is_a_fixpoint(text: str) -> None:
    first = str(parse_type(text))
    assert first == CANONICAL[text]
    assert str(parse_type(first)) == first


BAD = {
    "!pto.tile_buff<vec, 16x16xf32>": ("PTO-E0109", "unknown type '!pto.tile_buff'", "tile_buf"),
    "!pto.tile_buf<vex, 16x16xf32>": ("PTO-E0112", "unknown loc: vex", "'vec'"),
    "!pto.tile_buf<vec, 16xf32>": ("PTO-E0110", "expected two shape dims", ""),
    "!pto.tile_buf<vec, ?x16xf32>": ("PTO-E0110", "expected static shape", "valid=?x?"),
    "!pto.tile_buf<vec, 16x16xf33>": ("PTO-E0109", "unknown element type 'f33'", "f32"),
    "!pto.tile_buf<vec, 16x16xf32, valid=16>": (
        "PTO-E0110",
        "expected two dims for valid",
        "valid=8x64",
    ),
    "!pto.tile_buf<vec, 16x16xf32, padd=1>": (
        "PTO-E0110",
        "unknown key in tile_buf compact syntax: padd",
        "'pad'",
    ),
    "!pto.tile_buf<vec, 16x16xf32, pad=1, pad=1>": ("PTO-E0110", "duplicate pad", ""),
    "!pto.tile_buf<vec, 16x16xf32, pad=9>": ("PTO-E0110", "unknown pad: 9", ""),
    "!pto.tile_buf<vec, 16x16xf32, compact=3>": ("PTO-E0110", "unknown compact: 3", ""),
    "!pto.tile_buf<vec, 99999999999999999999x16xf32>": ("PTO-E0104", "too large", ""),
    LONG.replace("fractal=512, ", ""): ("PTO-E0110", "expected 'fractal'", ""),
    LONG.replace("v_row=8", "v_row=x"): ("PTO-E0110", "v_row must be '?', -1, or a non-negative integer", ""),
    "!pto.vreg<128xf32>": ("PTO-E0402", "expected 256 bytes", "!pto.vreg<64xf32>"),
    "!pto.vreg<128x!pto.f4E1M2x2>": ("PTO-E0402", "expected 256 bytes", "!pto.vreg<256x!pto.f4E1M2x2>"),
    "!pto.vreg<512xf4E1M2FN>": ("PTO-E0402", "4-bit elements", "!pto.vreg<256x!pto.f4E1M2x2>"),
    "!pto.mask<b64>": ("PTO-E0110", "b8, b16 or b32", ""),
    "!pto.ptr<f32, ubb>": ("PTO-E0110", "unknown address space 'ubb'", "'ub'"),
    "!pto.eventid_array<0>": ("PTO-E0110", "positive count", ""),
    "!pto.tile_view<16x16xf32>": ("PTO-E0109", "unknown type", "partition_tensor_view"),
    "memref<4x4xf32, strided<[--5, 1]>>": ("PTO-E0110", "expected numbers or '?' as strides", ""),
    "memref<4x4xf32, strided<[1]>>": ("PTO-E0110", "expected 2 strides, one per dimension, got 1", ""),
    "memref<4xf32, affine_map<(i, j) -> (i)>>": ("PTO-E0110", "expected a map of 1 dimensions", ""),
    "!pto.align<4>": ("PTO-E0110", "takes no parameters", ""),
}


@together("text", BAD)
def test_bad_types_are_explained(text: str) -> None:
    code, message, help = BAD[text]
    with pytest.raises(TypeTextError) as caught:
        parse_type(text)
    error = caught.value
    assert (error.code, message in error.message, help in error.help) == (code, True, True), vars(error)
    assert 0 <= error.part[0] < error.part[1] <= len(text)
