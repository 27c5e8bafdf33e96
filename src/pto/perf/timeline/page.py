"""The explorer: a page of one timeline, or of two side by side, that needs nothing else.

Source on the left, lanes of pipes over time, below them the on-chip memory of a core on the same axis; click,
zoom, select a range. Events are columns of numbers, compressed; `explorer.js` draws what is visible, so that
a million of them stay fluid.
"""

from __future__ import annotations

import base64
import json
import zlib
from html import escape
from typing import TYPE_CHECKING, Any

from ..files import packaged, script_json
from . import simulate as sim
from .report import ORDER, amount, path_name, place, reason
from .trace import INSIDE, WORK

if TYPE_CHECKING:
    from .timeline import Timeline

#: Times are kept as whole eighths of a cycle.
FINE = 8

#: Colours of reasons, by their order; those that are left share the last.
REASONS = (
    sim.FLAG, sim.BARRIER_, sim.BANDWIDTH, sim.EMPTY, sim.FULL, sim.CROSS, sim.GRID, sim.ISSUE, sim.QUEUE,
    sim.TOKEN, sim.UNIT, sim.TRANSFER, sim.ORDER,
)  # fmt: skip


def _packed(values: Any) -> str:
    """A column of 32-bit numbers, for `explorer.js`."""
    import numpy as np

    return base64.b64encode(zlib.compress(np.asarray(values, "<i4").tobytes(), 6)).decode()


def dataset(t: Timeline, name: str) -> dict[str, Any]:
    """A timeline as the page reads it; also what `--compare` reads of a file."""
    trace, times = t.trace, t.times
    pipes = sorted(range(len(trace.pipes)), key=lambda p: _rank(trace.pipes[p]))
    shown = [
        e
        for e, kind in enumerate(trace.kind)
        if kind == WORK or (kind != INSIDE and not trace.pipe[e] and times.free[e] > times.start[e] + 0.5)
    ]
    lane_of: dict[tuple[int, int], int] = {}
    lanes: list[dict[str, Any]] = []
    used = {(trace.core[e], trace.pipe[e]) for e in shown}
    for core in range(len(trace.cores)):
        for p in pipes:
            if (core, p) in used:
                lane_of[core, p] = len(lanes)
                lanes.append({"core": core, "pipe": trace.pipes[p]})
    # by lane, in the order of time
    shown.sort(key=lambda e: (lane_of[trace.core[e], trace.pipe[e]], times.start[e]))
    index = {e: n for n, e in enumerate(shown)}
    near = _nearest(t, index)
    touched: dict[Any, int] = {(): 0}
    sets = [touched.setdefault(trace.touched.get(e, ()), len(touched)) for e in shown]
    gaps = sorted(
        (lane_of[trace.core[e], trace.pipe[e]], low, high, why, index[e], near.get(of, -1))
        for e, low, high, why, of in t.gaps
        if e in index
    )
    codes = {why: n for n, why in enumerate(REASONS)}
    charges = trace.charges
    path = [index[s.event] for s in t.critical_path() if s.event in index]
    lines = _lines(t)
    return {
        "name": name,
        "machine": t.machine.title,
        "mhz": t.machine.mhz,
        "total": t.cycles,
        "launch": t.machine.launch,
        "bound": t.bound,
        "cores": [t.core_name(c) for c in range(len(trace.cores))],
        "blocks": [c.block for c in trace.cores],
        "lanes": lanes,
        "sites": [[s.name, s.line, s.file] for s in trace.sites],
        "sources": {file: text for file, text in trace.sources.items() if len(text) < 2_000_000},
        "charges": [[c.busy, c.after, c.bytes, c.flops, c.path, c.evidence] for c in charges],
        "ranges": [[[r.space, r.low, r.high, int(r.write), r.name] for r in ranges] for ranges in touched],
        "capacity": dict(trace.capacity),
        "lines": lines,
        "cards": _cards(t),
        "stalls": [
            [reason(s), s.pipe, place(s.site), s.site.line, t.machine.us(s.worst), s.reason]
            for s in t.stalls()[:40]
        ],
        "count": len(shown),
        "events": {
            "lane": _packed([lane_of[trace.core[e], trace.pipe[e]] for e in shown]),
            "start": _packed([round(times.start[e] * FINE) for e in shown]),
            "free": _packed([round(times.free[e] * FINE) for e in shown]),
            "done": _packed([round(times.done[e] * FINE) for e in shown]),
            "site": _packed([trace.site[e] for e in shown]),
            "charge": _packed([trace.charge[e] for e in shown]),
            "touched": _packed(sets),
            "path": _packed(path),
        },
        "gaps": {
            "lane": _packed([g[0] for g in gaps]),
            "from": _packed([round(g[1] * FINE) for g in gaps]),
            "to": _packed([round(g[2] * FINE) for g in gaps]),
            "why": _packed([codes.get(g[3], len(REASONS)) for g in gaps]),
            "event": _packed([g[4] for g in gaps]),
            "of": _packed([g[5] for g in gaps]),
        },
    }


