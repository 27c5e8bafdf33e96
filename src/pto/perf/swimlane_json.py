"""The raw profiling file of the field, `perf_swimlane_<time>.json`: written in version 2, read in 1 and 2.

Other tools read our runs through it, and ours read theirs: what `tables` returns can be analysed, drawn
and traced like a run of our own, as `Records`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from .files import write_text
from .tables import CORE_TYPES, KINDS, PHASES, as_dicts, loop_numbers, table, us

if TYPE_CHECKING:
    from .records import Records
    from .tables import Array


def to_json(records: Records) -> dict[str, Any]:
    """The raw profiling file of the field, version 2, with the complete fan-out of every task.

    Virtual cores are ready when the run starts, so that is where its times begin. `submit_time_us` and
    `ready_time_us` are ours; readers of the field do not look at them.
    """
    fanout = records.fanouts()
    out: list[dict[str, Any]] = []
    for task in sorted(as_dicts(records.tasks), key=lambda task: task["task_id"]):
        if task["start"] < 0:
            continue
        mine = fanout.get(task["task_id"], [])
        start, end = task["start"], task["end"] if task["end"] >= 0 else max(records.end, task["start"])
        out.append({
            "task_id": task["task_id"], "func_id": task["func_id"], "core_id": task["core"],
            "core_type": CORE_TYPES[task["core_type"]], "start_time_us": us(start), "end_time_us": us(end),
            "duration_us": us(end - start), "kernel_ready_time_us": 0.0,
            "dispatch_time_us": us(max(0, task["dispatch"])), "finish_time_us": us(max(0, task["finish"])),
            "submit_time_us": us(max(0, task["submit"])), "ready_time_us": us(max(0, task["ready"])),
            "fanout": mine, "fanout_count": len(mine),
        })  # fmt: skip
    return {"version": 2, "tasks": out, **_raw_phases(records)}


def _raw_phases(records: Records) -> dict[str, Any]:
    schedulers: list[list[dict[str, Any]]] = []
    orchestrator: list[dict[str, Any]] = []
    spent = dict.fromkeys((name.removeprefix("orch_") for id_, name in PHASES.items() if id_ >= 16), 0)
    p = records.phases
    for row, loop in zip(as_dicts(p), loop_numbers(p), strict=True):
        name, actor = PHASES.get(row["phase"], "unknown"), row["actor"]
        times = {"start_time_us": us(row["start"]), "end_time_us": us(row["end"])}
        if actor >= 0:
            schedulers += [[] for _ in range(actor + 1 - len(schedulers))]
            schedulers[actor].append(
                {**times, "phase": name, "loop_iter": loop, "tasks_processed": row["count"]}
            )
        else:
            orchestrator.append({"phase": name, **times, "submit_idx": row["count"]})
            step = name.removeprefix("orch_")
            spent[step] = spent.get(step, 0) + row["end"] - row["start"]
    out: dict[str, Any] = {"aicpu_scheduler_phases": schedulers}
    if orchestrator:
        mine = p[p["actor"] < 0]
        out["aicpu_orchestrator"] = {
            "start_time_us": us(int(mine["start"].min())), "end_time_us": us(int(mine["end"].max())),
            "submit_count": len(records.tasks), "phase_us": {name: us(ns) for name, ns in spent.items()},
        }  # fmt: skip
        out["aicpu_orchestrator_phases"] = orchestrator
    return out


def write(records: Records, path: str | os.PathLike[str]) -> Path:
    return write_text(path, json.dumps(to_json(records), indent=1) + "\n")


def tables(data: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Tasks, edges and phases of a raw profiling file, ours or the field's (versions 1 and 2)."""
    if data.get("version") not in (1, 2):
        raise _bad(f"version {data.get('version')!r} of a perf_swimlane file: expected 1 or 2")
    try:
        return _tables(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise _bad(f"not a perf_swimlane file: {what}") from None


def _tables(data: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    raw = data["tasks"]
    columns: dict[str, list[int]] = {
        "task_id": [int(t["task_id"]) for t in raw], "func_id": [int(t["func_id"]) for t in raw],
        "core": [int(t["core_id"]) for t in raw],
        "core_type": [CORE_TYPES.index(t["core_type"]) for t in raw],
        "start": [_ns(t["start_time_us"]) for t in raw], "end": [_ns(t["end_time_us"]) for t in raw],
    }  # fmt: skip
    for field in ("dispatch", "finish", "submit", "ready"):  # there 0 says that it was not recorded
        columns[field] = [_ns(t.get(f"{field}_time_us", 0)) or -1 for t in raw]
    edges = [(int(t["task_id"]), int(succ)) for t in raw for succ in t.get("fanout", ())]
    numbers = {name: id_ for id_, name in PHASES.items()}
    phases: list[tuple[int, int, int, int, int]] = []
    for actor, rows in enumerate(data.get("aicpu_scheduler_phases", ())):
        phases += [(actor, numbers[r["phase"]], _ns(r["start_time_us"]), _ns(r["end_time_us"]),
                    int(r.get("tasks_processed", 0))) for r in rows]  # fmt: skip
    phases += [(-1, numbers[r["phase"]], _ns(r["start_time_us"]), _ns(r["end_time_us"]),
                int(r.get("submit_idx", 0))) for r in data.get("aicpu_orchestrator_phases", ())]  # fmt: skip
    fields = ("actor", "phase", "start", "end", "count")
    ends = {"pred": [a for a, _ in edges], "succ": [b for _, b in edges]}
    return (
        table("tasks", columns),
        table("edges", {**ends, "kind": [KINDS.index("explicit")] * len(edges)}),
        table("phases", dict(zip(fields, zip(*phases, strict=True), strict=False))),
    )


def _ns(value: Any) -> int:
    return round(float(value) * 1000)


def _bad(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2801", message)])
