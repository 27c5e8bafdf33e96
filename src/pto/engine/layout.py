"""Tile storage: a matrix of element codes to and from the bytes of a tile, for every tile layout.

The index arrays come from `pto.isa.tile.offset`, which is a sum of a row part and a column part; the native
module has its own formulas, and the tests compare the two. `compiled` is as in `pto.engine.elements`.

    form = TileForm("NZ", rows=32, cols=32, bits=16, box=(16, 16))
    data = pack(form, codes)              # bytes, zero in unused places
    codes = unpack(form, data, (30, 32))  # the valid 30 x 32 part
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..isa import tile
from . import elements
from .elements import Array


@dataclass(frozen=True, slots=True)
class TileForm:
    """Layout and physical shape of a tile in memory, without its contents.

    `column_pitch` is the number of rows between two column blocks (compact modes); None means `rows`.
    """

    layout: str
    rows: int
    cols: int
    bits: int
    box: tuple[int, int] = (1, 1)
    column_pitch: int | None = None

    def __post_init__(self) -> None:
        if self.layout not in tile.LAYOUT_PARTS:
            raise ValueError(
                f"unknown layout {self.layout!r}: expected one of {', '.join(tile.LAYOUT_PARTS)}"
            )
        if self.bits not in (4, 8, 16, 32, 64):
            raise ValueError(f"elements of {self.bits} bits cannot be stored: expected 4, 8, 16, 32 or 64")
        if min(self.rows, self.cols, *self.box, self.pitch) < 1:
            raise ValueError(f"rows, cols, box and column pitch must be positive, got {self}")

    @property
    def pitch(self) -> int:
        return self.rows if self.column_pitch is None else self.column_pitch


def size_bytes(form: TileForm, valid: tuple[int, int] | None = None) -> int:
    """Return the bytes from the start to the end of the last valid element; raise if elements overlap."""
    rows, cols = _check(form, valid)
    if not rows or not cols:
        return 0
    row, col = _offsets(form)
    last = int(row[:rows].max() + col[:cols].max())
    return -(-(last + 1) * form.bits // 8)


def pack(form: TileForm, matrix: Array, into: Array | None = None, *, compiled: bool | None = None) -> Array:
    """Store `matrix` (at most rows x cols elements) as bytes.

    `into` receives the bytes if given and keeps the ones that no element occupies; a fresh array has zeros
    there and is at least as large as the tile.
    """
    item = max(8, form.bits) // 8
    matrix = np.ascontiguousarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.itemsize != item:
        raise ValueError(f"expected a 2-D array of {item}-byte elements, got {matrix.dtype}{matrix.shape}")
    codes = matrix.view(f"u{item}")
    valid = (codes.shape[0], codes.shape[1])
    need = size_bytes(form, valid)
    if into is None:
        into = np.zeros(max(need, tile.size_bytes(form.rows, form.cols, form.bits)), np.uint8)
    _check_storage(into, need)
    if fast := elements.loops(compiled):
        fast.pack(codes, into, form.layout, form.rows, form.cols, *form.box, form.pitch, form.bits)
        return into
    at = _index(form, *valid)
    if form.bits == 4:
        nibbles = elements.unpack4(into, 2 * into.size, compiled=False)
        nibbles[at] = codes & 0xF
        into[:] = elements.pack4(nibbles, compiled=False)
    else:
        _typed(into, item)[at] = codes
    return into


def unpack(
    form: TileForm, storage: Array, valid: tuple[int, int] | None = None, *, compiled: bool | None = None
) -> Array:
    """Return the codes of the valid part (default: all) of a stored tile, as an unsigned matrix."""
    rows, cols = _check(form, valid)
    storage = np.ascontiguousarray(storage)
    _check_storage(storage, size_bytes(form, (rows, cols)))
    if fast := elements.loops(compiled):
        f = form
        return fast.unpack(storage, f.layout, f.rows, f.cols, *f.box, f.pitch, f.bits, rows, cols)
    at = _index(form, rows, cols)
    if form.bits == 4:
        return elements.unpack4(storage, 2 * storage.size, compiled=False)[at]
    return _typed(storage, form.bits // 8)[at]


def _check(form: TileForm, valid: tuple[int, int] | None) -> tuple[int, int]:
    """Return the valid shape; raise if it does not fit, or if two elements share a place."""
    rows, cols = (form.rows, form.cols) if valid is None else valid
    if not (0 <= rows <= form.rows and 0 <= cols <= form.cols):
        raise ValueError(f"valid part {rows} x {cols} does not fit a {form.rows} x {form.cols} tile")
    ir, ic = form.box
    whole_rows, whole_cols = -(-rows // ir) * ir, -(-cols // ic) * ic
    if form.layout in ("ZN", "ZZ") and rows > ir and whole_cols > form.cols:
        raise ValueError(f"{form.layout}: {form.cols} columns are not a multiple of the box's {ic}")
    held = {"DN": rows, "NZ": rows, "NN": whole_rows}.get(form.layout, 0)
    if held > form.pitch and cols > (1 if form.layout == "DN" else ic):
        raise ValueError(f"{form.layout}: a column pitch of {form.pitch} rows does not hold {held} rows")
    return rows, cols


def _check_storage(storage: Array, need: int) -> None:
    if storage.dtype != np.uint8 or storage.ndim != 1 or not storage.flags.c_contiguous:
        raise ValueError("storage must be a contiguous 1-D array of bytes")
    if storage.size < need:
        raise ValueError(f"storage has {storage.size} bytes, the tile needs {need}")


def _typed(storage: Array, item: int) -> Array:
    """Return the whole elements of byte storage."""
    return storage[: storage.size // item * item].view(f"u{item}")


@lru_cache(maxsize=256)
def _offsets(form: TileForm) -> tuple[Array, Array]:
    """Return the row part and the column part of every offset."""

    def at(r: int, c: int) -> int:
        return tile.offset(form.layout, form.rows, form.cols, form.box, r, c, form.column_pitch)

    return (
        np.array([at(r, 0) for r in range(form.rows)], np.intp),
        np.array([at(0, c) for c in range(form.cols)], np.intp),
    )


def _index(form: TileForm, rows: int, cols: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    row, col = _offsets(form)
    return row[:rows, None] + col[None, :cols]
