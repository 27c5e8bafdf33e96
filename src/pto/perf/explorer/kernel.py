"""The view of a kernel: the instructions of a timeline by pipe and core, and further data about them.

All data are arrays, so that a million events are packed in a few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...isa.profiles import LOCATIONS
from ..timeline import simulate as sim
from ..timeline.columns import CODES, Array
from ..timeline.report import ORDER, amount, path_name, place, reason
from ..timeline.trace import INSIDE
from .memory import beside
from .page import packed, page, tick_of

if TYPE_CHECKING:
    from ..memory_map import MemoryMap
    from ..timeline.measures import Measures
    from .values import Values

#: Reasons with a color of their own, in order; all others share the last color.
REASONS = (
    sim.FLAG, sim.BARRIER_, sim.BANDWIDTH, sim.EMPTY, sim.FULL, sim.CROSS, sim.GRID, sim.ISSUE, sim.QUEUE,
    sim.TOKEN, sim.UNIT, sim.TRANSFER, sim.ORDER,
)  # fmt: skip

_NOTE = "virtual time of the machine, by the cost model; not the time of this computer"


class Cpp(NamedTuple):
    """The C++ that is emitted for a program, and the source file and line of each of its lines; or the reason
    why it cannot be emitted."""

    text: str = ""
    places: Sequence[tuple[str, int] | None] = ()
    problem: str = ""


class Recorded(NamedTuple):
    """Further data about a launch, besides its timeline."""

    values: Values | None = None
    memory: MemoryMap | None = None
    cpp: Cpp | None = None


NOTHING = Recorded()


def dataset(t: Measures, name: str, recorded: Recorded = NOTHING) -> dict[str, Any]:
    """Return a timeline in the form that the page reads, which is also the form that `--compare` reads from a
    file."""
    trace, columns = t.trace, t.columns
    lane, lanes = _lanes(t)
    # by lane, then by time
    shown = np.flatnonzero(lane >= 0)
    shown = shown[np.lexsort((columns.start[shown], lane[shown]))]
    index = np.full(len(trace), -1, np.int64)
    index[shown] = np.arange(len(shown))
    tick = tick_of(t.us)

    def ticks(cycles: Array) -> Array:
        return np.rint(cycles * (1000 / t.machine.mhz / tick))

    g = columns.gaps
    seen = index[g.event] >= 0
    nearest = _nearest(t, index)
    of = np.where(g.of >= 0, nearest[np.maximum(g.of, 0)], -1)
    order = np.lexsort((g.low, lane[g.event]))
    order = order[seen[order]]
    colour = np.full(len(CODES), len(REASONS))
    colour[[CODES[why] for why in REASONS]] = np.arange(len(REASONS))
    touched: dict[Any, int] = {(): 0}
    sets = np.zeros(len(trace), np.int64)
    if trace.touched:
        known: dict[int, int] = {}  # equal ranges are the same object
        some = [
            known[id(r)] if id(r) in known else known.setdefault(id(r), touched.setdefault(r, len(touched)))
            for r in trace.touched.values()
        ]
        sets[np.fromiter(trace.touched, np.int64, len(some))] = some
    path = index[[s.event for s in t.critical_path()]]
    numbers = np.asarray(trace.numbers if len(trace) else (), np.int64)
    more: dict[str, Any] = {}
    if recorded.values is not None and len(numbers):
        more["values"] = recorded.values.dataset(index[numbers])
    if recorded.memory is not None and len(numbers):
        first = [(n, c.name) for n, c in enumerate(trace.cores) if not c.block]
        more["maps"] = beside(recorded.memory, first, nearest[numbers])
    if recorded.cpp is not None:
        more["cpp"] = {
            "text": recorded.cpp.text,
            "places": recorded.cpp.places,
            "problem": recorded.cpp.problem,
        }
    return {
        **more,
        "name": name,
        "machine": t.machine.title,
        "tick": tick,
        "total": t.us,
        "begin": t.machine.us(t.machine.launch),
        "bound": t.bound,
        "cores": [t.core_name(c) for c in range(len(trace.cores))],
        "blocks": [c.block for c in trace.cores],
        "lanes": lanes,
        "reasons": [*REASONS, "other"],
        "sites": [[s.name, s.line, s.file] for s in trace.sites],
        "sources": {file: text for file, text in trace.sources.items() if len(text) < 2_000_000},
        "charges": [[c.bytes, c.flops, c.path, c.evidence] for c in trace.charges],
        "ranges": [[[r.space, r.low, r.high, int(r.write), r.name] for r in ranges] for ranges in touched],
        "capacity": dict(trace.capacity),
        "titles": dict(LOCATIONS),
        "dry": trace.dry,
        "lines": _lines(t),
        "cards": _cards(t),
        "stalls": [
            [reason(s), s.pipe, place(s.site), s.site.line, t.machine.us(s.worst), s.site.file]
            for s in t.stalls()[:40]
        ],
        "events": {
            "lane": packed(lane[shown]),
            "start": packed(ticks(columns.start[shown])),
            "free": packed(ticks(columns.free[shown])),
            "done": packed(ticks(columns.done[shown])),
            "site": packed(columns.site[shown]),
            "charge": packed(columns.charge[shown]),
            "touched": packed(sets[shown]),
            "path": packed(path[path >= 0]),
        },
        "gaps": {
            "lane": packed(lane[g.event[order]]),
            "from": packed(ticks(g.low[order])),
            "to": packed(ticks(g.high[order])),
            "why": packed(colour[g.why[order]]),
            "event": packed(index[g.event[order]]),
            "of": packed(of[order]),
        },
    }


def _lanes(t: Measures) -> tuple[Array, list[dict[str, Any]]]:
    """Return the lane of every drawn event (-1 for other events), and the lanes: the pipes of a core in the
    order of data."""
    trace, columns = t.trace, t.columns
    waits = (columns.kind != INSIDE) & (columns.pipe == 0) & (columns.free > columns.start + 0.5)
    drawn = columns.work | waits
    rank = np.asarray([ORDER.index(p) if p in ORDER else len(ORDER) for p in trace.pipes])
    key = columns.core.astype(np.int64) * 1024 + rank[columns.pipe] * 64 + columns.pipe
    used, first = np.unique(key[drawn], return_index=True)
    events = np.flatnonzero(drawn)[first]
    lanes = [
        {"core": int(columns.core[e]), "pipe": trace.pipes[int(columns.pipe[e])]} for e in events.tolist()
    ]
    return np.where(drawn, np.searchsorted(used, key), -1), lanes


def _nearest(t: Measures, index: Array) -> Array:
    """Return the last drawn event of the same pipe for events that are not drawn, or -1."""
    columns = t.columns
    order = np.argsort(columns.lane, kind="stable")
    lanes, drawn = columns.lane[order], index[order]
    place = np.where(drawn >= 0, np.arange(len(order)), -1)
    place = np.maximum.accumulate(place)
    same = (place >= 0) & (lanes[np.maximum(place, 0)] == lanes)
    found = np.full(len(index), -1, np.int64)
    found[order] = np.where(same, drawn[np.maximum(place, 0)], -1)
    return found


def _lines(t: Measures) -> list[list[Any]]:
    """Return by file and line of the source: microseconds of work, on the critical path, and of waiting,
    summed over all cores; and the number of instructions."""
    trace, columns, count = t.trace, t.columns, len(t.trace.sites)
    work, g = columns.work, columns.gaps
    path = t.critical_path()
    steps = columns.site[[s.event for s in path]] if path else np.zeros(0, np.int64)
    by_site = (
        np.bincount(columns.site[work], (columns.done - columns.start)[work], count),
        np.bincount(steps, [s.end - s.begin for s in path], count),
        np.bincount(columns.site[g.event], g.high - g.low, count),
        # multiplied, because this row is a count, not cycles
        np.bincount(columns.site[work], minlength=count) * t.machine.mhz,
    )
    found: dict[tuple[str, int], list[float]] = {}
    for site, values in zip(trace.sites, np.stack(by_site).T / t.machine.mhz, strict=True):
        if site.line:
            cell = found.setdefault((site.file, site.line), [0.0, 0.0, 0.0, 0.0])
            cell[:] = [a + b for a, b in zip(cell, values.tolist(), strict=True)]
    return [[file, line, *v[:3], round(v[3])] for (file, line), v in sorted(found.items()) if any(v)]


def _cards(t: Measures) -> list[list[str]]:
    roof, done = t.roofline
    whole = t.machine.us(t.kernel_cycles) or 1.0
    cards = [
        [f"{t.us:.2f} us", f"{t.cycles:,.0f} cycles of {t.machine.title}"],
        [t.bound, f"kernel {whole:.2f} us, launch {t.machine.us(t.machine.launch):.2f} us"],
        [f"{amount(t.gm_bytes)}B", "of global memory: " + f"{t.gm_bytes / whole / 1e3:.3g} GB/s"],
    ]
    if roof and done:
        cards.append([f"{done / roof:.0%} of the roofline", f"{t.intensity:.3g} operations per byte"])
    moved = ", ".join(f"{path_name(p).replace(' -> ', '→')} {amount(b)}B" for p, b in t.bytes.items())
    if moved:
        cards.append([f"{len(t.trace):,} events", moved])
    if t.guessed:
        cards.append(
            [f"{t.guessed_share:.0%} guessed", "costs without evidence: " + ", ".join(sorted(t.guessed)[:5])]
        )
    return cards


def html(
    t: Measures, name: str = "", other: dict[str, Any] | None = None, recorded: Recorded = NOTHING,
    view: str = "kernel",
) -> str:  # fmt: skip
    """Return the page of a timeline. `other` is the dataset of a timeline to compare with, and `view` is the
    initial view: kernel or memory."""
    data = [dataset(t, name or "kernel", recorded)]
    if other is not None:
        data.append(other)
    parts = recorded.values.parts() if recorded.values is not None else ""
    return page(data, "Memory" if view == "memory" else "Timeline", _NOTE, view, parts)
