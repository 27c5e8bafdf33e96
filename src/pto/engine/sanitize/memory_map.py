"""Who lives where in the on-chip buffers over the time of a run; drawn by `pto.perf.memory_picture`."""

from __future__ import annotations

from typing import Any

from ...isa.profiles import LOCATIONS, Profile
from ..memory import ConvTile, Pointer, Tile
from ..reference.instr import Instr


class Life:
    """One stay of a tile in a buffer, from its first to its last access (in instructions of the core)."""

    __slots__ = ("address", "first", "last", "line", "loc", "name", "reads", "shape", "size", "writes")

    def __init__(self, loc: str, name: str, address: int, size: int, time: int, line: int, shape: str) -> None:
        self.loc = loc
        self.name = name
        self.address = address
        self.size = size
        self.first = self.last = time
        self.line = line  # of the first access
        self.shape = shape
        self.reads = self.writes = 0


class MemoryMap:
    """Lives of the tiles of the cores of the first block, by core and buffer."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.time = 0
        #: core -> lives
        self.lives: dict[str, list[Life]] = {}
        self._open: dict[tuple[str, str, str, int, int], Life] = {}
        self.steps: list[tuple[str, str, int]] = []  # core, instruction and line of every time step

    def tick(self) -> None:
        self.time += 1

    def touch(self, i: Instr, place: Any, write: bool) -> None:
        if i.core.block != 0 or not isinstance(place, Tile | ConvTile | Pointer):
            return
        core = i.core.name or "core"
        span = i.core.grid.span(i.op)
        line = span.place[0] if span else 0
        while len(self.steps) <= self.time:
            self.steps.append((core, i.name, line))
        if isinstance(place, Pointer):
            return
        assert place.address is not None
        key = (core, place.loc, place.name, place.address, place.size)
        life = self._open.get(key)
        if life is None:
            dims = f"{place.rows}x{place.cols}" if isinstance(place, Tile) else "x".join(map(str, place.dims))
            life = Life(place.loc, place.name, place.address, place.size, self.time, line, f"{dims}x{place.dtype}")
            self._open[key] = life
            self.lives.setdefault(core, []).append(life)
        life.last = self.time
        if write:
            life.writes += 1
        else:
            life.reads += 1

    def capacity(self, loc: str) -> int:
        return self.profile.capacity[loc]

    def buffers(self, core: str) -> list[str]:
        """Locations of a core in which something lives, in the order of the ISA."""
        used = {life.loc for life in self.lives.get(core, ())}
        return [loc for loc in LOCATIONS if loc in used]

    def peak(self, core: str, loc: str) -> int:
        """The most bytes that are alive at one time; overlapping tiles count once."""
        lives = [life for life in self.lives.get(core, ()) if life.loc == loc]
        best = 0
        for time in sorted({life.first for life in lives}):
            spans = sorted((v.address, v.address + v.size) for v in lives if v.first <= time <= v.last)
            total, end = 0, -1
            for low, high in spans:
                total += max(0, high - max(low, end))
                end = max(end, high)
            best = max(best, total)
        return best

    def overlaps(self, core: str, loc: str) -> list[tuple[Life, Life]]:
        """Pairs that share bytes while both are alive."""
        lives = [life for life in self.lives.get(core, ()) if life.loc == loc]
        return [
            (a, b)
            for n, a in enumerate(lives)
            for b in lives[n + 1 :]
            if a.address < b.address + b.size and b.address < a.address + a.size
            and a.first <= b.last and b.first <= a.last
        ]  # fmt: skip

    def text(self) -> str:
        """The map as a table per buffer."""
        out: list[str] = []
        for core in self.lives:
            for loc in self.buffers(core):
                capacity = self.capacity(loc)
                peak = self.peak(core, loc)
                where = f" of {core}" if core != "core" else ""
                out.append(f"{LOCATIONS[loc]}{where}: peak {peak} of {capacity} bytes ({peak / max(1, capacity):.0%})")
                for life in sorted((v for v in self.lives[core] if v.loc == loc), key=lambda v: (v.address, v.first)):
                    end = life.address + life.size
                    out.append(
                        f"  {life.address:>8} ..{end:>8}  %{life.name:<14} {life.shape:<16} steps {life.first}..{life.last}"
                        f"  line {life.line}  {life.writes} writes, {life.reads} reads"
                    )
                for a, b in self.overlaps(core, loc):
                    out.append(f"  overlap: %{a.name} and %{b.name} share bytes while both are in use")
        return "\n".join(out) if out else "no tile was touched"
