"""Global tensors: the layouts of GM data, and the map from a 2-D tile index to a 5-D global tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod

from .record import Record

Index5 = tuple[int, int, int, int, int]


def _nd(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return r // (s[1] * s[2] * s[3]), r // (s[3] * s[2]) % s[1], r // s[3] % s[2], r % s[3], c


def _dn(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return c // (s[1] * s[2] * s[4]), c // (s[4] * s[2]) % s[1], c // s[4] % s[2], r, c % s[4]


def _nz(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    b = c // s[4]
    return b // s[1], b % s[1], r // s[3], r % s[3], c % s[4]


def _nc1hwc0(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return r // (s[2] * s[3]), c // s[4], r // s[3] % s[2], r % s[3], c % s[4]


def _ndc1hwc0(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return r // (s[3] * s[4]), c // (s[2] * c0), c // c0 % s[2], r // s[4] % s[3], r % s[4]


def _fractal_z(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return r // (s[1] * s[2] * s[4]), r // (s[2] * s[4]) % s[1], r // s[4] % s[2], c, r % s[4]


def _nchw(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return r // (s[1] * s[3] * s[4]), r // (s[3] * s[4]) % s[1], c, r // s[4] % s[3], r % s[4]


def _ncdhw(r: int, c: int, s: Sequence[int], c0: int) -> Index5:
    return r // (s[2] * s[3] * s[4]), c, r // (s[3] * s[4]) % s[2], r // s[4] % s[3], r % s[4]


_MAPS: dict[str, Callable[[int, int, Sequence[int], int], Index5]] = {
    "ND": _nd,
    "DN": _dn,
    "NZ": _nz,
    "NC1HWC0": _nc1hwc0,
    "NDC1HWC0": _ndc1hwc0,
    "FRACTAL_Z": _fractal_z,
    "NHWC": _nd,
    "NCHW": _nchw,
    "GNCHW": _nchw,
    "NCDHW": _ncdhw,
    "MX_A_ZZ": lambda r, c, s, c0: (0, r // 16, c // 2, r % 16, c % 2),
    "MX_B_NN": lambda r, c, s, c0: (0, c // 16, r // 2, c % 16, r % 2),
    "MX_A_ND": lambda r, c, s, c0: (0, 0, r, c // 2, c % 2),
    "MX_A_DN": lambda r, c, s, c0: (0, 0, c // 2, r, c % 2),
    "MX_B_ND": lambda r, c, s, c0: (0, 0, r // 2, c, r % 2),
    "MX_B_DN": lambda r, c, s, c0: (0, 0, c, r // 2, r % 2),
}


def index5(layout: str, r: int, c: int, shape: Sequence[int], c0: int = 1) -> Index5:
    """Return the 5-D index of tile element (r, c). `c0` (elements in 32 bytes) is only used for NDC1HWC0."""
    return _MAPS[layout](r, c, shape, c0)


def element_offset(
    layout: str, r: int, c: int, shape: Sequence[int], strides: Sequence[int], c0: int = 1
) -> int:
    """Return the GM element offset of tile element (r, c) of a strided 5-D tensor."""
    at = sum(i * st for i, st in zip(index5(layout, r, c, shape, c0), strides, strict=True))
    return at + (c % c0 if layout == "NDC1HWC0" else 0)


#: Layout -> dimensions whose product is the number of rows, and of columns, of its matrix.
_EXTENTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "ND": ((0, 1, 2, 3), (4,)),
    "NHWC": ((0, 1, 2, 3), (4,)),
    "DN": ((3,), (0, 1, 2, 4)),
    "NZ": ((2, 3), (0, 1, 4)),
    "NC1HWC0": ((0, 2, 3), (1, 4)),
    "NDC1HWC0": ((0, 3, 4), (1, 2)),
    "FRACTAL_Z": ((0, 1, 2, 4), (3,)),
    "NCHW": ((0, 1, 3, 4), (2,)),
    "GNCHW": ((0, 1, 3, 4), (2,)),
    "NCDHW": ((0, 2, 3, 4), (1,)),
    "MX_A_ZZ": ((1, 3), (2, 4)),
    "MX_B_NN": ((2, 4), (1, 3)),
    "MX_A_ND": ((2,), (3, 4)),
    "MX_A_DN": ((3,), (2, 4)),
    "MX_B_ND": ((2, 4), (3,)),
    "MX_B_DN": ((3, 4), (2,)),
}


def matrix_shape(layout: str, shape: Sequence[int], c0: int = 1) -> tuple[int, int]:
    """Return rows and columns of the matrix of a 5-D tensor with a layout."""
    rows, cols = [prod([shape[d] for d in dims]) for dims in _EXTENTS[layout]]
    return rows, cols * c0 if layout == "NDC1HWC0" else cols


#: Sizes of a load into L1 that come from the view, by legality column and the layouts of tile and view. All
#: other sizes come from the valid region. Loads of A2 and A3 that make fractals use both extents of the view.
#: Loads of A5 take the number of rows from the view (of columns for column-major matrices and fractals), and
#: the width from the tile.
_FROM_VIEW: dict[str, dict[tuple[str, str], tuple[bool, bool]]] = {
    "a2a3": {("NZ", "ND"): (True, True), ("ZN", "DN"): (True, True)},
    "a5": {
        ("NZ", "ND"): (True, False), ("NZ", "DN"): (True, False), ("ND", "ND"): (True, False),
        ("DN", "DN"): (False, True), ("ZN", "DN"): (False, True), ("NZ", "NZ"): (False, True),
        ("ZZ", "MX_A_ZZ"): (True, True), ("NN", "MX_B_NN"): (True, True),
    },
}  # fmt: skip
#: Loads of scales that use only one stride of a view, and not its extents.
_BY_STRIDE = ("MX_A_ND", "MX_A_DN", "MX_B_ND", "MX_B_DN")


def loaded(
    isa: str, loc: str, tile: str, view: str, valid: tuple[int, int], extent: tuple[int, int]
) -> tuple[int, int]:
    """Return the rows and columns that a load moves, for a tile in memory `loc` with a layout, the layout of
    the view, the valid region of the tile, and the extent of the view."""
    by_view = _FROM_VIEW.get(isa, {}).get((tile, view), (False, False)) if loc == "mat" else (False, False)
    rows, cols = (e if from_view else v for from_view, v, e in zip(by_view, valid, extent, strict=True))
    return rows, cols


def is_bounded(isa: str, layout: str) -> bool:
    """Return True if a load stays within the extents of a view with this layout."""
    return isa == "cpu" or layout not in _BY_STRIDE


#: Extents and strides of a packed matrix of scales, from its rows and columns.
_PACKED: dict[str, Callable[[int, int], tuple[Index5, Index5]]] = {
    "MX_A_ZZ": lambda r, c: ((1, r // 16, c // 2, 16, 2), (r * c, c * 16, 32, 2, 1)),
    "MX_A_ND": lambda r, c: ((1, 1, r, c // 2, 2), (r * c, r * c, c, 2, 1)),
    "MX_A_DN": lambda r, c: ((1, 1, c // 2, r, 2), (r * c, r * c, 2 * r, 2, 1)),
    "MX_B_NN": lambda r, c: ((1, c // 16, r // 2, 16, 2), (r * c, r * 16, 32, 2, 1)),
    "MX_B_ND": lambda r, c: ((1, 1, r // 2, c, 2), (r * c, r * c, 2 * c, 2, 1)),
    "MX_B_DN": lambda r, c: ((1, 1, c, r // 2, 2), (r * c, r * c, r, 2, 1)),
}


def is_packed(layout: str, rank: int) -> bool:
    """Return True if a view with this layout has scales that are given only by rows and columns."""
    return layout in _PACKED and rank == 2


def packed_scales(
    layout: str, dims: Sequence[int], whole: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return five extents and strides of a window of scales that is given only by rows and columns, in a view
    of extents `whole`; None for any other window."""
    made = _PACKED.get(layout)
    if made is None or len(dims) != 2 or len(whole) != 2:
        return None
    return made(*dims)[0], made(*whole)[1]


