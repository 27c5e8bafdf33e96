"""Contents of tiles: regions that are certainly written, and the tiles that may share their bytes.

A read is defined if a `Filled` region covers it. Every write ends the regions of other tiles that it may
touch, so a read of a tile is not stale if a region of the same tile covers it. Both are stricter than the
sanitizers `undef` and `overlap`, which follow values: what is open here is decided by a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .terms import Int, Term, Truth, both, either, replaced, symbols
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

    @property
    def key(self) -> str:
        return f"{self.frame} {self.at} {self.size} {self.storage} {self.age} {self.when}"

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
        #: Tiles that may have been written: by tile and bytes; None for bytes that are not known.
        self.wrote: dict[tuple[StorageTerm, str], TermPlace | None] = {}
        #: Names of one buffer -> the name that stands for all of them.
        self.united: dict[StorageTerm, StorageTerm] = {}

    def copy(self) -> Contents:
        new = Contents()
        new.filled, new.wrote, new.united = self.filled, dict(self.wrote), dict(self.united)
        new.registers = self.registers
        return new

    @property
    def shape(self) -> tuple[Any, ...]:
        names = (f"{a} {b}" for a, b in self.united.items())
        wrote = (f"{storage} {place}" for storage, place in self.wrote)
        filled = frozenset(f.key for f in self.filled)
        return filled, frozenset(wrote), frozenset(names), repr(self.registers)

    def meet(self, other: Contents) -> None:
        """Keep what is known on another path, too."""
        known = {f.key for f in other.filled}
        self.filled = tuple(f for f in self.filled if f.key in known)
        self.wrote |= other.wrote
        self.registers = both(self.registers, other.registers)
        self.united = {a: b for a, b in self.united.items() if other.united.get(a) == b}

    def aged(self, k: Term, ends: bool, depends: Callable[[object], bool]) -> None:
        """End an iteration with the counter `k`, or the loop itself: the next iteration calls it k - 1."""
        self.registers = False if depends(self.registers) else self.registers
        found: dict[str, Filled] = {}
        for f in self.filled:
            used = f.place.symbols.union(*map(symbols, (*f.at, *f.size, f.when)))
            if any(map(depends, used)):
                if ends or f.age == _KEPT or any(depends(t) for t in used if t != k):
                    continue
                f = _changed(f, lambda x: replaced(x, {k: k - 1}))
            found[f.key] = f
        self.filled = tuple(found.values())
        wrote: dict[tuple[StorageTerm, str], TermPlace | None] = {}
        for (storage, text), place in self.wrote.items():
            if isinstance(storage.low, Term) and any(map(depends, storage.low.symbols)):
                storage = storage._replace(low=None)
            if place is not None and any(map(depends, place.symbols)):
                text, place = "", None
            wrote[storage, text] = place
        self.wrote = wrote
        self.united = {a: b for a, b in self.united.items() if all(
            not isinstance(s.low, Term) or not any(map(depends, s.low.symbols)) for s in (a, b))}  # fmt: skip

    def name_of(self, storage: StorageTerm) -> StorageTerm:
        while storage in self.united:
            storage = self.united[storage]
        return storage

    def rivals(self, storage: StorageTerm, place: TermPlace) -> Iterator[tuple[StorageTerm, Truth]]:
        """Yield the other tiles that may have written bytes of a place, each with a condition."""
        mine = self.name_of(storage)
        for (other, _), theirs in self.wrote.items():
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


def _changed(f: Filled, change: Callable[[Any], Any]) -> Filled:
    storage = f.storage._replace(low=change(f.storage.low)) if f.storage is not None else None
    return replace(
        f, frame=changed(f.frame, change), place=f.place.changed(change), at=tuple(map(change, f.at)),
        size=tuple(map(change, f.size)), storage=storage, age=f.age + 1, when=change(f.when),
    )  # fmt: skip
