"""What would make a kernel faster, each tried on its timeline before it is told.

    a barrier that orders nothing      no bytes are touched before and after it that it would have to order
    a wait that could come later       what it waits for is not touched by the instructions right behind it
    one more buffer for a tile         who fills it only waits until it is read: the wait then is for the use
                                       before that one
    one more slot for a FIFO           the same, where a FIFO is full

Each is a change of the trace (`what_if`): the gain is the difference of two simulations, and it leaves
nothing unordered that was ordered before (`order.py`). What instructions touch is known by their tiles and
arrays as wholes, so a part of a tile counts as all of it: advice is left out where it might be right, never
given where it is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...isa import row as find_row
from . import simulate as sim
from .order import clash, unordered
from .trace import BARRIER, DRAIN, GIVE, INSIDE, TAKE, WORK, Range, Trace

if TYPE_CHECKING:
    from .measures import Measures

#: Candidates that are simulated at most, and the least share of the total that is told.
MOST, LEAST = 12, 0.01
#: Events that are simulated for advice at most, some seconds; longer traces get none.
BUDGET = 300_000


class Advice(NamedTuple):
    """A change in words, the cycles it saves by simulation, the lines it speaks of, the trace with it, and
    the file of the lines."""

    kind: str
    text: str
    gain: float
    lines: tuple[int, ...]
    trace: Trace
    file: str


class _Candidate(NamedTuple):
    kind: str
    text: str
    lines: tuple[int, ...]
    worth: float  # cycles that somebody waits there
    orders: bool  # whether it must leave nothing unordered: it adds no memory
    change: Callable[[Trace], Trace]
    file: str = ""


def advise(timeline: Measures) -> list[Advice]:
    """What helps, the most first."""
    trace = timeline.trace
    most = min(MOST, BUDGET // max(1, len(trace)))
    if not most or trace.in_order:
        return []
    streams = _Streams(trace)
    waited = _waited(timeline)
    found = [
        *_barriers(trace, waited),
        *_waits(trace, streams, waited),
        *_buffers(trace, streams, waited),
    ]
    found.sort(key=lambda c: -c.worth)
    out: list[Advice] = []
    before: set[tuple[int, int]] | None = None
    for candidate in found[:most]:
        changed = timeline.what_if(candidate.change)
        gain = timeline.cycles - changed.cycles
        if gain < LEAST * timeline.cycles:
            continue
        if candidate.orders:
            before = before if before is not None else unordered(trace, timeline.machine.isa)
        if not candidate.orders or unordered(changed.trace, timeline.machine.isa) <= (before or set()):
            out.append(
                Advice(candidate.kind, candidate.text, gain, candidate.lines, changed.trace, candidate.file)
            )
    return sorted(out, key=lambda a: -a.gain)


def chain(timeline: Measures, rounds: int = 3) -> list[list[Advice]]:
    """What helps, then what would help with the best of that done, and so on."""
    out: list[list[Advice]] = []
    known: set[str] = set()
    for _ in range(rounds if len(timeline.trace) * rounds * 2 <= BUDGET else 1):
        found = [a for a in advise(timeline) if a.text not in known]
        if not found:
            break
        out.append(found)
        known |= {a.text for a in found}
        best = found[0].trace
        timeline = timeline.what_if(lambda _, best=best: best)
    return out


def _waited(timeline: Measures) -> dict[int, float]:
    """Cycles that something waited at, by site of the wait or barrier."""
    trace, times = timeline.trace, timeline.times
    found: dict[int, float] = defaultdict(float)
    for e, kind in enumerate(trace.kind):
        if kind == TAKE and times.why[e] not in (sim.PIPE, sim.ISSUE, sim.QUEUE):
            found[trace.site[e]] += times.start[e] - times.issue[e]
        elif kind in (BARRIER, DRAIN):
            found[trace.site[e]] += max(0.0, times.free[e] - times.issue[e])
        elif kind == WORK and times.why[e] == sim.FULL:
            found[trace.site[e]] += times.start[e] - times.issue[e]
    return found


class _Streams:
    """Events of every core, and of every pipe of it, in their order."""

    def __init__(self, trace: Trace) -> None:
        self.cores: dict[int, list[int]] = defaultdict(list)
        self.pipes: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.place: dict[int, int] = {}  # of an event in its pipe
        for e, kind in enumerate(trace.kind):
            if kind == INSIDE:
                continue
            self.cores[trace.core[e]].append(e)
            stream = self.pipes[trace.core[e], trace.pipe[e]]
            self.place[e] = len(stream)
            stream.append(e)


# -- barriers ----------------------------------------------------------------------------------------------


def _barriers(trace: Trace, waited: dict[int, float]) -> Iterable[_Candidate]:
    seen = {trace.site[e] for e, kind in enumerate(trace.kind) if kind in (BARRIER, DRAIN)}
    for site in sorted(seen):
        line = trace.sites[site].line

        def drop(changed: Trace, site: int = site) -> Trace:
            for e, of in enumerate(changed.site):
                if of == site and changed.kind[e] in (BARRIER, DRAIN):
                    changed.kind[e] = INSIDE
            return changed

        # one that gives something as well, as a signal that drains all pipes does, is no barrier to leave out
        row = find_row(trace.sites[site].name)
        if row is not None and row.order == "barrier":
            text = f"unneeded barrier at line {line}"
            file = trace.sites[site].file
            yield _Candidate("barrier", text, (line,), waited.get(site, 0.0), True, drop, file)


# -- waits -------------------------------------------------------------------------------------------------


def _given_work(trace: Trace, streams: _Streams, giver: int) -> set[Range] | None:
    """What the pipe of a giver touched since it last gave the same to somebody: what a wait is for."""
    stream = streams.pipes[trace.core[giver], trace.pipe[giver]]
    found: set[Range] = set()
    at = streams.place[giver] - 1
    steps = 0
    while at >= 0 and steps < 64:
        other = stream[at]
        if trace.kind[other] == GIVE and trace.site[other] == trace.site[giver]:
            return found
        if trace.kind[other] == WORK:
            touched = trace.touched.get(other)
            if touched is None and trace.charge[other]:
                return None
            found.update(touched or ())
        at -= 1
        steps += 1
    return found if at < 0 else None


def _waits(trace: Trace, streams: _Streams, waited: dict[int, float]) -> Iterable[_Candidate]:
    by_site: dict[int, list[int]] = defaultdict(list)
    for e, waits in trace.waits.items():
        if trace.kind[e] == TAKE and trace.pipe[e] and all(kind == "flag" for _, kind in waits):
            by_site[trace.site[e]].append(e)
    for site, events in by_site.items():
        if waited.get(site, 0.0) < 1.0:
            continue
        least: list[int] | None = None  # sites that every instance could let pass
        for e in events:
            passed = _passing(trace, streams, e)
            if least is None:
                least = passed
            else:
                same = 0
                while same < min(len(least), len(passed)) and least[same] == passed[same]:
                    same += 1
                least = least[:same]
            if not least:
                break
        if not least:
            continue
        line, below = trace.sites[site].line, trace.sites[least[-1]].line

        def later(changed: Trace, events: list[int] = events, count: int = len(least)) -> Trace:
            return _moved(changed, streams, events, count)

        text = f"wait at line {line} could move below line {below}"
        yield _Candidate("wait", text, (line, below), waited[site], True, later, trace.sites[site].file)


def _passing(trace: Trace, streams: _Streams, e: int) -> list[int]:
    """Sites of the instructions behind a wait that touch nothing of what it is for; none behind which the
    pipe gives something, for that would promise less."""
    stream = streams.pipes[trace.core[e], trace.pipe[e]]
    held: set[Range] = set()
    for giver, _ in trace.waits[e]:
        work = _given_work(trace, streams, giver)
        if work is None:
            return []
        held |= work
    found: list[int] = []
    for other in stream[streams.place[e] + 1 : streams.place[e] + 17]:
        if trace.kind[other] != WORK:
            break
        touched = trace.touched.get(other)
        if touched is None or clash(tuple(held), touched):
            break
        found.append(trace.site[other])
    return found


def _moved(trace: Trace, streams: _Streams, events: Sequence[int], count: int) -> Trace:
    """Waits behind the `count` events of their pipe that follow them."""
    new: dict[int, int] = {}  # where an event goes
    for e in events:
        stream = streams.pipes[trace.core[e], trace.pipe[e]]
        at = streams.place[e]
        block = stream[at : at + count + 1]
        for n, one in enumerate(block[1:]):
            new[one] = block[n]
        new[e] = block[-1]
    columns = (trace.site, trace.charge, trace.kind)
    for column in columns:
        old = {source: column[source] for source in new}
        for source, target in new.items():
            column[target] = old[source]
    trace.waits = {
        new.get(e, e): [(new.get(giver, giver), kind) for giver, kind in waits]
        for e, waits in trace.waits.items()
    }
    trace.touched = {new.get(e, e): ranges for e, ranges in trace.touched.items()}
    return trace


# -- buffers -----------------------------------------------------------------------------------------------


def _buffers(trace: Trace, streams: _Streams, waited: dict[int, float]) -> Iterable[_Candidate]:
    by_site: dict[int, list[int]] = defaultdict(list)
    for e, waits in trace.waits.items():
        if trace.pipe[e] and (waits[0][1] == "slot" or (trace.kind[e] == TAKE and waits[0][1] == "flag")):
            by_site[trace.site[e]].append(e)
    used: dict[str, int] = defaultdict(int)
    for ranges in set(trace.touched.values()):
        for r in ranges:
            used[r.space] = max(used[r.space], r.high)
    for site, events in by_site.items():
        if waited.get(site, 0.0) < 1.0 or len(events) < 2:
            continue
        line = trace.sites[site].line
        if trace.waits[events[0]][0][1] == "slot":
            text = f"one more slot for the FIFO of line {line}"
            file = trace.sites[site].file
            yield _Candidate("slot", text, (line,), waited[site], False, one_buffer_more(events), file)
            continue
        tiles = _only_refilled(trace, streams, events)
        if not tiles:
            continue
        sizes = {
            name: max(r.high - r.low for r in tiles if r.name == name) for name in {r.name for r in tiles}
        }
        more: dict[str, int] = defaultdict(int)
        for space, name in {(r.space, r.name) for r in tiles}:
            more[space] += sizes[name]
        if any(used[space] + size > trace.capacity.get(space, 0) for space, size in more.items()):
            continue
        names = " and ".join(f"%{name}" for name in sorted(sizes))
        memory = ", ".join(f"{size} bytes of {space}" for space, size in more.items())
        text = f"one more buffer for {names} ({memory}; waits at line {line})"
        file = trace.sites[site].file
        yield _Candidate("buffer", text, (line,), waited[site], False, one_buffer_more(events), file)


def _only_refilled(trace: Trace, streams: _Streams, events: Sequence[int]) -> set[Range]:
    """The tiles that a wait keeps from being overwritten, where that is all it is for; else none."""
    found: set[Range] = set()
    for e in events[:8]:
        stream = streams.pipes[trace.core[e], trace.pipe[e]]
        writes: list[Range] = []
        for other in stream[streams.place[e] + 1 : streams.place[e] + 17]:
            if trace.kind[other] == TAKE and writes:
                break
            if trace.kind[other] == WORK:
                writes += [r for r in trace.touched.get(other, ()) if r.write and r.space in trace.capacity]
        for giver, _ in trace.waits[e]:
            work = _given_work(trace, streams, giver)
            if work is None:
                return set()
            for tile in writes:
                near = [r for r in work if r.space == tile.space and r.low < tile.high and tile.low < r.high]
                if any(r.write for r in near):
                    return set()
                if near:
                    found.add(tile)
    return found


def one_buffer_more(events: Sequence[int]) -> Callable[[Trace], Trace]:
    """Every wait takes what the one before it took; the first takes nothing."""

    def change(trace: Trace) -> Trace:
        before: dict[int, list[tuple[int, str]]] = {}
        for e in events:
            core = trace.core[e]
            own = trace.waits[e]
            kept = before.get(core)
            before[core] = own
            if kept is None:
                del trace.waits[e]
            else:
                trace.waits[e] = kept
        return trace

    return change
