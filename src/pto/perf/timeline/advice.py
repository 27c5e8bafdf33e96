"""Advice to make a kernel faster. Each change is tried on the timeline before it is reported.

    a barrier that orders nothing      no accesses before and after it need an order
    a wait that could come later       the next instructions do not access its protected data
    one more buffer for a tile         a writer only waits for the readers of the tile; with another buffer,
                                       it waits for the use before that one
    one more slot for a FIFO           the same for a full FIFO

Each advice is a change of the trace (`what_if`): the gain is the difference of two simulations, and all pairs
that were ordered before remain ordered (`order.py`). Accesses are recorded for whole tiles and arrays, so an
access to a part counts as an access to all of it. Valid advice may be missing for this reason, but advice is
never wrong.
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

#: Maximum number of simulated candidates, and the smallest gain to report, as a share of the total.
MOST, LEAST = 12, 0.01
#: Maximum number of events that are simulated for advice, which takes some seconds; longer traces get no
#: advice.
BUDGET = 300_000


class Advice(NamedTuple):
    """A change as text, the cycles that it saves in the simulation, its lines, the changed trace, and the
    file of the lines."""

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
    worth: float  # cycles of waiting at the instruction
    orders: bool  # True if the change must not remove any order, because it adds no memory
    change: Callable[[Trace], Trace]
    file: str = ""


def advise(timeline: Measures) -> list[Advice]:
    """Return advice, the largest gain first."""
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
    """Return advice, then the advice that remains after the best change, and so on."""
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
    """Return the cycles of waiting by site of the wait or barrier."""
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
    """The events of each core, and of each pipe, in order."""

    def __init__(self, trace: Trace) -> None:
        self.cores: dict[int, list[int]] = defaultdict(list)
        self.pipes: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.place: dict[int, int] = {}  # event -> its position in its pipe
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

        # an instruction that also signals something, such as a signal that drains all pipes, must stay
        row = find_row(trace.sites[site].name)
        if row is not None and row.order == "barrier":
            text = f"unneeded barrier at line {line}"
            file = trace.sites[site].file
            yield _Candidate("barrier", text, (line,), waited.get(site, 0.0), True, drop, file)


# -- waits -------------------------------------------------------------------------------------------------


def _given_work(trace: Trace, streams: _Streams, giver: int) -> set[Range] | None:
    """Return the ranges that the pipe of a signal accessed since its previous signal at the same site: the
    accesses that a wait for the signal protects. Return None if they are unknown."""
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
        least: list[int] | None = None  # sites that every instance of the wait could move below
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
    """Return the sites of the instructions after a wait that do not access the ranges it protects. Stop at an
    instruction after which the pipe signals something, because a moved wait would weaken that signal."""
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
    """Move waits after the next `count` events of their pipe."""
    new: dict[int, int] = {}  # event -> its new position
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
    """Return the tiles that a wait protects from being overwritten, or an empty set if the wait has another
    purpose."""
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
    """Return a change in which every wait waits for the signal of the previous wait, and the first does not
    wait."""

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
