"""Chrome traces and the raw profiling file."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.perf import swimlane_json, swimlane_tables, trace
from pto.perf.analysis import PARTS, Analysis
from pto.perf.records import Records
from pto.perf.tables import COUNTERS, KINDS, PHASES, table

from .schedule import simulate


@pytest.fixture(scope="module")
def records() -> Records:
    return simulate(120, 3, seed=4).records


@pytest.fixture(scope="module")
def events(records: Records) -> list[dict[str, Any]]:
    return list(trace.events(records))


def _of(events: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [e for e in events if all(e.get(k) == v for k, v in wanted.items())]


def test_processes_and_their_order(events: list[dict[str, Any]]) -> None:
    """Section 8: the merged view has pids 1..4 with these names and places; ours adds 5 and 6."""
    names = {e["pid"]: e["args"]["name"] for e in _of(events, ph="M", name="process_name")}
    order = {e["pid"]: e["args"]["sort_index"] for e in _of(events, ph="M", name="process_sort_index")}
    assert names == {1: "AICore View", 2: "AICPU View", 3: "AICPU Scheduler", 4: "AICPU Orchestrator",
                     5: "Counters", 6: "Critical path"}  # fmt: skip
    assert {pid: order[pid] for pid in (1, 2, 3, 4)} == {1: 4, 2: 3, 3: 2, 4: 1}


def test_bars_of_the_cores(records: Records, events: list[dict[str, Any]]) -> None:
    """Section 8: tid 1000+i by sorted core, thread AIC_<id>/AIV_<id>, X events `Func(task)`, cat "event"."""
    cores = sorted(set(records.tasks["core"].tolist()))
    kinds = dict(zip(records.tasks["core"].tolist(), records.tasks["core_type"].tolist(), strict=True))
    for pid in (1, 2):
        threads = {e["tid"]: e["args"]["name"] for e in _of(events, ph="M", name="thread_name", pid=pid)}
        assert threads == {1000 + n: f"{('AIC', 'AIV')[kinds[c]]}_{c}" for n, c in enumerate(cores)}
    bars = {e["args"]["taskId"]: e for e in _of(events, ph="X", pid=1)}
    assert len(bars) == len(records.tasks)
    for task in records.tasks:
        bar = bars[int(task["task_id"])]
        assert bar["name"] == f"{records.names[int(task['func_id'])]}({task['task_id']})"
        assert bar["cat"] == "event" and bar["tid"] == 1000 + cores.index(task["core"])
        assert (bar["ts"], bar["dur"]) == (task["start"] / 1000, (task["end"] - task["start"]) / 1000)
        assert (
            bar["args"]["event-hint"]
            == f"Task:{task['task_id']}, FuncId:{task['func_id']}, CoreId:{task['core']}"
        )
        assert {"fanout-hint", "duration-us", "kernel-ready-time-us"} <= set(bar["args"])
        assert bar["args"]["submit-us"] == task["submit"] / 1000
    views = {e["args"]["taskId"]: e for e in _of(events, ph="X", pid=2)}
    for task in records.tasks:
        bar = views[int(task["task_id"])]
        assert bar["ts"] == task["dispatch"] / 1000
        assert bar["dur"] == pytest.approx((task["finish"] - task["dispatch"]) / 1000)


def test_functions_without_a_name() -> None:
    """Section 8: `Func_<id>(task)` without names."""
    records = simulate(3).records
    records.names = {}
    bars = _of(list(trace.events(records)), ph="X", pid=1)
    expected = {f"Func_{t['func_id']}({t['task_id']})" for t in records.tasks}
    assert {e["name"] for e in bars} == expected


def test_every_dependency_is_an_arrow_between_bars(records: Records, events: list[dict[str, Any]]) -> None:
    """Section 8: flow "dependency", s at end-0.01 us, f with bp e at the start of the successor. Every edge has
    one, also those whose producer had ended before the submit."""
    begins = {e["id"]: e for e in _of(events, ph="s", name="dependency", pid=1)}
    ends = {e["id"]: e for e in _of(events, ph="f", name="dependency", pid=1)}
    assert set(begins) == set(ends) and len(begins) == len(records.edges)
    bars = {e["id"]: e for e in _of(events, ph="X", pid=1)}
    found = []
    for id_, begin in begins.items():
        source, target = bars[begin["bind_id"]], bars[ends[id_]["bind_id"]]
        assert begin["tid"] == source["tid"] and ends[id_]["tid"] == target["tid"]
        assert begin["ts"] == pytest.approx(source["ts"] + source["dur"] - 0.01)
        assert ends[id_]["ts"] == target["ts"] and ends[id_]["bp"] == "e"
        found.append(
            (source["args"]["taskId"], target["args"]["taskId"], begin["args"]["kind"], begin["args"]["arg"])
        )
    assert Counter(found) == Counter((p, s, KINDS[k], a) for p, s, a, k in records.edges.tolist())


def test_flow_ids_are_unique(events: list[dict[str, Any]]) -> None:
    for phase in ("s", "f"):
        ids = [e["id"] for e in events if e["ph"] == phase]
        assert len(ids) == len(set(ids))


def test_arrows_stay_on_bars_shorter_than_their_offset() -> None:
    times = {
        "submit": [0, 0],
        "ready": [1, 1],
        "dispatch": [2, 3],
        "start": [5, 9],
        "end": [6, 12],
        "finish": [7, 14],
    }
    records = Records(
        table("tasks", {"task_id": [0, 1], **times}), table("edges", {"pred": [0], "succ": [1]})
    )
    (begin,) = _of(list(trace.events(records)), ph="s", pid=1)
    assert begin["ts"] == 0.005


def test_dispatch_arrows_start_in_the_scheduler_that_did_it(
    records: Records, events: list[dict[str, Any]]
) -> None:
    """Section 8: "dispatch" from the scheduler's bar to the task."""
    bars = defaultdict(list)
    for bar in _of(events, ph="X", cat="scheduler"):
        bars[bar["tid"]].append((bar["ts"], bar["ts"] + bar["dur"], bar["args"]["phase"]))
    arrows = _of(events, ph="s", name="dispatch")
    assert arrows
    for begin in arrows:
        assert any(a - 1e-6 <= begin["ts"] <= b + 1e-6 and p == "dispatch" for a, b, p in bars[begin["tid"]])
    when = {int(t["dispatch"]): int(t["scheduler"]) for t in records.tasks}
    right = sum(begin["tid"] == 3000 + when[round(begin["ts"] * 1000)] for begin in arrows)
    assert right > 0.8 * len(arrows)


