"""Tile types of the instruction set for tiles of the language, with layout and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.types import I1, INDEX, ScalarType, TileBufType
from ...isa.dtypes import DTYPES
from ...isa.profiles import Profile
from ...isa.tile import DEFAULT_CONFIG, block_elements, inner_box
from ..dtypes import BOOL, DATA_TYPES, DataType
from ..ir import TileType, index


def element(dtype: DataType) -> ScalarType:
    """Return the type of an element or a scalar."""
    if dtype.isa in ("index", "task"):
        return INDEX
    return I1 if dtype.isa == "i1" else ScalarType(DTYPES[dtype.isa].mlir)


def number(dtype: DataType) -> ScalarType:
    """Return the type of a scalar; integers are signless."""
    found = element(dtype)
    return ScalarType(found.text.removeprefix("u")) if found.text.startswith("ui") else found


def two_dimensions(dims: Sequence[Any]) -> tuple[Any, Any]:
    """Return rows and columns; leading dimensions are merged into rows."""
    dims = list(dims)
    if len(dims) == 1:
        return 1, dims[0]
    rows: Any = 1
    for d in dims[:-1]:
        rows = rows * d if rows != 1 else d
    return rows, dims[-1]


def tile_type(type: TileType, profile: Profile, pad: int = 0) -> TileBufType:
    """Return a tile type of the size that its layout needs; the valid region has `None` for dynamic
    extents."""
    rows, cols = two_dimensions([index.known(d) for d in type.shape])
    valid = [index.known(d) for d in type.extent]
    v_row, v_col = two_dimensions(valid) if all(v is not None for v in valid) else _dynamic(type)
    if type.dtype == BOOL:
        return _mask(rows, cols, v_row)
    blayout, slayout, fractal = DEFAULT_CONFIG[type.scales or type.space]
    if type.space == "left":
        blayout = profile.left_blayout
    elem = element(type.dtype)
    if type.space == "mat" and type.flat:
        blayout, slayout, fractal = DEFAULT_CONFIG["bias"]
    if slayout == "none_box":
        line = block_elements(type.dtype.bits) * (2 if type.flat or type.space == "bias" else 1)
        if type.space == "vec" and cols == 1:
            blayout, rows = "col_major", -(-rows // line) * line
        else:
            cols = -(-cols // line) * line
    else:
        if type.space == "mat" and not type.scales:
            if type.transposed:
                blayout, slayout = "row_major", "col_major"
            # the layout that Left and Right need
            down = across = max(inner_box(type.dtype.bits, slayout, fractal))
        else:
            down, across = inner_box(type.dtype.bits, slayout, fractal)
        rows, cols = -(-rows // down) * down, -(-cols // across) * across
    return TileBufType(elem, type.space, rows, cols, v_row, v_col, blayout, slayout, fractal, pad)


def _mask(rows: int, cols: int, v_row: int | None) -> TileBufType:
    """Return a tile of predicates, 8 to a byte in whole blocks; the predicates of a column form a row."""
    if cols == 1:
        rows, cols, v_row = 1, rows, 1
    bytes_ = -(-cols // 8)
    wide = (bytes_ + 31) // 32 * 32
    return TileBufType(element(DATA_TYPES["UINT8"]), "vec", rows, wide, v_row, bytes_)


def _dynamic(type: TileType) -> tuple[int | None, int | None]:
    """Return the number of rows and of columns, None if dynamic."""
    lead = [index.known(d) for d in type.extent[:-1]]
    rows: int | None = 1
    for d in lead:
        rows = None if rows is None or d is None else rows * d
    return rows, index.known(type.extent[-1])
