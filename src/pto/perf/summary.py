"""Summary of a run: plain text of at most 110 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .analysis import PARTS, Analysis
from .bounds import SchedulerLoad, bounds
from .records import Records
from .tables import COUNTERS, core_name

WIDTH = 110
_NAME = 20

#: Descriptions of the parts of a critical path.
WORDS = {
    "orchestrator": "until its first task is submitted",
    "dependency": "until the next task is ready",
    "queue": "waiting for a core",
    "head": "from dispatch to start",
    "execution": "executing",
    "tail": "until the last end is seen",
}


def text(records: Records, steps: int = 8, gaps: int = 3) -> str:
    """Return the summary, with at most `steps` steps of the critical path and `gaps` gaps of cores."""
    analysis = Analysis(records)
    parts = [
        _head(analysis),
        _bounds(analysis) if records.virtual else [],
        _functions(analysis),
        _cores(analysis),
        _path(analysis, steps),
        _gaps(analysis, gaps),
    ]
    parts += [_threads(analysis), _counters(records), _stats(records)]
    blocks = ["\n".join(line[:WIDTH].rstrip() for line in part) for part in map(list, parts) if part]
    return "\n\n".join(blocks) + "\n"


def duration(ns: float) -> str:
    """Return a time with a suitable unit."""
    if abs(ns) < 1_000:
        return f"{ns:.0f} ns"
    for limit, unit in ((1e6, "us"), (1e9, "ms")):
        if abs(ns) < limit:
            return f"{ns / limit * 1000:.2f} {unit}"
    return f"{ns / 1e9:.3f} s"


def meanwhile(a: Analysis) -> str:
    """Return the longest phases of the orchestrator before it submitted the first task of the path."""
    steps = sorted(a.orchestrator_steps().items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name.removeprefix('orch_')} {duration(spent)}" for name, spent in steps if spent)


def _head(a: Analysis) -> list[str]:
    tasks = a.records.tasks
    lost = len(tasks) - int(a.ran.sum())
    span = a.chain[1]
    out = [
        f"{len(tasks)} tasks, {len(a.records.edges)} dependencies, {len(a.functions)} functions,"
        f" {a.records.block_dim} blocks; makespan {duration(a.makespan)}"
        + (" of virtual time" if a.records.virtual else "")
    ]
    if lost:
        out.append(f"{lost} tasks did not run to their end")
    if a.work:
        mean = a.work / a.makespan if a.makespan else 0.0
        out.append(
            f"work {duration(a.work)}, longest chain {duration(span)}: the graph allows"
            f" {a.work / span if span else 0:.1f} tasks at once on average, {mean:.1f} were"
        )
    return out


def _bounds(a: Analysis) -> Iterator[str]:
    """Yield the bounds of the run. Only a run in virtual time has all the cores that it names."""
    found = bounds(a)
    stats = a.records.stats
    yield "Virtual time"
    yield f"  {'durations':<14}{stats.get('durations', '?')}"
    if "guessed" in stats:  # always with the reason for a guess
        yield from _wrapped(f"  {'guessed':<14}", str(stats["guessed"]))
    yield f"  {'overheads':<14}{stats.get('overheads', '?')}"
    if not found.makespan:
        return
    rows = [("longest chain", float(found.chain), "")]
    for name, (spent, cores), share in zip(("AIC", "AIV"), found.work, found.shares, strict=True):
        if spent:
            rows.append((f"work of {name}", share, f"{duration(spent)} on {cores} cores"))
    for what, least, more in rows:
        yield f"  {what:<14}{duration(least):>12}  {least / found.makespan:6.1%} of the makespan  {more}"
    if found.least:
        times = found.makespan / found.least
        yield f"  no schedule is shorter than {duration(found.least)}: this one takes {times:.2f} x"
    words = ", ".join(f"{name} {share:.1%}" for name, share in SchedulerLoad(a).shares.items())
    yield f"  scheduler overhead, an idle core while a task for it waits: {words}"


def _functions(a: Analysis) -> Iterator[str]:
    """Yield the statistics per function, in the layout of simpler's converter."""
    if not a.functions:
        return
    yield "Task Statistics by Function"
    yield "  Exec = kernel time on AICore; Latency = dispatch->finish (incl. head OH + Exec + tail OH)"
    columns = ("Func_ID", "Func_Name", "Count", "Avg Exec(us)", "Avg Latency(us)", "Exec%",
               "Avg Head OH(us)", "Avg Tail OH(us)")  # fmt: skip
    yield _row(columns)
    for f in a.functions:
        yield _row((f.func_id, _short(f.name), f.tasks, _us(f.execution), _us(f.latency), f"{f.share:.1%}",
                    _us(f.head), _us(f.tail)))  # fmt: skip
    latency = sum(f.latency * f.tasks for f in a.functions)
    yield _row(("TOTAL", "", sum(f.tasks for f in a.functions), _us(a.work), _us(latency), "", "", ""))
    if a.test_time:
        yield f"Total Test Time: {a.test_time / 1000:.2f} us (from earliest dispatch to latest finish)"


def _row(cells: Sequence[Any]) -> str:
    widths = (-8, -_NAME, 6, 13, 16, 7, 16, 16)
    return " ".join(
        f"{c:<{-w}}" if w < 0 else f"{c:>{w}}" for c, w in zip(map(str, cells), widths, strict=True)
    )


