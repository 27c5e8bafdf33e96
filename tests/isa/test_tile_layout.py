"""The storage formulas of tiles and the index maps of global tensors."""

from __future__ import annotations

import itertools

import pytest
from tests.each import together

from pto.isa.tile import (
    LAYOUT_PARTS,
    block_height,
    compact_pitch,
    inner_box,
    offset,
    pad_bits,
    size_bytes,
)
from pto.isa.view import element_offset, index5, matrix_shape, packed_scales

BOXED = ("NZ", "ZN", "ZZ", "NN")
CASES = [
    (layout, bits, fractal)
    for layout in LAYOUT_PARTS
    for bits in (4, 8, 16, 32, 64)
    for fractal in (512, 1024, 32)
    if layout in BOXED or fractal == 512
]


@together(("layout", "bits", "fractal"), CASES)
def test_a_whole_tile_is_dense(layout: str, bits: int, fractal: int) -> None:
    box = inner_box(bits, LAYOUT_PARTS[layout][1], fractal)
    rows, cols = (3 * box[0], 2 * box[1]) if layout in BOXED else (5, 7)
    offsets = [offset(layout, rows, cols, box, r, c) for r in range(rows) for c in range(cols)]
    assert sorted(offsets) == list(range(rows * cols))


@together(
    ("bits", "slayout", "fractal", "box"),
    [
        (32, "none_box", 512, (1, 1)),
        (32, "row_major", 512, (16, 8)),
        (16, "row_major", 512, (16, 16)),
        (8, "row_major", 512, (16, 32)),
        (4, "row_major", 512, (16, 64)),
        (16, "col_major", 512, (16, 16)),
        (32, "col_major", 512, (8, 16)),
        (32, "row_major", 1024, (16, 16)),
        (8, "row_major", 32, (16, 2)),
        (8, "col_major", 32, (2, 16)),
    ],
)
def test_inner_box(bits: int, slayout: str, fractal: int, box: tuple[int, int]) -> None:
    assert inner_box(bits, slayout, fractal) == box
    if fractal == 512 and slayout != "none_box":
        assert box[0] * box[1] * bits == 512 * 8


# Offsets worked out by hand for a 32 x 32 f16 tile with 16 x 16 boxes: element (17, 18).
@together(
    ("layout", "expected"),
    [("ND", 562), ("DN", 593), ("NZ", 512 + 256 + 18), ("ZN", 512 + 256 + 33), ("ZZ", 786), ("NN", 801)],
)
def test_known_offsets(layout: str, expected: int) -> None:
    box = (1, 1) if layout in ("ND", "DN") else (16, 16)
    assert offset(layout, 32, 32, box, 17, 18) == expected


def test_nz_and_zz_differ_where_blocks_do() -> None:
    assert offset("NZ", 32, 64, (16, 16), 16, 0) == 256
    assert offset("ZZ", 32, 64, (16, 16), 16, 0) == 64 * 16
    assert offset("NZ", 32, 64, (16, 16), 0, 16) == 32 * 16


def test_scales_are_compact_in_boxes_of_two_rows() -> None:
    """A right operand of 8 scales a column takes half of what 16 would."""
    assert compact_pitch("normal", 16, 8, block_height("NN", (2, 16))) == 8
    assert compact_pitch("normal", 16, 8, block_height("NZ", (16, 16))) == 16


@pytest.mark.parametrize(("mode", "pitch"), [("null", 64), ("normal", 32), ("row_plus_one", 33)])
def test_compact_pitch_moves_column_blocks(mode: str, pitch: int) -> None:
    assert compact_pitch(mode, 64, 20) == pitch
    assert offset("NZ", 64, 32, (16, 16), 0, 16, pitch) == pitch * 16
    used = [offset("NZ", 64, 32, (16, 16), r, c, pitch) for r in range(20) for c in range(32)]
    assert len(set(used)) == len(used)


def test_unknown_layout_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown layout 'XX'"):
        offset("XX", 1, 1, (1, 1), 0, 0)


def test_size_rounds_nibbles_up() -> None:
    assert [size_bytes(3, 3, b) for b in (4, 8, 16)] == [5, 9, 18]


def test_pad_patterns() -> None:
    assert pad_bits(2, "f16", "a5") == 0x7C00 and pad_bits(3, "f16", "cpu") == 0xFC00
    assert pad_bits(3, "i8", "cpu") == 0x80 and pad_bits(3, "u8", "a5") == 0 and pad_bits(2, "i64", "a5") == 0
    assert (
        pad_bits(0x1_BF80_0000, "f32", "a5") == 0xBF800000 and pad_bits(0x1_0000_FFFF, "i16", "a5") == 0xFFFF
    )
    assert pad_bits(0, "f32", "cpu") == pad_bits(1, "f32", "cpu") == 0
    assert pad_bits(2, "f4e2m1", "cpu") == 7 and pad_bits(2, "f4e2m1", "a5") == 0


# --- global tensors -------------------------------------------------------------------------------------

