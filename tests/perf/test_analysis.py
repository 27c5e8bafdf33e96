"""The analysis against the simulator's own account of each run, and against other formulations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pto.perf import summary
from pto.perf.analysis import PARTS, Analysis, clean
from pto.perf.records import Records
from pto.perf.tables import TIMES, table

from .schedule import Run, simulate

_RUNS = [
    pytest.param(
        dict(tasks=tasks, block_dim=blocks, seed=seed, width=width, submit_ns=submit),
        id=f"{tasks}-{blocks}-{seed}",
    )
    for seed, (tasks, blocks, width, submit) in enumerate(
        [
            (1, 1, 1, 400),
            (30, 1, 3, 50),
            (120, 2, 10, 400),
            (200, 4, 40, 30),
            (150, 8, 5, 3000),
            (300, 24, 60, 100),
        ]
    )
]


@pytest.fixture(params=_RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    return simulate(**request.param)


def test_path_follows_the_causes_of_the_simulator(run: Run) -> None:
    """The simulator noted which completion released each task; the path is that chain, back from the last."""
    a = Analysis(run.records)
    at = int(np.argmax(run.records.tasks["finish"]))
    expected = [at]
    while run.cause[at] >= 0:
        at = run.cause[at]
        expected.append(at)
    assert [step.row for step in a.path] == expected[::-1]
    assert {n: int(b) for n, b in enumerate(a.binding)} == run.cause


def test_parts_fill_the_makespan_without_a_hole(run: Run) -> None:
    a = Analysis(run.records)
    t = run.records.tasks
    at = 0
    for step in a.path:
        assert step.since == at
        assert min(step.parts()) >= 0
        at += sum(step.parts()) - step.tail
        assert at == t["end"][step.row]
        assert step.execution == t["end"][step.row] - t["start"][step.row]
        assert step.head == t["start"][step.row] - t["dispatch"][step.row]
        assert step.queue == t["dispatch"][step.row] - t["ready"][step.row]
        mine = [
            n
            for n in np.flatnonzero(t["core"] == t["core"][step.row])
            if t["start"][n] < t["start"][step.row]
        ]
        before = max(mine, key=lambda n: t["start"][n], default=-1)
        held = before >= 0 and t["end"][before] > t["ready"][step.row]
        assert step.held_by == (before if held else -1)
    assert at + a.path[-1].tail == a.makespan == t["finish"].max()
    assert sum(a.path_parts.values()) == a.makespan
    assert [bool(step.orchestrator) for step in a.path] == [True] + [False] * (len(a.path) - 1)
    assert list(a.path_parts) == list(PARTS)


def _longest(records: Records) -> int:
    """Longest chain by relaxing every edge until nothing changes."""
    spent = (records.tasks["end"] - records.tasks["start"]).astype(np.int64)
    best = spent.copy()
    pred, succ = records.rows(records.edges["pred"]), records.rows(records.edges["succ"])
    for _ in range(len(spent) + 1):
        before = best.copy()
        for p, s in zip(pred, succ, strict=True):
            best[s] = max(best[s], best[p] + spent[s])
        if (best == before).all():
            return int(best.max())
    raise AssertionError("a cycle")


def test_longest_chain(run: Run) -> None:
    a = Analysis(run.records)
    rows, length = a.chain
    spent = run.records.tasks["end"] - run.records.tasks["start"]
    assert length == _longest(run.records) == spent[rows].sum()
    edges = set(zip(run.records.edges["pred"].tolist(), run.records.edges["succ"].tolist(), strict=True))
    assert all(pair in edges for pair in pairwise(rows))
    assert length <= a.makespan and length >= spent.max()


def test_functions(run: Run) -> None:
    """Section 8: Exec = end-start, Latency = finish-dispatch, Head OH = start-dispatch, Tail OH = finish-end,
    Exec% = total Exec / total Latency."""
    a = Analysis(run.records)
    tasks = run.records.tasks.tolist()
    names = run.records.tasks.dtype.names
    rows = [dict(zip(names, task, strict=True)) for task in tasks]
    for f in a.functions:
        mine = [t for t in rows if t["func_id"] == f.func_id]
        executed = [t["end"] - t["start"] for t in mine]
        latency = [t["finish"] - t["dispatch"] for t in mine]
        assert f.tasks == len(mine) and f.total == sum(executed)
        assert (f.shortest, f.longest) == (min(executed), max(executed))
        assert f.execution == pytest.approx(sum(executed) / len(mine))
        assert f.latency == pytest.approx(sum(latency) / len(mine))
        assert f.share == pytest.approx(sum(executed) / sum(latency))
        assert f.head == pytest.approx(sum(t["start"] - t["dispatch"] for t in mine) / len(mine))
        assert f.tail == pytest.approx(sum(t["finish"] - t["end"] for t in mine) / len(mine))
        assert f.queue == pytest.approx(sum(t["dispatch"] - t["ready"] for t in mine) / len(mine))
        assert f.dependency == pytest.approx(sum(t["ready"] - t["submit"] for t in mine) / len(mine))
    assert sum(f.tasks for f in a.functions) == len(rows)
    assert a.test_time == max(t["finish"] for t in rows) - min(t["dispatch"] for t in rows)


def test_cores_and_parallelism(run: Run) -> None:
    a = Analysis(run.records)
    t = run.records.tasks
    assert [c.core for c in a.cores] == list(range(3 * run.records.block_dim))
    assert [c.core_type for c in a.cores] == [0] * run.records.block_dim + [1] * 2 * run.records.block_dim
    for c in a.cores:
        mine = t[t["core"] == c.core]
        assert (c.tasks, c.busy) == (len(mine), (mine["end"] - mine["start"]).sum())
        assert c.utilisation == pytest.approx(c.busy / a.makespan)
    levels = a.parallelism
    assert sum(levels.values()) == a.makespan
    assert sum(level * spent for level, spent in levels.items()) == a.work == (t["end"] - t["start"]).sum()
    rng = np.random.default_rng(1)
    when, running = a.profile
    for at in rng.integers(0, a.makespan, 50):  # by counting, not by adding up changes
        k = np.searchsorted(when, at, side="right") - 1
        for kind in (0, 1):
            live = ((t["start"] <= at) & (at < t["end"]) & (t["core_type"] == kind)).sum()
            assert (running[kind][k] if k >= 0 else 0) == live


def test_gaps_and_idle_times(run: Run) -> None:
    a = Analysis(run.records)
    t = run.records.tasks
    gaps = a.gaps(10**6)
    for g in gaps:
        mine = t[t["core"] == g.core]
        assert not ((mine["start"] < g.end) & (mine["end"] > g.start)).any()
        assert t["start"][g.task] == g.end and t["core"][g.task] == g.core
        assert g.start == (t["end"][g.before] if g.before >= 0 else 0)
        assert g.orchestrator + g.dependency + g.queue + g.head == g.length > 0
        assert g.reason in PARTS
    assert [g.length for g in gaps] == sorted((g.length for g in gaps), reverse=True)
    last_end = {c: int(t["end"][t["core"] == c].max()) for c in set(t["core"].tolist())}
    assert sum(g.length for g in gaps) + a.work == sum(last_end.values())
    assert a.gaps(2) == gaps[:2]
    idle = a.idle(10**6)
    assert sum(b - a_ for a_, b in idle) == a.parallelism.get(0, 0)
    for begin, end in idle:
        assert not ((t["start"] < end) & (t["end"] > begin)).any()


def test_blocks_of_one_task(run: Run) -> None:
    """More blocks that do less and end sooner change neither the path nor the longest chain."""
    tasks, edges = run.records.tasks.copy(), run.records.edges
    rng = np.random.default_rng(len(tasks))
    some = rng.random(len(tasks)) < 0.4
    tasks["block"][some] = 0
    more = []
    for block in (1, 2):
        rows = tasks[some].copy()
        cut = (rows["end"] - rows["start"]) // (2 + block)
        rows["end"] -= cut
        rows["finish"] = rows["end"] + 1
        rows["block"], rows["core"] = block, 3 * run.records.block_dim + block
        more.append(rows)
    a, b = (
        Analysis(run.records),
        Analysis(Records(np.concatenate([tasks, *more]), edges, stats=run.records.stats)),
    )
    assert not [d for d in b.records.check() if d.severity == "error"]
    assert b.path == a.path
    assert b.chain == a.chain
    assert sum(f.tasks for f in b.functions) == len(tasks) + 2 * some.sum()
    pred, succ, edge = b.records.links()
    ids, counts = np.unique(b.records.tasks["task_id"], return_counts=True)
    blocks = dict(zip(ids.tolist(), counts.tolist(), strict=True))
    assert len(edge) == sum(blocks[int(e["succ"])] for e in edges)
    assert (b.records.tasks["task_id"][pred] == edges["pred"][edge]).all()
    assert (b.records.tasks["task_id"][succ] == edges["succ"][edge]).all()
    assert len(set(zip(succ.tolist(), edge.tolist(), strict=True))) == len(edge)
    assert (pred < len(tasks)).all()  # the blocks that end last


def test_a_queue_behind_a_busy_core_is_named() -> None:
    times = {
        "submit": [0, 1],
        "ready": [1, 2],
        "dispatch": [2, 102],
        "start": [3, 103],
        "end": [100, 150],
        "finish": [101, 152],
    }
    a = Analysis(Records(table("tasks", {"task_id": [7, 8], "core": [0, 0], **times})))
    (step,) = a.path
    assert (step.row, step.queue, step.held_by) == (1, 100, 0)
    (_, gap) = sorted(a.gaps(), key=lambda g: g.start)
    assert (gap.start, gap.end, gap.queue, gap.reason) == (100, 103, 2, "queue")


def test_a_dependency_that_ended_before_the_submit_does_not_bind() -> None:
    times = {
        "submit": [0, 500],
        "ready": [1, 501],
        "dispatch": [2, 502],
        "start": [3, 503],
        "end": [100, 600],
        "finish": [101, 605],
    }
    a = Analysis(
        Records(table("tasks", {"task_id": [0, 1], **times}), table("edges", {"pred": [0], "succ": [1]}))
    )
    assert a.binding.tolist() == [-1, -1]
    assert [s.row for s in a.path] == [1] and a.path_parts["orchestrator"] == 500
    assert a.chain == ([0, 1], 97 + 97)


def test_what_the_orchestrator_did_before_the_path() -> None:
    times = {
        "submit": [500],
        "ready": [501],
        "dispatch": [502],
        "start": [503],
        "end": [600],
        "finish": [605],
    }
    phases = table("phases", {"actor": [-1, -1, -1, 0], "phase": [17, 19, 17, 1], "start": [0, 100, 400, 0],
                              "end": [100, 150, 900, 500]})  # fmt: skip
    a = Analysis(Records(table("tasks", {"task_id": [0], **times}), phases=phases))
    assert a.orchestrator_steps() == {"orch_alloc": 200, "orch_lookup": 50}
    assert a.phases[-1, "orch_alloc"] == (600, 2, 0)


def test_missing_times_are_taken_from_their_neighbours() -> None:
    records = simulate(50).records
    bare = Records(records.tasks.copy(), records.edges)
    for name in ("submit", "ready", "dispatch", "finish"):
        bare.tasks[name] = -1
    a = Analysis(bare)
    assert sum(a.path_parts.values()) == a.makespan == records.tasks["end"].max()
    assert a.path_parts["queue"] == a.path_parts["head"] == a.path_parts["tail"] == 0
    assert a.test_time == 0 and all(f.latency == 0 for f in a.functions)


def test_clocks_that_disagree_never_make_a_time_negative() -> None:
    records = simulate(200, 3, seed=5).records
    rng = np.random.default_rng(0)
    for name in TIMES:
        records.tasks[name] = np.maximum(0, records.tasks[name] + rng.integers(-3000, 3000, 200))
    records.tasks["end"] = np.maximum(records.tasks["end"], records.tasks["start"])
    t = clean(records)
    assert all((t[b] >= t[a]).all() for a, b in pairwise(TIMES))
    a = Analysis(records)
    assert all(min(step.parts()) >= 0 for step in a.path)
    assert sum(a.path_parts.values()) == a.makespan
    assert all(g.length > 0 for g in a.gaps())


def test_a_run_that_failed_midway() -> None:
    records = simulate(60).records
    late = records.tasks["start"] > np.median(records.tasks["start"])
    for name in ("ready", "dispatch", "start", "end", "finish"):
        records.tasks[name][late] = -1
    records.tasks["core"][late] = -1
    a = Analysis(records)
    assert not late[[s.row for s in a.path]].any()
    assert sum(f.tasks for f in a.functions) == (~late).sum()
    assert f"{late.sum()} tasks did not run" in summary.text(records)


def test_cycles_end() -> None:
    times = {
        "submit": [0, 0],
        "ready": [1, 1],
        "dispatch": [2, 2],
        "start": [3, 3],
        "end": [9, 8],
        "finish": [10, 9],
    }
    a = Analysis(
        Records(
            table("tasks", {"task_id": [0, 1], "core": [0, 1], **times}),
            table("edges", {"pred": [0, 1], "succ": [1, 0]}),
        )
    )
    assert {s.row for s in a.path} == {0, 1}
    assert a.chain == ([], 0)


def test_nothing() -> None:
    a = Analysis(Records())
    assert (a.makespan, a.path, a.chain, a.functions, a.gaps(), a.idle(), a.parallelism) == (
        0,
        [],
        ([], 0),
        [],
        [],
        [],
        {},
    )
    assert summary.text(Records()).startswith("0 tasks")


# -- the summary -------------------------------------------------------------------------------------------


def test_summary_has_the_table_of_the_field() -> None:
    """Section 8: columns and TOTAL row of "Task Statistics by Function", and the total test time."""
    records = simulate(208, 24).records
    lines = summary.text(records).splitlines()
    at = lines.index("Task Statistics by Function")
    for word in (
        "Func_ID",
        "Func_Name",
        "Count",
        "Avg Exec",
        "Avg Latency",
        "Exec%",
        "Avg Head OH",
        "Avg Tail OH",
    ):
        assert word in lines[at + 2]
    a = Analysis(records)
    for line, f in zip(lines[at + 3 :], a.functions, strict=False):
        cells = line.split()
        assert cells[:3] == [str(f.func_id), f.name, str(f.tasks)]
        assert cells[3:] == [f"{f.execution / 1000:.2f}", f"{f.latency / 1000:.2f}", f"{100 * f.share:.1f}%",
                             f"{f.head / 1000:.2f}", f"{f.tail / 1000:.2f}"]  # fmt: skip
    total = lines[at + 3 + len(a.functions)].split()
    assert total[:3] == ["TOTAL", "208", f"{a.work / 1000:.2f}"]
    assert f"Total Test Time: {a.test_time / 1000:.2f} us" in lines[at + 4 + len(a.functions)]


@pytest.mark.parametrize("tasks", [1, 16, 400])
def test_summary_fits_the_screen(tasks: int) -> None:
    records = simulate(tasks, 2).records
    records.names = {f: "a_rather_long_name_of_a_kernel_that_nobody_can_remember_" * 3 for f in range(4)}
    records.stats["note"] = "word " * 100
    lines = summary.text(records).splitlines()
    assert max(map(len, lines)) <= 110
    assert "Critical path" in "\n".join(lines)


@pytest.mark.parametrize(
    ("ns", "words"),
    [(0, "0 ns"), (999, "999 ns"), (1000, "1.00 us"), (1_234_567, "1.23 ms"), (2.5e9, "2.500 s")],
)
def test_durations(ns: float, words: str) -> None:
    assert summary.duration(ns) == words
