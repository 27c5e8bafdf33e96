"""Text for values: numbers, tiles, views, pointers, vector registers, masks; in a line, or as a matrix.

A place with elements is a matrix (`ValueMatrix`), of which a part is read. Elements are printed by their type
or as bits; elements outside the valid region of a tile follow a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...ir.types import MaskType, Type
from ...isa.dtypes import DTYPES
from .. import elements
from ..access import Place
from ..elements import Array
from ..memory import Buffer, ConvTile, Pointer, Tile, View
from ..reference.fifo import Ends
from ..region import load_at
from ..registers import GRANULES, WIDTH, Align, Register
from .expressions import ExpressionError, Slice

#: Default rows and columns of a matrix, and the limit for displayed elements.
ROWS, COLS = 8, 8
MOST = 4096
#: Rows and columns of every operand at a stop.
CORNER = 2, 4

PLACES = (Tile, View, ConvTile, Pointer, Register)


class ValueMatrix:
    """The elements of a place as rows and columns. A view of more dimensions has one row for each index of
    all but the last; a pointer is one row, up to the end of its memory."""

    def __init__(self, place: Place, type: Type | None = None) -> None:
        self.place = place
        self.dtype = place.dtype
        self.bits = DTYPES[place.dtype].bits
        self.valid: tuple[int, int] | None = None
        self.dims: tuple[int, ...]
        if isinstance(place, Tile):
            self.dims = place.shape
            self.valid = place.valid
        elif isinstance(place, View | ConvTile):
            self.dims = place.dims or (1,)
        elif isinstance(place, Register):
            self.dims = (place.lanes,)
        else:
            left = place.buffer.data.size - place.offset
            self.dims = (max(0, left * 8 // self.bits),)
        self.step = 1
        if isinstance(type, MaskType):  # a lane has as many bits as its element has bytes; the first counts
            self.step = GRANULES.get(type.gran or "", 1)
            self.dims = (WIDTH // self.step,)

    @property
    def shape(self) -> tuple[int, int]:
        return prod(self.dims[:-1]), self.dims[-1]

    def codes(self, rows: range, cols: range) -> Array:
        """Return bits of elements; raise if they are outside memory."""
        place = self.place
        kind = elements.code_dtype(self.dtype)
        try:
            if isinstance(place, Register):
                array = np.ascontiguousarray(place.array).view(kind).reshape(1, -1)
                return array[:, :: self.step][rows.start : rows.stop, cols.start : cols.stop]
            if isinstance(place, Tile | ConvTile):
                if place.address is None:
                    raise ExpressionError(f"%{place.name} has no address yet")
                region = place.region(len(rows), len(cols), rows.start, cols.start)
                return region.load(place.buffer.data, kind)
            strides = place.strides if isinstance(place, View) else (1,)
            return load_at(
                place.buffer.data, place.offset, self._offsets(rows, cols, strides), self.bits, kind
            )
        except (IndexError, ValueError):
            raise ExpressionError(f"lies outside of {place.buffer.name}") from None

    def _offsets(self, rows: range, cols: range, strides: Sequence[int]) -> Array:
        at = np.arange(rows.start, rows.stop, dtype=np.int64)
        down = np.zeros_like(at)
        for size, stride in zip(reversed(self.dims[:-1]), reversed(strides[:-1]), strict=True):
            at, index = np.divmod(at, size)
            down += index * stride
        across = np.arange(cols.start, cols.stop, dtype=np.int64) * (strides[-1] if strides else 1)
        return (down[:, None] + across).astype(np.intp)

    def numbers(self, rows: range, cols: range) -> Array:
        return elements.decode(self.dtype, np.ascontiguousarray(self.codes(rows, cols)))

    # -- parts -----------------------------------------------------------------------------------------

    def part(self, slices: Sequence[Slice]) -> tuple[range, range]:
        """Return the rows and columns of indices; of several leading indices, the first counts for all
        rows."""
        rows, cols = self.shape
        if not slices:
            return range(rows), range(cols)
        if len(slices) == 1 and len(self.dims) == 1:
            return range(rows), self._range(slices[0], cols, "element")
        if len(slices) > max(2, len(self.dims)):
            raise ExpressionError(f"has {len(self.dims)} dimensions, got {len(slices)} indices")
        if len(slices) == 1:
            return self._range(slices[0], rows, "row"), range(cols)
        if len(slices) == 2 and len(self.dims) != 2:
            return self._range(slices[0], rows, "row"), self._range(slices[1], cols, "column")
        if len(slices) != len(self.dims):
            raise ExpressionError(f"has {len(self.dims)} dimensions, got {len(slices)} indices")
        return self._rows(slices[:-1]), self._range(slices[-1], cols, "column")

    def _rows(self, slices: Sequence[Slice]) -> range:
        found = range(1)
        for n, (s, size) in enumerate(zip(slices, self.dims[:-1], strict=True)):
            if len(found) != 1:
                raise ExpressionError(
                    "takes a range only in the last of the leading dimensions with an index"
                )
            mine = self._range(s, size, "row" if len(self.dims) == 2 else f"index {n}:")
            found = range(found.start * size + mine.start, found.start * size + mine.stop)
        return found

    @staticmethod
    def _range(s: Slice, size: int, what: str) -> range:
        if s.single:
            assert s.start is not None
            if not 0 <= s.start < size:
                raise ExpressionError(f"{what} {s.start} is outside 0..{size - 1}")
            return range(s.start, s.start + 1)
        start, stop = s.start or 0, size if s.stop is None else s.stop
        if not 0 <= start <= stop:
            raise ExpressionError(f"expected a range of {what}s, got {start}:{stop}")
        return range(min(start, size), min(stop, size))

    def element(self, slices: Sequence[Slice]) -> tuple[int, int]:
        """Return the one element that indices name."""
        if not slices and self.shape == (1, 1):
            return 0, 0
        if not slices or not all(s.single for s in slices):
            raise ExpressionError("name one element, as in %t[0, 3]")
        rows, cols = self.part(slices)
        if len(rows) != 1 or len(cols) != 1:
            raise ExpressionError("name one element, as in %t[0, 3]")
        return rows.start, cols.start

    def bytes(self, rows: range, cols: range) -> Array:
        """Return every byte of a part, in no particular order."""
        place = self.place
        if isinstance(place, Tile | ConvTile):
            return place.region(len(rows), len(cols), rows.start, cols.start).byte_offsets()
        strides = place.strides if isinstance(place, View) else (1,)
        at = place.offset + self._offsets(rows, cols, strides).ravel() * self.bits // 8
        return (at[:, None] + np.arange(max(8, self.bits) // 8)).ravel()

    def byte(self, row: int, col: int) -> tuple[Buffer, int, int]:
        """Return the location of an element: its buffer, its first byte and the byte after its last."""
        place = self.place
        if isinstance(place, Tile | ConvTile):
            if place.address is None:
                raise ExpressionError(f"%{place.name} has no address yet")
            low, high = place.region(1, 1, row, col).bounds
            return place.buffer, low, high
        if isinstance(place, Register):
            raise ExpressionError(
                "cannot watch a register, which is written only once: break at the line that makes it"
            )
        strides = place.strides if isinstance(place, View) else (1,)
        at = int(self._offsets(range(row, row + 1), range(col, col + 1), strides)[0, 0]) * self.bits
        low = place.offset + at // 8
        return place.buffer, low, low + max(8, self.bits) // 8


# -- words ---------------------------------------------------------------------------------------------------


def kind_of(value: object, type: Type | None = None) -> str:
    """Return the kind of a value in words, without its elements."""
    if isinstance(value, Tile):
        at = "nowhere yet" if value.address is None else f"at {value.address:#x}"
        valid = "" if value.valid == value.shape else f", valid {value.v_row}x{value.v_col}"
        return f"{value.loc} {value.rows}x{value.cols}x{value.dtype} {at}{valid}"
    if isinstance(value, ConvTile):
        at = "nowhere yet" if value.address is None else f"at {value.address:#x}"
        return f"{value.loc} {'x'.join(map(str, value.dims))}x{value.dtype} {at}"
    if isinstance(value, View):
        dims = "x".join(map(str, value.dims))
        return f"view {dims}x{value.dtype} of {_place(value)}"
    if isinstance(value, Pointer):
        return f"pointer to {value.dtype}, {_place(value)}"
    if isinstance(value, Align):
        return "alignment state" + (f" ({value.kind})" if value.kind else "")
    if isinstance(value, Register):
        if isinstance(type, MaskType):
            return f"mask of {ValueMatrix(value, type).dims[0]} lanes"
        return f"{value.lanes}x{value.dtype}"
    return ""


def _place(value: View | Pointer) -> str:
    """Return the start of a view or a pointer."""
    buffer = value.buffer
    name = buffer.name if buffer.space == "gm" else f"{buffer.space}:"
    if buffer.space == "gm":
        return f"{name} + {value.offset}" if value.offset else name
    return f"{name}{value.offset:#x}"


def line(value: object, type: Type | None = None, hex: bool = False) -> str:
    """Return a value in one line: its kind, and the corner of its elements."""
    if value is None:
        return "not computed yet"
    if isinstance(value, Register) and isinstance(type, MaskType):
        return f"{kind_of(value, type)}: {lanes(value, type)}"
    if isinstance(value, PLACES):
        return f"{kind_of(value, type)}: {corner(value, type, hex)}"
    if isinstance(value, list | tuple):
        inner = ", ".join(line(v, None, hex) for v in value[:8])  # type: ignore[reportUnknownVariableType]
        return f"[{inner}{', ..' if len(value) > 8 else ''}]"  # type: ignore[reportUnknownArgumentType]
    return scalar(value, type, hex)


def scalar(value: Any, type: Type | None = None, hex: bool = False) -> str:
    if isinstance(value, bool | int):
        if not hex:
            return str(int(value))
        bits = getattr(type, "bits", None) or 64
        return f"{value & ((1 << bits) - 1):#x}"
    if isinstance(value, float):
        return value.hex() if hex else _float(value)
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=16)  # type: ignore[reportUnknownArgumentType]
    if isinstance(value, Ends):
        return ", ".join(fifo.name for fifo in value.fifos.values())
    name = getattr(value, "name", "")
    return f"<{value.__class__.__name__}{' ' + str(name) if name else ''}>"


def _float(value: float) -> str:
    return f"{value:.7g}"


def corner(value: Any, type: Type | None = None, hex: bool = False) -> str:
    """Return the first elements in one line."""
    try:
        matrix = ValueMatrix(value, type)
        rows, cols = matrix.shape
        most, wide = CORNER if rows > 1 else (1, 2 * CORNER[1])
        shown = range(min(rows, most)), range(min(cols, wide))
        if not rows or not cols:
            return "empty"
        found = texts(matrix, *shown, hex)
    except ExpressionError as e:
        return str(e)
    more = " .." if cols > wide else ""
    return "  ".join(f"[{' '.join(row)}{more}]" for row in found) + ("  .." if rows > most else "")


def texts(matrix: ValueMatrix, rows: range, cols: range, hex: bool) -> list[list[str]]:
    if hex:
        width = -(-matrix.bits // 4)
        return [[f"{v:0{width}x}" for v in row] for row in matrix.codes(rows, cols).tolist()]
    found = matrix.numbers(rows, cols)
    form = _float if found.dtype.kind == "f" else str
    return [[form(v) for v in row] for row in found.tolist()]


def lanes(mask: Register, type: Type | None) -> str:
    """Return the lanes of a mask that are on, as ranges."""
    matrix = ValueMatrix(mask, type)
    on = np.flatnonzero(matrix.codes(range(1), range(matrix.dims[0]))[0])
    if not on.size:
        return "none is on"
    breaks = np.flatnonzero(np.diff(on) > 1)
    starts, ends = on[np.r_[0, breaks + 1]], on[np.r_[breaks, on.size - 1]]
    parts = [str(a) if a == b else f"{a}..{b}" for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    shown = ", ".join(parts[:8]) + (", .." if len(parts) > 8 else "")
    return f"{on.size} on: {shown}"


def element(value: Any, slices: Sequence[Slice], type: Type | None = None, hex: bool = False) -> str:
    """Return one element; if indices name several, return these as a matrix."""
    matrix = ValueMatrix(value, type)
    rows, cols = matrix.part(slices)
    if len(rows) != 1 or len(cols) != 1:
        return "\n".join(table(value, slices, type, hex))
    if hex:
        return f"{int(matrix.codes(rows, cols)[0, 0]):#0{2 + -(-matrix.bits // 4)}x}"
    return scalar(matrix.numbers(rows, cols)[0, 0].item())


def table(
    value: Any, slices: Sequence[Slice] = (), type: Type | None = None, hex: bool = False, name: str = ""
) -> list[str]:
    """Return a place as a matrix with row and column numbers. Without indices these are its first rows and
    columns; elements outside the valid region are after `|` and below a line."""
    matrix = ValueMatrix(value, type)
    rows, cols = matrix.part(slices)
    head = f"{name}: {kind_of(value, type)}" if name else kind_of(value, type)
    if isinstance(type, MaskType):
        head += f": {lanes(value, type)}"
    more: list[str] = []
    if not slices:
        rows, cols, whole = rows[:ROWS], cols[: COLS if matrix.shape[0] > 1 else 2 * COLS], (rows, cols)
        if (rows, cols) != whole:
            size = "x".join(map(str, matrix.dims))
            part = "[8:24]" if len(matrix.dims) == 1 else "[0:4, 0:8]"
            more = [f"  .. {size} in all; name a part, as in {part}"]
    elif len(rows) * len(cols) > MOST:
        cols = cols[:MOST]
        rows = rows[: max(1, MOST // max(1, len(cols)))]
        more = [f"  .. at most {MOST} elements are shown"]
    if not rows or not cols:
        return [head + (": empty" if not more else "")]
    cells = texts(matrix, rows, cols, hex)
    v_row, v_col = matrix.valid if matrix.valid is not None else matrix.shape
    bar = v_col - cols.start if cols.start < v_col < cols.stop else None
    widths = [max(len(str(c)), *(len(r[n]) for r in cells)) for n, c in enumerate(cols)]
    flat = len(matrix.dims) == 1
    left = 0 if flat else max(len(str(r)) for r in rows)

    def joined(row: Sequence[str]) -> str:
        found = [c.rjust(w) for c, w in zip(row, widths, strict=True)]
        if bar is not None:
            found.insert(bar, "|")
        return "  ".join(found)

    out = [head, f"  {'':>{left}}  {joined([str(c) for c in cols])}"]
    for r, row in zip(rows, cells, strict=True):
        if r == v_row and r > rows.start:
            out.append(
                f"  {'':>{left}}  {'-' * (sum(widths) + 2 * len(widths) - 2 + (3 if bar is not None else 0))}"
            )
        out.append(f"  {'' if flat else r:>{left}}  {joined(row)}")
    if rows.start >= v_row or cols.start >= v_col:
        out.append("  none of these is valid")
    return out + more
