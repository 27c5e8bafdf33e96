"""Values of a walk that are not scalars: pointers, views and tiles, with terms in their descriptors. A
`TermPlace` contains all bytes that an instruction may touch. `meet` returns the condition under which two
places share bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple

from ..ir.core import Operation, Value
from ..ir.types import ConvTileType, MemRefType, MultiTileBufType, PtrType, TileBufType, ViewType
from ..isa import tile as tiles
from ..symbolic.terms import Int, Term, Truth, both, eq, floordiv, is_int

#: Types of values that stand for memory.
MEMORY = (TileBufType, ConvTileType, MultiTileBufType, ViewType, MemRefType, PtrType)
#: Replaces terms in a descriptor.
Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Opaque:
    """A value that the proof does not follow; `op` made it."""

    op: Operation | None = field(compare=False)
    why: str = field(compare=False)


@dataclass(frozen=True)
class PointerTerm:
    """An address: `offset` bytes after the start of an argument or of a buffer. `storage` is that of the tile
    whose bytes it may access."""

    root: Value | str
    offset: Int
    bits: int
    storage: StorageTerm | None = None


@dataclass(frozen=True)
class ViewTerm:
    """A window of global memory. `dims` are the extents of the whole view, `offsets` and `sizes` the window.
    `nested`: different indices inside the whole view are different bytes."""

    root: Value
    base: Int
    bits: int
    dims: tuple[Int, ...]
    strides: tuple[Int, ...]
    offsets: tuple[Int, ...]
    sizes: tuple[Int, ...]
    layout: str
    nested: bool
    rising: bool  # no stride is negative

    @property
    def place(self) -> TermPlace:
        first = sum((o * s for o, s in zip(self.offsets, self.strides, strict=True)), 0)
        last = first + sum(((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True)), 0)
        low, high = (self.base + _bytes(e, self.bits) for e in (first, last))
        frame = (self.base, self.bits, self.strides) if self.nested and self.bits >= 8 else None
        box = tuple(zip(self.offsets, self.sizes, strict=True))
        top = high + max(1, self.bits // 8)
        return TermPlace(self.root, low, top, frame, box, self.rising, tuple(n > 0 for n in self.sizes))


def _bytes(count: Int, bits: int) -> Int:
    return count * (bits // 8) if bits % 8 == 0 else floordiv(count * bits, 8)


class StorageTerm(NamedTuple):
    """The bytes of a tile: who placed them, and as what. Tiles that are cut or reshaped from it share it."""

    op: Operation
    root: object
    low: Int | None  # None if it is not known
    size: int
    kind: tuple[object, ...]

    @property
    def name(self) -> str:
        return self.op.results[0].name if self.op.results else self.op.operands[0].name

    def twin_of(self, other: StorageTerm) -> bool:
        """Return whether both are the same bytes, as the same kind of tile."""
        return self[1:] == other[1:] and self.low is not None

    def views(self, other: StorageTerm) -> bool:
        """Return whether both are the same bytes, as different kinds of tiles: that is no overlap."""
        if self[1:4] != other[1:4] or self.low is None:
            return False
        return any(a != b and is_int(a) == is_int(b) and not isinstance(a, Term) and not isinstance(b, Term)
                   for a, b in zip(self.kind, other.kind, strict=True))  # fmt: skip


@dataclass(frozen=True)
class TileTerm:
    """A tile, or a window from `at` on of a tile with `pitch` rows and columns that begins at byte `low`.
    `ident` is the same for all names of one descriptor, which instructions may change."""

    ident: str
    type: TileBufType  # element type, layout, padding
    layout: str
    root: object  # the buffer, or storage of its own
    low: Int | None
    pitch: tuple[int, int]
    at: tuple[Int, Int]
    shape: tuple[int, int]
    valid: tuple[Int, Int]
    storage: StorageTerm | None = None

    @property
    def bits(self) -> int:
        return self.type.bits or 8

    @property
    def size(self) -> int:
        return tiles.size_bytes(*self.pitch, self.bits)

    @property
    def plain(self) -> bool:
        """Return True for rows that follow each other, without boxes."""
        return self.layout == "ND" and self.type.compact == "null" and self.bits >= 8

    @property
    def place(self) -> TermPlace:
        assert self.low is not None
        low, size = self.low, self.size
        if not self.plain:  # compact tiles may have one more row of fractals
            more = tiles.size_bytes(16, self.pitch[1], self.bits) if self.type.compact != "null" else 0
            return TermPlace(self.root, low, low + size + more)
        (r, c), (rows, cols), item = self.at, self.shape, self.bits // 8
        first, last = r * self.pitch[1] + c, (r + (rows - 1)) * self.pitch[1] + c + cols
        frame = ("tile", low, self.pitch, self.bits)
        box = ((r, rows), (c, cols))
        return TermPlace(self.root, low + first * item, low + last * item, frame, box)

    @property
    def used(self) -> tuple[Int, Int, Truth] | None:
        """Return the bytes of the valid region, and whether they have no gaps; None for other layouts."""
        if not self.plain or self.at != (0, 0) or self.shape != self.pitch or self.low is None:
            return None
        rows, cols = self.valid
        dense = True if is_int(rows) and rows == 1 else eq(cols, self.pitch[1])
        return self.low, self.low + ((rows - 1) * self.pitch[1] + cols) * (self.bits // 8), dense


@dataclass(frozen=True)
class TermPlace:
    """Bytes from `low` to `high` of a buffer or an argument. `box` are offsets and sizes in a frame; boxes of
    equal frames that are disjoint in one dimension share no byte."""

    root: object
    low: Int
    high: Int
    frame: tuple[object, ...] | None = None
    box: tuple[tuple[Int, Int], ...] = ()
    bounded: bool = True  # the bytes lie between the ends
    some: tuple[Truth, ...] = ()  # conditions for any byte at all


def changed(part: Any, change: Change) -> Any:
    """Return a value with other terms in it."""
    if isinstance(part, Term):
        return change(part)
    if isinstance(part, tuple):
        parts = [changed(p, change) for p in part]
        return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{f.name: changed(getattr(part, f.name), change) for f in fields(part)})


def meet(a: TermPlace, b: TermPlace) -> Truth:
    """Return the condition under which two places may share a byte."""
    if a.root is not b.root and a.root != b.root:
        return False
    some = both(*a.some, *b.some)
    if a.frame is not None and a.frame == b.frame and len(a.box) == len(b.box):
        pairs = zip(a.box, b.box, strict=True)
        return both(some, *(c for (o, n), (p, m) in pairs for c in (o < p + m, p < o + n)))
    if a.bounded and b.bounded:
        return both(some, a.low < b.high, b.low < a.high)
    return some
