"""The memory map of a run, from all accesses of instructions to on-chip buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.core import Module
from ...ir.facts import storage_source
from ...isa.profiles import Profile
from ...perf.memory_map import Life, MapStep, MemoryMap
from ..access import Access
from ..elements import Array
from ..memory import ConvTile, Pointer, Tile, View
from ..registers import SPECIAL
from ..watch import INSTRUCTION, Event, WatchedLaunch, Watcher

if TYPE_CHECKING:
    from ..result import LaunchResult

#: Memory spaces that are not on-chip buffers.
_ELSEWHERE = ("gm", "fifo", SPECIAL)


class MapWatcher(Watcher):
    """Fills the map of a launch."""

    wants = (INSTRUCTION,)
    map: RecordedMap

    def launch_started(self, launch: WatchedLaunch) -> None:
        self.map = RecordedMap(launch.profile, launch)

    def launch_ended(self, result: LaunchResult) -> None:
        result.memory_map = self.map

    def loaded(self, event: Event, access: Access, data: Array) -> None:
        self.map.touch(event, access)

    def stored(self, event: Event, access: Access) -> None:
        self.map.touch(event, access)

    def finished(self, event: Event) -> None:
        for access in event.scratch:
            self.map.touch(event, access)
        self.map.tick(event)


class RecordedMap(MemoryMap):
    def __init__(self, profile: Profile, launch: WatchedLaunch) -> None:
        super().__init__(profile)
        self._launch = launch
        self._found: dict[tuple[object, ...], Life] = {}
        self._known: dict[tuple[object, str], MapStep] = {}
        self._roots: dict[str, str] | None = None

    def tick(self, event: Event) -> None:
        """Add an instruction that has ended, as one step of its core."""
        if event.core.index == 0:
            core = event.core.name or "core"
            self.steps.setdefault(core, []).append(self._step(event))
            self.numbers.setdefault(core, []).append(event.number)

    def touch(self, event: Event, access: Access) -> None:
        """Record an access to an on-chip buffer."""
        if event.core.index != 0 or access.space in _ELSEWHERE:
            return
        place, region, write = access.place, access.region, access.write
        life = self._life(event, access)
        if life is None:
            return
        now = len(self.steps.get(event.core.name or "core", ()))
        step = self._step(event)
        use = (step.name, step.line, write)
        if (life.written if write else life.seen) != now:
            life.uses[use] = life.uses.get(use, 0) + 1
        if not write:
            life.read(now)
        elif isinstance(place, Tile):
            rows, cols = place.valid
            whole = region is not None and region.first == (0, 0)
            life.write(now, whole and region.rows.size >= rows and region.cols.size >= cols)  # type: ignore[union-attr]
        else:
            life.write(now, region is not None and life.covers(region.bounds))

    def _step(self, event: Event) -> MapStep:
        op, pipe = event.op, event.pipe
        found = self._known.get((op, pipe))
        if found is None:
            span = self._launch.span(op)
            found = self._known[op, pipe] = MapStep(event.name, span.place[0] if span else 0, pipe or "S")
        return found

    def _life(self, event: Event, access: Access) -> Life | None:
        core, place = event.core.name or "core", access.place
        name = place.name
        if isinstance(place, Tile | ConvTile):
            assert place.address is not None
            loc, low, size = place.loc, place.address, place.size
        elif isinstance(place, Pointer) and place.home is not None:  # an access to the tile it comes from
            loc, (low, high, name, _) = place.buffer.space, place.home
            size = high - low
        else:
            loc = place.buffer.space
            low, high = place.whole().bounds if isinstance(place, View) else access.bounds
            size = high - low
        # accesses of a vecscope through one pointer form one life, and so do copies to and from it
        points = isinstance(place, Pointer) and place.home is None
        walks = points and event.scope is not None
        key = (core, loc, name, "vecscope") if walks else (core, loc, name, low, size)
        found = self._found.get(key)
        if found is None and points and size > 0:
            found = self._meets(core, loc, name, low, low + size)
            if found is not None:
                self._found[key] = found
        if points and found is not None and size > 0 and (low < found.address or low + size > found.end):
            self._widen(core, found, low, low + size)
        elif found is not None and isinstance(place, Tile) and found.shape == f"{found.size} bytes":
            found.shape = _shape(place, size)  # the first access was through a pointer
        if found is None and size > 0:
            if isinstance(place, Tile) and place.pitch != place.shape:  # a window of a larger tile
                low, high = place.region(*place.shape).bounds
                size = high - low
            found = self._found[key] = Life(loc, name, low, size, self._step(event).line, _shape(place, size))
            found.placed = low < place.buffer.limit
            self._introduce(self._launch.module, core, found)
        return found

    def _meets(self, core: str, loc: str, name: str, low: int, high: int) -> Life | None:
        """Return the known life of a pointer with the same name that shares these bytes; None for a tile."""
        for life in self.lives.get(core, ()):
            if (life.name, life.loc) == (name, loc) and life.address < high and low < life.end:
                return life if life.shape == f"{life.size} bytes" else None
        return None

    def _widen(self, core: str, life: Life, low: int, high: int) -> None:
        """Let a life cover more bytes, and link it with the other lives on them."""
        low, high = min(low, life.address), max(high, life.end)
        life.address, life.size, life.shape = low, high - low, f"{high - low} bytes"
        for old in self.lives.get(core, ()):
            if old is not life and old.loc == life.loc and old.address < high and low < old.end:
                if old not in life.peers:
                    old.peers.append(life)
                    life.peers.append(old)

    def _introduce(self, module: Module, core: str, new: Life) -> None:
        """Link a new life with those that it shares bytes with."""
        if self._roots is None:
            self._roots = _roots(module)
        lives = self.lives.setdefault(core, [])
        root = self._roots.get(new.name)
        for old in lives:
            if old.loc == new.loc and old.address < new.end and new.address < old.end:
                old.peers.append(new)
                new.peers.append(old)
                if root is not None and old.name != new.name and self._roots.get(old.name) == root:
                    old.views.add(new)
                    new.views.add(old)
        lives.append(new)


def _shape(place: Any, size: int) -> str:
    if isinstance(place, Pointer):
        return f"{size} bytes"
    dims = place.shape if isinstance(place, Tile) else place.dims
    return "x".join([*map(str, dims), place.dtype])


def _roots(module: Module) -> dict[str, str]:
    """Return for each name of a tile one name for its group of views."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for op in module.walk():
        row, source = op.row, storage_source(op)
        if row is None or source is None or row.effect != "alias":
            continue
        made = op.results[0] if op.results else op.get(row.rebinds)
        if source is not None and made is not None and source.name and made.name:
            parent[find(made.name)] = find(source.name)
    return {name: find(name) for name in parent}
