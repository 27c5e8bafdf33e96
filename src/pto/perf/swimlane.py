"""A run as one HTML page: what every core did when, why it waited, and what the whole run waited for.

The tables are written here; `swimlane.js` draws the lanes on a canvas (fifty thousand tasks move smoothly)
and `swimlane_input.js` adds zooming, selection and search. The page needs nothing from elsewhere, and
follows the style of the memory map. `#task=17`, `#from=0&to=5000` (ns), `#group=type` and `#theme=dark`
after its address open it at a place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .analysis import PARTS, Analysis
from .files import packaged, script_json, write_text
from .records import Records
from .summary import WORDS, duration, meanwhile
from .tables import COUNTERS, FIELDS, KINDS, PHASES, core_name

if TYPE_CHECKING:
    from .tables import Array

#: Colours of functions that the style has; more are made.
HUES = 8
#: Rows of the table of the critical path, and of the longest gaps.
MOST_STEPS, MOST_GAPS = 300, 12
#: Phases and points of a curve that a page holds before neighbours are drawn together.
MOST_PHASES, MOST_POINTS = 120_000, 8_000

#: Counter -> the statistic of the engine that says how large it may get.
_LIMITS = {
    "task ring": "task_window",
    "heap bytes": "heap",
    "dep pool": "dep_pool",
    "tensormap entries": "tensormap_pool",
}

_TIMES = {
    False: "Times are of the host that ran the virtual cores: cores waited for its processors.",
    True: "Times are virtual: those of a model of the device, the same on every host.",
}
_FOOTER = """Drag across the lanes to zoom in, double-click to see all again; Shift-drag or the arrow keys
move, Ctrl-wheel or + and &minus; zoom. Hover over a task for its times and dependencies, click it to keep
them."""


def write(records: Records, path: str | os.PathLike[str], title: str = "") -> Path:
    """Write the page to a file."""
    return write_text(path, html(records, title))


def html(records: Records, title: str = "", about: str = "") -> str:
    """The page; `about` is text that replaces what it says of the run."""
    page = _Page(records)
    a = page.analysis
    what = about or (
        f"{len(records.tasks)} tasks of {_count(len(a.functions), 'function')} on "
        f"{_count(records.block_dim, 'block')} ({3 * records.block_dim} cores), "
        f"{_count(len(records.edges), 'dependency').replace('dependencys', 'dependencies')}"
    )
    title = title or "Run"
    kind = "virtual time" if records.virtual else "times of this host"
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(title)}: swimlanes, {kind}</title>
<style>
{packaged("memory_picture.css")}{packaged("swimlane.css")}:root {{ {page.colours()} }}
</style>
</head>
<body>
<header>
<div><h1>Swimlanes of <code>{escape(title)}</code> <span class="soft">{kind}</span></h1>
<p class="soft">{escape(what)}</p></div>
<div class="controls">
<input id="search" type="search" placeholder="function or task id" aria-label="Search" autocomplete="off"/>
<span id="found" class="soft" role="status"></span>
{_switch("group", "Lanes", (("cluster", "By cluster"), ("type", "By type")))}
{_switch("mark", "Marked", (("path", "Critical path"), ("chain", "Longest chain"), ("none", "None")))}
{_switch("arrows", "Arrows", (("one", "Arrows of one"), ("all", "All")))}
<button id="cores" aria-pressed="true" title="show cores that had nothing to do">Idle cores</button>
<button id="theme" title="light or dark">Theme</button></div>
</header>
<main>
<div class="cards">{"".join(page.cards())}</div>
{page.warning()}
{page.key()}
<figure id="lanes-figure"><canvas id="over" height="66"></canvas><canvas id="lanes" height="400" tabindex="0"
 aria-label="lanes of the cores over time"></canvas>
<noscript>The lanes are drawn by a script; the tables below do not need it.</noscript></figure>
{page.path()}
{page.functions()}
{page.gaps()}
{page.threads()}
{page.engine()}
</main>
<aside id="detail" hidden></aside>
<footer>{_FOOTER} {_TIMES[records.virtual]}</footer>
<div id="tip" role="status"></div>
<script type="application/json" id="data">{script_json(page.data())}</script>
<script>
{packaged("swimlane.js")}{packaged("swimlane_input.js")}</script>
</body>
</html>
"""


