"""The bytes of global memory that have been written, and those that hold undefined data."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import Any

import numpy as np

from ..engine.access import Place, first_bytes, start_of
from ..engine.region import Region
from ..engine.sanitize.undefined_bytes import Origin

#: Bytes of memory per array of marks; only its used pages take memory.
_PIECE = 1 << 28

#: Marks of an element, by its size in bytes.
_MARKS = {n: np.array(int.from_bytes(b"\x01" * n, "little"), f"u{n}") for n in (1, 2, 4, 8)}

#: The number of stores of undefined data whose origins are kept.
_MOST_ORIGINS = 1 << 12

#: Bytes: a region, or their offsets.
Where = Region | Any


class Marks:
    """A set of bytes of memory, as a mark per byte."""

    def __init__(self) -> None:
        self._marks: dict[int, Any] = {}

    def set(self, where: Where, base: int, mark: int = 1) -> None:
        """Set the marks of bytes at offsets from an address: 1 adds them, 0 removes them."""
        low, high, dense = placed(where, base)
        if dense:
            for marks, first, end in self._pieces(low, high):
                start = first // _PIECE * _PIECE
                marks[first - start : end - start] = mark
        elif (found := self._marked(where, base, low, high)) is not None:
            region, marks, one = found
            region.fill(marks, one * mark)
        else:
            at = _offsets(where) + base
            for piece in np.unique(at // _PIECE).tolist():
                self._of(piece)[at[at // _PIECE == piece] - piece * _PIECE] = mark

    def has(self, at: Any) -> Any:
        """Return a mask of the marked bytes among addresses."""
        found = np.zeros(at.shape, bool)
        pieces = at // _PIECE
        for n in np.unique(pieces).tolist():
            found[pieces == n] = self._of(n)[at[pieces == n] - n * _PIECE] != 0
        return found

    def _of(self, piece: int) -> Any:
        found = self._marks.get(piece)
        if found is None:
            found = self._marks[piece] = np.zeros(_PIECE, np.uint8)
        return found

    def _pieces(self, low: int, high: int) -> list[tuple[Any, int, int]]:
        """Return the marks of a range of memory, with the start and the end of each part."""
        return [
            (self._of(n), max(low, n * _PIECE), min(high, (n + 1) * _PIECE))
            for n in range(low // _PIECE, -(-high // _PIECE))
        ]

    def _all(self, low: int, high: int) -> Any:
        start = low // _PIECE * _PIECE
        return self._of(low // _PIECE)[low - start : high - start]

    def _marked(self, where: Where, base: int, low: int, high: int) -> tuple[Region, Any, Any] | None:
        """Return a region of the marks, and the mark of an element; None if the region does not lie in one
        array of marks.
        """
        piece = low // _PIECE
        if not isinstance(where, Region) or where.bits < 8 or (high - 1) // _PIECE != piece:
            return None
        moved = Region(where.base + base - piece * _PIECE, where.rows, where.cols, where.bits)
        return moved, self._of(piece), _MARKS[where.bits // 8]


class Written(Marks):
    """Completely written ranges of memory, and marks per byte for partly written memory."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []  # of complete ranges, which are disjoint and not adjacent
        self._ends: list[int] = []

    def add_all(self, address: int, size: int) -> None:
        """Add a complete range of memory."""
        if size <= 0:
            return
        end = address + size
        first, last = bisect_left(self._ends, address), bisect_right(self._starts, end)
        if first < last:
            address, end = min(address, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [address]
        self._ends[first:last] = [end]

    def add_where(self, address: int, mask: Any) -> None:
        """Add the bytes of a range of memory where a mask holds."""
        if mask.all():
            self.add_all(address, mask.size)
        elif not self._holds(address, address + mask.size):
            for marks, low, high in self._pieces(address, address + mask.size):
                start = low // _PIECE * _PIECE
                marks[low - start : high - start] |= mask[low - address : high - address]

    def add(self, where: Where, base: int) -> None:
        """Add bytes, at offsets from an address."""
        if not self._holds(*placed(where, base)[:2]):
            self.set(where, base)

    def lacks(self, where: Where, base: int) -> int:
        """Return the number of bytes that have not been written."""
        low, high, dense = placed(where, base)
        if self._holds(low, high):
            return 0
        if dense:
            if all([self._all(first, end).all() for _, first, end in self._pieces(low, high)]):
                return 0
        elif (found := self._marked(where, base, low, high)) is not None:
            region, marks, one = found
            if (region.load(marks, one.dtype) == one).all():
                return 0
        return int(np.count_nonzero(~self.has(_offsets(where) + base)))

    def has(self, at: Any) -> Any:
        found = super().has(at)
        if self._starts:
            which = np.searchsorted(np.array(self._starts), at, "right") - 1
            found |= (which >= 0) & (at < np.array(self._ends)[which])
        return found

    def knows(self, address: int, size: int) -> bool:
        """Return True if any byte in a range of memory was written."""
        at = bisect_right(self._ends, address)
        if at < len(self._starts) and self._starts[at] < address + size:
            return True
        return any(self._all(low, high).any() for _, low, high in self._pieces(address, address + size))

    def _holds(self, low: int, high: int) -> bool:
        """Return True if a range lies in a completely written one."""
        at = bisect_right(self._starts, low) - 1
        return low >= high or (at >= 0 and high <= self._ends[at])


class Defined:
    """The defined bytes of the memory of a graph: those that were written, without those that a task has
    written with undefined data."""

    def __init__(self) -> None:
        #: None: the initial state is unknown, and counts as written.
        self.written: Written | None = None
        self._undefined = Marks()
        #: First byte and end of all undefined data so far.
        self._low, self._high = 1 << 64, 0
        #: The last stores of undefined data: first byte, end, origin.
        self._origins: deque[tuple[int, int, Origin]] = deque(maxlen=_MOST_ORIGINS)

    def add(self, where: Where, base: int) -> None:
        """Define bytes, at offsets from an address."""
        if self.written is not None:
            self.written.add(where, base)
        if self._meets(*placed(where, base)[:2]):
            self._undefined.set(where, base, 0)

    def give(self, address: int, size: int) -> None:
        """Define a range of memory, which the host has written."""
        if self.written is not None:
            self.written.add_all(address, size)
        if self._meets(address, address + size):
            low, high = max(address, self._low), min(address + size, self._high)
            self._undefined.set(np.arange(low, high), 0, 0)

    def lacks(self, where: Where, base: int) -> int:
        """Return the number of bytes that are not defined."""
        found = self.written.lacks(where, base) if self.written is not None else 0
        if self._meets(*placed(where, base)[:2]):
            found += int(np.count_nonzero(self._undefined.has(_offsets(where) + base)))
        return found

    def undefined(self, at: Any) -> Any:
        """Return a mask of the undefined bytes among addresses."""
        found = self._undefined.has(at)
        return found if self.written is None else found | ~self.written.has(at)

    def undefine(self, at: Any, origin: Origin) -> None:
        """Mark the bytes at some addresses as written with undefined data."""
        self._undefined.set(at, 0)
        low, high = int(at.min()), int(at.max()) + 1
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._origins.append((low, high, origin))

    def origin(self, address: int) -> Origin | None:
        """Return the origin of an undefined byte; None if it was never written."""
        if not self._undefined.has(np.array([address])).any():
            return None
        return next((origin for low, high, origin in reversed(self._origins) if low <= address < high), None)

    def _meets(self, low: int, high: int) -> bool:
        return low < self._high and self._low < high


class TaskShadow:
    """The undefined bytes of an array of a task, for the sanitizer `undef`."""

    def __init__(self, defined: Defined, base: int, task: str, holds: bool) -> None:
        """`holds`: the array is a tensor between tasks, and not of the caller."""
        self._defined, self._base, self._task, self.holds = defined, base, task, holds

    def mask(self, region: Region) -> Any:
        if not self._defined.lacks(region, self._base):
            return None
        return self._undefined(first_bytes(None, region), region.bits)

    def mask_at(self, place: Place, at: Any) -> Any:
        found = self._undefined(first_bytes(place, at), start_of(place)[1])
        return found if found.any() else None

    def define(self, place: Place, where: Where, taint: Any, origin: Origin | None) -> None:
        """Record undefined data. The observer of accesses has recorded the write."""
        if taint is None or origin is None or not taint.any():
            return
        bits = where.bits if isinstance(where, Region) else start_of(place)[1]
        why = f"{origin.why}, in {self._task}"
        stored = Origin(origin.op, origin.name, origin.element, origin.kind, why, origin.parent)
        self._defined.undefine(self._bytes(first_bytes(place, where)[taint], bits).ravel(), stored)

    def origin(self, byte: int) -> Origin | None:
        return self._defined.origin(self._base + byte)

    def _bytes(self, first: Any, bits: int) -> Any:
        return self._base + first[..., None] + np.arange(max(8, bits) // 8)

    def _undefined(self, first: Any, bits: int) -> Any:
        return self._defined.undefined(self._bytes(first, bits)).any(axis=-1)


def placed(where: Where, base: int) -> tuple[int, int, bool]:
    """Return the bounds, and True if all bytes between them belong to the access."""
    low, high = bounds(where)
    return low + base, high + base, isinstance(where, Region) and where.dense


def bounds(where: Where) -> tuple[int, int]:
    """Return the first byte and the end; equal if the region is empty."""
    if isinstance(where, Region):
        return where.bounds
    return (int(where.min()), int(where.max()) + 1) if where.size else (0, 0)


def _offsets(where: Where) -> Any:
    return where.byte_offsets() if isinstance(where, Region) else where
