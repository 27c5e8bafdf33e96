"""A matrix of elements somewhere in a byte array: the one shape in which instructions touch memory.

The storage offset of element (r, c) of every tile layout and of every global tensor layout is a sum of a row
part and a column part. A `Region` keeps these two parts (`Axis`), so one load and one store serve tiles and
global memory, plain and boxed layouts, data and its shadows.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .elements import Array, NumpyType


class Axis:
    """Element offsets along one direction. `stride` is set if they are evenly spaced; `box` is (blocks, block
    stride, inner, inner stride) if they fill whole blocks."""

    __slots__ = ("box", "first", "offsets", "size", "span", "stride")

    def __init__(self, offsets: Array, stride: int | None, box: tuple[int, int, int, int] | None) -> None:
        self.offsets = offsets
        self.size = len(offsets)
        self.first = int(offsets[0]) if self.size else 0
        self.stride = stride
        self.box = box
        #: Smallest and largest offset.
        self.span: tuple[int, int] = (int(offsets.min()), int(offsets.max())) if self.size else (0, 0)


@lru_cache(maxsize=4096)
def blocked(start: int, size: int, inner: int, block_stride: int, inner_stride: int) -> Axis:
    """Return indices start, start + 1, .. of an axis cut into blocks of `inner` elements."""
    i = np.arange(start, start + size, dtype=np.intp)
    offsets = i // inner * block_stride + i % inner * inner_stride
    if inner == 1 or size <= 1:
        return Axis(offsets, block_stride if inner == 1 else inner_stride, None)
    if start % inner + size <= inner or block_stride == inner * inner_stride:
        return Axis(offsets, inner_stride, None)
    if start % inner == 0 and size % inner == 0:
        return Axis(offsets, None, (size // inner, block_stride, inner, inner_stride))
    return Axis(offsets, None, None)


def scattered(offsets: Array) -> Axis:
    """Return an axis of any offsets."""
    steps = np.diff(offsets)
    even = len(steps) == 0 or bool((steps == steps[0]).all())
    return Axis(
        np.asarray(offsets, np.intp), int(steps[0]) if even and len(steps) else 1 if even else None, None
    )


class Region:
    """`rows` x `cols` elements of `bits` bits from byte `base` (and nibble `nibble`) of an array. It is
    immutable; derived facts are computed at first use and cached, because watchers use them often."""

    __slots__ = ("_bounds", "_dense", "_key", "_seen", "base", "bits", "cols", "first", "nibble", "rows")

    def __init__(
        self, base: int, rows: Axis, cols: Axis, bits: int, nibble: int = 0, first: tuple[int, int] = (0, 0)
    ) -> None:
        self.base = base
        self.rows = rows
        self.cols = cols
        self.bits = bits
        self.nibble = nibble
        self.first = first  # indices of the first element in the tile or view
        self._bounds: tuple[int, int] | None = None
        self._dense: bool | None = None
        self._key: tuple[object, ...] | None = None
        #: The last viewed array, its element type, and its elements.
        self._seen: tuple[object, object, Array] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.size, self.cols.size

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the first byte and the byte after the last; equal if the region is empty."""
        found = self._bounds
        if found is None:
            found = self._bounds = self._extent()
        return found

    def _extent(self) -> tuple[int, int]:
        if not self.rows.size or not self.cols.size:
            return self.base, self.base
        low = (self.rows.span[0] + self.cols.span[0]) * self.bits
        high = (self.rows.span[1] + self.cols.span[1] + 1) * self.bits
        return self.base + (low + 4 * self.nibble) // 8, self.base + (high + 4 * self.nibble + 7) // 8

    @property
    def dense(self) -> bool:
        """Return True if every byte of `bounds` belongs to the region."""
        found = self._dense
        if found is None:
            low, high = self.bounds
            found = self._dense = self.rows.size * self.cols.size * self.bits == (high - low) * 8
        return found

    @property
    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for regions of the same bytes in the same order."""
        found = self._key
        if found is None:
            found = self._key = (self.base, self.rows, self.cols, self.bits, self.nibble)
        return found

    def byte_offsets(self) -> Array:
        """Return every byte of the region, in no particular order."""
        at = (self.rows.offsets[:, None] + self.cols.offsets[None, :]).ravel()
        if self.bits == 4:
            return np.unique(self.base + (at + self.nibble) // 2)
        item = self.bits // 8
        return (self.base + at[:, None] * item + np.arange(item)).ravel()

    def _in_rows(self) -> bool:
        """Return True if the bytes of each row are contiguous."""
        return self.bits >= 8 and (self.cols.stride == 1 or self.cols.size == 1)

    def runs(self) -> Array | None:
        """Return the first byte and the end of each row; None if the bytes of a row are not contiguous."""
        if not self._in_rows():
            return None
        item = self.bits // 8
        first = self.base + (self.rows.offsets + self.cols.first) * item
        return np.stack([first, first + self.cols.size * item], axis=1)

    def marks(self, table: Array, start: int) -> Array | None:
        """Return the entries of the region's bytes, in place, of a table with an entry per byte. The memory
        begins at entry `start`. None if the bytes of a row are not contiguous."""
        if not self._in_rows() or self.rows.stride is None:
            return None
        item, entry = self.bits // 8, table.itemsize
        first = start + self.base + (self.rows.first + self.cols.first) * item
        shape = self.rows.size, self.cols.size * item
        return np.ndarray(shape, table.dtype, table, first * entry, (self.rows.stride * item * entry, entry))

    def view(self, data: Array, dtype: NumpyType) -> Array | None:
        """Return the elements in place, as an array of an element type; None if no strides reach them."""
        seen = self._seen
        if seen is not None and seen[0] is data and seen[1] is dtype:
            return seen[2]
        found = self._view(data, dtype)
        if found is not None:
            self._seen = data, dtype, found
        return found

    def _view(self, data: Array, dtype: NumpyType) -> Array | None:
        if self.bits == 4:
            return None
        item, base = self.bits // 8, self.base
        rows, cols = self.rows, self.cols
        if not rows.size or not cols.size:
            return np.empty(self.shape, dtype)
        low, high = rows.span[0] + cols.span[0], rows.span[1] + cols.span[1]
        if base + low * item < 0 or base + (high + 1) * item > data.size:
            low, high = self.bounds
            raise IndexError(f"bytes {low}..{high} of a memory of {data.size}")
        start = base + (rows.first + cols.first) * item
        if rows.stride is not None and cols.stride is not None:
            strides = rows.stride * item, cols.stride * item
            return np.ndarray((rows.size, cols.size), dtype, data, start, strides)
        shape: list[int] = []
        steps: list[int] = []
        for axis in (rows, cols):
            if axis.stride is not None:
                n, step, inner, inner_step = 1, 0, axis.size, axis.stride
            elif axis.box is not None:
                n, step, inner, inner_step = axis.box
            else:
                return None
            shape += [n, inner]
            steps += [step * item, inner_step * item]
        return np.ndarray(shape, dtype, data, start, steps)

    def load(self, data: Array, dtype: NumpyType) -> Array:
        """Return the elements as a matrix; it may share memory with `data`."""
        found = self.view(data, dtype)
        if found is not None:
            return found if found.ndim == 2 else found.reshape(self.shape)
        pairs = self._pairs()
        if pairs is not None:
            codes, out = pairs.load(data, np.uint8), np.empty(self.shape, dtype)
            low, high = _halves(out, pairs)
            low[...], high[...] = codes & 0xF, codes >> 4
            return out
        at = self.rows.offsets[:, None] + self.cols.offsets[None, :]
        return load_at(data, self.base, at, self.bits, dtype, self.nibble)

    def store(self, data: Array, values: Array) -> None:
        """Write a matrix with the shape of the region."""
        found = self.view(data, values.dtype)
        if found is not None:
            found[...] = values if found.ndim == 2 else values.reshape(found.shape)
            return
        pairs = self._pairs()
        if pairs is not None:
            low, high = _halves(values.astype(np.uint8, copy=False), pairs)
            pairs.store(data, low & 0xF | high << 4)
            return
        at = self.rows.offsets[:, None] + self.cols.offsets[None, :]
        store_at(data, self.base, at, self.bits, values, self.nibble)

    @property
    def whole_bytes(self) -> bool:
        """Return True if 4-bit elements fill whole bytes."""
        return self._pairs() is not None

    def _pairs(self) -> Region | None:
        """Return a region of 4-bit elements as one of bytes, if it has whole bytes."""
        if self.bits != 4 or self.nibble or not self.rows.size or not self.cols.size:
            return None
        axes = _whole_bytes(self.rows, self.cols)
        return Region(self.base, *axes, 8) if axes is not None else None

    def fill(self, data: Array, value: Array) -> None:
        """Write one value to all elements."""
        found = self.view(data, value.dtype)
        if found is not None:
            found[...] = value
        else:
            self.store(data, np.full(self.shape, value))


@lru_cache(maxsize=1024)
def _whole_bytes(rows: Axis, cols: Axis) -> tuple[Axis, Axis] | None:
    """Return byte axes of a matrix of 4-bit elements, if neighbors in a row, or in a column, share bytes."""
    pair, other = _paired(cols), _even(rows)
    if pair is not None and other is not None:
        return other, pair
    pair, other = _paired(rows), _even(cols)
    return (pair, other) if pair is not None and other is not None else None


def _paired(axis: Axis) -> Axis | None:
    """Return every second offset in bytes, if it shares a byte with the next one."""
    at = axis.offsets
    if len(at) % 2 or (at[::2] % 2).any() or (at[1::2] != at[::2] + 1).any():
        return None
    box = axis.box and (axis.box[0], axis.box[1] // 2, axis.box[2] // 2, 1)
    return Axis(at[::2] // 2, 1 if axis.stride == 1 else None, box)


def _even(axis: Axis) -> Axis | None:
    """Return the offsets in bytes, if each begins a byte."""
    if (axis.offsets % 2).any():
        return None
    box = axis.box and (axis.box[0], axis.box[1] // 2, axis.box[2], axis.box[3] // 2)
    return Axis(axis.offsets // 2, None if axis.stride is None else axis.stride // 2, box)


def _halves(values: Array, pairs: Region) -> tuple[Array, Array]:
    """Return the elements of a matrix in the lower and in the upper halves of the bytes."""
    if values.shape[0] == pairs.rows.size:
        return values[:, ::2], values[:, 1::2]
    return values[::2], values[1::2]


def load_at(data: Array, base: int, at: Array, bits: int, dtype: NumpyType, nibble: int = 0) -> Array:
    """Return elements at any element offsets from byte `base`."""
    if bits == 4:
        place = at + nibble
        _check_nibbles(base, place)
        return (data[base + (place >> 1)] >> ((place & 1) << 2).astype(np.uint8) & 0xF).astype(dtype)
    return _typed(data, base, at, bits, dtype)[at]


def store_at(data: Array, base: int, at: Array, bits: int, values: Array, nibble: int = 0) -> None:
    """Write elements at any element offsets; if an offset repeats, the last value stays."""
    if bits == 4:
        place = (at + nibble).ravel()
        _check_nibbles(base, place)
        flat = values.ravel().astype(np.uint8) & 0xF
        for half in (0, 1):  # the two nibbles of a byte are written one after the other
            mine = (place & 1) == half
            where = base + (place[mine] >> 1)
            data[where] = data[where] & (0xF0 if half == 0 else 0x0F) | flat[mine] << (4 * half)
        return
    _typed(data, base, at, bits, values.dtype)[at] = values


def _check_nibbles(base: int, place: Array) -> None:
    """Reject bytes before the memory, which NumPy would take from its end."""
    if place.size and base + (int(place.min()) >> 1) < 0:
        raise IndexError(f"a nibble before byte 0, from byte {base}")


def _typed(data: Array, base: int, at: Array, bits: int, dtype: NumpyType) -> Array:
    """Return the memory from `base` on as elements; offsets may not be negative."""
    item = bits // 8
    if not at.size:
        return np.empty(0, dtype)
    # as unsigned, negative offsets are out of range, too
    top = int((at.view(np.uintp) if at.dtype == np.intp else at.astype(np.int64).view(np.uint64)).max())
    if base < 0 or base + (top + 1) * item > data.size:
        raise IndexError(f"element {int(at.max())} from byte {base} of a memory of {data.size}")
    return np.ndarray(((data.size - base) // item,), dtype, data, base)
