"""Map of tiles in the on-chip buffers over time. A run (`engine.sanitize.memory_map`) or a plan
(`passes.explain_memory`) fills it, and `explorer.memory` draws it.

Time is counted in instructions of the core. A tile holds one value after another: a value is born when an
instruction writes the valid region of the tile, and lives until the last instruction that reads it. Tiles
with disjoint lifetimes may share bytes. Two tiles *overlap* if one is written while the other still holds a
value that is read later. A tile that reads a value of another tile (a reshape, a subview) is a view of that
tile, not an overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..isa.profiles import LOCATIONS, Profile
from ..shown import Shown

#: Maximum number of values per tile; all later values count as one.
MOST_VALUES = 1 << 14

#: Width of the bar of a buffer in characters.
_BAR = 64


class MapStep:
    """An instruction of a core, with its line in the program."""

    __slots__ = ("line", "name", "pipe")

    def __init__(self, name: str, line: int, pipe: str) -> None:
        self.name = name
        self.line = line
        self.pipe = pipe


class HeldValue:
    """A value in a tile from one step to another. `written` is True if it was born by a write, False if the
    first access is a read."""

    __slots__ = ("first", "last", "written")

    def __init__(self, step: int, written: bool) -> None:
        self.first = self.last = step
        self.written = written

    @property
    def start(self) -> float:
        """Begin of the lifetime. An instruction reads in the first half of its step and writes in the second
        half."""
        return self.first + 0.5 if self.written else self.first

    @property
    def end(self) -> float:
        return float(self.last) if self.last > self.first else self.start + 0.25


class Life:
    """A tile at an address: all its values there, and the instructions that access it."""

    __slots__ = (
        "_of", "_part", "_reach", "address", "line", "loc", "name", "peers", "placed", "reads", "seen",
        "shape", "size", "uses", "values", "views", "writes", "written",
    )  # fmt: skip

    def __init__(self, loc: str, name: str, address: int, size: int, line: int, shape: str) -> None:
        self.loc = loc
        self.name = name
        self.address = address
        self.size = size
        self.line = line  # line of the first access
        self.shape = shape
        self.placed = True  # True if the program chose the address
        self.values: list[HeldValue] = []
        self.reads = self.writes = 0
        self.written = self.seen = -1  # steps of the last write and read
        #: Number of writes or reads by each instruction (name, line).
        self.uses: dict[tuple[str, int, bool], int] = {}
        self.peers: list[Life] = []  # tiles that share bytes
        self.views: set[Life] = set()  # peers that alias the same storage
        self._part: tuple[int, int] | None = None  # step that wrote a part, and the previous last step
        self._reach: tuple[int, int] | None = None  # bytes written through a pointer
        self._of: HeldValue | None = None  # value of another tile, of which the last value is a view

    @property
    def end(self) -> int:
        return self.address + self.size

    @property
    def first(self) -> int:
        return self.values[0].first

    @property
    def last(self) -> int:
        return self.values[-1].last

    @property
    def is_view(self) -> bool:
        """True if this tile only reads values of another tile."""
        return self.written < 0 and bool(self.views)

    def covers(self, written: tuple[int, int]) -> bool:
        """Return True if bytes written through a pointer cover everything that was written so far."""
        low, high = self._reach or written
        self._reach = min(low, written[0]), max(high, written[1])
        return self._reach == written

    def write(self, now: int, whole: bool) -> None:
        self.writes += now != self.written  # count an instruction once
        self.written = now
        held = self.values[-1] if self.values else None
        if held is not None and self._part is not None and self._part[0] == now and whole:
            held.last = self._part[1]  # the padding of the tile was written first
        if held is None or (whole and held.last < now and len(self.values) < MOST_VALUES):
            self.values.append(HeldValue(now, True))
            self._part = None
        else:  # the value is updated in place, or only a part of it is written
            if held.last < now:
                self._part = (now, held.last)
            held.last = now
        self._of = None

    def read(self, now: int) -> None:
        self.reads += now != self.seen
        self.seen = now
        source = self
        for peer in self.peers:
            if peer.written > source.written and (self.written < 0 or peer in self.views):
                source = peer
        if source is self:
            if not self.values:
                self.values.append(HeldValue(now, False))
        else:
            self.views.add(source)
            source.views.add(self)
            origin = source.values[-1]
            origin.last = now
            if self._of is not origin:
                self._of = origin
                self.values.append(HeldValue(now, False))
        self.values[-1].last = now


class TileOverlap:
    """Two tiles that share bytes `low`..`high` while both hold values, with the (first, last) steps of each
    such time."""

    __slots__ = ("a", "b", "high", "low", "spans")

    def __init__(self, a: Life, b: Life, spans: list[tuple[float, float]]) -> None:
        self.a, self.b = a, b
        self.low, self.high = max(a.address, b.address), min(a.end, b.end)
        self.spans = spans

    def text(self) -> str:
        when = _steps(int(self.spans[0][0]), int(np.ceil(self.spans[-1][1])))
        often = f", {len(self.spans)} times" if len(self.spans) > 1 else ""
        names = f"%{self.a.name} and %{self.b.name}"
        return f"{names} share bytes {self.low}..{self.high} while both are in use ({when}{often})"


class MemoryMap(Shown):
    """Lifetimes of the tiles of the first block, by core and buffer."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        #: Lifetimes and instructions by core ("core" if a program does not distinguish cores).
        self.lives: dict[str, list[Life]] = {}
        self.steps: dict[str, list[MapStep]] = {}
        #: Number of the event in the launch, for the steps of a run.
        self.numbers: dict[str, list[int]] = {}

    def capacity(self, loc: str) -> int:
        return self.profile.capacity[loc]

    def buffers(self, core: str) -> list[str]:
        """Return the used locations of a core, in the order of the ISA."""
        used = {life.loc for life in self.lives.get(core, ())}
        return [loc for loc in LOCATIONS if loc in used]

    def tiles(self, core: str, loc: str, placed: bool | None = None) -> list[Life]:
        """Return the tiles of a buffer by address: with addresses from the program, without, or all."""
        found = [v for v in self.lives.get(core, ()) if v.loc == loc and placed in (None, v.placed)]
        return sorted(found, key=lambda v: (v.address, v.first, v.size))

    def usage(self, core: str, loc: str, placed: bool | None = True) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the number of bytes with a value at each step. Shared bytes count once."""
        lives = self.tiles(core, loc, placed)
        total = np.zeros(max([len(self.steps.get(core, ())), *[v.last + 1 for v in lives]]), np.int64)
        edges = sorted({e for v in lives for e in (v.address, v.end)})
        for low, high in pairwise(edges):
            change = np.zeros(len(total) + 1, np.int64)
            for life in lives:
                if life.address <= low and high <= life.end:
                    np.add.at(change, [v.first for v in life.values], 1)
                    np.add.at(change, [v.last + 1 for v in life.values], -1)
            total += np.where(np.cumsum(change[:-1]) > 0, high - low, 0)
        return total

    def peak(self, core: str, loc: str, placed: bool | None = True) -> int:
        """Return the largest number of live bytes at one time. Shared bytes count once."""
        return int(self.usage(core, loc, placed).max(initial=0))

    def top(self, core: str, loc: str) -> int:
        """Return the end of the highest tile with an address from the program."""
        return max((v.end for v in self.tiles(core, loc, True)), default=0)

    def overlaps(self, core: str, loc: str) -> list[TileOverlap]:
        """Return the pairs of tiles that share bytes while both are alive and are not views of each other."""
        lives = self.tiles(core, loc)
        order = {life: n for n, life in enumerate(lives)}
        found: list[TileOverlap] = []
        for a in lives:
            for b in sorted(a.peers, key=lambda v: order[v]):
                if order[b] > order[a] and b not in a.views:
                    spans = list(_meetings(a.values, b.values))
                    if spans:
                        older, newer = (a, b) if a.first <= b.first else (b, a)
                        found.append(TileOverlap(older, newer, spans))
        return found

    def __repr__(self) -> str:
        buffers = sum(len(self.buffers(core)) for core in self.lives)
        return f"<MemoryMap of {self.profile.name}: {buffers} buffers of {len(self.lives)} cores>"

    # -- as text ---------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the map as one table per buffer."""
        parts = [self._buffer_text(core, loc) for core in self.lives for loc in self.buffers(core)]
        return "\n\n".join(parts) if parts else "no tile was touched"

    def _buffer_text(self, core: str, loc: str) -> str:
        capacity, peak, top = self.capacity(loc), self.peak(core, loc), self.top(core, loc)
        where = f" of {core}" if core != "core" else ""
        lives, homeless = self.tiles(core, loc, True), self.tiles(core, loc, False)
        out: list[str] = []
        title = f"{LOCATIONS[loc]}{where}"
        if lives:
            out.append(
                f"{title}: peak {peak} of {capacity} bytes alive at a time ({_percent(peak, capacity)}), "
                f"addresses up to {top} ({_percent(top, capacity)}), {len(self.steps.get(core, ()))} steps"
            )
            out.append(f"  0 [{self._bar(core, loc)}] {capacity}")
            out += _table(lives)
            out += [f"  beyond the capacity: %{v.name} ends at {v.end}" for v in lives if v.end > capacity]
        out += [f"  overlap: {overlap.text()}" for overlap in self.overlaps(core, loc)]
        if homeless:
            need = self.peak(core, loc, False)
            out.append(
                f"{title}, not placed by the program: {len(homeless)} {'tiles' if homeless[1:] else 'tile'}, "
                f"at most {need} of {capacity} bytes alive at a time ({_percent(need, capacity)})"
            )
            out += _table(homeless, addresses=False)
        return "\n".join(out)

    def _bar(self, core: str, loc: str) -> str:
        """Return a bar of the used part of a buffer: '#', and '!' for overlaps."""
        capacity = self.capacity(loc)
        bar = ["."] * _BAR

        def mark(low: int, high: int, sign: str) -> None:
            for n in range(low * _BAR // capacity, min(_BAR, -(-high * _BAR // capacity))):
                bar[n] = sign

        for life in self.tiles(core, loc, True):
            mark(life.address, life.end, "#")
        for overlap in self.overlaps(core, loc):
            mark(overlap.low, overlap.high, "!")
        return "".join(bar)


def _meetings(a: list[HeldValue], b: list[HeldValue]) -> Iterator[tuple[float, float]]:
    """Yield the spans of time in which both tiles hold values."""
    m = n = 0
    while m < len(a) and n < len(b):
        low, high = max(a[m].start, b[n].start), min(a[m].end, b[n].end)
        if low < high:
            yield low, high
        if a[m].end <= b[n].end:
            m += 1
        else:
            n += 1


def _steps(first: int, last: int) -> str:
    return f"step {first}" if first >= last else f"steps {first}..{last}"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "there is no such buffer"


def _table(lives: Iterable[Life], addresses: bool = True) -> list[str]:
    """Return aligned rows, with text to the left and numbers to the right."""
    head = ["bytes", "tile", "shape", "steps", "line", "writes", "reads", "values"]
    rows = [
        [
            f"{v.address}..{v.end}" if addresses else str(v.size), f"%{v.name}", v.shape,
            f"{v.first}..{v.last}", str(v.line), str(v.writes), str(v.reads), str(len(v.values)),
        ]
        for v in lives
    ]  # fmt: skip
    widths = [max(len(r[n]) for r in [head, *rows]) for n in range(len(head))]

    def cell(n: int, word: str) -> str:
        return word.ljust(widths[n]) if n in (1, 2) else word.rjust(widths[n])

    return ["  " + "  ".join(cell(n, w) for n, w in enumerate(r)) for r in [head, *rows]]
