"""Tile storage: NumPy and native against the storage formula, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from tests.each import each

from pto.engine.layout import TileForm, pack, size_bytes, unpack
from pto.isa import tile

BACKENDS = [False, True]
ITEM = {4: "u1", 8: "u1", 16: "u2", 32: "u4", 64: "u8"}


def forms(layout: str, bits: int) -> list[tuple[TileForm, tuple[int, int]]]:
    """Tiles of one layout with whole and ragged valid parts."""
    out: list[tuple[TileForm, tuple[int, int]]] = []
    for fractal in (512, 1024, 32):
        ir, ic = tile.inner_box(bits, tile.LAYOUT_PARTS[layout][1], fractal)
        if (ir, ic) == (1, 1):
            form = TileForm(layout, 6, 10, bits)
            out += [(form, v) for v in ((6, 10), (5, 3), (1, 10), (6, 1), (0, 4))]
            if layout == "DN":
                out.append((TileForm(layout, 6, 10, bits, column_pitch=9), (6, 7)))
            continue
        rows, cols = 3 * ir, 2 * ic
        form = TileForm(layout, rows, cols, bits, (ir, ic))
        out += [(form, v) for v in ((rows, cols), (rows - 1, cols), (ir + 1, ic + 1), (1, 1), (3, cols - 1))]
        if layout in ("NZ", "NN"):
            valid = (ir + 3, cols - 1)
            for mode in ("normal", "row_plus_one"):
                pitch = tile.compact_pitch(mode, rows, valid[0])
                if layout == "NZ" or pitch >= 2 * ir:
                    out.append((TileForm(layout, rows, cols, bits, (ir, ic), pitch), valid))
    return out


each_layout = pytest.mark.parametrize("layout", tile.LAYOUT_PARTS)


def cases(layout: str) -> list[tuple[TileForm, tuple[int, int]]]:
    return [case for bits in ITEM for case in forms(layout, bits)]


def sample(form: TileForm, valid: tuple[int, int]) -> np.ndarray:
    top = (1 << form.bits) - 1
    return np.random.default_rng(7).integers(0, top, valid, np.uint64, endpoint=True).astype(ITEM[form.bits])


def element(data: bytes, bits: int, at: int) -> int:
    if bits == 4:
        return data[at // 2] >> (4 * (at % 2)) & 15
    size = bits // 8
    return int.from_bytes(data[at * size : (at + 1) * size], "little")


@pytest.mark.parametrize("compiled", BACKENDS)
@each_layout
def test_every_element_is_where_the_formula_says(layout: str, compiled: bool) -> None:
    each(elements_follow_the_formula, ((form, valid, compiled) for form, valid in cases(layout)))


def elements_follow_the_formula(form: TileForm, valid: tuple[int, int], compiled: bool) -> None:
    matrix = sample(form, valid)
    storage = pack(form, matrix, compiled=compiled)
    data = storage.tobytes()
    used = set()
    for r in range(valid[0]):
        for c in range(valid[1]):
            at = tile.offset(form.layout, form.rows, form.cols, form.box, r, c, form.column_pitch)
            used.add(at)
            assert element(data, form.bits, at) == matrix[r, c], (r, c)
    assert len(used) == valid[0] * valid[1]
    assert not used or size_bytes(form, valid) == -(-(max(used) + 1) * form.bits // 8)
    assert len(data) >= tile.size_bytes(form.rows, form.cols, form.bits)
    rest = [i for i in range(len(data) * 8 // form.bits) if i not in used]
    assert not any(element(data, form.bits, i) for i in rest)
    np.testing.assert_array_equal(unpack(form, storage, valid, compiled=compiled), matrix)


@each_layout
def test_packing_into_memory_keeps_the_rest(layout: str) -> None:
    each(the_rest_is_kept, cases(layout))


def the_rest_is_kept(form: TileForm, valid: tuple[int, int]) -> None:
    matrix = sample(form, valid)
    size = max(1, size_bytes(form, valid)) + 3
    before = np.random.default_rng(9).integers(0, 255, size, np.uint8, endpoint=True)
    a, b = before.copy(), before.copy()
    assert pack(form, matrix, a, compiled=False) is a
    assert pack(form, matrix, b, compiled=True) is b
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a[-2:], before[-2:])
    np.testing.assert_array_equal(unpack(form, a, valid, compiled=True), matrix)
    np.testing.assert_array_equal(unpack(form, a, valid, compiled=False), matrix)


@pytest.mark.parametrize("compiled", BACKENDS)
def test_any_element_type_of_the_right_size(compiled: bool) -> None:
    matrix = np.arange(32, dtype=np.float32).reshape(4, 8)
    form = TileForm("DN", 4, 8, 32)
    storage = pack(form, matrix, compiled=compiled)
    np.testing.assert_array_equal(storage.view(np.float32).reshape(8, 4).T, matrix)
    np.testing.assert_array_equal(
        pack(form, matrix[::-1], compiled=compiled).view(np.float32)[:4], matrix[::-1, 0]
    )


@pytest.mark.parametrize("compiled", BACKENDS)
def test_unaligned_storage(compiled: bool) -> None:
    form = TileForm("NZ", 16, 16, 32, (16, 8))
    raw = np.zeros(16 * 16 * 4 + 1, np.uint8)
    matrix = sample(form, (16, 16))
    pack(form, matrix, raw[1:], compiled=compiled)
    np.testing.assert_array_equal(unpack(form, raw[1:], compiled=compiled), matrix)


@pytest.mark.parametrize("compiled", BACKENDS)
def test_bad_arguments_are_value_errors(compiled: bool) -> None:
    form = TileForm("NZ", 32, 32, 16, (16, 16))
    good = np.zeros((32, 32), np.uint16)
    for call, text in [
        (lambda: TileForm("XY", 1, 1, 8), "unknown layout 'XY'"),
        (lambda: TileForm("ND", 1, 1, 12), "12 bits"),
        (lambda: TileForm("ND", 0, 1, 8), "must be positive"),
        (lambda: pack(form, np.zeros((33, 1), np.uint16), compiled=compiled), "does not fit"),
        (lambda: pack(form, np.zeros((2, 2), np.uint8), compiled=compiled), "2-byte elements"),
        (lambda: pack(form, good, np.zeros(2047, np.uint8), compiled=compiled), "has 2047 bytes"),
        (lambda: pack(form, good, np.zeros(1024, np.uint16), compiled=compiled), "array of bytes"),
        (lambda: unpack(form, np.zeros(9, np.uint8), compiled=compiled), "has 9 bytes"),
        (lambda: unpack(form, np.zeros(2048, np.uint8), (1, 40), compiled=compiled), "does not fit"),
        (lambda: size_bytes(TileForm("ZZ", 32, 24, 16, (16, 16))), "not a multiple"),
        (lambda: size_bytes(TileForm("NZ", 32, 32, 16, (16, 16), 16)), "does not hold"),
        (lambda: size_bytes(TileForm("NN", 20, 32, 16, (16, 16))), "does not hold"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
