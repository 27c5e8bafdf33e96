"""Unordered accesses of a trace: pairs of instructions of a core that may access the same bytes concurrently.

Flags and barriers order the pipes of a core. For every pipe, this module tracks which part of each other
pipe's work happens before its next instruction. A change of a trace is safe if every pair that was ordered
remains ordered.
"""

from __future__ import annotations

from ...isa.machine import OVERLAPPING_PIPES
from .trace import BARRIER, DRAIN, GIVE, INSIDE, MEET, TAKE, WORK, Range, Trace

#: Maximum number of events of a trace without flags to analyse, which takes some seconds.
_SOME = 1_000_000


def settle(trace: Trace, isa: str) -> None:
    """For a trace without flags: let the pipes overlap if its barriers order all conflicting accesses.
    Otherwise the trace is timed one instruction after another."""
    if trace.in_order and DRAIN in trace.kind and len(trace) <= _SOME and not unordered(trace, isa):
        trace.in_order = False


class _CorePipes:
    """Pipes of a core: `known[p][q]` is the number of instructions of pipe q that happen before the next
    instruction of p."""

    def __init__(self, pipes: int) -> None:
        self.count = [0] * pipes
        self.known = [[0] * pipes for _ in range(pipes)]
        self.pending: list[list[tuple[int, int, tuple[Range, ...]]]] = [[] for _ in range(pipes)]


def unordered(trace: Trace, isa: str) -> set[tuple[int, int]]:
    """Return pairs of sites that access the same bytes without an order, at least one of them writing."""
    width = len(trace.pipes)
    loose = [name in OVERLAPPING_PIPES.get(isa, frozenset()) for name in trace.pipes]
    cores: dict[int, _CorePipes] = {}
    given: dict[int, list[int]] = {}
    wanted = {giver for waits in trace.waits.values() for giver, _ in waits}
    found: set[tuple[int, int]] = set()
    for e, kind in enumerate(trace.kind):
        if kind == INSIDE:
            continue
        core = cores.get(trace.core[e])
        if core is None:
            core = cores[trace.core[e]] = _CorePipes(width)
        p = trace.pipe[e]
        known = core.known[p]
        for giver, _ in trace.waits.get(e, ()):
            _learn(core, p, given.get(giver) if trace.core[giver] == trace.core[e] else None)
        if kind == WORK:
            touched = trace.touched.get(e, ())
            if touched:
                _meet(trace, core, e, p, loose, touched, found)
                core.pending[p].append((core.count[p], e, touched))
            core.count[p] += 1
            if not loose[p]:
                known[p] = core.count[p]
            if not p:  # the scalar unit completes an instruction before the next
                for other in core.known:
                    other[0] = core.count[0]
        elif kind == BARRIER:
            known[p] = core.count[p]
        elif kind in (DRAIN, MEET):
            for other in core.known:
                other[:] = core.count
            for waiting in core.pending:
                waiting.clear()
        if e in wanted and kind in (WORK, GIVE, DRAIN, TAKE):
            snapshot = list(known)
            snapshot[p] = core.count[p]
            given[e] = snapshot
    return found


def _learn(core: _CorePipes, p: int, snapshot: list[int] | None) -> None:
    if snapshot is None:
        return
    targets = core.known if not p else [core.known[p]]  # order of the scalar unit holds for all later issues
    for known in targets:
        for q, over in enumerate(snapshot):
            if over > known[q]:
                known[q] = over


def _meet(
    trace: Trace, core: _CorePipes, e: int, p: int, loose: list[bool], touched: tuple[Range, ...],
    found: set[tuple[int, int]],
) -> None:  # fmt: skip
    known = core.known[p]
    for q, waiting in enumerate(core.pending):
        if not waiting or (q == p and not loose[p]):
            continue
        least = min(view[q] for view in core.known)
        if waiting[0][0] < least:
            waiting[:] = [one for one in waiting if one[0] >= least]
        for number, other, ranges in waiting:
            if number >= known[q] and clash(ranges, touched):
                found.add((trace.site[other], trace.site[e]))


def clash(first: tuple[Range, ...], second: tuple[Range, ...]) -> bool:
    """Return True if two sets of ranges share bytes that at least one of them writes."""
    for a in first:
        for b in second:
            if a.space == b.space and (a.write or b.write) and a.low < b.high and b.low < a.high:
                return True
    return False
