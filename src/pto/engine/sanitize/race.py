"""Sanitizer race: reports two accesses to the same bytes with no order between them.

Every access is compared with the earlier accesses of its block to the same bytes. If one of the two is a
write and the token of the new one does not include the old one (see `clock`), they race. The result does not
depend on the order in which the engine runs instructions. `blocks` finds races between blocks, `vecscope`
those inside a vecscope.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ...ir.core import Operation
from ...verifier.overlap import share_bytes
from ..access import Access
from ..elements import Array
from ..memory import View
from ..result import LaunchResult
from ..watch import INSTRUCTION, Event, Given, WatchedCore, WatchedLaunch
from .access_index import AccessIndex
from .advice import LATE, Side, flag_between, free_event, how_to_order, wait_for
from .blocks import BlockMap, forget_blocks
from .clock import Clock, Token, join, joined, knows, learn_of, meet
from .overlap import in_hex, storage_of
from .race_access import ATOMIC, Touch, hazard, meets, overlap
from .reports import Reports, bytes_of
from .sanitizer import Sanitizer
from .signal_order import Signals
from .vecscope import VecscopeHazards

#: A vector instruction that reads exactly the result of the one before it needs no barrier if it has at least
#: 16 repeats of 256 bytes.
CHAINED = 16 * 256

#: The number of latest accesses of an event that a new access may be joined to.
_NEAR = 8
#: With more accesses than this to the same bytes, older ones lose the bytes that newer ones cover.
MANY = 16

#: The time of an event: its agent, its number, and its token at the start.
Happened = tuple[int, int, Token]


def _shadow(core: WatchedCore) -> str:
    """Return the key under which a buffer keeps the accesses of a block."""
    return f"race {core.index}"


class _CoreClock:
    """The state of a core: its clock, its set flags, and its vecscope."""

    def __init__(self, core: WatchedCore, clock: Clock) -> None:
        self.core = core
        self.clock = clock
        self.shadow = _shadow(core)
        self.flags: dict[Any, deque[Given]] = {}
        self.vecscope: VecscopeHazards | None = None
        self.inside: Happened | None = None  # the instructions of a vecscope are one event


class Race(Sanitizer):
    """Follows synchronization, and passes every access with its token to the checker."""

    def __init__(self, reports: Reports) -> None:
        super().__init__(reports)
        self.signals = Signals()
        self.clocks: dict[int, Clock] = {}
        self.cores: dict[WatchedCore, _CoreClock] = {}
        self.left: dict[int, int] = {}  # cores of a block that have not ended
        self._joined: tuple[Any, dict[int, Token]] = (), {}

    def launch_started(self, launch: WatchedLaunch) -> None:
        super().launch_started(launch)
        self.checker = RaceChecker(launch, self.reports, self)

    def launch_ended(self, result: LaunchResult) -> None:
        for key, help in self.checker.waits.items():
            if (d := self.reports.found.get(key)) is not None:
                d.help = help()

    def core_started(self, core: WatchedCore) -> None:
        clock = self.clocks.setdefault(core.index, Clock(core.profile.isa, core.index))
        self.cores[core] = _CoreClock(core, clock)
        self.left[core.index] = self.left.get(core.index, 0) + 1

    def core_ended(self, core: WatchedCore) -> None:
        del self.cores[core]
        self.left[core.index] -= 1
        if not self.left[core.index]:  # other blocks need only the table of `BlockMap`
            del self.clocks[core.index]
            for buffer in self.launch.gm.buffers:
                buffer.shadows.pop(_shadow(core), None)

    # -- events ----------------------------------------------------------------------------------------

    def issued(self, event: Event) -> None:
        if event.scope is None:  # else the pipe has already begun the vecscope
            stalls = self.cores[event.core].clock.stalled(event.core, event.pipe)
            if stalls is not None:
                event.keeps["stalls"] = stalls

    def took(self, event: Event) -> None:
        core = self.cores[event.core]
        stalls = event.keeps.pop("stalls", None)
        if stalls is not None:
            core.clock.resume(event.core, event.pipe, stalls)
        for given in event.waits:
            token = given.keeps["race"][1]
            if given.kind == "flag":
                core.flags[given.key].popleft()
            if isinstance(token, dict):  # from cores of several blocks
                core.clock.learn(event.core, token)
                token = core.clock.stalls[event.core]
            core.clock.acquire(event.core, event.pipe, token)

    def started(self, event: Event) -> None:
        core = self.cores[event.core]
        stalls = event.keeps.pop("stalls", None)
        if stalls is not None:
            core.clock.resume(event.core, event.pipe, stalls)
        if event.what != INSTRUCTION:
            return
        if event.scope is None:
            event.keeps["race"] = core.clock.instruction(event.core, event.pipe)
            return
        if core.inside is None:
            core.inside = core.clock.instruction(event.core, event.pipe)
        event.keeps["race"] = core.inside

    def finished(self, event: Event) -> None:
        for access in event.scratch:
            self.checker.access(event, access)
        if event.scope is not None:
            hazards = self.cores[event.core].vecscope
            assert hazards is not None
            hazards.done(event)

    def vecscope_started(self, event: Event) -> None:
        core = self.cores[event.core]
        core.inside = None
        if core.vecscope is None:
            core.vecscope = VecscopeHazards(self.launch, self.reports)
        core.vecscope.started()

    def vecscope_ended(self, event: Event) -> None:
        hazards = self.cores[event.core].vecscope
        assert hazards is not None
        hazards.ended(event.core)

    def memory_barrier(self, core: WatchedCore, op: Operation, kind: str) -> None:
        hazards = self.cores[core].vecscope
        assert hazards is not None
        hazards.barrier(kind)

    # -- accesses --------------------------------------------------------------------------------------

    def loaded(self, event: Event, access: Access, data: Array | None = None) -> None:
        self.checker.access(event, access)
        if event.scope is not None and access.space == "vec" and self.launch.profile.behaviour.late_stores:
            hazards = self.cores[event.core].vecscope
            assert hazards is not None
            hazards.access(event, access)

    def stored(self, event: Event, access: Access) -> None:
        self.loaded(event, access)
        if access.space == "gm" and event.name != "tnotify":
            self.signals.stored(access.place.buffer, *access.bounds)

    # -- synchronization -------------------------------------------------------------------------------

    def gave(self, event: Event, given: Given) -> None:
        core = self.cores[event.core]
        token: Any
        if given.of:  # several cores gave it together: join the tokens once
            if self._joined[0] is not given.of:
                self._joined = given.of, joined([one.keeps["race"] for one in given.of])
            token = self._joined[1]
        else:
            token = core.clock.release(event.core, event.pipe)
        given.keeps["race"] = core.clock, token
        if given.kind == "flag":
            core.flags.setdefault(given.key, deque()).append(given)

    def barrier(self, core: WatchedCore, op: Operation, pipe: str) -> None:
        clock = self.cores[core].clock
        if pipe == "ALL":
            clock.barrier_all(core)
        elif pipe == "S":
            clock.acquire_all(core, clock.release(core, "S"))
        else:
            clock.barrier(core, pipe)

    def met(self, cores: Sequence[WatchedCore]) -> None:
        meet([(self.cores[core].clock, core) for core in cores])
        if len(cores) == self.launch.cores:
            forget_blocks(self.launch.gm.buffers)

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        self.signals.notify(self.cores[core].clock, core, op, signal, value)

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        self.signals.awaited(self.cores[core].clock, core, op, signal, wanted)

    def flag_for(self, old: Touch, new: Touch) -> tuple[Any, Operation] | None:
        """Return a flag that is set after the old access and that the pipe of the new access may wait for."""
        pair = (old.pipe, new.pipe)
        for key, raised in self.cores[new.core].flags.items() if old.core is new.core else ():
            if key[:2] == pair:
                for given in raised:
                    if knows(given.keeps["race"][1], old.agent, old.sequence):
                        return key, given.op
        return None


class RaceChecker:
    """Compares the accesses of one launch: between the pipes of a block, and between blocks."""

    def __init__(self, launch: WatchedLaunch, reports: Reports, race: Race) -> None:
        self.launch = launch
        self.reports = reports
        self.race = race
        self.across = BlockMap(launch, reports, race.signals) if launch.all_blocks > 1 else None
        self._atomic: dict[Operation, int] = {}
        #: By report: the earlier access in its advice.
        self.advised: dict[Any, Operation] = {}
        #: By report: the flag (pipes and event id) that its advice proposes.
        self.events: dict[Any, tuple[tuple[str, str], int]] = {}
        #: Advice about flags that are set, made again at the end, when all operations of C++ are known.
        self.waits: dict[Any, Callable[[], str]] = {}

    def access(self, event: Event, access: Access) -> None:
        """Record an access, and report its races with earlier accesses."""
        core = self.race.cores[event.core]
        buffer = access.place.buffer
        seen: AccessIndex | None = buffer.shadows.get(core.shadow)
        if seen is None:
            seen = buffer.shadows[core.shadow] = AccessIndex()
        elif _again(event, access, seen):
            return
        atomic = self._atomic.get(event.op)
        if atomic is None:
            atomic = self._atomic[event.op] = meets(event.op)
        if event.atomic:
            atomic = ATOMIC
        new = Touch(event, event.keeps["race"], core.clock, access, atomic)
        if new.low == new.high:
            return
        if self.across is not None and buffer.space == "gm":
            self.across.access(new, buffer)
        self._compare(new, seen)
        if not _joined(new, seen):
            seen.add(new)

    def _compare(self, new: Touch, seen: AccessIndex) -> None:
        met = seen.meeting(new.low, new.high)
        know, agent, sequence, write = new.know, new.agent, new.sequence, new.write
        # the latest first: an access ordered after it is often ordered after the earlier ones, too
        for old in met:
            other, when = old.agent, old.sequence
            same = other == agent and when == sequence
            if same and old.write != write:
                continue
            known = same or (other < len(know) and know[other] >= when)  # `knows`, inlined for speed
            if not known and (write or old.write):
                if (old.atomic and new.atomic) or self._chained(new, old):
                    continue
                shared = overlap(new, old)
                if shared is None:
                    continue
                self._report(new, old, seen, *shared)
                known = True
            # drop an access that the new one covers and is ordered after: later accesses that are ordered
            # after the new one are ordered after it, too
            replaces = known and (write or (not old.write and other == agent))
            if replaces and (new.covers(old) or (len(met) > MANY and not old.without(new))):
                seen.drop(old)
                if old.write and other == agent:
                    new.replaced = max(new.replaced, when)

    def _chained(self, new: Touch, old: Touch) -> bool:
        """Return whether a vector instruction reads exactly the `CHAINED` or more bytes of the one before."""
        return (
            new.pipe == old.pipe == "V" and new.agent == old.agent and old.write and not new.write
            and new.dense and old.dense and (new.low, new.high) == (old.low, old.high)
            and new.high - new.low >= CHAINED
        )  # fmt: skip

    def _report(self, new: Touch, old: Touch, seen: AccessIndex, low: int, high: int) -> None:
        clock = new.clock
        # Report a missing flag once: from here on, both pipes count as ordered.
        for know in (new.know, clock.know[new.agent]):
            join(know, old.know)
            learn_of(know, old.agent, old.sequence)
        repeated = False
        if old.core is not new.core and old.write != new.write:
            old, new, repeated = _sides(old, new, seen)
        elif old.core is new.core and old.issued > new.issued:
            old, new = new, old  # report in program order; a pipe that waited runs its instructions later
        kind = hazard(new.write, old.write)
        key = ("race", new.op, old.core.kind, old.pipe)
        note = (_other_side(new, old), self.launch.span(old.op))
        again = self.reports.again(key, note)
        known = self.reports.found.get(key)
        if again and (known is None or not self.advised[key].order < old.op.order < new.op.order):
            return
        self.advised[key] = old.op
        help = self._help(key, new, old, repeated)
        if known is not None:
            known.help = help  # the flag has to be set after the last of several accesses
            return
        apart = old.core is not new.core
        mine = f"PIPE_{new.pipe}" + (f" of {new.core.name}" if apart else "")
        theirs = f"PIPE_{old.pipe}" + (f" of {old.core.name}" if apart else "")
        if old.agent == new.agent:
            theirs = f"an earlier instruction of {theirs}"
        what = bytes_of(new.place, low, high)
        d = new.core.diagnostic(
            new.op, "PTO-E2201",
            {
                "RAW": f"RAW race: {mine} reads {what}, which {theirs} may not have written yet",
                "WAR": f"WAR race: {mine} overwrites {what}, which {theirs} may still have to read",
                "WAW": f"WAW race: {mine} and {theirs} write {what} in either order",
            }[kind],
            help=help,
        )  # fmt: skip
        d.notes.append(note)
        self.reports.add(key, d)

    def _help(self, key: object, new: Touch, old: Touch, repeated: bool) -> str:
        """Return advice: only a wait if a suitable flag is set already, else a set and a wait with a flag
        that no other advice uses.
        """
        launch = self.launch
        self.waits.pop(key, None)
        pair = (old.pipe, new.pipe)
        sharing = _sharing(new, old)
        first, second = (Side(a.op, a.pipe, a.core.name) for a in (old, new))
        found = self.race.flag_for(old, new)
        if found is None and old.core is new.core:
            found = flag_between(launch, first, second)
        if found is not None:
            if not sharing:
                self.reports.flags.setdefault(key, (new.core.kind, *found[0]))
            help = wait_for(launch, *found, new.op)
            if not (sharing and LATE in help):  # that wait is for another tile
                self.waits[key] = lambda: sharing + wait_for(launch, *found, new.op)
                return sharing + help
        taken = {n for k, (p, n) in self.events.items() if p == pair and k != key}
        event = free_event(launch.module, *pair, taken)
        if event is not None:
            self.events[key] = (pair, event)
        return sharing + how_to_order(launch, first, second, event, repeated)


def _again(event: Event, access: Access, seen: AccessIndex) -> bool:
    """Return whether an instruction repeats its last access, because one operand is given twice."""
    last = seen.latest[-1] if seen.latest else None
    return (
        last is not None and last.region is access.region is not None and last.write == access.write
        and last.bucket is not None and last.op is event.op and event.keeps["race"][2] is last.know
    )  # fmt: skip


def _joined(new: Touch, seen: AccessIndex) -> bool:
    """Add the bytes of an access to a recent one of the same event and operation, if possible. All
    instructions of a vecscope are one event, which would otherwise keep one access per iteration."""
    latest = seen.latest
    if not latest or latest[0].sequence != new.sequence or latest[0].agent != new.agent:
        seen.latest = [new]
        return False
    for old in latest:
        # an access without a bucket was dropped: another access replaces it
        if old.op is new.op and old.write == new.write and old.bucket is not None and old.join(new):
            seen.grown(old)
            return True
    latest.append(new)
    if len(latest) > _NEAR:
        seen.latest = [old for old in latest if old.bucket is not None][-_NEAR:]
    return False


def _sharing(new: Touch, old: Touch) -> str:
    """Return the beginning of the help if two different tiles collide: they share bytes."""
    a, b = storage_of(old.place), storage_of(new.place)
    if a is None or b is None or a == b or new.place.buffer is not old.place.buffer or not share_bytes(a, b):
        return ""
    low, high = max(a.low, b.low), min(a.low + a.size, b.low + b.size)
    return (
        f"%{a.name} and %{b.name} share bytes {in_hex(low, high)} of {new.place.buffer.name}: give one of "
        "them another address; if that is intended, "
    )


def _sides(a: Touch, b: Touch, seen: AccessIndex) -> tuple[Touch, Touch, bool]:
    """Return a write and a read on different cores in their likely order, and whether the write repeats.

    The read follows the write, unless the read has waited for an earlier write. In that case the write comes
    too soon.
    """
    writer, reader = (a, b) if a.write else (b, a)
    earlier = [
        e
        for e in seen.meeting(reader.low, reader.high)
        if e.write
        and e.agent == writer.agent
        and e.sequence < writer.sequence
        and overlap(e, reader) is not None
    ]
    repeated = [e.sequence for e in earlier if e.op is writer.op]
    before = max((e.sequence for e in earlier), default=writer.replaced)
    if before and knows(reader.know, writer.agent, before):
        return reader, writer, before in (writer.replaced, *repeated)
    return writer, reader, False


def _other_side(new: Touch, old: Touch) -> str:
    """Return the note about the earlier access."""
    first = old.op.row.name if old.op.row else old.op.name
    what = f"%{old.place.name}" if old.place.name else "them"
    earlier = old.core is new.core and (old.op is new.op or old.op.order > new.op.order)
    when = " in an earlier iteration" if earlier else ""
    return f"{first} {'writes' if old.write else 'reads'} {what}{when}"
