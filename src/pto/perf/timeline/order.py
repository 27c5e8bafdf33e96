"""What a trace leaves unordered: pairs of instructions of a core that may touch the same bytes at once.

Pipes of a core know of each other's work through flags and barriers. Of every pipe this keeps how much of the
work of each other one is known to be over when its next instruction begins. A change of a trace is safe
where it leaves no pair unordered that was ordered before.
"""

from __future__ import annotations

from ...isa.machine import OVERLAPPING_PIPES
from .trace import BARRIER, DRAIN, GIVE, INSIDE, MEET, TAKE, WORK, Range, Trace

#: Events that are looked at in a trace without flags, some seconds.
_SOME = 1_000_000


def settle(trace: Trace, isa: str) -> None:
    """Take barriers for an order where a trace has no flags, if they order all that must be: else it is timed
    one instruction after another."""
    if trace.in_order and DRAIN in trace.kind and len(trace) <= _SOME and not unordered(trace, isa):
        trace.in_order = False


class _Core:
    """Pipes of a core: `known[p][q]` is how much of pipe q is over for what p begins next."""

    def __init__(self, pipes: int) -> None:
        self.count = [0] * pipes
        self.known = [[0] * pipes for _ in range(pipes)]
        self.pending: list[list[tuple[int, int, tuple[Range, ...]]]] = [[] for _ in range(pipes)]


def unordered(trace: Trace, isa: str) -> set[tuple[int, int]]:
    """Pairs of sites that touch the same bytes, one of them to write, with nothing that orders them."""
    width = len(trace.pipes)
    loose = [name in OVERLAPPING_PIPES.get(isa, frozenset()) for name in trace.pipes]
    cores: dict[int, _Core] = {}
    given: dict[int, list[int]] = {}
    wanted = {giver for waits in trace.waits.values() for giver, _ in waits}
    found: set[tuple[int, int]] = set()
    for e, kind in enumerate(trace.kind):
        if kind == INSIDE:
            continue
        core = cores.get(trace.core[e])
        if core is None:
            core = cores[trace.core[e]] = _Core(width)
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
            if not p:  # the scalar unit is through with it before it goes on
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


def _learn(core: _Core, p: int, snapshot: list[int] | None) -> None:
    if snapshot is None:
        return
    targets = core.known if not p else [core.known[p]]  # what the scalar unit knows, all that it issues does
    for known in targets:
        for q, over in enumerate(snapshot):
            if over > known[q]:
                known[q] = over


def _meet(
    trace: Trace, core: _Core, e: int, p: int, loose: list[bool], touched: tuple[Range, ...],
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
    """Whether two sets of ranges share bytes that one of them writes."""
    for a in first:
        for b in second:
            if a.space == b.space and (a.write or b.write) and a.low < b.high and b.low < a.high:
                return True
    return False
