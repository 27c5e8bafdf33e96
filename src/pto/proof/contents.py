"""Contents of tiles: regions that are certainly written, and the tiles that may share their bytes.

A read is defined if a `Filled` region covers it. Every write ends the regions of other tiles that it may
touch, so a read of a tile is not stale if a region of the same tile covers it. Both are stricter than the
sanitizers `undef` and `overlap`, which follow values: what is open here is decided by a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..symbolic.terms import Int, Term, Truth, both, either, replaced, symbols
from .values import StorageTerm, TermPlace, TileTerm, changed, meet

#: Most iterations for which a region is kept.
_KEPT = 3
Size = tuple[Int, Int]


@dataclass(frozen=True)
class Filled:
    """A rectangle of elements of a tile that is written; `frame` decides where its elements are."""

    frame: tuple[object, ...]
    place: TermPlace
    at: Size
    size: Size
    storage: StorageTerm | None
    whole: bool  # all bytes of the place
    age: int = 0
    when: Truth = True  # the condition under which the elements are defined

    def defines(self, other: Filled) -> Truth:
        return both(self.when, self.covers(other))

    def covers(self, other: Filled) -> Truth:
        if self.frame == other.frame:
            inside: list[Truth] = []
            for a, n, b, m in zip(self.at, self.size, other.at, other.size, strict=True):
                inside += [a <= b, b + m <= a + n]
            return either(both(*inside), *(m <= 0 for m in other.size))
        if self.whole and self.place.root == other.place.root:
            return both(self.place.low <= other.place.low, other.place.high <= self.place.high)
        return False


def region(tile: TileTerm, size: Size | None = None) -> Filled:
    """Return a rectangle from the first element of a tile on, by default all of it."""
    size = tile.shape if size is None else size
    valid = tile.valid if tile.type.compact != "null" else ()
    frame = (tile.root, tile.low, tile.pitch, tile.layout, tile.bits, tile.type.compact, valid)
    whole = (tile.at, size) == ((0, 0), tile.pitch) and tile.type.compact == "null"
    place = replace(tile, shape=size).place if tile.plain else tile.place  # type: ignore[arg-type]
    return Filled(frame, place, tile.at, size, tile.storage, whole)


class Contents:
    """The contents of the tiles of a core at one point of a path."""

    def __init__(self) -> None:
        self.filled: tuple[Filled, ...] = ()
        #: The condition under which all loads of the current vecscope are defined.
        self.registers: Truth = True
        #: Tiles that may have been written, with the bytes; None for bytes that are not known.
        self.wrote: dict[tuple[StorageTerm, TermPlace | None], None] = {}
        #: Names of one buffer -> the name that stands for all of them.
        self.united: dict[StorageTerm, StorageTerm] = {}

    def copy(self) -> Contents:
        new = Contents()
        new.filled, new.wrote, new.united = self.filled, dict(self.wrote), dict(self.united)
        new.registers = self.registers
        return new

    @property
    def shape(self) -> tuple[Any, ...]:
        return frozenset(self.filled), frozenset(self.wrote), frozenset(self.united.items()), self.registers

    def meet(self, other: Contents) -> None:
        """Keep what is known on another path, too."""
        self.filled = tuple(f for f in self.filled if f in other.filled)
        self.wrote |= other.wrote
        self.registers = both(self.registers, other.registers)
        self.united = {a: b for a, b in self.united.items() if other.united.get(a) == b}

    def aged(self, k: Term, ends: bool, depends: Callable[[object], bool]) -> None:
        """End an iteration with the counter `k`, or the loop itself: the next iteration calls it k - 1."""
        self.registers = False if depends(self.registers) else self.registers
        found: dict[Filled, None] = {}
        for f in self.filled:
            moving = [t for t in symbols(f) if depends(t)]
            if moving:
                if ends or f.age == _KEPT or moving != [k]:
                    continue
                f = replace(changed(f, lambda x: replaced(x, {k: k - 1})), age=f.age + 1)
            found[f] = None
        self.filled = tuple(found)
        wrote: dict[tuple[StorageTerm, TermPlace | None], None] = {}
        for storage, place in self.wrote:
            if any(map(depends, symbols(storage.low))):
                storage = storage._replace(low=None)
            wrote[storage, None if any(map(depends, symbols(place))) else place] = None
        self.wrote = wrote
        pairs = self.united.items()
        self.united = {a: b for a, b in pairs if not any(map(depends, symbols((a.low, b.low))))}

    def name_of(self, storage: StorageTerm) -> StorageTerm:
        while storage in self.united:
            storage = self.united[storage]
        return storage

    def rivals(self, storage: StorageTerm, place: TermPlace) -> Iterator[tuple[StorageTerm, Truth]]:
        """Yield the other tiles that may have written bytes of a place, each with a condition."""
        mine = self.name_of(storage)
        for other, theirs in self.wrote:
            if self.name_of(other) == mine or other.views(storage) or other.root != storage.root:
                continue
            condition = True if theirs is None else meet(place, theirs)
            if condition is not False:
                yield other, condition

    def has(self, storage: StorageTerm) -> bool:
        """Return whether a tile may have been written, under any of its names."""
        mine = self.name_of(storage)
        return any(self.name_of(other) == mine for other, _ in self.wrote)

    def twins(self, storage: StorageTerm) -> set[StorageTerm]:
        """Return the tiles that may have been written and have the bytes and the kind of another one."""
        return {self.name_of(other) for other, _ in self.wrote if other.twin_of(storage)}
