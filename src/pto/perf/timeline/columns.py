"""A trace and its times as arrays, for sums over millions of events and for the causes of waits.

A *lane* is the number of a pipe of a core.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...isa.timing import Machine
from . import simulate as sim
from .simulate import Simulated
from .trace import BARRIER, DRAIN, INSIDE, MEET, TAKE, WORK, Trace

Array = np.ndarray[Any, Any]

#: All reasons; codes are indices in this tuple.
REASONS = (
    "", sim.PIPE, sim.ISSUE, sim.QUEUE, sim.FLAG, sim.TOKEN, sim.BARRIER_, sim.EMPTY, sim.FULL, sim.CROSS,
    sim.GRID, sim.LAUNCH, sim.BLOCK, sim.UNIT, sim.ORDER, sim.TRANSFER, sim.BANDWIDTH,
)  # fmt: skip
CODES = {name: n for n, name in enumerate(REASONS)}
#: Reasons without a wait: the pipe was busy, or the event was not issued yet.
_IDLE = [CODES[name] for name in (sim.PIPE, sim.ISSUE, sim.QUEUE)]


class Gaps(NamedTuple):
    """Idle time of pipes before an event, in the order of events. `of` is the event that it waited for or -1,
    and `why` is a code of `REASONS`. Time that transfers lose to other transfers is included (BANDWIDTH)."""

    event: Array
    low: Array
    high: Array
    why: Array
    of: Array


class Columns:
    """Arrays of a trace with its times."""

    def __init__(self, trace: Trace, times: Simulated, machine: Machine) -> None:
        self._times, self._machine = times, machine
        self.core = np.asarray(trace.core, np.int32)
        self.pipe = np.asarray(trace.pipe, np.int32)
        self.site = np.asarray(trace.site, np.int32)
        self.charge = np.asarray(trace.charge, np.int32)
        self.kind = np.asarray(trace.kind, np.int8)
        self.start, self.free, self.done = (
            np.asarray(c, np.float64) for c in (times.start, times.free, times.done)
        )
        self.after = np.asarray(times.after, np.int64)
        self.why = np.fromiter((CODES[w] for w in times.why), np.int8, len(self.core))
        self.work = self.kind == WORK
        self.cores, self.pipes = len(trace.cores), len(trace.pipes)

    @cached_property
    def lane(self) -> Array:
        return self.core.astype(np.int64) * self.pipes + self.pipe

    @cached_property
    def first(self) -> Array:
        """Time at which the first event of a core was issued, minus the time of issuing; NaN without
        events."""
        found = np.full(self.cores, np.nan)
        real = np.flatnonzero(self.kind != INSIDE)
        core, at = np.unique(self.core[real], return_index=True)
        issue = self._times.issue
        found[core] = [issue[real[n]] - self._machine.issue for n in at]
        return found

    @cached_property
    def last(self) -> Array:
        """Time at which a core ended."""
        found = np.zeros(self.cores)
        np.maximum.at(found, self.core, self.done)
        return found

    @cached_property
    def _streams(self) -> tuple[Array, Array, Array]:
        """Return the work by pipe of a core, in order; for each event, the time when all previous events of
        its pipe were done (-1 for the first event); and a mask of first events.
        """
        at = np.flatnonzero(self.work)
        at = at[np.argsort(self.lane[at], kind="stable")]
        lanes = self.lane[at]
        first = np.ones(len(at), bool)
        first[1:] = lanes[1:] != lanes[:-1]
        done = self.done[at]
        before = np.full(len(at), -1.0)
        edges = [*np.flatnonzero(first).tolist(), len(at)]
        for low, high in pairwise(edges):
            before[low + 1 : high] = np.maximum.accumulate(done[low : high - 1])
        return at, before, first

    @cached_property
    def busy(self) -> tuple[Array, Array, Array]:
        """Return the lane, busy cycles and number of instructions of each pipe with work. The start-up of an
        instruction may overlap the end of another.
        """
        at, before, _ = self._streams
        spent = np.maximum(0.0, self.done[at] - np.maximum(self.start[at], before))
        lanes, index, count = np.unique(self.lane[at], return_inverse=True, return_counts=True)
        return lanes, np.bincount(index.reshape(-1), spent, len(lanes)), count

    def charged(self, pipes: bool = False) -> Array:
        """Return the number of work events by charge; with `pipes`, by charge and pipe."""
        if not pipes:
            return np.bincount(self.charge[self.work])
        key = self.charge[self.work].astype(np.int64) * self.pipes + self.pipe[self.work]
        return np.bincount(key, minlength=self.pipes).reshape(-1)

    @cached_property
    def gaps(self) -> Gaps:
        at, before, first = self._streams
        at, before, first = (c[self.pipe[at] > 0] for c in (at, before, first))
        start, free = self.start[at], np.empty(len(at))
        began = self.first[self.core[at]]
        free[1:] = self.free[at[:-1]]
        free = np.where(first, began, free)
        before = np.where(first, began, before)
        why, of = self._reasons(at, start)
        # a barrier waits for the end of the work of its own pipe
        low = np.where(why == CODES[sim.BARRIER_], free, before)
        real = (start > free + 0.5) & (start > low + 0.5)
        longer = self._times.stretched
        some = np.fromiter(longer, np.int64, len(longer))
        lost = np.fromiter(longer.values(), np.float64, len(longer))
        some, lost = some[lost > 0], lost[lost > 0]
        parts = (
            (at[real], some), (low[real], self.free[some] - lost), (start[real], self.free[some]),
            (why[real], np.full(len(some), CODES[sim.BANDWIDTH], why.dtype)),
            (of[real], np.full(len(some), -1, of.dtype)),
        )  # fmt: skip
        joined = [np.concatenate(p) for p in parts]
        order = np.argsort(joined[0], kind="stable")
        return Gaps(*(c[order] for c in joined))

    def _reasons(self, at: Array, start: Array) -> tuple[Array, Array]:
        """Return the reasons why events did not start earlier, and the events that they waited for."""
        why, after = self.why[at].astype(np.int64), self.after[at]
        known = after >= 0
        whom = np.where(known, after, 0)
        pipe, issue = CODES[sim.PIPE], CODES[sim.ISSUE]
        # the previous wait of the scalar unit
        near = start - self.free[whom] < max(64.0, 8 * self._machine.issue)
        theirs = self.why[whom].astype(np.int64)
        held = (why == issue) & known & near & (theirs != issue)
        itself = np.isin(self.kind[whom], (DRAIN, MEET))
        found_why = np.where(held, theirs, why)
        found_of = np.where(held, np.where(itself, after, self.after[whom]), after)
        queued = self._times.queued
        if queued:
            behind = np.full(len(self.core), -1, np.int64)
            behind[np.fromiter(queued, np.int64, len(queued))] = np.fromiter(
                queued.values(), np.int64, len(queued)
            )
            full = (why == issue) & known & np.isin(whom, np.fromiter(queued, np.int64, len(queued)))
            found_why = np.where(full, CODES[sim.QUEUE], found_why)
            found_of = np.where(full, behind[whom], found_of)
        stopped = (why == pipe) & known & np.isin(self.kind[whom], (TAKE, BARRIER))
        found_why = np.where(stopped, theirs, found_why)
        found_of = np.where(stopped, self.after[whom], found_of)
        wait = self._pending(at)
        has = wait >= 0
        mine = np.where(has, wait, 0)
        late = has & np.isin(why, (pipe, issue)) & (self.free[mine] >= start - 1.0)
        return np.where(late, self.why[mine], found_why), np.where(late, self.after[mine], found_of)

    def _pending(self, at: Array) -> Array:
        """Return for each event the last effective wait or barrier in its pipe since the previous event, or
        -1."""
        waits = np.isin(self.kind, (TAKE, BARRIER)) & (self.pipe > 0) & ~np.isin(self.why, _IDLE)
        waiting = np.flatnonzero(waits)
        found = np.full(len(at), -1, np.int64)
        if not len(waiting) or not len(at):
            return found
        # the next event in the pipe
        size = len(self.core) + 1
        place = np.searchsorted(self.lane[at] * size + at, self.lane[waiting] * size + waiting)
        inside = place < len(at)
        waiting, place = waiting[inside], place[inside]
        same = self.lane[at[place]] == self.lane[waiting]
        waiting, place = waiting[same], place[same]
        order = np.lexsort((waiting, self.free[waiting], place))  # the latest event is last
        found[place[order]] = waiting[order]
        return found