def _cores(a: Analysis) -> Iterator[str]:
    if not a.makespan:
        return
    yield "Cores"
    for number, name in enumerate(("AIC", "AIV")):
        mine = [c for c in a.cores if c.core_type == number]
        if not mine:
            continue
        used = [c for c in mine if c.tasks]
        most = max(mine, key=lambda c: c.busy)
        yield (
            f"  {name}  {len(used):3} of {len(mine):2} used  {a.utilisation(number):6.1%} busy "
            f"[{_bar(a.utilisation(number), 30)}]  most {core_name(most.core, number)} {most.utilisation:.1%}"
        )
    levels = a.parallelism
    peak = max(levels, default=0)
    idle = levels.get(0, 0)
    most = f"at most {peak} {'task' if peak == 1 else 'tasks'} at once"
    yield f"  {most}; nothing executed for {duration(idle)} ({idle / a.makespan:.1%})"


def _path(a: Analysis, most: int) -> Iterator[str]:
    if not a.path:
        return
    yield f"Critical path: {len(a.path)} tasks, {duration(a.makespan)}"
    for part in PARTS:
        spent = a.path_parts[part]
        if spent:
            share = spent / a.makespan if a.makespan else 0.0
            yield f"  {part:<13}{duration(spent):>12}  {share:6.1%} [{_bar(share, 30)}]  {WORDS[part]}"
    if did := meanwhile(a):
        yield f"  the orchestrator meanwhile: {did}"
    costly = sorted(a.path, key=lambda s: -sum(s.parts()))[:most]
    shown = sorted(costly, key=lambda s: s.since)
    yield f"  its {len(shown)} longest steps:" if len(shown) < len(a.path) else "  its steps:"
    yield f"  {'task':<{_NAME + 8}}{'core':<9}{'from':>12}{'waits':>12}{'executes':>12}  mostly"
    for s in shown:
        task = a.records.tasks[s.row]
        waits = s.orchestrator + s.dependency + s.queue + s.head
        reason = PARTS[s.parts().index(max(s.parts()))]
        if reason == "queue" and s.held_by >= 0:
            reason += f" after {a.records.label(a.records.tasks[s.held_by])}"
        label = _short(a.records.label(task), _NAME + 6)
        core = core_name(int(task["core"]), int(task["core_type"]))
        times = f"{duration(s.since):>12}{duration(waits):>12}{duration(s.execution):>12}"
        yield f"  {label:<{_NAME + 8}}{core:<9}{times}  {reason}"


def _gaps(a: Analysis, most: int) -> Iterator[str]:
    gaps = a.gaps(most)
    if not gaps:
        return
    yield "Longest gaps of a core"
    for g in gaps:
        task = a.records.tasks[g.task]
        core = core_name(g.core, int(task["core_type"]))
        yield (
            f"  {core:<8} {duration(g.length):>10} at {duration(g.start):>10}"
            f"  before {_short(a.records.label(task), 34):<34}  {g.reason}"
        )


def _threads(a: Analysis) -> Iterator[str]:
    actors = sorted({actor for actor, _ in a.phases})
    if not actors:
        return
    yield "Threads of the runtime"
    for actor in actors:
        mine = {phase: facts for (who, phase), facts in a.phases.items() if who == actor}
        total = sum(spent for spent, _, _ in mine.values())
        name = f"Sched_{actor}" if actor >= 0 else "Orchestrator"
        words = ", ".join(
            f"{phase.removeprefix('orch_')} {duration(spent)}"
            for phase, (spent, _, _) in sorted(mine.items(), key=lambda item: -item[1][0])
        )
        yield from _wrapped(f"  {name:<13}{duration(total):>10}  ", words)


def _counters(records: Records) -> Iterator[str]:
    peaks = [(name, records.peak(n)) for n, name in enumerate(COUNTERS)]
    words = [f"{name} {peak}" for name, peak in peaks if peak is not None]
    if words:
        yield from _wrapped("Peaks  ", ", ".join(words))


def _stats(records: Records) -> Iterator[str]:
    """Yield other counts of the engine, with one line for each ring and pool."""
    shown = {"durations", "overheads", "guessed"} if records.virtual else set()  # in _bounds
    plain = [f"{key} {value}" for key, value in records.stats.items()
             if not isinstance(value, dict) and key not in shown]  # fmt: skip
    nested = {key: value for key, value in records.stats.items() if isinstance(value, dict)}
    if plain or nested:
        yield "Engine"
    if plain:
        yield from _wrapped("  ", ", ".join(plain))
    for key, value in nested.items():
        yield from _wrapped(f"  {key:<18} ", ", ".join(f"{k} {v}" for k, v in value.items()))


def _wrapped(first: str, words: str) -> Iterator[str]:
    import textwrap

    yield from textwrap.wrap(
        words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=True
    )


def _bar(share: float, width: int) -> str:
    full = round(min(1.0, max(0.0, share)) * width)
    return "#" * full + "." * (width - full)


def _us(ns: float) -> str:
    return f"{ns / 1000:.2f}"


def _short(name: str, most: int = _NAME) -> str:
    return name if len(name) <= most else name[: most - 2] + ".."
