"""Trace of a run for trace viewers: Chrome trace events, which Perfetto reads, too.

The trace has the same processes, thread numbers and event names as the merged view of simpler's converter. It
adds arrows for all dependencies, counters, and a lane for the critical path. `swimlane_json` writes the raw
file that the converter reads.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .analysis import PARTS, Analysis
from .bounds import SchedulerLoad
from .files import write_text
from .records import Records
from .tables import CORE_TYPES, COUNTERS, KINDS, PHASES, as_dicts, core_name, loop_numbers, us

if TYPE_CHECKING:
    from .windows import Passed

#: Processes of the trace: number, name, position from the top.
CORES, DISPATCH, SCHEDULER, ORCHESTRATOR, COUNTER, PATH = 1, 2, 3, 4, 5, 6
_PROCESSES = {
    CORES: ("AICore View", 4), DISPATCH: ("AICPU View", 3), SCHEDULER: ("AICPU Scheduler", 2),
    ORCHESTRATOR: ("AICPU Orchestrator", 1), COUNTER: ("Counters", 5), PATH: ("Critical path", 0),
}  # fmt: skip
FIRST_CORE, FIRST_SCHEDULER, THE_ORCHESTRATOR, THE_PATH = 1000, 3000, 4000, 6000

_COLOURS = {
    "complete": "good", "dispatch": "terrible", "scan": "thread_state_running", "idle": "yellow",
    "orch_sync": "thread_state_iowait", "orch_alloc": "terrible", "orch_params": "good",
    "orch_lookup": "thread_state_running", "orch_heap": "yellow", "orch_insert": "olive",
    "orch_fanin": "rail_animation", "orch_finalize": "cq_build_passed", "orch_scope_end": "generic_work",
}  # fmt: skip
_PATH_COLOURS = dict(
    zip(PARTS, ("grey", "thread_state_iowait", "yellow", "terrible", "good", "grey"), strict=True)
)

#: An arrow starts this long before the end of its bar, so that viewers bind it to that bar and not to the
#: next.
LEAVE_NS = 10

Event = dict[str, Any]


def write(records: Records, path: str | os.PathLike[str]) -> Path:
    """Write the trace to a file."""
    return _written(events(records), path)


def write_several(
    runs: Sequence[tuple[str, Records, int]], path: str | os.PathLike[str], passed: Sequence[Passed] = ()
) -> Path:
    """Write several concurrent runs: the name of each, its records, and its start in nanoseconds after the
    first. Each run has its own processes, whose names begin with its name. `passed` are arrows between
    runs."""

    def all_events() -> Iterator[Event]:
        for n, (name, r, later) in enumerate(runs):
            yield from (_moved(e, n, name, us(later)) for e in events(r))
        traces = {n: _Trace(runs[n][1]) for n in {n for one in passed for n in (one.run, one.to_run)}}
        for number, one in enumerate(passed):
            yield from _between(number, one, [runs[n][2] for n in range(len(runs))], traces)

    return _written(all_events(), path)


def _between(number: int, one: Passed, later: Sequence[int], traces: dict[int, _Trace]) -> Iterator[Event]:
    """Yield both ends of an arrow between runs. It starts while its source task runs, and ends while its
    target task runs."""
    ends = []
    for n, row in ((one.run, one.row), (one.to_run, one.to_row)):
        task, trace = traces[n].tasks[row], traces[n]
        pid = CORES + n * len(_PROCESSES)
        ends.append((pid, trace.tids[task["core"]], task["start"] + later[n], int(trace.end[row]) + later[n]))
    (pid, tid, start, end), (to_pid, to_tid, to_start, to_end) = ends
    leaves = max(start, min(end, to_end) - LEAVE_NS)
    comes = min(max(to_start, leaves), to_end)
    common = {"cat": "flow", "id": len(traces) << 40 | number, "name": one.kind}
    yield {**common, "ph": "s", "pid": pid, "tid": tid, "ts": us(leaves)}
    yield {**common, "ph": "f", "pid": to_pid, "tid": to_tid, "ts": us(comes), "bp": "e"}


def _moved(event: Event, number: int, name: str, later: float) -> Event:
    """Return an event of run `number`, among the events of other runs."""
    moved = {**event, "pid": event["pid"] + number * len(_PROCESSES)}
    if "ts" in event:
        moved["ts"] = event["ts"] + later
    if "id" in event:
        moved["id"] = number << 32 | event["id"]
    if event["name"] == "process_name":
        moved["args"] = {"name": f"{name}: {event['args']['name']}"}
    if event["name"] == "process_sort_index":
        moved["args"] = {"sort_index": event["args"]["sort_index"] + number * len(_PROCESSES)}
    return moved


def _written(stream: Iterator[Event], path: str | os.PathLike[str]) -> Path:
    encoder = json.JSONEncoder(separators=(",", ":"))
    # Encode many events per call, because each call has a high fixed cost.
    chunks = iter(lambda: list(islice(stream, 1000)), [])
    text = ",\n".join(encoder.encode(chunk)[1:-1] for chunk in chunks)
    return write_text(path, '{"displayTimeUnit":"ns","traceEvents":[\n' + text + "\n]}\n")


def events(records: Records) -> Iterator[Event]:
    """Yield all trace events of a run."""
    trace = _Trace(records)
    yield from trace.processes()
    yield from trace.bars()
    yield from trace.phases()
    yield from trace.arrows()
    yield from trace.dispatches()
    yield from trace.counters()
    yield from trace.overhead()
    yield from trace.path()


class _Trace:
    def __init__(self, records: Records) -> None:
        import numpy as np

        self.records = records
        self.analysis = Analysis(records)
        self.tasks = as_dicts(records.tasks)
        tasks = records.tasks
        #: A task that has not ended is drawn up to the end of the run.
        self.shown = np.flatnonzero(tasks["start"] >= 0)
        self.end = np.where(tasks["end"] >= 0, tasks["end"], np.maximum(records.end, tasks["start"]))
        self.both = (tasks["dispatch"] >= 0) & (tasks["finish"] >= 0) & (tasks["start"] >= 0)
        self.kinds = dict(
            zip(tasks["core"][self.shown].tolist(), tasks["core_type"][self.shown].tolist(), strict=True)
        )
        self.tids = {core: FIRST_CORE + n for n, core in enumerate(sorted(self.kinds))}
        self.ids = {row: n for n, row in enumerate(self.shown.tolist())}
        self.flow = 0

    def processes(self) -> Iterator[Event]:
        used = [CORES]
        used += [DISPATCH] if self.both.any() else []
        p = self.records.phases
        actors = sorted(set(p["actor"].tolist()))
        schedulers = [a for a in actors if a >= 0]
        used += [SCHEDULER] if schedulers else []
        used += [ORCHESTRATOR] if -1 in actors else []
        used += [COUNTER] if len(self.records.counters) else []
        used += [PATH] if self.analysis.path else []
        for pid in used:
            name, order = _PROCESSES[pid]
            name += ", virtual time" if self.records.virtual else ""
            yield _meta("process_name", pid, {"name": name})
            yield _meta("process_sort_index", pid, {"sort_index": order})
        for pid in (CORES, DISPATCH) if DISPATCH in used else (CORES,):
            for core, tid in self.tids.items():
                yield _meta("thread_name", pid, {"name": core_name(core, self.kinds[core])}, tid)
        for actor in schedulers:
            yield _meta("thread_name", SCHEDULER, {"name": f"Sched_{actor}"}, FIRST_SCHEDULER + actor)
        if ORCHESTRATOR in used:
            yield _meta("thread_name", ORCHESTRATOR, {"name": "Orchestrator"}, THE_ORCHESTRATOR)
        if PATH in used:
            yield _meta("thread_name", PATH, {"name": "Critical path"}, THE_PATH)

    def bars(self) -> Iterator[Event]:
        fanout = self.records.fanouts()
        critical = {step.row for step in self.analysis.path}
        ends = self.end.tolist()
        for row in self.shown.tolist():
            task = self.tasks[row]
            task_id, start, end = task["task_id"], task["start"], ends[row]
            hint = f"Task:{task_id}, FuncId:{task['func_id']}, CoreId:{task['core']}"
            args: dict[str, Any] = {
                "event-hint": hint,
                "fanout-hint": "[" + ", ".join(map(str, fanout.get(task_id, ()))) + "]",
                "duration-us": us(end - start),
                "kernel-ready-time-us": 0.0,
                "taskId": task_id,
            }
            args |= {
                f"{t}-us": us(task[t]) for t in ("submit", "ready", "dispatch", "finish") if task[t] >= 0
            }
            args |= {f: task[f] for f in ("thread", "scheduler", "scope", "cluster", "block") if task[f] >= 0}
            if site := self.records.site(task):
                args["site"] = site
            if row in critical:
                args["critical"] = True
            if task["end"] < 0:
                args["unfinished"] = True
            yield self._bar(CORES, row, start, end, args)
        for row in self.both.nonzero()[0].tolist():
            task = self.tasks[row]
            start, end = task["dispatch"], task["finish"]
            hint = f"Task:{task['task_id']}, FuncId:{task['func_id']}, CoreId:{task['core']}"
            args = {"event-hint": hint, "dispatch-time-us": us(start), "finish-time-us": us(end),
                    "aicpu-duration-us": us(end - start), "taskId": task["task_id"]}  # fmt: skip
            yield self._bar(DISPATCH, row, start, end, args)

    def _bar(self, pid: int, row: int, start: int, end: int, args: Event) -> Event:
        task = self.tasks[row]
        number = self.ids[row] + (len(self.ids) if pid == DISPATCH else 0)
        name, tid = self.records.label(task), self.tids[task["core"]]
        return {"args": args, "cat": "event", "id": number, "name": name, "ph": "X", "pid": pid, "tid": tid,
                "ts": us(start), "dur": us(end - start)}  # fmt: skip

    def phases(self) -> Iterator[Event]:
        loops = loop_numbers(self.records.phases)
        for row, loop in zip(as_dicts(self.records.phases), loops, strict=True):
            phase, actor, count = PHASES.get(row["phase"], "unknown"), row["actor"], row["count"]
            colour = _COLOURS.get(phase, "generic_work")
            own: Event = {
                "ph": "X",
                "ts": us(row["start"]),
                "dur": us(row["end"] - row["start"]),
                "cname": colour,
            }
            if actor >= 0:
                args = {"phase": phase, "loop_iter": loop, "tasks_processed": count}
                name, tid = f"{phase}({count})", FIRST_SCHEDULER + actor
                yield own | {"args": args, "cat": "scheduler", "name": name, "pid": SCHEDULER, "tid": tid}
            else:
                name = f"{phase.removeprefix('orch_')}({count})"
                yield own | {"args": {"phase": phase, "submit_idx": count}, "cat": "orchestrator",
                             "name": name, "pid": ORCHESTRATOR, "tid": THE_ORCHESTRATOR}  # fmt: skip

    def arrows(self) -> Iterator[Event]:
        tasks = self.records.tasks
        core = tasks["core"].tolist()
        start, dispatch, finish = (tasks[name].tolist() for name in ("start", "dispatch", "finish"))
        ends, both = self.end.tolist(), self.both.tolist()
        pred, succ, edge = (column.tolist() for column in self.records.links())
        kinds, arguments = self.records.edges["kind"].tolist(), self.records.edges["arg"].tolist()
        for a, b, e in zip(pred, succ, edge, strict=True):
            if start[a] < 0 or start[b] < 0:
                continue
            out, into = self.tids[core[a]], self.tids[core[b]]
            args = {"kind": KINDS[kinds[e]] if 0 <= kinds[e] < len(KINDS) else kinds[e], "arg": arguments[e]}
            leaves = max(start[a], ends[a] - LEAVE_NS)
            for event, bar in zip(
                self._arrow("dependency", (CORES, out, leaves), (CORES, into, start[b])), (a, b), strict=True
            ):
                yield event | {"bind_id": self.ids[bar], "args": args}
            if both[a] and both[b]:
                leaves = max(dispatch[a], finish[a] - LEAVE_NS)
                yield from self._arrow("dependency", (DISPATCH, out, leaves), (DISPATCH, into, dispatch[b]))

    def dispatches(self) -> Iterator[Event]:
        """Yield arrows from the phase in which a scheduler dispatched a task to the task."""
        import numpy as np

        phases = self.records.phases[self.records.phases["phase"] == 1]
        begins: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        for actor in np.unique(phases["actor"][phases["actor"] >= 0]).tolist():
            mine = np.sort(phases[phases["actor"] == actor], order="start")
            begins[actor], ends[actor] = mine["start"].tolist(), mine["end"].tolist()
        for row in self.both.nonzero()[0].tolist():
            task = self.tasks[row]
            when = task["dispatch"]
            for actor in sorted(begins, key=lambda actor, said=task["scheduler"]: (actor != said, actor)):
                at = bisect_right(begins[actor], when) - 1  # phases of one thread do not overlap
                if at >= 0 and when <= ends[actor][at]:
                    sender = (SCHEDULER, FIRST_SCHEDULER + actor, when)
                    tid = self.tids[task["core"]]
                    yield from self._arrow("dispatch", sender, (CORES, tid, task["start"]))
                    yield from self._arrow("dispatch", sender, (DISPATCH, tid, when))
                    break

    def _arrow(
        self, name: str, tail: tuple[int, int, int], head: tuple[int, int, int]
    ) -> tuple[Event, Event]:
        common = {"cat": "flow", "id": self.flow, "name": name}
        self.flow += 1
        return (
            {**common, "ph": "s", "pid": tail[0], "tid": tail[1], "ts": us(tail[2])},
            {**common, "ph": "f", "pid": head[0], "tid": head[1], "ts": us(head[2]), "bp": "e"},
        )

    def counters(self) -> Iterator[Event]:
        last: dict[int, int] = {}
        for time, which, value in self.records.counters.tolist():
            if last.get(which) == value:
                continue
            last[which] = value
            name = COUNTERS[which] if 0 <= which < len(COUNTERS) else f"counter {which}"
            yield {"args": {"value": value}, "cat": "counter", "name": name, "ph": "C", "pid": COUNTER,
                   "ts": us(time)}  # fmt: skip

    def overhead(self) -> Iterator[Event]:
        """Yield the overhead of schedulers in virtual time, with the names of simpler's tools."""
        if not self.records.virtual or not len(self.shown):
            return
        found = SchedulerLoad(self.analysis)
        working = found.overhead[found.works]
        curves = {f"oh_{kind}_{what}": getattr(found, what)[n] for n, kind in enumerate(CORE_TYPES)
                  for what in ("idle", "ready", "overhead") if found.works[n]}  # fmt: skip
        if len(working):
            curves |= {"oh_all_overhead": working.all(axis=0), "oh_has_overhead": working.any(axis=0)}
        for name, values in curves.items():
            last = None
            for time, value in zip(found.when.tolist(), values.astype(int).tolist(), strict=True):
                if value != last:
                    yield {"args": {"value": value}, "cat": "counter", "name": name, "ph": "C",
                           "pid": COUNTER, "ts": us(time)}  # fmt: skip
                last = value

    def path(self) -> Iterator[Event]:
        for step in self.analysis.path:
            task = self.tasks[step.row]
            label = self.records.label(task)
            at = step.since
            for part, length in zip(PARTS, step.parts(), strict=True):
                if length:
                    name = label if part == "execution" else part
                    yield {"args": {"part": part, "taskId": task["task_id"]},
                           "cat": "critical", "cname": _PATH_COLOURS[part], "name": name, "ph": "X",
                           "pid": PATH, "tid": THE_PATH, "ts": us(at), "dur": us(length)}  # fmt: skip
                at += length


def _meta(name: str, pid: int, args: Event, tid: int | None = None) -> Event:
    event: Event = {"args": args, "cat": "__metadata", "name": name, "ph": "M", "pid": pid}
    return event if tid is None else event | {"tid": tid}
