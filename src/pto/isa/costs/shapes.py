"""Operands in cost expressions, and the functions of these expressions: repeats, masks, bytes, products."""

from __future__ import annotations

from math import ceil, prod
from typing import Any, cast

from ..dtypes import DTYPES


class Shape:
    """An operand in cost expressions."""

    __slots__ = (
        "bits", "bytes", "cols", "const", "dims", "dtype", "elems", "kind", "layout", "loc", "rows", "v_col",
        "v_row",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        dtype: str = "",
        rows: int = 1,
        cols: int = 1,
        v_row: int | None = None,
        v_col: int | None = None,
        loc: str = "",
        layout: str = "",
        dims: tuple[int, ...] = (),
        const: Any = None,
    ) -> None:
        self.kind = kind
        self.dtype = dtype
        self.bits = DTYPES[dtype].bits if dtype in DTYPES else 32
        self.bytes = self.bits / 8
        self.rows, self.cols = rows, cols
        self.v_row = rows if v_row is None else v_row
        self.v_col = cols if v_col is None else v_col
        self.loc = loc
        self.layout = layout
        self.dims = dims
        self.elems = prod(dims) if dims else self.v_row * self.v_col
        self.const = const


def tile(
    dtype: str, rows: int, cols: int, v_row: int | None = None, v_col: int | None = None, loc: str = "vec",
    layout: str = "",
) -> Shape:  # fmt: skip
    """Return a tile, for estimates without a program."""
    return Shape("tile", dtype, rows, cols, v_row, v_col, loc, layout)


def view(dtype: str, *dims: int, layout: str = "ND") -> Shape:
    """Return a window of global memory, for estimates without a program."""
    rows, cols = (1, 1, *dims)[-2:]
    return Shape("view", dtype, rows, cols, dims=dims, layout=layout)


# -- functions of expressions ------------------------------------------------------------------------------


def _epr(t: Shape) -> int:
    """Return the number of elements of one repeat of 256 bytes."""
    return int(256 // max(t.bytes, 1))


def _dense(t: Shape) -> bool:
    return t.v_col == t.cols or t.v_row == 1


def _counted(t: Shape) -> bool:
    """Return True if an element-wise instruction counts elements instead of repeats, for ragged rows or many
    elements."""
    epr = _epr(t)
    if _dense(t):
        return (t.cols > epr and t.cols % epr != 0) or t.v_row * t.v_col > 255 * epr
    full = t.v_col // epr
    return full > 1 and t.v_row * full < 4


def _merged(t: Shape) -> int:
    """Return the repeats of an instruction with one tile."""
    epr = _epr(t)
    if not t.v_row or not t.v_col:
        return 0
    return ceil(t.v_row * t.v_col / epr) if _dense(t) else t.v_row * ceil(t.v_col / epr)


def _reps(t: Shape) -> int:
    """Return the repeats of an instruction with two tiles; narrow tiles take one repeat per row."""
    if t.cols < _epr(t) and t.v_row <= 255:
        return t.v_row if t.v_col else 0
    return _merged(t)


def _masked(t: Shape) -> int:
    """Return the cost of masks in an instruction with two tiles."""
    if t.cols < _epr(t) and t.v_row <= 255:
        return 16
    return 17 if _counted(t) else 0


def _unmerged(t: Shape) -> int:
    """Return the cost of masks in an instruction with one tile."""
    return 17 if _counted(t) else 0


def _blocks(t: Shape) -> int:
    """Return the repeats of one row."""
    return ceil(t.v_col / _epr(t))


def _full(t: Shape) -> int:
    """Return the whole repeats of one row."""
    return t.v_col // _epr(t)


def _rem(t: Shape) -> int:
    return 1 if t.v_col % _epr(t) else 0


_ROW_FIX = {(1, 0): 44, (1, 1): 75, (2, 0): 61, (2, 1): 93, (3, 1): 99, (4, 1): 104, (5, 1): 121}


def _rowfix(t: Shape) -> int:
    """Return the constant part of the cost of a row sum. It depends on the number of whole repeats in a row,
    and on whether a partial repeat remains."""
    n, rem = min(_full(t), 5), _rem(t)
    return _ROW_FIX.get((n, rem)) or _ROW_FIX[n, 1 - rem]


def _descriptors(v: Shape) -> int:
    """Return the number of transfers of a window of global memory: one per outer index, each a matrix or a
    fractal."""
    if v.kind != "view":
        return 1
    inner = 3 if v.layout in ("NZ", "NC1HWC0", "MX_A_ZZ", "MX_B_NN") else 2
    return max(1, prod(v.dims[:-inner]))


def _size(t: Shape) -> float:
    """Return the bytes of the valid region of a tile, or of a window."""
    return t.elems * t.bytes


def _stored(t: Shape) -> float:
    """Return the size in bytes of the whole tile. Moves between fractal memories transfer all of it."""
    return t.rows * t.cols * t.bytes if t.kind == "tile" else t.elems * t.bytes


def _cube(m: int, k: int, n: int, bits: int) -> float:
    """Return the cycles of a product: blocks of 16 rows, 16 columns and 32 bytes; 32-bit operands take two
    passes."""
    deep = max(1, 32 * 8 // max(bits, 8))
    return ceil(m / 16) * ceil(k / deep) * ceil(n / 16) * (2 if bits >= 32 else 1)


def _loops(*counts: Any) -> int:
    """Return the number of bursts of a DMA instruction: the product of its loop counts."""
    found = 1
    for count in counts:
        several = cast("list[Any]", count if isinstance(count, list) else [count])
        for one in several:
            value = one.const if isinstance(one, Shape) else one
            found *= value if isinstance(value, int) and value > 0 else 1
    return found


def _flat(t: Shape) -> bool:
    """Return True if a tile is contiguous, for instructions of the A5 vector core."""
    return t.v_row == 1 or t.v_col == t.cols


FUNCTIONS: dict[str, Any] = {
    "reps": _reps, "merged": _merged, "masked": _masked, "unmerged": _unmerged, "blocks": _blocks,
    "full": _full, "rem": _rem, "rowfix": _rowfix, "descriptors": _descriptors, "size": _size,
    "stored": _stored, "cube": _cube, "loops": _loops, "epr": _epr, "flat": _flat, "ceil": ceil,
    "round": round,
}  # fmt: skip