class _Page:
    def __init__(self, records: Records) -> None:
        self.records = records
        self.analysis = Analysis(records)
        self.func_ids = sorted(set(records.tasks["func_id"].tolist()))
        self.critical = {step.row for step in self.analysis.path}

    # -- what the script draws -------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        r, a = self.records, self.analysis
        pred, succ, edge = r.links()
        number = {func_id: n for n, func_id in enumerate(self.func_ids)}
        tasks = {name: r.tasks[name].tolist() for name, _ in FIELDS["tasks"]}
        tasks["func"] = [number[f] for f in tasks.pop("func_id")]
        tasks["by"] = a.binding.tolist()
        phases, stretch = _thin_phases(r.phases, max(r.end, 1))
        when, levels = a.profile
        return {
            "end": max(r.end, 1),
            "makespan": a.makespan,
            "blocks": r.block_dim,
            "tasks": tasks,
            "links": {"pred": pred.tolist(), "succ": succ.tolist(), "arg": r.edges["arg"][edge].tolist(),
                      "kind": r.edges["kind"][edge].tolist()},
            "cores": [[c.core, c.core_type, c.tasks, round(c.utilisation, 4), core_name(c.core, c.core_type)]
                      for c in a.cores],
            "funcs": [r.name(f) for f in self.func_ids],
            "sites": r.sites,
            "kinds": KINDS,
            "phases": {name: phases[name].tolist() for name in ("actor", "phase", "start", "end", "count")},
            "stretch": stretch,
            "phase_names": {n: name.removeprefix("orch_") for n, name in PHASES.items()},
            "counters": [self._counter(n, name) for n, name in enumerate(COUNTERS)
                         if (r.counters["which"] == n).any()],
            "profile": _thin(when, levels.sum(axis=0), MOST_POINTS),
            "path": [[s.row, s.since, *s.parts()] for s in a.path],
            "parts": PARTS,
            "chain": a.chain[0],
        }  # fmt: skip

    def _counter(self, which: int, name: str) -> dict[str, Any]:
        import numpy as np

        mine = self.records.counters[self.records.counters["which"] == which]
        mine = mine[np.argsort(mine["time"], kind="stable")]
        times, values = _thin(mine["time"], mine["value"], MOST_POINTS)
        return {"name": name, "time": times, "value": values, "limit": self._limit(name)}

    def _limit(self, name: str) -> int:
        """Size of a ring or pool, where the engine says so."""
        said = self.records.stats.get(_LIMITS.get(name, ""))
        return int(said) if isinstance(said, (int, float)) else 0

    def colours(self) -> str:
        """A variable for each function: the colours of the style first, then others far from one another."""
        out: list[str] = []
        for n in range(len(self.func_ids)):
            hue = n * 137.508 % 360
            made = f"light-dark(hsl({hue:.0f} 62% 74%), hsl({hue:.0f} 48% 38%))"
            out.append(f"--f{n}: {f'var(--c{n})' if n < HUES else made};")
        return " ".join(out)

    # -- what stands above and below -------------------------------------------------------------------

    def cards(self) -> Iterable[str]:
        a = self.analysis
        total = a.makespan or 1
        nothing = a.parallelism.get(0, 0)
        idle = f"nothing executes for {duration(nothing)} ({nothing / total:.0%})"
        yield _card(
            "Makespan", duration(a.makespan), None, f"{_count(len(self.records.tasks), 'task')}, {idle}"
        )
        for kind, name in enumerate(("AIC cores", "AIV cores")):
            mine = [c for c in a.cores if c.core_type == kind]
            used = sum(c.tasks > 0 for c in mine)
            busy = a.utilisation(kind)
            yield _card(name, f"{busy:.0%}", busy, f"{used} of {len(mine)} used, busy {busy:.1%} of the time")
        span = a.chain[1]
        mean, bound = a.work / total, a.work / span if span else 0.0
        words = (
            f"tasks at once on average; the graph allows {bound:.1f}, peak {max(a.parallelism, default=0)}"
        )
        yield _card("Parallelism", f"{mean:.1f}", mean / bound if bound else None, words)
        words = f"longest chain of executions, {_count(len(a.chain[0]), 'task')}: no schedule is shorter"
        yield _card("Lower bound", duration(span), span / total, words)
        for n, name in enumerate(COUNTERS[:4]):
            peak, limit = self.records.peak(n), self._limit(name)
            if peak is None:
                continue
            size = _bytes if "bytes" in name else str
            words = f"peak of {size(limit)}" if limit else "peak"
            yield _card(name.capitalize(), size(peak), peak / limit if limit else None, words)

    def warning(self) -> str:
        problems = [d.message for d in self.records.check()]
        lost = len(self.records.tasks) - int(self.analysis.ran.sum())
        problems += [f"{_count(lost, 'task')} did not run to the end"] if lost else []
        items = "".join(f"<li>{escape(words)}</li>" for words in problems[:12])
        return f'<ul class="clashes">{items}</ul>' if items else ""

    def key(self) -> str:
        counts = {f.func_id: f.tasks for f in self.analysis.functions}
        items = [
            f'<button class="func" data-func="{n}" aria-pressed="false" title="show these alone">'
            f'<i style="background:var(--f{n})"></i>{escape(self.records.name(f))} '
            f'<span class="soft">{counts.get(f, 0)}</span></button>'
            for n, f in enumerate(self.func_ids)
        ]
        marks = (
            ("mark", "on the critical path, or the longest chain"),
            ("wait", "dispatched, not started; ended, not seen yet"),
            ("raw", "RAW"),
            ("waw", "WAW"),
            ("war", "WAR"),
            ("explicit", "explicit"),
        )
        items += [f'<span><i class="{kind}"></i>{words}</span>' for kind, words in marks]
        return f'<div class="key">{"".join(items)}</div>'

    def path(self) -> str:
        a, r = self.analysis, self.records
        if not a.path:
            return "<p>No task ran.</p>"
        total = a.makespan or 1
        bar = "".join(
            f'<i class="part-{part}" style="width:{100 * spent / total:.2f}%"'
            f' title="{part}: {duration(spent)}"></i>'
            for part, spent in a.path_parts.items()
            if spent
        )
        words = "".join(
            f'<span><i class="part-{part}"></i>{part} <b>{duration(spent)}</b> {spent / total:.1%} '
            f'<span class="soft">{WORDS[part]}</span></span>'
            for part, spent in a.path_parts.items()
            if spent
        )
        if did := meanwhile(a):
            words += f"<span>the orchestrator meanwhile: {did}</span>"
        rows: list[list[str]] = []
        for n, step in enumerate(a.path[:MOST_STEPS]):
            task = r.tasks[step.row]
            behind = escape(r.label(r.tasks[step.held_by])) if step.held_by >= 0 else ""
            core = core_name(int(task["core"]), int(task["core_type"]))
            rows.append([str(n + 1), self._link(step.row), core, escape(r.site(task)), duration(step.since),
                         *[duration(part) if part else "" for part in step.parts()], behind])  # fmt: skip
        left = len(a.path) - len(rows)
        more = f'<p class="soft">and {left} more steps</p>' if left else ""
        head = ("", "task", "core", "submitted at", "since", *PARTS, "queued behind")
        return (
            f'<section><h2>Critical path <span class="soft">{_count(len(a.path), "task")}, '
            f"{duration(a.makespan)}</span></h2><figure>"
            f'<div class="stack">{bar}</div><div class="key">{words}</div>'
            f"<details{' open' if len(rows) <= 40 else ''}><summary>its steps</summary>"
            f"{_table(head, rows, left=(1, 2, 3, 11))}{more}</details></figure></section>"
        )

    def functions(self) -> str:
        rows = [
            [str(f.func_id), f'<i class="dot" style="background:var(--f{n})"></i>{escape(f.name)}',
             str(f.tasks), *[duration(v) for v in (f.total, f.execution, f.shortest, f.longest, f.latency)],
             f"{f.share:.1%}", *[duration(v) for v in (f.head, f.tail, f.dependency, f.queue)]]
            for f in self.analysis.functions for n in [self.func_ids.index(f.func_id)]
        ]  # fmt: skip
        head = ("func_id", "function", "tasks", "total exec", "avg exec", "min", "max", "avg latency",
                "exec %", "avg head OH", "avg tail OH", "avg dependency wait", "avg queue wait")  # fmt: skip
        return _section("Functions", "", _table(head, rows, left=(1,))) if rows else ""

    def gaps(self) -> str:
        rows = [
            [core_name(g.core, int(self.records.tasks["core_type"][g.task])), duration(g.length),
             duration(g.start), self._link(g.before) if g.before >= 0 else "start", self._link(g.task),
             g.reason, *[duration(v) if v else "" for v in g[5:9]]]
            for g in self.analysis.gaps(MOST_GAPS)
        ]  # fmt: skip
        head = (
            "core",
            "idle for",
            "from",
            "after",
            "before",
            "mostly",
            "not submitted",
            "dependency",
            "queue",
            "head",
        )
        table = _table(head, rows, left=(0, 3, 4, 5))
        return _section("Longest gaps", "of a core, and what its next task waited for", table) if rows else ""

    def threads(self) -> str:
        rows: list[list[str]] = []
        for (actor, phase), (spent, records, count) in sorted(self.analysis.phases.items()):
            name = f"Sched_{actor}" if actor >= 0 else "Orchestrator"
            share = spent / (self.analysis.makespan or 1)
            did = str(count) if actor >= 0 else ""
            rows.append(
                [name, phase.removeprefix("orch_"), duration(spent), f"{share:.1%}", str(records), did]
            )
        head = ("thread", "phase", "time", "of the makespan", "records", "tasks")
        return _section("Threads of the runtime", "", _table(head, rows, left=(0, 1))) if rows else ""

    def engine(self) -> str:
        rows: list[list[str]] = []
        for key, value in self.records.stats.items():
            said = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
            rows.append([escape(key), escape(said)])
        return _section("Engine", "", _table(("what", "value"), rows, left=(0, 1))) if rows else ""

    def _link(self, row: int) -> str:
        return f'<a href="#task" data-task="{row}">{escape(self.records.label(self.records.tasks[row]))}</a>'


