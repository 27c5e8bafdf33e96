"""Observed instructions: the port that reports loads and stores, and repeated runs of an instruction.

A watcher may run an instruction again beside the program (`again`), on its own port, which gives other values
and keeps the stores. Executors access memory only through their port, and keep no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...ir.core import Operation
from ..access import Access, Place
from ..elements import Array, NumpyType
from ..memory import Tile
from ..region import Region
from ..registers import SPACE, Register
from ..watch import Event, Watchers
from .instr import Instr, Plain, Port


def watched(i: Instr, execute: Callable[[Instr], object]) -> Event:
    """Return the event of an instruction; events of a vecscope belong to it."""
    scope = i.core.interval
    event = i.event = Event(i.core, i.pipe, i.op, scope=None if scope is None else scope.event)
    event.args = i.args
    event.poison = i.poison
    event.inner = i, execute
    return event


def perform(watch: Watchers, i: Instr, execute: Callable[[Instr], object]) -> object:
    """Run an instruction, and report its events."""
    event: Event = i.event or watch.issue(watched(i, execute))
    whole = not event.began  # an instruction inside an item; the item reports its start and end
    if whole:
        watch.start(event)
    event.result = execute(i)
    row = i.op.row
    if row is not None:
        if row.scratch and (scratch := row.scratch_on(i.core.profile.isa)):
            event.scratch = list(scratch_of(i, scratch))
            event.accesses += event.scratch
        if row.family == "signal":
            _signal(watch, i, event.result)
    if whole:
        watch.finish(event)
    return event.result


def again(event: Event, port: Port, args: Mapping[str, object] | None = None) -> object:
    """Run the instruction of an event once more, on another port and perhaps with other operands."""
    i, execute = event.inner
    own = i.port, i.args
    i.port = port
    if args is not None:
        i.args = args
    try:
        return execute(i)
    finally:
        i.port, i.args = own


def repeatable(op: Operation) -> bool:
    """Return whether an instruction may run again; an instruction that prints may not."""
    return op.row is None or op.row.effect != "io"


def scratch_of(i: Instr, names: tuple[str, ...]) -> Iterator[Access]:
    """Return the accesses to scratch operands, which an instruction leaves unspecified."""
    for name in names:
        place = i.args.get(name)
        if isinstance(place, Tile) and place.address is not None and place.buffer.space != "gm":
            region = place.region(*place.valid)
            if region.bounds[1] <= place.buffer.data.size:
                yield Access(place, region, None, True, scratch=True)


def _signal(watch: Watchers, i: Instr, result: object) -> None:
    """Report a signal in global memory, which orders earlier events of its writer before later ones of its
    reader."""
    if i.name == "tnotify":
        watch.tell("notified", i.core, i.op, i.args["signal"], i.args["value"])
    elif result:
        watch.tell("awaited", i.core, i.op, i.args["signal"], i.args["cmpValue"])


class ReportingPort(Port):
    """Access to memory of an observed launch, which reports everything except loads and stores."""

    def __init__(self, watch: Watchers) -> None:
        self._watch = watch

    def undefine(self, i: Instr, place: Place, region: Region) -> None:
        self._watch.tell("left_undefined", i.event, Access(place, region, None, True))

    def indexed(self, i: Instr, operand: str, index: Array, inside: Array, of: Place, extent: str) -> None:
        self._watch.tell("indexed", i.event, operand, index, inside, of, extent)

    def other_granularity(self, i: Instr, mask: Register, size: int) -> None:
        self._watch.tell("other_granularity", i.event, mask, size)


class RecordingPort(ReportingPort):
    """Access to memory of an observed launch, which reports loads and stores, too."""

    def __init__(self, watch: Watchers) -> None:
        super().__init__(watch)
        hooks = "loaded", "storing", "stored"
        self._loaded, self._storing, self._stored = [watch.of(n) for n in hooks]
        #: Hooks of watchers that also observe vector registers, which belong to one value of one core.
        self._registers = [watch.of(n, registers=True) for n in hooks]

    def load(self, i: Instr, place: Place, region: Region, dtype: NumpyType) -> Array:
        found = Port.load(self, i, place, region, dtype)
        self._tell_load(i, place, region, None, found)
        return found

    def load_at(self, i: Instr, place: Place, at: Array, dtype: NumpyType) -> Array:
        found = Port.load_at(self, i, place, at, dtype)
        self._tell_load(i, place, None, at, found)
        return found

    def _tell_load(
        self, i: Instr, place: Place, region: Region | None, at: Array | None, found: Array
    ) -> None:
        event: Event = i.event
        access = Access(place, region, at, False)
        if isinstance(place, Register) and place.space == SPACE:
            hooks = self._registers[0]
        else:
            hooks = self._loaded
            event.accesses.append(access)
        for hear in hooks:
            hear(event, access, found)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        access, after = self._tell_store(i, place, region, None, codes)
        Port.store(self, i, place, region, codes)
        for hear in after:
            hear(i.event, access)

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        access, after = self._tell_store(i, place, None, at, codes)
        Port.store_at(self, i, place, at, codes)
        for hear in after:
            hear(i.event, access)

    def _tell_store(
        self, i: Instr, place: Place, region: Region | None, at: Array | None, codes: Array
    ) -> tuple[Access, tuple[Callable[..., None], ...]]:
        """Report a store before it is done; return its access, and the hooks to call afterwards."""
        access = Access(place, region, at, True)
        event: Event = i.event
        if isinstance(place, Register) and place.space == SPACE:
            _, before, after = self._registers
        else:
            before, after = self._storing, self._stored
            event.accesses.append(access)
        for hear in before:
            hear(event, access, codes)
        return access, after


def port_of(watch: Watchers | None) -> Port:
    """Return the access to memory of a launch."""
    if watch is None:
        return Plain()
    if watch.memory:
        return RecordingPort(watch)
    return ReportingPort(watch) if watch.of("other_granularity") else Plain()
