"""Flags, barriers, buffer tokens and cross-core semaphores, which order pipes and cores.

Each instruction becomes an item in the queue of its pipe, or stalls the scalar unit. With observers, a set
and the wait for it share one object (`watch.Given`), so that an observer can match them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from ...ir.core import Operation
from ...ir.facts import enclosing, pipe_of
from ...isa.enums import SYNC_OP_PIPE
from ...isa.kinds import pipe_of_kind
from ...isa.machine import SEMAPHORES, TOKENS
from ...isa.profiles import Profile
from ..memory import MemoryFault
from ..watch import BARRIER, GIVE, Given
from .core import BLOCKED, Args, Core, QueueItem, queued
from .instr import IllegalInstruction, Instr, Port

#: handler(core, op, args) -> None or BLOCKED
Handler = Callable[[Core, Operation, Args], int | None]
HANDLERS: dict[str, Handler] = {}


def sync(*names: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


#: For operations without operands: makes their step, once.
Maker = Callable[[Operation, Profile], Callable[[Core], int | None]]
MAKERS: dict[str, Maker] = {}


def made_once(*names: str) -> Callable[[Maker], Maker]:
    def register(function: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(names, function))
        return function

    return register


def orders(name: str) -> bool:
    """Return whether this module handles an operation."""
    return name in HANDLERS or name in MAKERS


@cache
def pipe_name(written: object) -> str:
    text = str(written)
    return SYNC_OP_PIPE.get(text, text).removeprefix("PIPE_")


# -- flags -------------------------------------------------------------------------------------------------

Key = tuple[str, str, int]


def flag_text(key: Key) -> str:
    return f"flag PIPE_{key[0]} -> PIPE_{key[1]}, id {key[2]}"


class SetFlag(QueueItem):
    what, kind = GIVE, "flag"

    def perform(self, core: Core, pipe: str) -> None:
        watch, key = core.watch, self.key
        core.flags.setdefault(key, deque()).append(
            None if watch is None else watch.give(self.event, "flag", key)
        )


class WaitFlag(QueueItem):
    kind = "flag"
    unprovided = ", which no instruction has set"

    def ready(self, core: Core, pipe: str) -> bool:
        return bool(core.flags.get(self.key))

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        return (core.flags[self.key].popleft(),)

    def waits_for(self, core: Core, pipe: str) -> str:
        return flag_text(self.key)

    def provider(self, core: Core) -> tuple[Core, str] | None:
        return queued([core], lambda item: isinstance(item, SetFlag) and item.key == self.key)


def event_id(op: Operation, args: Args) -> int:
    """Return the number of the flag of an operation."""
    if "event_id" in args:
        return _checked("event id", int(args["event_id"]), 7)
    return _digits(str(op.attr("event_id")))


@cache
def _digits(text: str) -> int:
    """Return the number in the name of an event: EVENT_ID3."""
    return int("".join(c for c in text if c.isdigit()) or 0)


def _checked(what: str, number: int, last: int) -> int:
    """Return a run-time number, which has to be in 0..last."""
    if not 0 <= number <= last:
        raise IllegalInstruction(f"{what} {number} is outside 0..{last}")
    return number


def _pair(op: Operation, first: str, second: str) -> tuple[str, str]:
    return pipe_name(op.attr(first)), pipe_name(op.attr(second))


@made_once("set_flag")
def set_flag(op: Operation, profile: Profile) -> Callable[[Core], int | None]:
    key = (*_pair(op, "src_pipe", "dst_pipe"), event_id(op, {}))
    return lambda core: _set(core, op, key)


@sync("set_flag_dyn")
def set_flag_dyn(core: Core, op: Operation, args: Args) -> int | None:
    return _set(core, op, (*_pair(op, "src_pipe", "dst_pipe"), event_id(op, args)))


@sync("record_event")
def record_event(core: Core, op: Operation, args: Args) -> int | None:
    return _set(core, op, (*_pair(op, "src_op", "dst_op"), event_id(op, args)))


def _set(core: Core, op: Operation, key: Key) -> int | None:
    item = SetFlag(op, key)
    if key[0] == "S":
        core.stall(item)
        core.drain()
    else:
        core.enqueue(key[0], item)
    return None


@made_once("wait_flag")
def wait_flag(op: Operation, profile: Profile) -> Callable[[Core], int | None]:
    key = (*_pair(op, "src_pipe", "dst_pipe"), event_id(op, {}))
    return lambda core: _wait(core, op, key)


@sync("wait_flag_dyn")
def wait_flag_dyn(core: Core, op: Operation, args: Args) -> int | None:
    return _wait(core, op, (*_pair(op, "src_pipe", "dst_pipe"), event_id(op, args)))


@sync("wait_event")
def wait_event(core: Core, op: Operation, args: Args) -> int | None:
    return _wait(core, op, (*_pair(op, "src_op", "dst_op"), event_id(op, args)))


def _wait(core: Core, op: Operation, key: Key) -> int | None:
    item = WaitFlag(op, key)
    if key[1] == "S":
        return core.stall(item)
    core.enqueue(key[1], item)
    return None


# -- barriers ----------------------------------------------------------------------------------------------


class PipeBarrier(QueueItem):
    """Reports a barrier of one pipe; the queue keeps its items in order without it."""

    what = BARRIER

    def perform(self, core: Core, pipe: str) -> None:
        if core.watch is not None:
            core.watch.tell("barrier", core, self.op, pipe)


class DrainAll(QueueItem):
    what = BARRIER

    def ready(self, core: Core, pipe: str) -> bool:
        return core.drained

    def perform(self, core: Core, pipe: str) -> None:
        core.barrier(self.op, "ALL")

    def waits_for(self, core: Core, pipe: str) -> str:
        return "all its pipes to drain"


@made_once("barrier", "barrier_sync", "fence.barrier_all")
def barrier(op: Operation, profile: Profile) -> Callable[[Core], int | None]:
    pipe = pipe_of(op, profile)
    return lambda core: _barrier(core, op, pipe)


def _barrier(core: Core, op: Operation, pipe: str) -> int | None:
    if pipe == "ALL":
        return core.stall(DrainAll(op))
    if pipe in core.queues:
        core.enqueue(pipe, PipeBarrier(op))
    return None


@sync("cmo.cacheinvalid", "dcci", "dsb")
def nothing(core: Core, op: Operation, args: Args) -> int | None:
    return None


@sync("tsync")
def tsync(core: Core, op: Operation, args: Args) -> int | None:
    """Wait for a pipe or for events. The barrier form orders the pipe of an operation class. The event form
    waits until the producers of the tokens are done; tokens are tiles here, so all pipes are drained."""
    written = op.attr("op")
    if written is not None:
        return _barrier(core, op, pipe_of_kind(str(written), core.profile.isa))
    return core.stall(DrainAll(op)) if args.get("events") else None


# -- buffer tokens -----------------------------------------------------------------------------------------


class Token:
    """One buffer id. Acquisitions are granted in program order: `grants` has for each acquisition the result
    of its release (`watch.Given`), or `_HELD` until then."""

    __slots__ = ("base", "grants", "held")

    def __init__(self) -> None:
        self.base = 0  # the number of first acquisitions that are released and removed from `grants`
        self.grants: list[object] = []
        self.held: dict[str, int] = {}  # by pipe: the number of its acquisition


_HELD = object()


class GetBuf(QueueItem):
    __slots__ = ("id", "ticket")
    kind = "token"

    def __init__(self, op: Operation, id: int, ticket: int) -> None:
        super().__init__(op, id)
        self.id = id
        self.ticket = ticket

    def ready(self, core: Core, pipe: str) -> bool:
        token = core.tokens[self.id]
        return all(g is not _HELD for g in token.grants[: self.ticket - token.base])

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        token = core.tokens[self.id]
        token.held[pipe] = self.ticket
        before = self.ticket - token.base  # the last release is ordered after the earlier ones
        return token.grants[before - 1 : before] if before else ()

    def waits_for(self, core: Core, pipe: str) -> str:
        holders = ", ".join(f"PIPE_{p}" for p in core.tokens[self.id].held) or "an earlier acquirer"
        return f"buffer token {self.id}, held by {holders}"

    def provider(self, core: Core) -> tuple[Core, str] | None:
        return queued([core], lambda item: isinstance(item, RlsBuf) and item.id == self.id)


class RlsBuf(QueueItem):
    __slots__ = ("id",)
    what, kind = GIVE, "token"

    def __init__(self, op: Operation, id: int) -> None:
        super().__init__(op, id)
        self.id = id

    def perform(self, core: Core, pipe: str) -> None:
        token = core.tokens.setdefault(self.id, Token())
        held = token.held.pop(pipe, None)
        if held is None:
            return
        token.grants[held - token.base] = core.give(self.event, "token", self.id)
        while len(token.grants) > 64 and all(g is not _HELD for g in token.grants[:33]):
            del token.grants[:32]
            token.base += 32


def buffer_id(op: Operation, args: Args) -> int:
    """Return the number of the buffer token of an operation."""
    if "buf_id_dyn" in args:
        return _checked("buffer token", int(args["buf_id_dyn"]), TOKENS - 1)
    return int(op.attr("buf_id") or 0)


def token_pipe(op: Operation) -> str:
    """Return the pipe that takes or releases a buffer token."""
    return pipe_name(op.attr("op_type") or op.attr("pipe"))


@sync("get_buf")
def get_buf(core: Core, op: Operation, args: Args) -> int | None:
    id, pipe = buffer_id(op, args), token_pipe(op)
    token = core.tokens.setdefault(id, Token())
    item = GetBuf(op, id, token.base + len(token.grants))
    if pipe == "S":
        if item.ready(core, pipe):
            token.grants.append(_HELD)
        return core.stall(item)
    token.grants.append(_HELD)
    core.enqueue(pipe, item)
    return None


@sync("rls_buf")
def rls_buf(core: Core, op: Operation, args: Args) -> int | None:
    item, pipe = RlsBuf(op, buffer_id(op, args)), token_pipe(op)
    if pipe == "S":
        core.stall(item)
        core.drain()
    else:
        core.enqueue(pipe, item)
    return None


@sync("mem_bar")
def mem_bar(core: Core, op: Operation, args: Args) -> int | None:
    if core.interval is not None:
        core.interval.barrier(core, op, str(op.attr("barrier_type")))
    return None


# -- cores of a cluster ------------------------------------------------------------------------------------


class Signal(QueueItem):
    """Adds one to semaphores of other cores of the cluster."""

    __slots__ = ("targets",)
    what, kind = GIVE, "semaphore"

    def __init__(self, op: Operation, targets: list[tuple[str, int]]) -> None:
        super().__init__(op, targets)
        self.targets = targets

    def perform(self, core: Core, pipe: str) -> None:
        for target in self.targets:
            _raise(core, target, core.give(self.event, "semaphore", (core.index, *target)))


class Arrival(Signal):
    """The arrival of a core at a meeting of all cores of its kind, in a block or in all blocks. The last
    arrival signals all of them.
    """

    __slots__ = ("id", "mode")

    def __init__(self, op: Operation, targets: list[tuple[str, int]], mode: int, id: int) -> None:
        super().__init__(op, targets)
        self.mode = mode
        self.id = id

    def perform(self, core: Core, pipe: str) -> None:
        lanes = sum(kind == core.kind for kind, _, _ in core.grid.roles)
        block = core.block if self.mode == 1 else None
        here = core.grid.arrived.setdefault((core.rank, block, core.kind, self.id), {})
        here.setdefault(core, deque()).append(core.give(self.event, "arrival", self.id))
        if len(here) < lanes * (core.grid.blocks if block is None else 1):
            return
        came = {other: given.popleft() for other, given in here.items()}
        all = tuple(came.values())
        for other in came:
            for target in _cross_sources(other, self.id):
                key = (other.index, *target)
                _raise(other, target, core.give(self.event, "semaphore", key, all))
            if not here[other]:
                del here[other]


def _raise(core: Core, target: tuple[str, int], given: Given | None) -> None:
    """Add one to a semaphore of the cluster of a core."""
    core.cluster.semaphores.setdefault(target, deque()).append(given)


class Await(QueueItem):
    """Takes one from each of some semaphores of its core."""

    __slots__ = ("sources",)
    kind = "semaphore"
    unprovided = ", which no core has raised"

    def __init__(self, op: Operation, sources: list[tuple[str, int]]) -> None:
        super().__init__(op, sources)
        self.sources = sources

    def ready(self, core: Core, pipe: str) -> bool:
        return all(core.cluster.semaphores.get(s) for s in self.sources)

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        return [core.cluster.semaphores[source].popleft() for source in self.sources]

    def waits_for(self, core: Core, pipe: str) -> str:
        missing = [s for s in self.sources if not core.cluster.semaphores.get(s)]
        return " and ".join(f"cross-core semaphore {id} ({who})" for who, id in missing)

    def provider(self, core: Core) -> tuple[Core, str] | None:
        missing = [s for s in self.sources if not core.cluster.semaphores.get(s)]

        def raises(item: QueueItem) -> bool:
            return isinstance(item, Signal) and any(s in missing for s in item.targets)

        return queued(core.cluster.cores, raises)


def _signal(core: Core, pipe: str, item: Signal) -> int | None:
    if pipe == "ALL":
        if not core.drained:
            core.waiting = "all its pipes to drain"
            return BLOCKED
        core.barrier(item.op, "ALL")
        pipe = "S"
    if pipe == "S":
        return core.stall(item)
    core.enqueue(pipe, item)
    return None


def _cross_targets(core: Core, id: int) -> list[tuple[str, int]]:
    """Return the targets of a signal on A2A3: the cube core signals every vector core, a vector core signals
    the cube core (one count per vector core)."""
    if core.kind == "vector":
        return [(f"AIC from {core.name}", id)]
    return [(c.name, id) for c in core.cluster.vectors] or [("", id)]


def _cross_sources(core: Core, id: int) -> list[tuple[str, int]]:
    if core.kind == "vector":
        return [(core.name, id)]
    return [(f"AIC from {c.name}", id) for c in core.cluster.vectors] or [("", id)]


def _cross(core: Core, op: Operation, mode: int, id: int) -> Signal:
    """Return the item of a cross-core signal. Mode 2 (the default) goes between the cube core and its vector
    cores, 1 among the cores of one kind in a block, 0 among those of all blocks. In modes 0 and 1 a wait ends
    after all of these cores have signalled."""
    if mode is None or int(mode) == 2:
        return Signal(op, _cross_targets(core, id))
    return Arrival(op, _cross_sources(core, id), int(mode), id)


@sync("set_cross_core")
def set_cross_core(core: Core, op: Operation, args: Args) -> int | None:
    pipe = op.attr("pipe")
    number = _checked("semaphore", int(args["event_id"]), 15)
    return _signal(core, pipe_name(pipe) if pipe else "ALL", _cross(core, op, op.attr("mode"), number))


@sync("wait_flag_dev")
def wait_flag_dev(core: Core, op: Operation, args: Args) -> int | None:
    return core.stall(Await(op, _cross_sources(core, _checked("semaphore", int(args["event_id"]), 15))))


def _id(op: Operation, args: Args) -> int:
    if "event_id_dyn" in args:
        return _checked("semaphore", int(args["event_id_dyn"]), 2 * SEMAPHORES - 1)
    return int(op.attr("event_id") or 0)


def _intra_target(core: Core, id: int) -> tuple[str, int]:
    """Return the target of a signal on A5: ids of the cube core address AIV0 (0..15) or AIV1 (16..31); a
    signal of AIV1 arrives as id + 16."""
    if core.kind == "vector":
        return "AIC", _own(core, id) + SEMAPHORES * core.sub
    return ("AIV1", id - SEMAPHORES) if id >= SEMAPHORES else ("AIV0", id)


def _own(core: Core, id: int) -> int:
    """Return the semaphore for an id; AIV1 may use the ids of the cube core, which are 16 higher."""
    second = core.kind == "vector" and core.sub == 1
    return id - SEMAPHORES if second and id >= SEMAPHORES else id


@sync("set_intra_block")
def set_intra_block(core: Core, op: Operation, args: Args) -> int | None:
    return _signal(core, pipe_name(op.attr("pipe")), Signal(op, [_intra_target(core, _id(op, args))]))


def _await(core: Core, op: Operation, pipe: str, id: int) -> int | None:
    item = Await(op, [(core.name or "AIC", _own(core, id))])
    if pipe == "S":
        return core.stall(item)
    core.enqueue(pipe, item)
    return None


@sync("wait_intra_core")
def wait_intra_core(core: Core, op: Operation, args: Args) -> int | None:
    return _await(core, op, pipe_name(op.attr("pipe")), _id(op, args))


def _one_by_one(op: Operation) -> bool:
    """Return whether the cube core signals each of its vector cores with a different id."""
    *_, top = enclosing(op)
    return _names_second(top)


@lru_cache(maxsize=64)
def _names_second(top: Operation) -> bool:
    signals = (o for o in top.walk() if o.row is not None and o.row.name == "sync.set")
    return any((o.attr("event_id") or 0) >= SEMAPHORES for o in signals)


@sync("sync.set")
def sync_set(core: Core, op: Operation, args: Args) -> int | None:
    id, pipe = _id(op, args), pipe_name(op.attr("pipe"))
    if not core.profile.behaviour.core_semaphores:
        return _signal(core, pipe, _cross(core, op, op.attr("ffts_mode"), id))
    targets = [_intra_target(core, id)]
    if pipe == "FIX" and core.kind != "vector" and len(core.cluster.vectors) > 1 and not _one_by_one(op):
        targets.append(_intra_target(core, id + SEMAPHORES))
    return _signal(core, pipe, Signal(op, targets))


@sync("sync.wait")
def sync_wait(core: Core, op: Operation, args: Args) -> int | None:
    id, pipe = _id(op, args), pipe_name(op.attr("pipe"))
    if not core.profile.behaviour.core_semaphores:
        return core.stall(Await(op, _cross_sources(core, id)))
    return _await(core, op, pipe, id)


# -- the grid ----------------------------------------------------------------------------------------------


class SignalHolds(QueueItem):
    """Waits until the comparison of a signal in global memory holds; other cores or ranks set the signal."""

    __slots__ = ("instr",)
    kind = "signal"

    def __init__(self, instr: Instr) -> None:
        super().__init__(instr.op, instr.args["signal"].name)
        self.instr = instr
        instr.port = Port()  # unobserved: reading a signal is not an access that could race

    def ready(self, core: Core, pipe: str) -> bool:
        from .comm import holds

        try:
            return holds(self.instr) or core.grid.signalled
        except MemoryFault as fault:
            raise core.fault(self.instr, fault) from None

    def perform(self, core: Core, pipe: str) -> None:
        if core.watch is not None:
            args = self.instr.args
            core.watch.tell("awaited", core, self.op, args["signal"], args["cmpValue"])

    def waits_for(self, core: Core, pipe: str) -> str:
        args = self.instr.args
        return f"signal %{args['signal'].name} {self.op.attr('cmp')} {args['cmpValue']}{self._held()}"

    def _held(self) -> str:
        """Return the text for the present value of the signal; empty for a long one."""
        from .comm import held

        values = held(self.instr)
        return f" (holds {', '.join(map(str, values))})" if len(values) <= 8 else ""


@sync("twait")
def twait(core: Core, op: Operation, args: Args) -> int | None:
    return core.stall(SignalHolds(Instr(op, args, core, "S")))


class GridMeeting(QueueItem):
    """Meets all participating cores of the launch; see `Grid.meet`."""

    what, kind = BARRIER, "grid"


@sync("syncall")
def syncall(core: Core, op: Operation, args: Args) -> int | None:
    if not core.drained:
        core.waiting = "all its pipes to drain"
        return BLOCKED
    item = GridMeeting(op, str(op.attr("core_type")))
    if not core.grid.meet(core, item.key):
        return core.pause(core.waiting, item)
    return core.stall(item)
