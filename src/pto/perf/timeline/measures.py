"""Measures of a trace with its times on a machine: totals, pipes, stalls, the critical path."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from ...isa.costs import GUESSED, READS, WRITES
from ...isa.timing import Machine
from . import simulate as sim
from .columns import REASONS, Columns
from .simulate import Simulated, cap_of, simulate, slots_of
from .trace import BARRIER, GIVE, WORK, Trace, TraceSite

M = TypeVar("M", bound="Measures")


class PipeUse(NamedTuple):
    """Use of a pipe of a core: busy cycles, and number of instructions."""

    core: int
    pipe: str
    busy: float
    events: int


class Stall(NamedTuple):
    """Cycles that pipes waited at a site of the program for one reason."""

    reason: str
    pipe: str
    site: TraceSite  # the waiting instruction
    of: TraceSite | None  # the instruction that it waited for
    cycles: float  # cycles of all cores
    worst: float  # largest cycles of one core
    times: int


class _Gap(NamedTuple):
    low: float
    high: float
    reason: str
    of: int  # the event that was waited for


class CriticalStep(NamedTuple):
    """A part of the critical path: an event, the interval that counts, and the reason for its start."""

    event: int
    begin: float
    end: float
    why: str


class Measures:
    """Times of a launch on a machine, and results derived from them."""

    def __init__(self, trace: Trace, machine: Machine, times: Simulated | None = None) -> None:
        self.trace = trace
        self.machine = machine
        self.times = times if times is not None else simulate(trace, machine)

    @cached_property
    def columns(self) -> Columns:
        return Columns(self.trace, self.times, self.machine)

    # -- totals ----------------------------------------------------------------------------------------

    @property
    def cycles(self) -> float:
        """Cycles from the launch to the last event."""
        return self.times.total

    @property
    def us(self) -> float:
        return self.machine.us(self.times.total)

    @property
    def kernel_cycles(self) -> float:
        """Cycles without the launch itself: from the first instruction of a core on."""
        return max(0.0, self.times.total - self.machine.launch)

    @property
    def blocks(self) -> int:
        return len({c.block for c in self.trace.cores})

    @property
    def waves(self) -> int:
        """Number of blocks that a core executes one after another."""
        ranks = len({c.rank for c in self.trace.cores}) or 1
        return -(-self.blocks // max(1, ranks * slots_of(self.trace, self.machine)))

    @cached_property
    def pipes(self) -> list[PipeUse]:
        """Use of pipes, by core, then by pipe."""
        pipes = self.trace.pipes
        return [
            PipeUse(lane // len(pipes), pipes[lane % len(pipes)], busy, count)
            for lane, busy, count in zip(*(c.tolist() for c in self.columns.busy), strict=True)
        ]

    @cached_property
    def share(self) -> dict[str, float]:
        """Busy share of the kernel time by pipe, on the busiest core with the pipe. If cores execute several
        blocks, it is the share of the time of a block."""
        found: dict[str, float] = {}
        for use in self.pipes:
            whole = self._span(use.core)
            if whole:
                found[use.pipe] = max(found.get(use.pipe, 0.0), min(1.0, use.busy / whole))
        return found

    def _span(self, core: int) -> float:
        """Return the cycles that shares of a core refer to."""
        if self.waves == 1:
            return self.kernel_cycles
        return float(self.columns.last[core] - self.columns.first[core])

    def overlap(self, first: str, second: str) -> float:
        """Return the share of the work of the shorter of two pipes that overlaps the other, over all cores
        with both."""
        work: dict[tuple[int, str], list[tuple[float, float]]] = {}
        trace, times = self.trace, self.times
        for e, kind in enumerate(trace.kind):
            pipe = trace.pipes[trace.pipe[e]]
            if kind == WORK and pipe in (first, second):
                work.setdefault((trace.cores[trace.core[e]].block, pipe), []).append(
                    (times.start[e], times.free[e])
                )
        both = least = 0.0
        for block in {block for block, _ in work}:
            one, other = (sorted(work.get((block, pipe), ())) for pipe in (first, second))
            both += _common(one, other)
            least += min(sum(high - low for low, high in spans) for spans in (one, other))
        return both / least if least else 0.0

    @cached_property
    def bytes(self) -> dict[str, float]:
        """Bytes moved, by path."""
        found: dict[str, float] = defaultdict(float)
        for charge, count in zip(self.trace.charges, self.columns.charged().tolist(), strict=False):
            if count and charge.path:
                found[charge.path] += charge.bytes * count
        return dict(found)

    @cached_property
    def flops(self) -> dict[str, float]:
        """Operations by pipe: two per product for the cube, one per element for V."""
        found: dict[str, float] = defaultdict(float)
        pipes, counts = self.trace.pipes, self.columns.charged(pipes=True)
        for key in counts.nonzero()[0].tolist():
            charge, pipe = divmod(key, len(pipes))
            flops = self.trace.charges[charge].flops
            if flops:
                found[pipes[pipe]] += flops * float(counts[key])
        return dict(found)

    @property
    def gm_bytes(self) -> float:
        return sum(self.bytes.get(path, 0.0) for path in (*READS, *WRITES))

    @property
    def intensity(self) -> float:
        """Operations per byte of global memory."""
        work = self.flops.get("M", 0.0) or self.flops.get("V", 0.0)
        return work / self.gm_bytes if self.gm_bytes else 0.0

    @cached_property
    def roofline(self) -> tuple[float, float]:
        """Operations per cycle that cores and memory allow at this intensity, and the achieved operations per
        cycle."""
        cube = bool(self.flops.get("M"))
        charges = self.trace.charges
        computes = [bool(c.flops and c.busy and (not cube or not c.path)) for c in charges]
        peak = self._at_once(computes) * max(
            (c.flops / c.busy for c, one in zip(charges, computes, strict=True) if one), default=0.0
        )
        least = 0.0  # cycles of all transfers; reads and writes overlap
        for paths, cap in ((READS, cap_of(self.trace, self.machine)), (WRITES, self.machine.write_cap)):
            sizes = {path: self.bytes[path] for path in paths if self.bytes.get(path)}
            own = (
                size / (self._at_once([c.path == path for c in charges]) * self.machine.values[f"bw_{path}"])
                for path, size in sizes.items()
            )
            least = max(least, sum(sizes.values()) / cap, *own)
        work = self.flops.get("M", 0.0) or self.flops.get("V", 0.0)
        roof = min(peak, work / least) if least else peak
        return roof, work / self.kernel_cycles if work else 0.0

    def _at_once(self, wanted: Sequence[bool]) -> float:
        """Return the number of cores that can do some kind of work at the same time; `wanted` selects
        charges."""
        columns = self.columns
        some = np.asarray(wanted)[columns.charge[columns.work]]
        cores = np.unique(columns.core[columns.work][some]).size
        return cores * min(self.blocks, slots_of(self.trace, self.machine)) / self.blocks

    @property
    def bound(self) -> str:
        """The limit of the kernel: a pipe that is busy for most of the time, or latency."""
        if not self.share:
            return "nothing to do"
        pipe = max(self.share, key=lambda p: self.share[p])
        if self.share[pipe] >= 0.8:
            return f"{pipe}-bound"
        return "latency- or sync-bound" if self.share[pipe] < 0.6 else f"mostly {pipe}"

    @cached_property
    def guessed(self) -> dict[str, float]:
        """Busy cycles of instructions with a guessed cost, by name, of all cores."""
        found: dict[str, float] = defaultdict(float)
        trace, columns = self.trace, self.columns
        guesses = np.asarray([c.evidence == GUESSED and bool(c.cycles) for c in trace.charges])
        cycles = np.asarray([c.cycles for c in trace.charges], np.float64)
        charges = columns.charge[columns.work]
        some = guesses[charges]
        spent = np.bincount(columns.site[columns.work][some], cycles[charges[some]])
        for site in spent.nonzero()[0].tolist():
            found[trace.sites[site].name] += float(spent[site])
        return dict(found)

    @property
    def guessed_share(self) -> float:
        """Share of all busy cycles with a guessed cost."""
        return sum(self.guessed.values()) / self.busy_cycles if self.busy_cycles else 0.0

    @cached_property
    def busy_cycles(self) -> float:
        """Cycles of all instructions, of all cores."""
        counts = self.columns.charged().tolist()
        return sum(c.cycles * n for c, n in zip(self.trace.charges, counts, strict=False))

    # -- stalls and causes -----------------------------------------------------------------------------

    @cached_property
    def lower_bound(self) -> float:
        """Lower bound for every order of the same instructions: the launch, then the busiest pipe, or the
        time of global memory for all reads or writes of a device."""
        trace = self.trace
        taken: dict[tuple[int, int], float] = defaultdict(float)
        moved: dict[tuple[int, bool], float] = defaultdict(float)
        for e, kind in enumerate(trace.kind):
            if kind == WORK:
                charge = trace.charges[trace.charge[e]]
                taken[trace.core[e], trace.pipe[e]] += charge.busy
                if charge.bytes and charge.busy and (charge.path in READS or charge.path in WRITES):
                    moved[trace.cores[trace.core[e]].rank, charge.path in READS] += charge.bytes
        caps = {True: cap_of(trace, self.machine), False: self.machine.write_cap}
        of_memory = (size / caps[reads] for (_, reads), size in moved.items())
        return self.machine.launch + max((*taken.values(), *of_memory), default=0.0)

    @cached_property
    def gaps(self) -> list[tuple[int, float, float, str, int]]:
        """Idle time of a pipe before an event: (event, from, to, reason, event that it waited for); and time
        that transfers lose to other transfers."""
        g = self.columns.gaps
        event, low, high, why, of = (c.tolist() for c in g)
        return list(zip(event, low, high, [REASONS[w] for w in why], of, strict=True))

    def stalls(self) -> list[Stall]:
        """Return the idle times of pipes between their first and last event; the longest time of one core
        comes first.
        """
        trace, g, columns = self.trace, self.columns.gaps, self.columns
        givers = np.where(g.of >= 0, columns.site[np.maximum(g.of, 0)], -1)
        kinds = np.stack([g.why.astype(np.int64), columns.pipe[g.event], columns.site[g.event], givers])
        kinds, kind = np.unique(kinds, axis=1, return_inverse=True)
        cells = kind.reshape(-1) * columns.cores + columns.core[g.event]  # by core as well
        spent = np.bincount(cells, g.high - g.low, kinds.shape[1] * columns.cores).reshape(-1, columns.cores)
        counts = np.bincount(kind.reshape(-1), minlength=kinds.shape[1])
        out = [
            Stall(
                REASONS[why], trace.pipes[pipe], trace.sites[site], trace.sites[of] if of >= 0 else None,
                float(cycles.sum()), float(cycles.max()), int(count),
            )
            for (why, pipe, site, of), cycles, count in zip(kinds.T.tolist(), spent, counts, strict=True)
        ]  # fmt: skip
        return sorted(out, key=lambda s: -s.worst)

    @cached_property
    def by_reason(self) -> dict[str, float]:
        """Idle cycles of pipes by reason, of all cores."""
        found: dict[str, float] = defaultdict(float)
        g = self.columns.gaps
        spent = np.bincount(g.why, g.high - g.low)
        for why in spent.nonzero()[0].tolist():
            found[REASONS[why]] = float(spent[why])
        return dict(sorted(found.items(), key=lambda kv: -kv[1]))

    @cached_property
    def causes(self) -> dict[str, float]:
        """Idle cycles of pipes by root cause, of all cores; see `causes_of`."""
        return self.causes_of(range(len(self.trace.cores)))

    def causes_of(self, cores: Iterable[int]) -> dict[str, float]:
        """Return idle cycles of the pipes of some cores by root cause. If a pipe waits for a flag of an idle
        pipe, the cause is the wait of that pipe. So flags between pipes do not hide a full FIFO at the start
        of the chain. A flag itself is the cause if the pipe that sets it is working."""
        trace, wanted = self.trace, set(cores)
        found: dict[str, float] = defaultdict(float)
        for e, low, high, reason, of in self.gaps:
            if trace.core[e] in wanted:
                gap = _Gap(low, high, reason, of)
                for cause, cycles in self._behind(self._idle, gap, len(trace.pipes)):
                    found[cause] += cycles
        return dict(sorted(found.items(), key=lambda kv: -kv[1]))

    @cached_property
    def _idle(self) -> dict[tuple[int, int], list[_Gap]]:
        """Gaps by core and pipe, in order."""
        trace = self.trace
        found: dict[tuple[int, int], list[_Gap]] = defaultdict(list)
        for e, low, high, reason, of in self.gaps:
            if reason != sim.BANDWIDTH:  # not idle time
                found[trace.core[e], trace.pipe[e]].append(_Gap(low, high, reason, of))
        return found

    def _behind(
        self, gaps: Mapping[tuple[int, int], list[_Gap]], gap: _Gap, most: int
    ) -> Iterator[tuple[str, float]]:
        """Yield the parts of a gap by root cause. At most `most` pipes of a core can wait for each other in a
        chain."""
        trace = self.trace
        if not most or gap.of < 0 or gap.reason != sim.FLAG or not trace.pipe[gap.of]:
            yield gap.reason, gap.high - gap.low
            return
        others = gaps.get((trace.core[gap.of], trace.pipe[gap.of]), ())
        left = gap.high - gap.low
        at = bisect_right(others, gap.low, key=lambda g: g.high)
        while at < len(others) and others[at].low < gap.high:
            other = others[at]
            low, high = max(other.low, gap.low), min(other.high, gap.high)
            left -= high - low
            yield from self._behind(gaps, _Gap(low, high, other.reason, other.of), most - 1)
            at += 1
        if left > 0:
            yield gap.reason, left

    def critical_path(self) -> list[CriticalStep]:
        """Return the path from the launch to the end, without gaps: to reduce the total, a part of it must
        become shorter."""
        return self._path

    @cached_property
    def _path(self) -> list[CriticalStep]:
        times, trace = self.times, self.trace
        steps: list[CriticalStep] = []
        e, end = times.last, times.total
        while e >= 0:
            if steps and steps[-1].event == e and steps[-1].begin <= end:
                break
            begin = min(times.start[e], end)
            why = times.why[e]
            if trace.kind[e] in (GIVE, BARRIER):  # the previous work takes the time
                begin = min(times.done[e], end)
            follows = times.after[e]
            if steps and steps[-1].why == sim.ISSUE and trace.pipe[e]:
                begin = min(begin, max(times.issue[e], 0.0))  # only its issue is on the path
                why, follows = sim.QUEUE, times.queued.get(e, follows)
            steps.append(CriticalStep(e, begin, end, why))
            end = begin
            e = follows
        steps.reverse()
        return steps

    # -- changes ------------------------------------------------------------------------------------

    def what_if(
        self: M,
        change: Callable[[Trace], Trace] | None = None,
        machine: Machine | Mapping[str, float] | None = None,
    ) -> M:
        """Return the timeline of a changed trace, or of another machine."""
        to = self.machine
        if machine is not None:
            to = machine if isinstance(machine, Machine) else to.with_values(machine)
        trace = self.trace.charge_for(to) if to is not self.machine else self.trace
        return type(self)(change(trace.copy()) if change is not None else trace, to)

    # -- names -----------------------------------------------------------------------------------------

    def core_name(self, core: int) -> str:
        info = self.trace.cores[core]
        several = self.blocks > 1
        return " ".join(filter(None, (f"block {info.block}" if several or not info.name else "", info.name)))


def _common(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """Return the total overlap of two sorted lists of intervals."""
    found, n = 0.0, 0
    for low, high in one:
        while n < len(other) and other[n][1] <= low:
            n += 1
        at = n
        while at < len(other) and other[at][0] < high:
            found += max(0.0, min(high, other[at][1]) - max(low, other[at][0]))
            at += 1
    return found