def _rank(pipe: str) -> int:
    return ORDER.index(pipe) if pipe in ORDER else len(ORDER)


def _nearest(t: Timeline, index: dict[int, int]) -> dict[int, int]:
    """For events that are not drawn, the one of their pipe that is and came last."""
    trace = t.trace
    last: dict[tuple[int, int], int] = {}
    found: dict[int, int] = {}
    for e, kind in enumerate(trace.kind):
        if kind == INSIDE:
            continue
        key = trace.core[e], trace.pipe[e]
        if e in index:
            last[key] = index[e]
        if key in last:
            found[e] = last[key]
    return found


def _lines(t: Timeline) -> list[list[Any]]:
    """By file and line of the source: microseconds at work, those on the critical path, those that pipes
    waited there; of all cores together, and how often."""
    trace, times, us = t.trace, t.times, t.machine.us
    found: dict[tuple[str, int], list[float]] = {}

    def at(e: int) -> list[float]:
        site = trace.sites[trace.site[e]]
        return found.setdefault((site.file, site.line), [0.0, 0.0, 0.0, 0])

    for e, kind in enumerate(trace.kind):
        if kind == WORK:
            cell = at(e)
            cell[0] += us(times.done[e] - times.start[e])
            cell[3] += 1
    for step in t.critical_path():
        at(step.event)[1] += us(step.end - step.begin)
    for e, low, high, _, _ in t.gaps:
        at(e)[2] += us(high - low)
    return [[file, line, *values] for (file, line), values in sorted(found.items()) if line]


def _cards(t: Timeline) -> list[list[str]]:
    roof, done = t.roofline
    whole = t.machine.us(t.kernel_cycles) or 1.0
    cards = [
        [f"{t.us:.2f} us", f"{t.cycles:,.0f} cycles of {t.machine.title}"],
        [t.bound, f"kernel {whole:.2f} us, launch {t.machine.us(t.machine.launch):.2f} us"],
        [f"{amount(t.gm_bytes)}B", "of global memory: " + f"{t.gm_bytes / whole / 1e3:.3g} GB/s"],
    ]
    if roof and done:
        cards.append([f"{done / roof:.0%} of the roofline", f"{t.intensity:.3g} operations per byte"])
    moved = ", ".join(f"{path_name(p)} {amount(b)}B" for p, b in t.bytes.items())
    if moved:
        cards.append([f"{len(t.trace):,} events", moved])
    if t.guessed:
        cards.append(
            [f"{t.guessed_share:.0%} guessed", "costs without evidence: " + ", ".join(sorted(t.guessed)[:5])]
        )
    return cards


def html(t: Timeline, name: str = "", other: dict[str, Any] | None = None) -> str:
    """The page of a timeline; `other` is the dataset of one to compare it with."""
    data = [dataset(t, name or "kernel")]
    if other is not None:
        data.append(other)
    return page(data)


def page(data: list[dict[str, Any]]) -> str:
    title = " and ".join(f"@{d['name']}" for d in data)
    note = "virtual time of the machine, by model: nothing here is time of this computer"
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(title)}: timeline</title>
<style>
{packaged("memory_picture.css")}{packaged("timeline/explorer.css")}
</style>
</head>
<body>
<header>
<div><h1>Timeline of <code>{escape(title)}</code></h1><p class="soft">{escape(note)}</p></div>
<div class="controls">
<input id="search" type="search" placeholder="instruction or line" aria-label="Search" autocomplete="off"/>
<span id="found" class="soft" role="status"></span>
<button id="path" aria-pressed="false" title="what the total consists of">Critical path</button>
<button id="whole" title="all of the time (0)">Whole</button>
<button id="keys" title="keyboard">?</button>
<button id="theme" title="light or dark (t)">Theme</button></div>
</header>
<main>
<div class="cards" id="cards"></div>
<p class="key" id="key"></p>
<div id="explorer">
<div id="left"><div id="source" tabindex="0" aria-label="source"></div>
<aside id="detail" hidden></aside></div>
<div id="time">
<canvas id="over" aria-label="the whole time"></canvas>
<div id="scroll"><div id="spacer">
<canvas id="lanes" tabindex="0" aria-label="lanes of pipes"></canvas></div></div>
<canvas id="memory" aria-label="on-chip memory of a core"></canvas>
</div>
</div>
<div id="below"><section id="range"></section><section id="stalls"></section>
<section id="compare"></section></div>
<noscript>The page is drawn by a script.</noscript>
</main>
<div id="tip" hidden></div>
<dialog id="help"></dialog>
<script id="data" type="application/json">{script_json(data)}</script>
<script id="reasons" type="application/json">{script_json([*REASONS, "other"])}</script>
<script>
{packaged("timeline/explorer.js")}
</script>
</body>
</html>
"""


def loaded(path: str) -> dict[str, Any]:
    """The dataset in a file that `--timeline FILE.json` wrote; `ValueError` where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)["otherData"]["view"]
    except OSError as e:
        raise ValueError(f"cannot read '{path}': {e.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"'{path}' is no timeline: write one with --timeline FILE.json") from None
    return found