VIEWS = [
    ("ND", (2, 3, 2, 4, 5), 1, 2 * 3 * 2 * 4, 5),
    ("DN", (2, 3, 2, 4, 5), 1, 4, 2 * 3 * 2 * 5),
    ("NZ", (2, 3, 2, 16, 8), 8, 2 * 16, 2 * 3 * 8),
    ("NC1HWC0", (2, 3, 4, 5, 8), 8, 2 * 4 * 5, 3 * 8),
    ("FRACTAL_Z", (2, 3, 4, 6, 5), 1, 2 * 3 * 4 * 5, 6),
    ("MX_A_ZZ", (1, 2, 3, 16, 2), 2, 32, 6),
    ("MX_B_NN", (1, 2, 3, 16, 2), 2, 6, 32),
    ("MX_A_ND", (1, 1, 4, 3, 2), 2, 4, 6),
    ("MX_A_DN", (1, 1, 3, 4, 2), 2, 4, 6),
    ("MX_B_ND", (1, 1, 4, 3, 2), 2, 8, 3),
    ("MX_B_DN", (1, 1, 3, 4, 2), 2, 8, 3),
]


def dense(shape: tuple[int, ...], last: int = 1) -> list[int]:
    strides = [last]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return strides


@together(("layout", "shape", "c0", "rows", "cols"), VIEWS)
def test_view_index_is_a_bijection(
    layout: str, shape: tuple[int, ...], c0: int, rows: int, cols: int
) -> None:
    cells = list(itertools.product(range(rows), range(cols)))
    indexes = {index5(layout, r, c, shape, c0) for r, c in cells}
    assert indexes == set(itertools.product(*(range(n) for n in shape)))
    offsets = sorted(element_offset(layout, r, c, shape, dense(shape), c0) for r, c in cells)
    assert offsets == list(range(rows * cols))


def test_ndc1hwc0_adds_the_innermost_channel() -> None:
    shape, c0 = (2, 3, 4, 2, 5), 8
    rows, cols = 2 * 2 * 5, 3 * 4 * c0
    cells = itertools.product(range(rows), range(cols))
    got = sorted(element_offset("NDC1HWC0", r, c, shape, dense(shape, c0), c0) for r, c in cells)
    assert got == list(range(rows * cols))


def shape2d(layout: str, rows: int, cols: int, c0: int) -> tuple[list[int], list[int]]:
    """5-D shape and strides of a dense `rows` x `cols` matrix (TileShape2D / BaseShape2D)."""
    rc = rows * cols
    table: dict[str, tuple[list[int], list[int]]] = {
        "ND": ([1, 1, 1, rows, cols], [rc, rc, rc, cols, 1]),
        "DN": ([1, 1, 1, rows, cols], [rc, rc, rc, 1, rows]),
        "NZ": ([1, cols // c0, rows // 16, 16, c0], [rc, rows * c0, 16 * c0, c0, 1]),
        "MX_A_ZZ": ([1, rows // 16, cols // 2, 16, 2], [rc, cols * 16, 32, 2, 1]),
        "MX_A_ND": ([1, 1, rows, cols // 2, 2], [rc, rc, cols, 2, 1]),
        "MX_A_DN": ([1, 1, cols // 2, rows, 2], [rc, rc, rows * 2, 2, 1]),
        "MX_B_NN": ([1, cols // 16, rows // 2, 16, 2], [rc, rows * 16, 32, 2, 1]),
        "MX_B_ND": ([1, 1, rows // 2, cols, 2], [rc, rc, cols * 2, 2, 1]),
        "MX_B_DN": ([1, 1, cols, rows // 2, 2], [rc, rc, rows, 2, 1]),
    }
    return table[layout]


@together("layout", ["ND", "DN", "NZ", "MX_A_ZZ", "MX_A_ND", "MX_A_DN", "MX_B_NN", "MX_B_ND", "MX_B_DN"])
def test_shape2d_is_dense(layout: str) -> None:
    rows, cols, c0 = 32, 48, 16
    shape, strides = shape2d(layout, rows, cols, c0)
    cells = itertools.product(range(rows), range(cols))
    got = sorted(element_offset(layout, r, c, shape, strides, c0) for r, c in cells)
    assert got == list(range(rows * cols))


def test_nz_view_and_nz_tile_agree() -> None:
    shape, strides = shape2d("NZ", 32, 48, 16)
    for r, c in itertools.product(range(32), range(48)):
        assert element_offset("NZ", r, c, shape, strides, 16) == offset("NZ", 32, 48, (16, 16), r, c)


def test_scales_given_by_rows_and_columns_are_packed() -> None:
    for layout in ("MX_A_ZZ", "MX_A_ND", "MX_A_DN", "MX_B_NN", "MX_B_ND", "MX_B_DN"):
        rows, cols = (32, 4) if "_A_" in layout else (4, 32)
        found = packed_scales(layout, (rows, cols), (rows, cols))
        assert found is not None
        assert matrix_shape(layout, found[0]) == (rows, cols)
        at = [element_offset(layout, r, c, *found) for r in range(rows) for c in range(cols)]
        assert sorted(at) == list(range(rows * cols))
    assert packed_scales("ND", (32, 4), (32, 4)) is None
    assert packed_scales("MX_A_ZZ", (1, 2, 2, 16, 2), (1, 2, 2, 16, 2)) is None
