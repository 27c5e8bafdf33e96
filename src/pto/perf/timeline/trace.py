"""Events of a launch as columns, in the order in which cores issued them.

A trace has no times. The recorder (an observer of an engine) adds for every event its core, its pipe, its
cost, and the events that it waits for; `simulate` needs no further data. A what-if is another trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...isa.costs import NOTHING, Charge, charged
from ...isa.row import Row
from ...isa.timing import Machine

#: Kinds of events. WORK occupies its pipe, GIVE signals when all previous work is done, TAKE waits, BARRIER
#: drains its pipe, DRAIN (of the scalar unit) drains all pipes of the core, MEET all cores of the launch;
#: INSIDE is part of another event and has no time of its own.
WORK, GIVE, TAKE, BARRIER, DRAIN, MEET, INSIDE = range(7)

#: The name of the scalar unit as a pipe.
SCALAR = "S"


class TraceSite(NamedTuple):
    """An instruction of the program, for reports about its events."""

    name: str
    line: int
    file: str
    text: str  # the source line, stripped
    tiles: tuple[str, ...] = ()  # names of its operands


class CoreInfo(NamedTuple):
    """A core of the launch: its block (over all ranks), its name in the block and its kind (cube, vector,
    mix). Every rank is a device of its own."""

    block: int
    name: str
    kind: str
    rank: int = 0


class Range(NamedTuple):
    """Bytes of a buffer of a core that an event reads or writes, and the name of their tile."""

    space: str
    low: int
    high: int
    write: bool
    name: str


class Trace:
    """The columns. `waits[e]` are (signaling event, kind of signal); `meets` are groups of events of kind
    MEET that wait for each other."""

    def __init__(self) -> None:
        self.cores: list[CoreInfo] = []
        self.pipes: list[str] = [SCALAR]
        self.sites: list[TraceSite] = []
        self.charges: list[Charge] = [NOTHING]
        #: Row and operands of each charge, to compute it again for another machine.
        self.made_of: list[tuple[Row, Mapping[str, Any]] | None] = [None]
        self.core: list[int] = []
        self.pipe: list[int] = []
        self.site: list[int] = []
        self.charge: list[int] = []
        self.kind: list[int] = []
        self.waits: dict[int, list[tuple[int, str]]] = {}
        self.meets: list[list[int]] = []
        #: Event -> bytes that it accesses, shared by equal events. Only advice uses them.
        self.touched: dict[int, tuple[Range, ...]] = {}
        #: True if nothing orders the pipes: the scalar unit waits for every instruction that it issues.
        self.in_order = False
        #: Bytes of the arrays in global memory that the launch reads and does not write.
        self.footprint = 0
        self.title = ""
        #: Capacities of on-chip buffers in bytes, by the space names of ranges.
        self.capacity: Mapping[str, int] = {}
        #: Texts of the source, by file.
        self.sources: dict[str, str] = {}
        self.dry = False
        #: Position in the columns of each event of the launch, by its number from 1.
        self.numbers: list[int] = []

    def __len__(self) -> int:
        return len(self.core)

    def charge_for(self, machine: Machine) -> Trace:
        """Return the same trace with the costs of another machine."""
        new = self.copy()
        new.charges = [
            charge if made is None else charged(made[0], machine, made[1])
            for charge, made in zip(self.charges, self.made_of, strict=True)
        ]
        return new

    def copy(self) -> Trace:
        """Return a copy for changes: it has its own columns, and shares other data."""
        new = Trace()
        new.__dict__.update(self.__dict__)
        for column in ("core", "pipe", "site", "charge", "kind"):
            setattr(new, column, list(getattr(self, column)))
        new.waits = {e: list(w) for e, w in self.waits.items()}
        return new
