"""The bytes of global memory that have been written."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from ..engine.region import Region

#: Bytes of memory per array of marks; only its used pages take memory.
_PIECE = 1 << 28

#: Marks of an element, by its size in bytes.
_MARKS = {n: np.array(int.from_bytes(b"\x01" * n, "little"), f"u{n}") for n in (1, 2, 4, 8)}

#: Bytes: a region, or their offsets.
Where = Region | Any


class Written:
    """Completely written ranges of memory, and marks per byte for partly written memory."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # of complete ranges, which are disjoint and not adjacent
        self._ends: list[int] = []
        self._marks: dict[int, Any] = {}

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
        low, high, dense = self._placed(where, base)
        if self._holds(low, high):
            return
        if dense:
            for marks, first, end in self._pieces(low, high):
                start = first // _PIECE * _PIECE
                marks[first - start : end - start] = 1
        elif (found := self._marked(where, base, low, high)) is not None:
            region, marks, one = found
            region.fill(marks, one)
        else:
            at = _offsets(where) + base
            for piece in np.unique(at // _PIECE).tolist():
                self._of(piece)[at[at // _PIECE == piece] - piece * _PIECE] = 1

    def lacks(self, where: Where, base: int) -> int:
        """Return the number of bytes that have not been written."""
        low, high, dense = self._placed(where, base)
        if self._holds(low, high):
            return 0
        if dense:
            if all([self._all(first, end).all() for _, first, end in self._pieces(low, high)]):
                return 0
        elif (found := self._marked(where, base, low, high)) is not None:
            region, marks, one = found
            if (region.load(marks, one.dtype) == one).all():
                return 0
        at = _offsets(where) + base
        if self._starts:
            which = np.searchsorted(np.array(self._starts), at, "right") - 1
            at = at[(which < 0) | (at >= np.array(self._ends)[which])]
        pieces = at // _PIECE
        return sum(
            int(np.count_nonzero(self._of(n)[at[pieces == n] - n * _PIECE] == 0))
            for n in np.unique(pieces).tolist()
        )

    def knows(self, address: int, size: int) -> bool:
        """Return True if any byte of a range of memory was written."""
        at = bisect_right(self._ends, address)
        if at < len(self._starts) and self._starts[at] < address + size:
            return True
        return any(self._all(low, high).any() for _, low, high in self._pieces(address, address + size))

    @staticmethod
    def _placed(where: Where, base: int) -> tuple[int, int, bool]:
        """Return the bounds, and True if all bytes between them belong to the access."""
        low, high = bounds(where)
        dense = isinstance(where, Region) and where.dense
        return low + base, high + base, dense

    def _holds(self, low: int, high: int) -> bool:
        """Return True if a range lies in a completely written one."""
        at = bisect_right(self._starts, low) - 1
        return low >= high or (at >= 0 and high <= self._ends[at])

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
        """Return a region among the marks, and the mark of an element; None if it does not lie in one array
        of marks."""
        piece = low // _PIECE
        if not isinstance(where, Region) or where.bits < 8 or (high - 1) // _PIECE != piece:
            return None
        moved = Region(where.base + base - piece * _PIECE, where.rows, where.cols, where.bits)
        return moved, self._of(piece), _MARKS[where.bits // 8]


def bounds(where: Where) -> tuple[int, int]:
    """Return the first byte and the end; equal if the region is empty."""
    if isinstance(where, Region):
        return where.bounds
    return (int(where.min()), int(where.max()) + 1) if where.size else (0, 0)


def _offsets(where: Where) -> Any:
    return where.byte_offsets() if isinstance(where, Region) else where