def test_phases(records: Records, events: list[dict[str, Any]]) -> None:
    """Section 8: tid 3000+n `Sched_<n>` with `phase(count)` and its colour, tid 4000 "Orchestrator" with
    `step(submit_idx)`."""
    colours = {"complete": "good", "dispatch": "terrible", "scan": "thread_state_running", "idle": "yellow"}
    bars = _of(events, ph="X", pid=3) + _of(events, ph="X", pid=4)
    assert len(bars) == len(records.phases)
    expected = Counter(
        (3000 + a if a >= 0 else 4000, f"{PHASES[p].removeprefix('orch_')}({c})", s / 1000)
        for _, a, p, s, _, c in records.phases.tolist()
    )
    assert Counter((e["tid"], e["name"], e["ts"]) for e in bars) == expected
    for bar in _of(bars, pid=3):
        assert bar["cat"] == "scheduler" and bar["cname"] == colours[bar["args"]["phase"]]
    names = {
        e["tid"]: e["args"]["name"] for e in _of(events, ph="M", name="thread_name") if e["pid"] in (3, 4)
    }
    assert names == {3000: "Sched_0", 3001: "Sched_1", 4000: "Orchestrator"}


def test_turns_of_a_scheduler() -> None:
    phases = table("phases", {"actor": [0, 1, 0, 0, 1, 0, 0], "phase": [0, 1, 1, 3, 1, 0, 2]})
    assert list(trace.loop_numbers(phases)) == [0, 0, 0, 0, 1, 1, 1]


