"""Memory as a program sees it: global memory, the on-chip buffers of a core, and the handles into them.

A `Buffer` is a run of bytes with a name. Global memory is one buffer per array, each at an address of its own
with unmapped space between them; an on-chip buffer starts at address 0 and has the size of the profile.
Tiles, views and pointers are descriptors of places in a buffer: two tiles on the same bytes see each other's
data.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..ir.types import ConvTileType, TileBufType
from ..isa import tile as tiles
from ..isa import view as views
from ..isa.dtypes import DTYPES
from ..isa.machine import MOST_ALIGN
from ..isa.profiles import LOCATIONS, Profile
from . import elements
from .elements import Array
from .region import Axis, Region, blocked, scattered

#: Address of the first array of global memory, and the least distance between two.
GM_BASE = 0x1000_0000
GM_GAP = 0x1_0000
#: Address of the windows of ranks, after all arrays.
WINDOWS_BASE = 0x1000_0000_0000


class MemoryFault(Exception):
    """An access outside its buffer."""

    def __init__(self, buffer: Buffer, low: int, high: int) -> None:
        self.buffer = buffer
        self.low = low
        self.high = high
        super().__init__(f"bytes {low}..{high} of {buffer.name}, which has {buffer.data.size}")


class Buffer:
    """Bytes with a name. `base` is the address of the first byte; `limit` is the capacity for a program (an
    on-chip buffer has more bytes after it, for tiles without an address)."""

    __slots__ = ("base", "data", "given", "limit", "name", "of", "rank", "shadows", "space", "unplaced")

    def __init__(self, name: str, space: str, data: Array, base: int = 0, limit: int | None = None) -> None:
        self.name = name
        self.space = space
        self.data = data
        self.base = base
        self.limit = data.size if limit is None else limit
        self.unplaced = -(-self.limit // MOST_ALIGN) * MOST_ALIGN
        #: Data of sanitizers, each under its own key.
        self.shadows: dict[str, Any] = {}
        #: True if the contents came from outside, and thus count as defined.
        self.given = space == "gm"
        #: For a window of a rank: the memory in which pointers that leave it find the windows of other ranks.
        self.of: GlobalMemory | None = None
        self.rank: int | None = None

    def grow(self, size: int) -> None:
        """Make sure that there are `size` bytes."""
        if size > self.data.size:
            more = np.zeros(max(size, 2 * self.data.size), np.uint8)
            more[: self.data.size] = self.data
            self.data = more

    def reserve(self, size: int) -> int:
        """Return an address after the capacity, for a tile without one."""
        at = self.unplaced
        self.unplaced = -(-(at + max(size, 1)) // MOST_ALIGN) * MOST_ALIGN
        self.grow(self.unplaced)
        return at

    def __repr__(self) -> str:
        return f"<Buffer {self.name}>"


class GlobalMemory:
    """The arrays of a launch, each a buffer with an address."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._bases: list[int] = []
        self._next = GM_BASE

    def add(self, name: str, array: Array) -> Buffer:
        """Map an array; a contiguous writable one is shared, not copied."""
        buffer = self._map(name, array, self._next)
        self._next = -(-(self._next + buffer.data.size + GM_GAP) // GM_GAP) * GM_GAP
        return buffer

    def add_window(self, name: str, array: Array, offset: int, rank: int) -> Buffer:
        """Map a window of a rank at `offset` bytes after the start of all windows."""
        buffer = self._map(name, array, WINDOWS_BASE + offset)
        buffer.of, buffer.rank = self, rank
        return buffer

    def _map(self, name: str, array: Array, address: int) -> Buffer:
        flat = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
        buffer = Buffer(name, "gm", flat, address)
        at = bisect_right(self._bases, address)
        self.buffers.insert(at, buffer)
        self._bases.insert(at, address)
        return buffer

    def find(self, address: int) -> Buffer | None:
        """Return the buffer that contains an address, or ends at it."""
        at = bisect_right(self._bases, address) - 1
        if at < 0:
            return None
        found = self.buffers[at]
        return found if address <= found.base + found.data.size else None


def core_buffers(profile: Profile, core: str) -> dict[str, Buffer]:
    """Return zeroed on-chip buffers of one core, by tile location."""
    return {
        loc: Buffer(f"{title} of {core}" if core else title, loc, np.zeros(size, np.uint8), 0, size)
        for loc, title in LOCATIONS.items()
        for size in (profile.capacity[loc],)
    }


class Storage(NamedTuple):
    """Origin of the bytes of a tile: an alloc_tile or tassign, the bytes, a name and a kind. Derived tiles
    share it."""

    op: Any
    low: int
    size: int
    name: str
    kind: Any


class Home(NamedTuple):
    """The tile that a pointer was made from, and its bytes."""

    low: int
    high: int
    name: str
    tile: Any

    @property
    def storage(self) -> Storage | None:
        return self.tile.storage


class Pointer:
    """A typed pointer: a byte offset in a buffer. `home` has the bytes and the name of the tile that it was
    made from."""

    __slots__ = ("buffer", "dtype", "home", "name", "offset")

    def __init__(
        self, buffer: Buffer, offset: int, dtype: str, name: str = "",
        home: Home | None = None,
    ) -> None:  # fmt: skip
        self.buffer = buffer
        self.home = home
        self.offset = offset
        self.dtype = dtype
        self.name = name

    @property
    def address(self) -> int:
        return self.buffer.base + self.offset

    def moved(self, count: int) -> Pointer:
        """Return the pointer moved by `count` elements."""
        return self.at(self.offset + count * DTYPES[self.dtype].bits // 8)

    def at(self, offset: int, dtype: str = "") -> Pointer:
        """Return a pointer to another byte of the buffer, or of another window, with a type."""
        of = self.buffer.of
        if of is not None and not 0 <= offset <= self.buffer.data.size:
            other = of.find(self.buffer.base + offset)
            if other is not None and other.of is of:
                at = self.buffer.base + offset - other.base
                return Pointer(other, at, dtype or self.dtype, self.name)
        return Pointer(self.buffer, offset, dtype or self.dtype, self.name, self.home)

    def region(self, rows: int, cols: int) -> Region:
        """Return `rows` x `cols` elements from here, dense and row by row."""
        return Region(self.offset, *_dense(rows, cols), DTYPES[self.dtype].bits)

    def spacing(self, cols: int) -> tuple[int, int] | None:
        """Return the elements from row to row and from column to column of such a region, if constant."""
        return cols, 1


class DealtPointer(Pointer):
    """A pointer that a launch deals out: each block gets the same number of 4-byte words, in order."""

    __slots__ = ()

    def part(self, block: int, blocks: int) -> Pointer:
        return self.at(self.offset + (self.buffer.data.size - self.offset) // 4 // blocks * block * 4)


@lru_cache(maxsize=1024)
def _dense(rows: int, cols: int) -> tuple[Axis, Axis]:
    """Return the axes of rows that follow each other."""
    return blocked(0, rows, 1, cols, 0), blocked(0, cols, 1, 1, 0)


@lru_cache(maxsize=1024)
def tile_steps(
    layout: str, rows: int, cols: int, box: tuple[int, int], pitch: int
) -> tuple[int, int, int, int]:
    """Return the element strides of a layout: row block to row block, row to row; the same for columns."""
    ir, ic = box

    def at(r: int, c: int) -> int:
        return tiles.offset(layout, rows, cols, box, r, c, pitch)

    return at(ir, 0), at(1, 0) if ir > 1 else 0, at(0, ic), at(0, 1) if ic > 1 else 0


@lru_cache(maxsize=4096)
def _tile_axes(
    layout: str,
    pitch: tuple[int, int],
    box: tuple[int, int],
    compact: str,
    v_row: int,
    rows: int,
    cols: int,
    r: int,
    c: int,
) -> tuple[Axis, Axis]:
    """Return the row part and the column part of the offsets of a rectangle of a tile."""
    between = tiles.compact_pitch(compact, pitch[0], v_row, tiles.block_height(layout, box))
    block_row, row, block_col, col = tile_steps(layout, *pitch, box, between)
    return blocked(r, rows, box[0], block_row, row), blocked(c, cols, box[1], block_col, col)


class Tile:
    """A tile: a typed window of an on-chip buffer with a valid region.

    `pitch` is the (rows, cols) of the storage of the tile, which a subview shares with its source.
    """

    __slots__ = (
        "address", "bits", "box", "buffer", "cols", "compact", "cut", "dtype", "edge", "layout", "loc",
        "name", "nibble", "pad", "pitch", "rows", "slot", "storage", "v_col", "v_row",
    )  # fmt: skip

    def __init__(
        self, type: TileBufType, buffer: Buffer, address: int | None, valid: tuple[int, int],
        name: str = "", layout: str = "",
    ) -> None:  # fmt: skip
        self.loc = type.loc
        self.dtype = str(type.dtype)
        self.bits = DTYPES[self.dtype].bits
        self.rows, self.cols = type.rows, type.cols
        self.v_row, self.v_col = valid
        self.layout = layout or type.layout
        self.box = type.box
        self.pitch = (type.rows, type.cols)
        self.pad = type.pad
        self.compact = type.compact
        self.buffer = buffer
        self.address = address
        self.nibble = 0
        self.name = name
        self.storage: Storage | None = None  # the address from the program
        self.slot: Any = None  # the data that a FIFO instruction bound to it
        self.edge: tuple[Tile, int, int] | None = (
            None  # only for a window that leaves its source: its position in the source
        )
        #: The last requested region and the facts from it: instructions often request the same region again.
        self.cut: tuple[tuple[object, ...], Region] | None = None

    @property
    def valid(self) -> tuple[int, int]:
        return self.v_row, self.v_col

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def size(self) -> int:
        """Return the bytes of the whole tile."""
        return tiles.size_bytes(self.rows, self.cols, self.bits)

    def copy(self) -> Tile:
        new = Tile.__new__(Tile)
        for slot in Tile.__slots__:
            setattr(new, slot, getattr(self, slot))
        return new

    def placed_by(self, op: object) -> None:
        """Record the operation that gave the tile its address."""
        assert self.address is not None
        kind = (self.dtype, self.shape, self.layout, self.valid)
        self.storage = Storage(op, self.address, self.size, self.name, kind)

    def element_at(self, offset: int) -> tuple[int, int] | None:
        """Return the element at a storage offset, in elements from the start; None if there is none."""
        found = self.region(self.rows, self.cols)
        rows, cols = found.rows.offsets, found.cols.offsets
        if found.cols.stride == 1 and found.rows.stride:
            r, c = divmod(offset, found.rows.stride)
            return (r, c) if 0 <= r < self.rows and c < self.cols else None
        at = np.argwhere(rows[:, None] + cols == offset)
        return (int(at[0][0]), int(at[0][1])) if len(at) else None

    def region(self, rows: int, cols: int, r: int = 0, c: int = 0) -> Region:
        """Return `rows` x `cols` elements from element (r, c)."""
        if self.address is None:
            raise LookupError(self.name)
        shape = self.layout, self.pitch, self.box, self.compact, self.v_row, rows, cols, r, c
        of = self.address, self.nibble, *shape
        cut = self.cut
        if cut is not None and cut[0] == of:
            return cut[1]
        row_axis, col_axis = _tile_axes(*shape)
        made = Region(self.address, row_axis, col_axis, self.bits, self.nibble, (r, c))
        self.cut = of, made
        return made

    def element_offset(self, r: int, c: int) -> int:
        """Return the storage offset of an element, in elements from the start of the tile."""
        height = tiles.block_height(self.layout, self.box)
        pitch = tiles.compact_pitch(self.compact, self.pitch[0], self.v_row, height)
        return tiles.offset(self.layout, *self.pitch, self.box, r, c, pitch)

    def __repr__(self) -> str:
        at = "?" if self.address is None else f"{self.address:#x}"
        return f"<Tile {self.name} {self.loc} {self.rows}x{self.cols}x{self.dtype} at {at}>"


@dataclass(slots=True)
class ConvFields:
    """Fields of a convolution tile beside its elements; pads are left, right, top, bottom."""

    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    fmap: tuple[int, int] = (0, 0)  # height and width; 0 = those of the tile
    filter: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pad_value: float = 0
    repeat_stride: int = 0
    repeat_time: int = 1
    repeat_mode: int = 0
    dst_stride: int = 0
    dst_position: int = 0


class ConvTile:
    """A convolution tile: a dense array of `dims`, outermost first."""

    __slots__ = ("address", "bits", "buffer", "dims", "dtype", "fields", "layout", "loc", "name")

    def __init__(self, type: ConvTileType, buffer: Buffer, address: int | None, name: str = "") -> None:
        self.loc = type.loc
        self.dtype = str(type.dtype)
        self.bits = DTYPES[self.dtype].bits
        self.dims = tuple(d or 1 for d in type.dims)
        self.fields = ConvFields()
        self.layout = type.layout
        self.buffer = buffer
        self.address = address
        self.name = name

    @property
    def size(self) -> int:
        return tiles.size_bytes(1, int(np.prod(self.dims)), self.bits)

    def copy(self) -> ConvTile:
        new = ConvTile.__new__(ConvTile)
        for slot in ConvTile.__slots__:
            setattr(new, slot, getattr(self, slot))
        return new

    def region(self, rows: int, cols: int, r: int = 0, c: int = 0) -> Region:
        """Return the tile as a matrix whose columns are its last dimension; `rows` rows from row r."""
        if self.address is None:
            raise LookupError(self.name)
        pitch = self.dims[-1]
        return Region(self.address, blocked(r, rows, 1, pitch, 0), blocked(c, cols, 1, 1, 0), self.bits)


class View:
    """A strided window of global memory (or of a FIFO slot): its pointer, extents and strides in elements."""

    __slots__ = ("buffer", "cut", "dims", "dtype", "five", "layout", "name", "offset", "strides", "whole_of")

    def __init__(
        self, buffer: Buffer, offset: int, dims: tuple[int, ...], strides: tuple[int, ...], dtype: str,
        layout: str | None = None, name: str = "", whole_of: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        self.buffer = buffer
        self.offset = offset  # in bytes from the start of the buffer
        self.dims = dims
        self.strides = strides
        self.dtype = dtype
        self.layout = layout  # as declared, upper case; None derives it from the shape
        self.name = name
        self.whole_of = whole_of or dims  # extents of the view that a window is taken from
        #: `dims5` of a layout, and the last requested region with the facts from it.
        self.five: tuple[str | None, tuple[tuple[int, ...], tuple[int, ...]]] | None = None
        self.cut: tuple[tuple[object, ...], Region] | None = None

    @property
    def bits(self) -> int:
        return DTYPES[self.dtype].bits

    @property
    def pointer(self) -> Pointer:
        return Pointer(self.buffer, self.offset, self.dtype, self.name)

    def copy(self) -> View:
        return View(
            self.buffer,
            self.offset,
            self.dims,
            self.strides,
            self.dtype,
            self.layout,
            self.name,
            self.whole_of,
        )

    @property
    def dims5(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return extents and strides in five dimensions, leading ones filled with 1; scales are packed."""
        five = self.five
        if five is None or five[0] != self.layout:
            five = self.five = self.layout, self._five()
        return five[1]

    def _five(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        packed = views.packed_scales(self.layout or "", self.dims, self.whole_of)
        if packed is not None:
            return packed
        lack = 5 - len(self.dims)
        if lack < 0:
            raise ValueError(f"expected a view of at most 5 dimensions, got {len(self.dims)}")
        first = self.dims[0] * self.strides[0] if self.dims else 1
        return (1,) * lack + self.dims, (first,) * lack + self.strides

    def effective_layout(self, layout: str | None = None) -> str:
        """Return the declared layout, else the layout that shape and strides of the whole view give."""
        return layout or self.layout or self.strided.layout

    @property
    def strided(self) -> views.Strided:
        return views.strided(self.whole_of, self.strides, self.bits)

    def region(self, rows: int, cols: int, r: int = 0, c: int = 0, layout: str | None = None) -> Region:
        """Return `rows` x `cols` elements from (r, c) of the view, seen as a matrix of its layout."""
        of = self.offset, self.layout, layout, rows, cols, r, c
        cut = self.cut
        if cut is not None and cut[0] == of:
            return cut[1]
        shape, strides = self.dims5
        found = self.effective_layout(layout)
        row_axis, col_axis = _view_axes(found, shape, strides, self.bits, rows, cols, r, c)
        made = Region(self.offset, row_axis, col_axis, self.bits)
        self.cut = of, made
        return made

    def whole(self) -> Region:
        """Return every element in index order, one row per index of all but the last dimension."""
        last = self.dims[-1] if self.dims else 1
        at = np.zeros(1, np.intp)
        for d, s in zip(self.dims[:-1], self.strides[:-1], strict=True):
            at = (at[:, None] + np.arange(d, dtype=np.intp) * s).ravel()
        step = self.strides[-1] if self.strides else 1
        return Region(self.offset, scattered(at), blocked(0, last, 1, step, 0), self.bits)

    def __repr__(self) -> str:
        return f"<View {self.name} {self.dims} of {self.buffer.name}>"


@lru_cache(maxsize=4096)
def _view_axes(
    layout: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    bits: int,
    rows: int,
    cols: int,
    r: int,
    c: int,
) -> tuple[Axis, Axis]:
    """Return the row part and the column part of `pto.isa.view.element_offset` for a rectangle."""
    if layout == "ND" and r + rows <= shape[3]:
        return blocked(r, rows, 1, strides[3], 0), blocked(c, cols, 1, strides[4], 0)
    if layout == "DN" and c + cols <= shape[4]:
        return blocked(r, rows, 1, strides[3], 0), blocked(c, cols, 1, strides[4], 0)
    c0 = tiles.block_elements(bits)
    down = [views.element_offset(layout, i, 0, shape, strides, c0) for i in range(r, r + rows)]
    across = [views.element_offset(layout, 0, j, shape, strides, c0) for j in range(c, c + cols)]
    return scattered(np.array(down, np.intp)), scattered(np.array(across, np.intp))


def stored_shape(shape: Sequence[int], dtype: str) -> tuple[int, ...]:
    """Return the extents of an array for elements of a shape: several elements below a byte share one."""
    bits = DTYPES[dtype].bits
    return (*shape[:-1], -(-shape[-1] * bits // 8)) if bits < 8 and shape else tuple(shape)


@cache
def array_of(dtype: str) -> np.dtype[Any]:
    """Return the array type of stored elements: their own, or that of their codes if NumPy lacks the type."""
    return elements.ARRAY_DTYPES.get(dtype) or elements.code_dtype(dtype)