# -- views without a layout -------------------------------------------------------------------------------

#: An extent or stride: a number, or an object for an unknown value, which is equal only to itself.
Extent = object


class Strided(Record):
    """Layouts that shape and strides of a view imply.

    `layout` is the layout to assume; `either` is True if rows and columns are the same bytes in ND and DN;
    `fits` are the layouts that the strides do not contradict.
    """

    layout: str
    either: bool
    fits: frozenset[str]


@lru_cache(maxsize=4096)
def strided(shape: tuple[Extent, ...], strides: tuple[Extent, ...], bits: int) -> Strided:
    """Return the layout of a view by its shape and strides: NZ for boxes of 512 bytes, else by its last two
    dimensions. Adjacent columns are ND and adjacent rows DN, without gaps between rows (columns); anything
    else counts as ND."""
    s = (1, 1, 1, 1, *shape)[-5:]
    rows, cols = s[3:]
    col_step = strides[-1] if strides else 1
    row_step = strides[-2] if len(strides) > 1 else cols
    nd = (cols == 1 or col_step == 1) and (rows == 1 or row_step == (1 if cols == 1 else cols))
    dn = (rows == 1 or row_step == 1) and (cols == 1 or col_step == (1 if rows == 1 else rows))
    boxed = isinstance(s[3], int) and col_step == 1 and row_step == cols
    nz: bool = boxed and s[2] == 16 and 16 * s[3] * bits == 512 * 8  # type: ignore[operator]
    fits: dict[str, bool] = {
        "ND": cols == 1 or col_step == 1 or not dn,
        "DN": rows == 1 or row_step == 1,
        "NZ": nz or (boxed and isinstance(cols, int) and cols * bits == 32 * 8),
    }
    layout = "NZ" if nz else "DN" if dn and (not nd or (cols == 1 and rows != 1)) else "ND"
    return Strided(layout, nd and dn and not nz, frozenset(name for name, ok in fits.items() if ok))


#: Layout of a tile -> the layout of global memory with the same order.
_HELD = {"ND": "ND", "DN": "DN", "NZ": "NZ"}
_HELD_SCALES = {**_HELD, "ZZ": "MX_A_ZZ", "NN": "MX_B_NN"}


def window_layout(
    window: Strided, dims: Sequence[int], bits: int, tile: str, valid: tuple[int, int], scales: bool
) -> str:
    """Return the layout of a window (five extents) without a given layout, at a load or store of a tile.

    The shapes decide if possible: the window has the layout in which it is exactly the valid region of the
    tile.
    """
    held = (_HELD_SCALES if scales else _HELD).get(tile)
    if held is None or prod(dims[:3]) == 1:
        return window.layout
    c0 = 32 * 8 // bits
    if matrix_shape("ND", dims, c0) == valid:
        return "ND" if window.layout == "NZ" else window.layout
    return held if matrix_shape(held, dims, c0) == valid else window.layout