def test_counters_show_every_change_once(records: Records, events: list[dict[str, Any]]) -> None:
    for which, name in enumerate(COUNTERS):
        mine = records.counters[records.counters["which"] == which]
        changes = [int(v) for n, v in enumerate(mine["value"]) if n == 0 or v != mine["value"][n - 1]]
        assert [e["args"]["value"] for e in _of(events, ph="C", name=name)] == changes


def test_critical_path_is_a_lane_without_holes(records: Records, events: list[dict[str, Any]]) -> None:
    bars = _of(events, ph="X", pid=6)
    at = 0.0
    for bar in bars:
        assert bar["ts"] == pytest.approx(at) and bar["args"]["part"] in PARTS
        at += bar["dur"]
    analysis = Analysis(records)
    assert at == pytest.approx(analysis.makespan / 1000)
    on_path = {int(records.tasks["task_id"][s.row]) for s in analysis.path}
    assert {e["args"]["taskId"] for e in _of(events, ph="X", pid=1) if e["args"].get("critical")} == on_path


def test_without_dispatch_and_finish_there_is_no_aicpu_view() -> None:
    """Section 8: pid 2 only if a task has both times."""
    records = simulate(20).records
    records.tasks["dispatch"] = -1
    events = list(trace.events(Records(records.tasks, records.edges)))
    assert {e["pid"] for e in events} == {1, 6}


def test_tasks_that_did_not_run_or_end() -> None:
    times = {
        "submit": [0, 1, 2],
        "ready": [1, 2, -1],
        "dispatch": [2, 3, -1],
        "start": [5, 9, -1],
        "end": [6, -1, -1],
        "finish": [70, -1, -1],
    }
    records = Records(table("tasks", {"task_id": [0, 1, 2], "core": [0, 1, -1], **times}),
                      table("edges", {"pred": [0, 1], "succ": [1, 2]}))  # fmt: skip
    bars = _of(list(trace.events(records)), ph="X", pid=1)
    assert [(b["args"]["taskId"], b["dur"], b["args"].get("unfinished")) for b in bars] == [
        (0, 0.001, None),
        (1, 0.061, True),
    ]
    assert not _of(list(trace.events(records)), tid=1001, ph="s")


def test_the_written_trace_is_the_same(
    records: Records, events: list[dict[str, Any]], tmp_path: Path
) -> None:
    written = json.loads(trace.write(records, tmp_path / "t.json").read_text())
    assert written["traceEvents"] == events
    assert json.loads(trace.write(Records(), tmp_path / "e.json").read_text())["traceEvents"]
    with pytest.raises(DiagnosticError, match="PTO-E0002"):
        trace.write(records, tmp_path / "no" / "t.json")


# -- the raw file ------------------------------------------------------------------------------------------


def test_raw_file(records: Records) -> None:
    """Section 8: version 2, tasks by id, times in us with 3 decimals, complete fan-out, phases by thread."""
    data = swimlane_json.to_json(records)
    assert data["version"] == 2
    assert [t["task_id"] for t in data["tasks"]] == sorted(records.tasks["task_id"].tolist())
    fanout = defaultdict(set)
    for edge in records.edges:
        fanout[int(edge["pred"])].add(int(edge["succ"]))
    for t, task in zip(data["tasks"], np.sort(records.tasks, order="task_id"), strict=True):
        assert t["fanout"] == sorted(fanout[t["task_id"]]) and t["fanout_count"] == len(t["fanout"])
        assert t["core_type"] == ("aic", "aiv")[task["core_type"]] and t["core_id"] == task["core"]
        for key, ns in (
            ("start", task["start"]),
            ("end", task["end"]),
            ("dispatch", task["dispatch"]),
            ("finish", task["finish"]),
        ):
            assert t[f"{key}_time_us"] == ns / 1000
        assert t["duration_us"] == pytest.approx(t["end_time_us"] - t["start_time_us"])
        assert t["kernel_ready_time_us"] == 0
    assert [len(rows) for rows in data["aicpu_scheduler_phases"]] == [
        int((records.phases["actor"] == n).sum()) for n in (0, 1)
    ]
    for rows in data["aicpu_scheduler_phases"]:
        assert {r["phase"] for r in rows} <= {"complete", "dispatch", "scan", "idle"}
        loops = [r["loop_iter"] for r in rows]
        assert loops == sorted(loops)
    whole = data["aicpu_orchestrator"]
    steps = data["aicpu_orchestrator_phases"]
    assert whole["submit_count"] == len(records.tasks)
    assert whole["start_time_us"] == min(s["start_time_us"] for s in steps)
    assert whole["end_time_us"] == max(s["end_time_us"] for s in steps)
    assert list(whole["phase_us"]) == [
        "sync",
        "alloc",
        "params",
        "lookup",
        "heap",
        "insert",
        "fanin",
        "finalize",
        "scope_end",
    ]
    for name, spent in whole["phase_us"].items():
        mine = [s["end_time_us"] - s["start_time_us"] for s in steps if s["phase"] == f"orch_{name}"]
        assert spent == pytest.approx(sum(mine), abs=1e-3)


