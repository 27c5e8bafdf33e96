"""The view of a run of the task runtime: the work of every core over time, and the waits of cores and of the
whole run.

The explorer draws the lanes; this module writes the tables below them. `#task=17`, `#from=0&to=5` (us),
`#group=type` and `#theme=dark` after the address of the page open it at a position. NumPy is imported when a
page is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis import PARTS, Analysis
from ..files import write_text
from ..markup import escaped
from ..records import Records
from ..summary import WORDS, duration, meanwhile
from ..tables import COUNTERS, KINDS, PHASES, TIMES, core_name
from .page import packed, page, tick_of

if TYPE_CHECKING:
    from ..tables import Array

#: Number of function colors in the style sheet; further colors are generated.
HUES = 8
#: Rows of the table of the critical path, and of the longest gaps.
MOST_STEPS, MOST_GAPS = 300, 12
#: Maximum number of phases, and of points of a curve; beyond it, neighbors are merged.
MOST_PHASES, MOST_POINTS = 120_000, 8_000

#: Suffixes of source files that submit tasks.
_PROGRAMS = (".py", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".cce", ".pto")

#: Counter -> the statistic of the engine with its limit.
_LIMITS = {
    "task ring": "task_window",
    "heap bytes": "heap",
    "dep pool": "dep_pool",
    "tensormap entries": "tensormap_pool",
}

_OF_THE_HOST = "Times were measured on the host that ran the virtual cores; cores waited for its processors."
#: Waits before and after a task.
_WAITS = ("dispatched, not started", "ended, but not seen yet")
#: Fields of a task that its card shows.
_ABOUT = ("thread", "scheduler", "scope", "cluster", "block", "site")
_PHASE_COLOURS = {
    0: "--work", 1: "--load", 2: "--other", 3: "--faint", 16: "--c7", 17: "--bad", 18: "--c1", 19: "--c0",
    20: "--c2", 21: "--c4", 22: "--c3", 23: "--c5", 24: "--c6",
}  # fmt: skip


def write(records: Records, path: str | os.PathLike[str], title: str = "") -> Path:
    """Write the page to a file."""
    return write_text(path, html(records, title))


def _times(records: Records) -> str:
    """Return a sentence about the kind of times."""
    if not records.virtual:
        return _OF_THE_HOST
    source = records.stats.get("durations", "a table")
    model = "Times are virtual, from a model of the device, and equal in every run"
    return f"{model}. Durations of kernels: {source}."


def html(records: Records, title: str = "", about: str = "") -> str:
    """Return the page; `about` replaces the description of the run."""
    made = _Page(records)
    a = made.analysis
    what = about or (
        f"{len(records.tasks)} tasks of {_count(len(a.functions), 'function')} on "
        f"{_count(records.block_dim, 'block')} ({3 * records.block_dim} cores), "
        f"{_count(len(records.edges), 'dependency').replace('dependencys', 'dependencies')}. "
        f"{_times(records)}"
    )
    times = "virtual time" if records.virtual else "times of this host"
    below = f'<div id="tables">{made.path()}{made.functions()}{made.gaps()}'
    below += f"{made.threads()}{made.engine()}</div>"
    data = made.data(title or "run")
    style = f":root {{ {made.colours()} }}"
    return page([data], "Swimlanes", what, "tasks", below=below, style=style, sign="", times=times)


class _Page:
    def __init__(self, records: Records) -> None:
        self.records = records
        self.analysis = Analysis(records)
        self.func_ids = sorted(set(records.tasks["func_id"].tolist()))

    # -- data of the scripts ---------------------------------------------------------------------------

    def data(self, name: str) -> dict[str, Any]:
        """Return lanes of the runtime (critical path, orchestrator, schedulers), then a lane per core. Tasks,
        phases and parts of the path are all events; `task` is the row of an event in the table."""
        import numpy as np

        r, a = self.records, self.analysis
        tick = max(1.0, tick_of(r.end / 1000))
        lanes, sites, columns, stretch = self._events()
        event = np.full(len(r.tasks) + 1, -1)
        event[columns[4]] = np.arange(columns.shape[1])
        event[-1] = -1  # events other than tasks have row -1

        def ticks(ns: Any) -> str:
            return packed(np.where(np.asarray(ns) >= 0, np.rint(np.asarray(ns) / tick), -1))

        t = r.tasks
        pred, succ, edge = r.links()
        gaps = self._waits(columns, event)
        nothing = packed(columns[0] * 0)
        times, running = _thin(a.profile[0], a.profile[1].sum(axis=0), MOST_POINTS)
        files = [_place(site) for site in r.sites]
        done = ticks(columns[2])
        return {
            "name": name,
            "tick": tick,
            "total": max(r.end, 1) / 1000,
            "begin": 0,
            "cores": [lane["pipe"] for lane in lanes if lane["core"] >= 0],
            "lanes": lanes,
            "reasons": list(_WAITS),
            "sites": sites,
            "sources": _sources(files),
            "lines": [],
            "cards": list(self.cards()),
            "problems": self.problems(),
            "events": {
                "lane": packed(columns[0]), "start": ticks(columns[1]), "free": done, "done": done,
                "site": packed(columns[3]), "task": packed(columns[4]), "charge": nothing, "touched": nothing,
                "path": packed([event[s.row] for s in a.path if event[s.row] >= 0]),
            },
            "gaps": {
                "lane": packed(gaps[0]), "from": ticks(gaps[1]), "to": ticks(gaps[2]), "why": packed(gaps[3]),
                "event": packed(gaps[4]), "of": packed(gaps[4] * 0 - 1),
            },
            "ids": t["task_id"].tolist(),
            "tasks": {
                **{field: packed(t[field]) for field in _ABOUT}, **{time: ticks(t[time]) for time in TIMES},
                "by": packed(a.binding), "event": packed(event[:-1]),
            },
            "links": {
                "pred": packed(pred), "succ": packed(succ), "arg": packed(r.edges["arg"][edge]),
                "kind": packed(r.edges["kind"][edge]),
            },
            "chain": [int(event[n]) for n in a.chain[0] if event[n] >= 0],
            "places": files,
            "kinds": KINDS,
            "functions": self._functions(),
            "stretch": stretch / 1000,
            "counters": [
                self._counter(n, counter, tick)
                for n, counter in enumerate(COUNTERS)
                if (r.counters["which"] == n).any()
            ],
            "profile": [[v / tick for v in times], running],
        }  # fmt: skip

    def _events(self) -> tuple[list[dict[str, Any]], list[list[Any]], Array, int]:
        """Return lanes; kinds of events (name, color); events (lane, start, end, kind, row of the task) by
        lane and time; and the interval over which short phases were merged."""
        import numpy as np

        r, a = self.records, self.analysis
        sites: list[list[Any]] = [[r.name(f), 0, "", f"--f{n}"] for n, f in enumerate(self.func_ids)]
        lanes: list[dict[str, Any]] = []
        found: list[Array] = [np.zeros((5, 0), np.int64)]

        def add(start: Any, end: Any, site: Any, row: Any) -> None:
            columns = np.broadcast_arrays(len(lanes) - 1, start, end, site, row)
            found.append(np.stack([np.asarray(c, np.int64) for c in columns]))

        if a.path:
            lanes.append({"core": -1, "pipe": "critical path"})
            for step in a.path:
                at = step.since
                for n, spent in enumerate(step.parts()):
                    if spent:
                        add([at], [at + spent], len(sites) + n, -1)
                    at += spent
            sites += [[part, 0, "", f"--part-{part}"] for part in PARTS]
        phases, stretch = _thin_phases(r.phases, max(r.end, 1))
        known = {n: len(sites) + k for k, n in enumerate(PHASES)}
        sites += [[_phase(n), 0, "", _PHASE_COLOURS.get(n, "--other")] for n in PHASES]
        for actor in sorted(set(phases["actor"].tolist())):
            lanes.append({"core": -1, "pipe": f"Sched_{actor}" if actor >= 0 else "Orchestrator"})
            mine = phases[phases["actor"] == actor]
            add(mine["start"], mine["end"], [known.get(p, known[3]) for p in mine["phase"].tolist()], -1)
        t, number = r.tasks, {func_id: n for n, func_id in enumerate(self.func_ids)}
        func = np.asarray([number[f] for f in t["func_id"].tolist()], np.int64)
        for n, c in enumerate(a.cores):
            lanes.append({
                "core": n, "pipe": core_name(c.core, c.core_type), "type": c.core_type, "tasks": c.tasks,
                "busy": round(c.utilisation, 4),
                "cluster": c.core if c.core < r.block_dim else (c.core - r.block_dim) // 2,
            })  # fmt: skip
            mine = np.flatnonzero((t["core"] == c.core) & (t["start"] >= 0))
            add(t["start"][mine], self._ends[mine], func[mine], mine)
        columns = np.concatenate(found, axis=1)
        return lanes, sites, columns[:, np.lexsort((columns[1], columns[0]))], stretch

    @property
    def _ends(self) -> Array:
        """Times at which tasks ended. A task that has not ended is drawn up to the end of the run."""
        import numpy as np

        t = self.records.tasks
        return np.where(t["end"] >= 0, t["end"], np.maximum(max(self.records.end, 1), t["start"]))

    def _waits(self, columns: Array, event: Array) -> Array:
        """Return times between dispatch and start, and between the end and its detection by a scheduler:
        lane, from, to, kind, event; by lane and time."""
        import numpy as np

        t, end = self.records.tasks, self._ends
        rows = np.flatnonzero(event[:-1] >= 0)
        e = event[rows]
        lane, start = columns[0][e], t["start"][rows]
        early = (t["dispatch"][rows] >= 0) & (t["dispatch"][rows] < start)
        late = t["finish"][rows] > end[rows]
        kind = np.zeros(len(rows), np.int64)
        found = np.concatenate(
            [
                np.stack([lane, t["dispatch"][rows], start, kind, e])[:, early],
                np.stack([lane, end[rows], t["finish"][rows], kind + 1, e])[:, late],
            ],
            axis=1,
        )
        return found[:, np.lexsort((found[1], found[0]))]

    def _functions(self) -> list[list[Any]]:
        """Return by function: site, name, tasks, mean and total of executions, share of all."""
        number, work = {f: n for n, f in enumerate(self.func_ids)}, self.analysis.work or 1
        return [
            [
                number[f.func_id],
                f.name,
                f.tasks,
                duration(f.execution),
                duration(f.total),
                f"{f.total / work:.0%}",
            ]
            for f in self.analysis.functions
        ]

    def _counter(self, which: int, name: str, tick: float) -> dict[str, Any]:
        import numpy as np

        mine = self.records.counters[self.records.counters["which"] == which]
        mine = mine[np.argsort(mine["time"], kind="stable")]
        times, values = _thin(mine["time"], mine["value"], MOST_POINTS)
        peak = self.records.peak(which)
        most = max([peak or 0, *values])  # the engine's peak may be between two samples
        return {
            "name": name, "time": [t / tick for t in times], "value": values, "limit": self._limit(name),
            "peak": most,
        }  # fmt: skip

    def _limit(self, name: str) -> int:
        """Return the size of a ring or pool, or 0 if it is unknown."""
        said = self.records.stats.get(_LIMITS.get(name, ""))
        return int(said) if isinstance(said, (int, float)) else 0

    def colours(self) -> str:
        """Return a style variable for each function: the colors of the style sheet first, then distinct
        generated colors."""
        out: list[str] = []
        for n in range(len(self.func_ids)):
            hue = n * 137.508 % 360
            made = f"light-dark(hsl({hue:.0f} 62% 74%), hsl({hue:.0f} 48% 38%))"
            out.append(f"--f{n}: {f'var(--c{n})' if n < HUES else made};")
        return " ".join(out)

    # -- above and below the lanes ----------------------------------------------------------------------

    def cards(self) -> Iterable[list[Any]]:
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

    def problems(self) -> list[str]:
        found = [d.message for d in self.records.check()]
        lost = len(self.records.tasks) - int(self.analysis.ran.sum())
        return found + ([f"{_count(lost, 'task')} did not run to the end"] if lost else [])

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
            behind = escaped(r.label(r.tasks[step.held_by])) if step.held_by >= 0 else ""
            core = core_name(int(task["core"]), int(task["core_type"]))
            site = escaped(os.path.basename(r.site(task)))
            rows.append([str(n + 1), self._link(step.row), core, site, duration(step.since),
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
            [str(f.func_id), f'<i class="dot" style="background:var(--f{n})"></i>{escaped(f.name)}',
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
            rows.append([escaped(key), escaped(said)])
        return _section("Engine", "", _table(("what", "value"), rows, left=(0, 1))) if rows else ""

    def _link(self, row: int) -> str:
        return f'<a href="#task" data-task="{row}">{escaped(self.records.label(self.records.tasks[row]))}</a>'


def _phase(number: int) -> str:
    return PHASES[number].removeprefix("orch_")


def _place(site: str) -> list[Any]:
    """Return file and line of a source location where tasks are submitted."""
    file, _, line = site.rpartition(":")
    return [file, int(line)] if file and line.isdecimal() and len(line) < 10 else [site, 0]


def _sources(places: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Return the texts of existing source files that submit tasks. Records may come from another machine and
    name any file. Only files with suffixes of programs are read, so that no other file gets into a page."""
    found: dict[str, str] = {}
    for file in dict.fromkeys(p[0] for p in places if p[1]):
        path = Path(file)
        try:
            if path.suffix in _PROGRAMS and path.is_file() and path.stat().st_size < 1_000_000:
                found[file] = path.read_text("utf-8", "replace")
        except (OSError, ValueError):
            continue
    return found


# -- reduction --------------------------------------------------------------------------------------------


def _thin(times: Array, values: Array, most: int) -> tuple[list[int], list[int]]:
    """Return a step curve with few points: the first, lowest, highest and last point of each interval."""
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
    """Return the phases of each thread in order. If there are very many, short phases of a kind are merged
    over intervals of the returned length (otherwise 0), which is finer than a pixel when the whole run is
    shown."""
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


# -- markup ------------------------------------------------------------------------------------------------


def _card(name: str, value: str, share: float | None, words: str) -> list[Any]:
    return [value, words, share, "", name]


def _section(title: str, about: str, inside: str) -> str:
    return f'<section><h2>{title} <span class="soft">{about}</span></h2><figure>{inside}</figure></section>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Return a table of markup, without empty columns."""
    rows = list(rows)
    used = [n for n in range(len(head)) if any(row[n] for row in rows)]
    sides = ['class="l"' if n in left else "" for n in range(len(head))]
    top = "".join(f"<th {sides[n]}>{head[n]}</th>" for n in used)
    body = "".join("<tr>" + "".join(f"<td {sides[n]}>{row[n]}</td>" for n in used) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _bytes(number: int) -> str:
    for limit, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}".replace(".0 ", " ")
    return f"{number} B"
