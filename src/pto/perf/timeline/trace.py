"""What a launch did, as columns: one entry per event, in the order in which cores issued them.

It holds no time. Who recorded it (an engine's watcher) tells for every event its core, its pipe, what it
costs and whom it waits for; `simulate` needs nothing else. A what-if is another trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...isa.costs import NOTHING, Charge, charged
from ...isa.row import Row
from ...isa.timing import Machine

#: What an event is. WORK takes its pipe, GIVE raises something once all before it is done, TAKE waits,
#: BARRIER drains its pipe, DRAIN (of the scalar unit) all pipes of the core, MEET all cores of the launch;
#: INSIDE is part of another event and has no time of its own.
WORK, GIVE, TAKE, BARRIER, DRAIN, MEET, INSIDE = range(7)

#: The scalar unit, where a pipe is named.
SCALAR = "S"


class Site(NamedTuple):
    """An instruction of the program: what is told of its events."""

    name: str
    line: int
    file: str
    text: str  # the source line, stripped
    tiles: tuple[str, ...] = ()  # names of its operands


class CoreInfo(NamedTuple):
    """A core of the launch: its block (over all ranks), its name in it and its kind (cube, vector, mix).
    Every rank is a device of its own."""

    block: int
    name: str
    kind: str
    rank: int = 0


class Range(NamedTuple):
    """Bytes of a buffer of a core that an event reads or writes, and whose tile that is."""

    space: str
    low: int
    high: int
    write: bool
    name: str


class Trace:
    """The columns. `waits[e]` are (event that gives, kind of what it gives); `meets` are groups of events of
    kind MEET that wait for each other."""

    def __init__(self) -> None:
        self.cores: list[CoreInfo] = []
        self.pipes: list[str] = [SCALAR]
        self.sites: list[Site] = []
        self.charges: list[Charge] = [NOTHING]
        #: What charges were made of, row and operands, to make them again for another machine.
        self.made_of: list[tuple[Row, Mapping[str, Any]] | None] = [None]
        self.core: list[int] = []
        self.pipe: list[int] = []
        self.site: list[int] = []
        self.charge: list[int] = []
        self.kind: list[int] = []
        self.waits: dict[int, list[tuple[int, str]]] = {}
        self.meets: list[list[int]] = []
        #: Bytes that events touch, by event; shared by equal ones. Only advice asks for them.
        self.touched: dict[int, tuple[Range, ...]] = {}
        #: Whether nothing orders the pipes: the scalar unit waits for whatever it issues.
        self.in_order = False
        #: Bytes of the arrays in global memory that the launch reads and does not write.
        self.footprint = 0
        self.title = ""
        #: Bytes of on-chip buffers, by the name ranges have for them.
        self.capacity: Mapping[str, int] = {}
        #: Texts of the source, by file.
        self.sources: dict[str, str] = {}
        self.dry = False
        #: By number of an event of the launch, from 1 on, its place in the columns.
        self.numbers: list[int] = []

    def __len__(self) -> int:
        return len(self.core)

    def pipe_number(self, name: str) -> int:
        if name not in self.pipes:
            self.pipes.append(name)
        return self.pipes.index(name)

    def charge_for(self, machine: Machine) -> Trace:
        """The same with what instructions cost on another machine."""
        new = self.copy()
        new.charges = [
            charge if made is None else charged(made[0], machine, made[1])
            for charge, made in zip(self.charges, self.made_of, strict=True)
        ]
        return new

    def copy(self) -> Trace:
        """One to change: columns are its own, what they name is shared."""
        new = Trace()
        new.__dict__.update(self.__dict__)
        for column in ("core", "pipe", "site", "charge", "kind"):
            setattr(new, column, list(getattr(self, column)))
        new.waits = {e: list(w) for e, w in self.waits.items()}
        return new
