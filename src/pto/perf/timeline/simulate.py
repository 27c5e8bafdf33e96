"""Discrete-event simulation of a trace on a machine.

Every core has a scalar unit and pipes. The scalar unit issues in program order, and waits if the queue of a
pipe is full. A pipe performs its instructions in order. An instruction occupies its pipe for `busy` cycles;
then the next may start, although the result is available only `after` cycles later. Flags, FIFO entries and
semaphores are signaled when the results of all previous work of their pipe are available.

Times depend only on earlier times, so most events are computed as soon as their dependencies are known, in
any order. Only transfers of global memory depend on concurrent transfers, and are processed in time order
from a heap. All transfers of a group (reads, writes) get the same share of their own rates: if the rates add
up to more than the cap of the group, the share is cap / sum. So a transfer ends when the group has
*progressed* by the time that the transfer takes alone, and one number per group holds this progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from ...isa.costs import READS, WRITES
from ...isa.timing import Machine
from .trace import BARRIER, DRAIN, GIVE, INSIDE, MEET, WORK, Trace

#: Reasons why an event did not start earlier.
PIPE, ISSUE, QUEUE, FLAG, TOKEN, BARRIER_, EMPTY, FULL, CROSS, GRID, LAUNCH, BLOCK, UNIT, ORDER, TRANSFER = (
    "pipe", "issue", "queue", "flag", "token", "barrier", "FIFO empty", "FIFO full", "cross-core",
    "grid barrier", "launch", "block", "unit flag", "order", "transfer",
)  # fmt: skip
#: A reason why an event takes longer, not why it starts later.
BANDWIDTH = "bandwidth"

#: Kind of wait, with the names of `engine/watch.py` -> reason.
REASONS = {
    "flag": FLAG, "token": TOKEN, "entry": EMPTY, "slot": FULL, "semaphore": CROSS, "arrival": CROSS,
    "unit flag": UNIT, "transfer": TRANSFER, "signal": CROSS,
}  # fmt: skip

_BEGIN, _END, _BLOCK = 0, 1, 2


class Simulated:
    """Times of all events: issue, start, pipe free again, done; the reason for each start, and the event that
    it waited for."""

    def __init__(self, count: int) -> None:
        self.issue = [-1.0] * count
        self.start = [0.0] * count
        self.free = [0.0] * count
        self.done = [0.0] * count
        self.why: list[str] = [""] * count
        self.after = [-1] * count
        #: The last event that the scalar unit had waited for when it issued an event.
        self.held = [-1] * count
        #: Event that was issued later because the queue of its pipe was full -> the event that left the
        #: queue.
        self.queued: dict[int, int] = {}
        #: Additional cycles of a transfer due to concurrent transfers.
        self.stretched: dict[int, float] = {}
        self.total = 0.0
        self.last = -1  # the last event
        self.block_start: list[float] = []


class _SimulatedCore:
    __slots__ = (
        "at", "block", "blocked", "events", "last_done", "last_event", "pipes", "time", "turned", "undone",
    )  # fmt: skip

    def __init__(self, block: int) -> None:
        self.block = block
        self.events: list[int] = []
        self.at = -1  # the next event to issue; -1 before the start
        self.time = 0.0  # time of the scalar unit
        self.turned = -1  # the last event that the scalar unit waited for
        self.undone = 0
        self.last_done, self.last_event = 0.0, -1  # latest completion so far, and its event
        self.blocked = False  # True if the scalar unit waits
        self.pipes: dict[int, _Pipe] = {}


class _Pipe:
    __slots__ = ("begun", "core", "events", "free", "last_done", "last_event", "owner", "waiting")

    def __init__(self, core: _SimulatedCore) -> None:
        self.core = core
        self.events: list[int] = []
        self.begun = 0  # number of started events
        self.free = 0.0
        self.owner = -1  # the event that occupies the pipe until `free`
        self.last_done, self.last_event = 0.0, -1
        self.waiting = False  # True until the end of a transfer


class _Shared:
    """Concurrent transfers that share a cap."""

    __slots__ = ("active", "cap", "progress", "rate", "rates", "time", "version")

    def __init__(self, cap: float) -> None:
        self.cap = cap
        self.time = self.progress = 0.0
        self.rates = 0.0
        self.rate = 1.0
        self.active: list[tuple[float, int, int]] = []  # (progress at which it ends, number, event)
        self.version = 0

    def advance(self, now: float) -> None:
        self.progress += (now - self.time) * self.rate
        self.time = now

    def changed(self, by: float) -> None:
        self.rates = max(0.0, self.rates + by)
        self.rate = min(1.0, self.cap / self.rates) if self.rates > 1e-9 else 1.0
        self.version += 1


class _Stuck(Exception):
    """Deadlock because the queues are too short."""


def simulate(trace: Trace, machine: Machine) -> Simulated:
    """Compute the times of a trace. If the queues are too short for the program, the simulation repeats with
    longer queues."""
    depth = int(machine.depth)
    while True:
        try:
            return _Simulation(trace, machine, depth).run()
        except _Stuck:
            if depth > len(trace):
                raise AssertionError("a trace waits for an event that never happens") from None
            depth *= 8


def slots_of(trace: Trace, machine: Machine) -> int:
    """Return the number of blocks that run at the same time."""
    kinds = {c.kind for c in trace.cores}
    if kinds == {"vector"}:
        return int(machine.aiv)
    if "mix" in kinds:  # kinds of cores are unknown: choose by the pipes in use
        cube = {"M", "MTE1", "FIX"} & {trace.pipes[p] for p in set(trace.pipe)}
        return int(machine.aic if cube else machine.aiv)
    return int(machine.aic)


def cap_of(trace: Trace, machine: Machine) -> float:
    """Return the bandwidth that reads share. Data beyond the size of L2 has the bandwidth of the memory."""
    if trace.footprint <= machine.l2:
        return machine.read_cap
    beyond = 1 - machine.l2 / trace.footprint
    return 1 / ((1 - beyond) / machine.read_cap + beyond / machine.hbm_cap)


class _Simulation:
    def __init__(self, trace: Trace, machine: Machine, depth: int) -> None:
        self.trace, self.machine, self.depth = trace, machine, depth
        self.result = Simulated(len(trace))
        self.heap: list[tuple[float, int, int, int]] = []
        self.number = 0
        self.rank_of = {c.block: c.rank for c in trace.cores}
        ranks = max(self.rank_of.values(), default=0) + 1
        self.groups = [
            _Shared(cap) for _ in range(ranks) for cap in (cap_of(trace, machine), machine.write_cap)
        ]
        self.group_of = self._competing({path: 0 for path in READS} | {path: 1 for path in WRITES})
        self.latency = {
            "flag": machine.flag, "token": machine.flag, "unit flag": machine.flag, "entry": machine.cross,
            "slot": machine.cross, "semaphore": machine.cross, "arrival": machine.cross,
            "signal": machine.cross, "transfer": machine.flag,
        }  # fmt: skip
        # waiting events by event, and the number of open waits of each event
        self.waiters: dict[int, list[tuple[int, str]]] = {}
        self.left = [0] * len(trace)
        self.ready = [0.0] * len(trace)  # time of the last awaited event
        self.ready_why: dict[int, tuple[str, int]] = {}
        for e, waits in trace.waits.items():
            for giver, kind in waits:
                self.waiters.setdefault(giver, []).append((e, kind))
            self.left[e] = len(waits)
        self.meeting = {e: group for group in trace.meets for e in group}
        self.came: dict[int, int] = {}  # id of a meeting -> number of arrived cores
        self.poke: list[_SimulatedCore] = []
        self.pipes_to_try: list[_Pipe] = []
        # cores and their streams
        self.cores = [_SimulatedCore(c.block) for c in trace.cores]
        self.blocks: dict[int, list[_SimulatedCore]] = {}
        for core in self.cores:
            self.blocks.setdefault(core.block, []).append(core)
        index = [0] * len(trace)
        for e, c in enumerate(trace.core):
            if trace.kind[e] == INSIDE:
                continue
            core = self.cores[c]
            core.events.append(e)
            p = trace.pipe[e]
            if p:
                pipe = core.pipes.get(p)
                if pipe is None:
                    pipe = core.pipes[p] = _Pipe(core)
                index[e] = len(pipe.events)
                pipe.events.append(e)
        self.index = index
        self.barrier_pipe = trace.pipes.index("V") if "V" in trace.pipes else -1
        self.unfinished = 0  # number of blocks

    def _competing(self, group_of: dict[str, int]) -> dict[str, int]:
        """Return the paths whose transfers may exceed a cap. If all pipes together cannot exceed it at their
        highest rates, transfers of the group need no tracking."""
        trace = self.trace
        most: dict[tuple[int, int, int], float] = {}  # (core, pipe, group) -> highest rate
        for c, p, n in set(zip(trace.core, trace.pipe, trace.charge, strict=True)):
            charge = trace.charges[n]
            group = group_of.get(charge.path)
            if group is not None and charge.bytes and charge.busy:
                key = c, p, 2 * trace.cores[c].rank + group
                most[key] = max(most.get(key, 0.0), charge.bytes / charge.busy)
        rates = [0.0] * len(self.groups)
        for (_, _, which), rate in most.items():
            rates[which] += rate
        full = {which % 2 for which, rate in enumerate(rates) if rate > self.groups[which].cap}
        return {path: group for path, group in group_of.items() if group in full}

    # -- events in time order---------------------------------------------------------------------------

    def push(self, time: float, what: int, of: int) -> None:
        self.number += 1
        heappush(self.heap, (time, self.number, what, of))

    def run(self) -> Simulated:
        machine = self.machine
        waiting = sorted(self.blocks)
        for block in waiting:  # blocks without an event need no time
            if not any(core.events for core in self.blocks[block]):
                self.blocks[block] = []
        waiting = [b for b in waiting if self.blocks[b]]
        slots = slots_of(self.trace, machine)
        if self.trace.meets or self._across(slots, waiting):
            # cores that wait for each other must run at the same time, or the simulation would deadlock
            slots = len(waiting)
        self.queue: dict[int, list[int]] = {}  # rank -> blocks that wait for cores
        for block in waiting:
            own = self.queue.setdefault(self.rank_of[block], [])
            own.append(block)
        for own in self.queue.values():
            for block in own[:slots]:
                self.push(machine.launch, _BLOCK, block)
            del own[:slots]
        self.left_in = {b: sum(len(c.events) for c in self.blocks[b]) for b in waiting}
        self.unfinished = len(waiting)
        heap = self.heap
        while heap:
            time, _, what, of = heappop(heap)
            if what == _BLOCK:
                self.begin_block(of, time)
            elif what == _BEGIN:
                self.begin_transfer(of, time)
            else:
                self.end_transfers(of, time)
            self.go()
        if self.unfinished:
            raise _Stuck
        result = self.result
        latest = max(result.done, default=0.0)
        if latest > 0:
            result.total, result.last = latest, result.done.index(latest)
        result.total = max(result.total, machine.launch)
        return result

    def _across(self, slots: int, waiting: Sequence[int]) -> bool:
        """Return True if blocks wait for each other and cannot all run at the same time."""
        if len(waiting) <= slots:
            return False
        core, cores = self.trace.core, self.cores
        return any(
            cores[core[e]].block != cores[core[giver]].block
            for e, waits in self.trace.waits.items()
            for giver, _ in waits
        )

    def begin_block(self, block: int, time: float) -> None:
        for core in self.blocks[block]:
            core.time = time
            core.at = 0
            core.last_done = time
            for pipe in core.pipes.values():
                pipe.free = pipe.last_done = time
            self.poke.append(core)

    def go(self) -> None:
        """Process all consequences of events that have become known."""
        pipes, cores = self.pipes_to_try, self.poke
        while pipes or cores:
            while pipes:
                self.advance(pipes.pop())
            if cores:
                self.issue(cores.pop())

    # -- the scalar unit ---------------------------------------------------------------------------------

    def issue(self, core: _SimulatedCore) -> None:
        """Advance the scalar unit as far as possible."""
        if core.at < 0:
            return
        core.blocked = False
        trace, result, step = self.trace, self.result, self.machine.issue
        kinds, pipes, events = trace.kind, trace.pipe, core.events
        in_order = trace.in_order
        at, time = core.at, core.time
        while at < len(events):
            e = events[at]
            kind = kinds[e]
            p = pipes[e]
            if not p or kind == DRAIN or kind == MEET:
                core.at, core.time = at, time
                if not self.scalar(core, e, time + step):
                    core.blocked = True
                    return
                time = core.time
                at += 1
                continue
            pipe = core.pipes[p]
            if in_order and core.undone:
                core.at, core.time, core.blocked = at, time, True
                return  # until all previous events are done
            if in_order and core.last_done > time:
                time = core.last_done
                core.turned = core.last_event
            back = self.index[e] - self.depth
            if back >= 0:
                if pipe.begun <= back:
                    core.at, core.time, core.blocked = at, time, True
                    return  # the queue is full; `advance` calls this method again
                other = pipe.events[back]
                if result.start[other] > time:
                    time = result.start[other]
                    core.turned = e
                    result.queued[e] = other
            time += step
            result.issue[e] = time
            result.held[e] = core.turned
            core.undone += 1
            at += 1
            core.at, core.time = at, time
            self.advance(pipe)
        core.at, core.time = at, time

    def scalar(self, core: _SimulatedCore, e: int, time: float) -> bool:
        """Process an event of the scalar unit. Return False if it cannot run yet."""
        trace, result = self.trace, self.result
        if self.left[e]:
            return False
        kind = trace.kind[e]
        why, after, start = ISSUE, core.turned, time
        if kind == DRAIN or kind == MEET:
            if core.undone:
                return False
            if core.last_done > start:
                why, after, start = BARRIER_, core.last_event, core.last_done
        if kind == MEET:
            group = self.meeting.get(e, (e,))
            if e not in self.ready_why:
                self.ready[e] = start
                self.ready_why[e] = (why, after)
                self.came[id(group)] = self.came.get(id(group), 0) + 1
                if self.came[id(group)] == len(group):
                    self.poke += [self.cores[trace.core[other]] for other in group if other != e]
            if self.came[id(group)] < len(group):
                return False
            latest = max(group, key=lambda other: self.ready[other])
            start = self.ready[latest] + self.machine.grid
            why, after = (GRID, latest) if latest != e else self.ready_why[e]
        elif self.ready[e] > start:
            (why, after), start = self.ready_why[e], self.ready[e]
        charge = trace.charges[trace.charge[e]]
        result.issue[e] = time
        result.held[e] = core.turned
        result.start[e] = start
        result.why[e], result.after[e] = why, after
        free = start + charge.busy + charge.after
        result.free[e] = free
        if start > time:
            core.turned = e
        core.time = free
        core.undone += 1
        self.finish(core, e, free)
        return True

    # -- pipes -------------------------------------------------------------------------------------------

    def advance(self, pipe: _Pipe) -> None:
        """Advance a pipe as far as possible."""
        if pipe.waiting:
            return
        trace, result, core = self.trace, self.result, pipe.core
        kinds, charge_of, charges = trace.kind, trace.charge, trace.charges
        events = pipe.events
        begun = pipe.begun
        issue_times, start_times, free_times = result.issue, result.start, result.free
        whys, afters, held, queued = result.why, result.after, result.held, result.queued
        left, ready, group_of = self.left, self.ready, self.group_of
        usual = ORDER if trace.in_order else ISSUE
        while begun < len(events):
            e = events[begun]
            when = issue_times[e]
            if when < 0 or left[e]:
                break
            # the latest of its dependencies is the reason for its start
            start, why, after = when, usual, held[e]
            if pipe.free > start:
                start, why, after = pipe.free, PIPE, pipe.owner
            if ready[e] > start:
                start = ready[e]
                why, after = self.ready_why[e]
            if queued and why == ISSUE and e in queued:
                why, after = QUEUE, queued[e]
            start_times[e] = start
            whys[e], afters[e] = why, after
            kind = kinds[e]
            begun += 1
            pipe.begun = begun
            if kind == WORK:
                charge = charges[charge_of[e]]
                if charge.path in group_of and charge.bytes and charge.busy:
                    pipe.waiting = True
                    pipe.owner = e
                    self.push(start, _BEGIN, e)
                    if core.blocked:
                        core.blocked = False
                        self.poke.append(core)
                    break
                free = start + charge.busy
                done = free + charge.after
                pipe.free, pipe.owner = free, e
                free_times[e] = free
            elif kind == BARRIER:
                done = start
                if pipe.last_done > start:
                    done = pipe.last_done
                    if trace.pipe[e] == self.barrier_pipe:
                        done = min(done, start + self.machine.barrier)
                    afters[e], whys[e] = pipe.last_event, BARRIER_
                free_times[e] = done
                pipe.free, pipe.owner = done, e
            elif kind == GIVE:
                done = start
                if pipe.last_done > done:
                    done = pipe.last_done
                    afters[e], whys[e] = pipe.last_event, PIPE
                free_times[e] = start
                if start > pipe.free:
                    pipe.free, pipe.owner = start, e
            else:
                done = start
                free_times[e] = start
                if start > pipe.free or why not in (PIPE, ISSUE):
                    pipe.free, pipe.owner = start, e
            if done > pipe.last_done:
                pipe.last_done, pipe.last_event = done, e
            elif kind == WORK:
                pipe.last_event = pipe.last_event if pipe.last_done > done else e
            self.finish(core, e, done)

    def finish(self, core: _SimulatedCore, e: int, done: float) -> None:
        """Complete an event, and notify the waiting events."""
        self.result.done[e] = done
        core.undone -= 1
        if done > core.last_done:
            core.last_done, core.last_event = done, e
        if core.blocked:
            core.blocked = False
            self.poke.append(core)
        if e in self.waiters:
            self.give(e, done)
        left = self.left_in[core.block] = self.left_in[core.block] - 1
        if not left:
            self.unfinished -= 1
            waiting = self.queue[self.rank_of[core.block]]
            if waiting:
                end = max(c.last_done for c in self.blocks[core.block])
                self.push(end + self.machine.block, _BLOCK, waiting.pop(0))

    def give(self, e: int, done: float) -> None:
        """Signal an event to the events that wait for it."""
        trace, ready, latency = self.trace, self.ready, self.latency
        for waiter, kind in self.waiters[e]:
            at = done + latency.get(kind, 0.0)
            if at >= ready[waiter]:
                ready[waiter] = at
                self.ready_why[waiter] = REASONS.get(kind, ORDER), e
            self.left[waiter] -= 1
            if not self.left[waiter]:
                other = self.cores[trace.core[waiter]]
                p = trace.pipe[waiter]
                if not p:
                    if other.blocked:
                        other.blocked = False
                        self.poke.append(other)
                elif not other.pipes[p].waiting:
                    self.pipes_to_try.append(other.pipes[p])

    # -- transfers that share global memory --------------------------------------------------------------

    def begin_transfer(self, e: int, now: float) -> None:
        charge = self.trace.charges[self.trace.charge[e]]
        which = 2 * self.trace.cores[self.trace.core[e]].rank + self.group_of[charge.path]
        group = self.groups[which]
        group.advance(now)
        group.changed(charge.bytes / charge.busy)
        self.number += 1
        heappush(group.active, (group.progress + charge.busy, self.number, e))
        self.expect(which, now)

    def expect(self, which: int, now: float) -> None:
        """Schedule the end of the first transfer of a group, at the current rate."""
        group = self.groups[which]
        if group.active:
            left = max(0.0, group.active[0][0] - group.progress)
            self.push(now + left / group.rate, _END, which * (1 << 40) + group.version)

    def end_transfers(self, which: int, now: float) -> None:
        which, version = divmod(which, 1 << 40)
        group = self.groups[which]
        if group.version != version:
            return  # a transfer has started or ended since then
        group.advance(now)
        trace, result = self.trace, self.result
        ended: list[int] = []
        while group.active and group.active[0][0] <= group.progress + 1e-6:
            ended.append(heappop(group.active)[2])
        for e in ended:
            charge = trace.charges[trace.charge[e]]
            group.changed(-charge.bytes / charge.busy)
        if not group.active:
            group.rates, group.rate = 0.0, 1.0
        group.version += 1
        self.expect(which, now)
        for e in ended:
            charge = trace.charges[trace.charge[e]]
            core = self.cores[trace.core[e]]
            pipe = core.pipes[trace.pipe[e]]
            longer = now - result.start[e] - charge.busy
            if longer > 0.5:
                result.stretched[e] = longer
            result.free[e] = now
            pipe.free, pipe.owner, pipe.waiting = now, e, False
            done = now + charge.after
            if done >= pipe.last_done:
                pipe.last_done, pipe.last_event = done, e
            self.finish(core, e, done)
            self.pipes_to_try.append(pipe)