def test_times_that_are_missing_are_zero_there() -> None:
    """Section 8: missing dispatch and finish are 0."""
    records = simulate(5).records
    records.tasks["dispatch"][2] = records.tasks["finish"][2] = -1
    task = swimlane_json.to_json(records)["tasks"][2]
    assert (task["dispatch_time_us"], task["finish_time_us"]) == (0, 0)
    tasks, _, _ = swimlane_tables.tables(swimlane_json.to_json(records))
    assert (tasks["dispatch"][2], tasks["finish"][2]) == (-1, -1)


def test_raw_file_and_back(records: Records, tmp_path: Path) -> None:
    path = swimlane_json.write(records, tmp_path / "perf_swimlane_20260101_000000.json")
    back = Records.load(path)
    for name in (
        "task_id",
        "func_id",
        "core",
        "core_type",
        "submit",
        "ready",
        "dispatch",
        "start",
        "end",
        "finish",
    ):
        np.testing.assert_array_equal(back.tasks[name], records.tasks[name], err_msg=name)
    pairs = {(int(e["pred"]), int(e["succ"])) for e in records.edges}
    assert {(int(e["pred"]), int(e["succ"])) for e in back.edges} == pairs
    fields = ["actor", "phase", "start", "end", "count"]
    assert sorted(back.phases[fields].tolist()) == sorted(records.phases[fields].tolist())
    assert [s.row for s in Analysis(back).path] == [s.row for s in Analysis(records).path]


def test_version_1_has_no_phases() -> None:
    task = {"task_id": 4, "func_id": 1, "core_id": 2, "core_type": "aiv", "start_time_us": 1.5, "end_time_us": 2.25,
            "duration_us": 0.75, "kernel_ready_time_us": 0.0, "fanout": [9], "fanout_count": 1}  # fmt: skip
    back = Records(*swimlane_tables.tables({"version": 1, "tasks": [task]}), names={1: "add"})
    (row,) = back.tasks
    assert (row["task_id"], row["core"], row["core_type"], row["start"], row["end"]) == (4, 2, 1, 1500, 2250)
    assert (row["dispatch"], row["finish"], row["submit"]) == (-1, -1, -1)
    assert back.label(row) == "add(4)" and not len(back.phases) and back.edges["succ"].tolist() == [9]


@pytest.mark.parametrize("data", [
    {"version": 3, "tasks": []}, {"tasks": []}, {"version": 2}, {"version": 2, "tasks": 3}, {"version": 2, "tasks": [3]},
    {"version": 2, "tasks": [], "aicpu_scheduler_phases": [[{"phase": "nap", "start_time_us": 0, "end_time_us": 1}]]},
])  # fmt: skip
def test_other_files_are_refused(data: dict[str, Any]) -> None:
    """Section 8: versions other than 1 and 2 are rejected."""
    with pytest.raises(DiagnosticError, match="PTO-E2801"):
        swimlane_tables.tables(data)