# -- less of much ------------------------------------------------------------------------------------------


def _thin(times: Array, values: Array, most: int) -> tuple[list[int], list[int]]:
    """A step curve with few points: of each stretch its first, lowest, highest and last one."""
    import numpy as np

    if len(times) > most:
        edges = np.linspace(0, len(times), most // 4 + 1).astype(int)
        keep: set[int] = set()
        for a, b in zip(edges.tolist(), edges[1:].tolist(), strict=False):
            part = values[a:b]
            keep |= {a, a + int(part.argmin()), a + int(part.argmax()), b - 1}
        at = sorted(keep)
        times, values = times[at], values[at]
    return times.tolist(), values.tolist()


def _thin_phases(phases: Array, end: int) -> tuple[Array, int]:
    """The phases of each thread in order. Of very many, the short ones of a kind are added up over stretches
    of the returned length (otherwise 0); a stretch is finer than a pixel while the whole run is seen."""
    import numpy as np

    phases = phases[np.lexsort((phases["start"], phases["actor"]))]
    if len(phases) <= MOST_PHASES:
        return phases, 0
    actors = len(np.unique(phases["actor"]))
    stretch = max(1, end * actors * 4 // MOST_PHASES)
    length = phases["end"] - phases["start"]
    short = length < stretch
    part, spent = phases[short], length[short]
    key = np.stack([part["actor"].astype(np.int64), part["start"] // stretch, part["phase"].astype(np.int64)])
    _, at, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    merged = part[at].copy()
    merged["end"] = merged["start"] + np.bincount(group, weights=spent).astype(np.int64)
    merged["count"] = np.bincount(group, weights=part["count"]).astype(np.int64)
    phases = np.concatenate([phases[~short], merged])
    return phases[np.lexsort((phases["start"], phases["actor"]))], stretch


# -- words -------------------------------------------------------------------------------------------------


def _card(name: str, value: str, share: float | None, words: str) -> str:
    meter = "" if share is None else f'<i style="width:{min(100.0, 100 * share):.1f}%"></i>'
    return (
        f'<div class="card"><b>{escape(name)}</b> <span>{escape(value)}</span>'
        f'<div class="meter">{meter}</div><small>{escape(words)}</small></div>'
    )


def _switch(name: str, label: str, choices: Sequence[tuple[str, str]]) -> str:
    buttons = "".join(
        f'<button data-{name}="{value}" aria-pressed="{"false" if n else "true"}">{words}</button>'
        for n, (value, words) in enumerate(choices)
    )
    return f'<span class="switch" role="group" aria-label="{label}">{buttons}</span>'


def _section(title: str, about: str, inside: str) -> str:
    return f'<section><h2>{title} <span class="soft">{about}</span></h2><figure>{inside}</figure></section>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = ()) -> str:
    """A table of markup; columns without any word are left out."""
    rows = list(rows)
    used = [n for n in range(len(head)) if any(row[n] for row in rows)]
    sides = ['class="l"' if n in left else "" for n in range(len(head))]
    top = "".join(f"<th {sides[n]}>{head[n]}</th>" for n in used)
    body = "".join("<tr>" + "".join(f"<td {sides[n]}>{row[n]}</td>" for n in used) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _bytes(number: int) -> str:
    for limit, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}".replace(".0 ", " ")
    return f"{number} B"
