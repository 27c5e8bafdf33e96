"""Write the raw profiling file of simpler, `perf_swimlane_<time>.json`, in version 2, for other tools."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .files import write_text
from .records import Records
from .tables import CORE_TYPES, PHASES, as_dicts, loop_numbers, us


def to_json(records: Records) -> dict[str, Any]:
    """Return the content of the raw profiling file of simpler, version 2, with the complete fan-out of every
    task.

    Virtual cores are ready at the start of the run, so its times begin there. `submit_time_us` and
    `ready_time_us` are additions; the readers of simpler ignore them.
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
