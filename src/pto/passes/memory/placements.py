"""The result of memory planning: tiles with their addresses and lifetimes, by function and buffer.

`MemoryPlan` is `ctx.plan` after the pass; `explain_memory` shows it. Data for explanations only is computed
on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ...ir.core import Module, Operation, Value
from ...ir.types import TileBufType
from ...isa.profiles import LOCATIONS, Profile
from ...shown import Shown
from ..aliases import AllocatedStorage
from ..edit import function_name
from ..liveness import Liveness, Spans, joined
from .pack import Item, load
from .strategy import Planner


class Use:
    """An instruction that accesses a tile."""

    __slots__ = ("op", "reads", "step", "writes")

    def __init__(self, step: int, op: Operation, reads: bool, writes: bool) -> None:
        self.step = step
        self.op = op
        self.reads = reads
        self.writes = writes


class PlacedTile:
    """A placed tile. Its steps are those of its function, from 0."""

    __slots__ = ("address", "name", "size", "space", "spans", "storage")

    def __init__(self, space: BufferSpace, storage: AllocatedStorage, address: int, spans: Spans) -> None:
        self.space = space
        self.storage = storage
        self.name = storage.value.name or "?"
        self.address = address
        self.size = storage.size
        self.spans = spans  # runs of steps at which it is live; none for an unused tile

    @property
    def value(self) -> Value:
        return self.storage.value

    @property
    def shape(self) -> str:
        return shape_of(self.storage)

    @property
    def end(self) -> int:
        return self.address + self.size

    @property
    def first(self) -> int:
        return self.spans[0][0] if self.spans else -1

    @property
    def last(self) -> int:
        return self.spans[-1][1] if self.spans else -1

    def uses(self) -> list[Use]:
        """Return the instructions of its function that access it."""
        live, bit = self.space.planner.live, 1 << self.storage.bit
        first, end = live.ranges[self.storage.function]
        return [
            Use(n - first, live.steps[n], bool(live.reads[n] & bit), bool(live.writes[n] & bit))
            for n in range(first, end)
            if (live.reads[n] | live.writes[n]) & bit
        ]

    def shares(self) -> list[str]:
        """Return the names of tiles that share bytes with it; names of other functions include the
        function."""
        out: list[str] = []
        for other, address in self.space.planner.addresses.items():
            if other is self.storage or not other.spans or not self.spans:
                continue
            if address < self.end and self.address < address + other.size:
                name = f"%{other.value.name or '?'}"
                same = other.function is self.storage.function
                out.append(name if same else f"{name} of @{function_name(other.function)}")
        return out


class BufferSpace:
    """A buffer in one function."""

    def __init__(self, function: FunctionPlan, planner: Planner) -> None:
        self.function = function
        self.planner = planner
        self.loc = planner.loc
        self.capacity = planner.capacity
        self.sharing = planner.sharing  # a key of SHARING
        self.tiles: list[PlacedTile] = []

    @property
    def title(self) -> str:
        return LOCATIONS[self.loc]

    @property
    def top(self) -> int:
        """Return the end of the highest tile."""
        return max((t.end for t in self.tiles if t.spans), default=0)

    @property
    def peak(self) -> int:
        """Return the most bytes in use at one step; the bytes of a result in place count once."""
        edges = sorted({e for t in self.tiles for e in (t.address, t.end)})
        pieces: list[Item] = []
        for low, high in pairwise(edges):
            spans = [span for t in self.tiles if t.address <= low and high <= t.end for span in t.spans]
            pieces.append(Item(high - low, 1, joined(spans)))
        return load(pieces)[0]

    def calls(self) -> list[tuple[int, str, int]]:
        """Return (step, function, end of the highest tile that it reaches by calls) for each call."""
        live = self.planner.live
        first, end = live.ranges[self.function.function]
        out: list[tuple[int, str, int]] = []
        for step, callee in live.calls:
            if first <= step < end:
                reach = live.reach(callee)
                tops = [
                    a + s.size for s, a in self.planner.addresses.items() if s.function in reach and s.spans
                ]
                out.append((step - first, function_name(callee), max(tops, default=0)))
        return out


class FunctionPlan:
    def __init__(self, function: Operation, live: Liveness) -> None:
        self.function = function
        self.name = function_name(function)
        first, end = live.ranges[function]
        self.steps = live.steps[first:end]  # instructions that access tiles, in program order
        self.spaces: dict[str, BufferSpace] = {}


class MemoryPlan(Shown):
    """The result of memory planning, by function and buffer."""

    def __init__(self, module: Module, profile: Profile) -> None:
        self.module = module
        self.profile = profile
        self.functions: dict[str, FunctionPlan] = {}

    def __repr__(self) -> str:
        return f"<MemoryPlan of {', '.join('@' + name for name in self.functions) or 'no function'}>"

    def add(self, planner: Planner) -> None:
        """Add the addresses of a buffer."""
        live = planner.live
        for storage, address in planner.addresses.items():
            name = function_name(storage.function)
            function = self.functions.get(name)
            if function is None:
                function = self.functions[name] = FunctionPlan(storage.function, live)
            space = function.spaces.get(planner.loc)
            if space is None:
                space = function.spaces[planner.loc] = BufferSpace(function, planner)
            first, end = live.ranges[storage.function]
            spans = storage.spans
            if len(live.ranges) > 1:
                spans = [(max(a, first), min(b, end - 1)) for a, b in spans if first <= b and a < end]
            space.tiles.append(
                PlacedTile(space, storage, address, [(a - first, b - first) for a, b in spans])
            )

    def tiles(self) -> Iterator[PlacedTile]:
        for function in self.functions.values():
            for space in function.spaces.values():
                yield from space.tiles

    def line(self, op: Operation) -> int:
        """Return the line of an operation in the text."""
        return self.module.span(op).line


def shape_of(storage: AllocatedStorage) -> str:
    """Return the shape of a tile for messages and maps."""
    type = storage.value.type
    if storage.reserved:
        return "reserved"
    dims = type.shape if isinstance(type, TileBufType) else getattr(type, "dims", ())
    return "x".join([*map(str, dims), str(getattr(type, "dtype", None) or getattr(type, "elem", "?"))])
