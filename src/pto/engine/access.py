"""Accesses of instructions to memory: the place, its bytes, and whether they are read or written."""

from __future__ import annotations

import numpy as np

from ..isa.dtypes import DTYPES
from .elements import Array
from .memory import ConvTile, Pointer, Tile, View
from .region import Region
from .registers import Register

Place = Tile | View | ConvTile | Pointer | Register


def start_of(place: Place) -> tuple[int, int, int]:
    """Return the first byte, the bits per element and the first nibble of a place."""
    if isinstance(place, Tile):
        if place.address is None:
            raise LookupError(place.name)
        return place.address, place.bits, place.nibble
    if isinstance(place, ConvTile):
        if place.address is None:
            raise LookupError(place.name)
        return place.address, place.bits, 0
    if isinstance(place, View):
        return place.offset, place.bits, 0
    return place.offset, DTYPES[place.dtype].bits, 0


def first_bytes(place: Place | None, where: Region | Array) -> Array:
    """Return the first byte of every element: of a region, or at offsets from a place."""
    if isinstance(where, Region):
        at = where.rows.offsets[:, None] + where.cols.offsets[None, :]
        return where.base + (at + where.nibble) * where.bits // 8
    assert place is not None
    base, bits, nibble = start_of(place)
    return base + (where + nibble) * bits // 8


class Access:
    """Elements of a place that an instruction reads or writes: a region, or elements at offsets `at` from its
    start. Scratch elements get unspecified contents."""

    __slots__ = ("at", "place", "region", "scratch", "write")

    def __init__(
        self, place: Place, region: Region | None, at: Array | None, write: bool, scratch: bool = False
    ) -> None:
        self.place = place
        self.region = region
        self.at = at
        self.write = write
        self.scratch = scratch

    @property
    def space(self) -> str:
        """Return the space of the place: `gm`, `vec`, `mat`, .."""
        return self.place.buffer.space

    @property
    def where(self) -> Region | Array:
        """Return the region, or the offsets."""
        found = self.region if self.region is not None else self.at
        assert found is not None
        return found

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the first touched byte of the buffer and the byte after the last one. Both are equal if no
        byte is touched.
        """
        if self.region is not None:
            return self.region.bounds
        base, bits, nibble = start_of(self.place)
        at = self.at
        if at is None or not at.size:
            return base, base
        last = base + (int(at.max()) + nibble) * bits // 8
        return base + (int(at.min()) + nibble) * bits // 8, last + max(8, bits) // 8

    def bytes(self) -> Array:
        """Return every touched byte, in no particular order."""
        if self.region is not None:
            return self.region.byte_offsets()
        assert self.at is not None
        base, bits, nibble = start_of(self.place)
        item = max(8, bits) // 8
        first = base + (self.at.ravel() + nibble) * bits // 8
        return (first[:, None] + np.arange(item)).ravel() if item > 1 else first
