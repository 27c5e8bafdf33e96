"""The swimlane page: what it holds, and (where node is) what its script does with it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.perf import swimlane
from pto.perf.analysis import PARTS, Analysis
from pto.perf.files import packaged
from pto.perf.records import Records
from pto.perf.tables import COUNTERS, table

from .schedule import simulate

_NODE = shutil.which("node")


@pytest.fixture(scope="module")
def records() -> Records:
    return simulate(208, 24, seed=2, width=40).records


@pytest.fixture(scope="module")
def page(records: Records) -> str:
    return swimlane.html(records, "paged attention")


def _data(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found)


def test_nothing_comes_from_elsewhere(page: str) -> None:
    assert not re.search(r"https?://|<link|<script[^>]+src|@import|url\((?!#)", page)
    assert (
        page.startswith("<!DOCTYPE html>")
        and "<title>paged attention: swimlanes, times of this host</title>" in page
    )


def test_the_script_gets_the_whole_run(records: Records, page: str) -> None:
    data = _data(page)
    for name in (
        "task_id",
        "core",
        "cluster",
        "site",
        "submit",
        "ready",
        "dispatch",
        "start",
        "end",
        "finish",
    ):
        assert data["tasks"][name] == records.tasks[name].tolist()
    assert [data["funcs"][f] for f in data["tasks"]["func"]] == [
        records.name(int(f)) for f in records.tasks["func_id"]
    ]
    links = data["links"]
    ids = records.tasks["task_id"]
    rows = sorted(
        (int(ids[p]), int(ids[s]), a, k)
        for p, s, a, k in zip(links["pred"], links["succ"], links["arg"], links["kind"], strict=True)
    )
    assert rows == sorted(records.edges.tolist())
    a = Analysis(records)
    assert [step[0] for step in data["path"]] == [s.row for s in a.path] and data["chain"] == a.chain[0]
    assert [sum(step[2:][n] for step in data["path"]) for n in range(len(PARTS))] == list(
        a.path_parts.values()
    )
    assert data["tasks"]["by"] == a.binding.tolist()
    assert len(data["phases"]["start"]) == len(records.phases) and data["stretch"] == 0
    assert len(data["cores"]) == 72 and data["blocks"] == 24
    assert data["makespan"] == a.makespan and data["end"] == records.end
    shown = {c["name"]: c for c in data["counters"]}
    assert set(shown) == {COUNTERS[n] for n in set(records.counters["which"].tolist())}
    assert shown["task ring"]["limit"] == 1024
    assert max(shown["task ring"]["value"]) == records.stats["task_window_peak"]


def test_tables(records: Records, page: str) -> None:
    a = Analysis(records)
    path = page[page.index("<h2>Critical path") : page.index("<h2>Functions")]
    rows = [int(n) for n in re.findall(r'<td class="l"><a href="#task" data-task="(\d+)">', path)]
    assert rows == [s.row for s in a.path]
    functions = page[page.index("<h2>Functions") : page.index("<h2>Longest gaps")]
    for f in a.functions:
        assert re.search(rf"<td >{f.func_id}</td>.*?{f.name}</td><td >{f.tasks}</td>", functions)
    assert page.count("data-func=") == len(a.functions)


def test_a_long_path_is_cut_in_the_table_only() -> None:
    n = swimlane.MOST_STEPS + 50
    start = np.arange(n) * 100
    tasks = table("tasks", {"task_id": range(n), "submit": [0] * n, "ready": start, "dispatch": start, "start": start,
                            "end": start + 100, "finish": start + 100})  # fmt: skip
    page = swimlane.html(Records(tasks, table("edges", {"pred": range(n - 1), "succ": range(1, n)})))
    assert "and 50 more steps" in page and len(_data(page)["path"]) == n


def test_names_cannot_leave_their_place() -> None:
    evil = "</script><script>alert(1)</script>&\"'"
    records = simulate(30).records
    records.names = dict.fromkeys(range(4), evil)
    records.sites = [evil] * 4
    records.stats[evil] = {evil: evil}
    page = swimlane.html(records, evil)
    assert page.count("<script") == 2 and page.count("</script") == 2
    assert "alert(1)<" not in page
    assert _data(page)["funcs"][0] == evil


def test_many_functions_have_colours_of_their_own() -> None:
    records = simulate(300).records
    records.tasks["func_id"] = np.arange(300) % 40
    page = swimlane.html(records)
    colours = dict(re.findall(r"--f(\d+): ([^;]+);", page))
    assert len(colours) == 40 == len(set(colours.values()))


def test_runs_without_tasks_or_that_failed() -> None:
    assert "No task ran" in swimlane.html(Records())
    assert "No task ran" in swimlane.html(Records(table("tasks", {"task_id": [1], "core": [-1]})))
    records = simulate(40).records
    records.tasks["end"][7] = records.tasks["finish"][7] = -1
    page = swimlane.html(records)
    assert "1 task did not run to the end" in page and 'class="clashes"' in page
    assert 'class="clashes"' not in swimlane.html(simulate(40).records)


def test_written_to_a_file(records: Records, page: str, tmp_path: Path) -> None:
    assert swimlane.write(records, tmp_path / "run.html", "paged attention").read_text("utf-8") == page
    with pytest.raises(DiagnosticError, match="PTO-E0002"):
        swimlane.write(records, tmp_path / "no" / "run.html")


# -- less of much ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [0, 1, 39, 40, 41, 5000])
def test_a_thin_curve_keeps_its_extremes(points: int) -> None:
    rng = np.random.default_rng(points)
    times, values = np.sort(rng.integers(0, 10**6, points)), rng.integers(0, 1000, points)
    thin_times, thin = swimlane._thin(times, values, 40)
    assert len(thin) == len(thin_times) <= max(40, min(points, 40)) and thin_times == sorted(thin_times)
    if points <= 40:
        assert thin == values.tolist()
    else:
        assert (max(thin), min(thin)) == (values.max(), values.min())
        assert (thin[0], thin[-1], thin_times[-1]) == (values[0], values[-1], times[-1])
        assert set(zip(thin_times, thin, strict=True)) <= set(
            zip(times.tolist(), values.tolist(), strict=True)
        )


def test_added_up_phases_keep_their_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swimlane, "MOST_PHASES", 400)
    rng = np.random.default_rng(3)
    n = 5000
    lengths = np.where(rng.random(n) < 0.001, 900_000, rng.integers(1, 60, n))
    start = np.cumsum(rng.integers(0, 100, n) + np.concatenate([[0], lengths[:-1]]))
    phases = table("phases", {"actor": rng.integers(-1, 2, n), "phase": rng.integers(0, 4, n), "start": start,
                              "end": start + lengths, "count": rng.integers(0, 9, n)})  # fmt: skip
    end = int(phases["end"].max())
    thin, stretch = swimlane._thin_phases(phases, end)
    assert stretch > 0 and len(thin) <= 400 + (lengths == 900_000).sum()
    for actor in (-1, 0, 1):
        for phase in range(4):
            a, b = (p[(p["actor"] == actor) & (p["phase"] == phase)] for p in (phases, thin))
            assert (a["end"] - a["start"]).sum() == (b["end"] - b["start"]).sum()
            assert a["count"].sum() == b["count"].sum()
    long = phases[lengths == 900_000]
    assert set(long["start"].tolist()) <= set(thin["start"].tolist())
    assert (np.diff(thin["actor"]) >= 0).all()


def test_twenty_thousand_tasks_make_a_page_of_a_few_megabytes() -> None:
    n = 20_000
    start = np.arange(n) * 10_000
    tasks = table("tasks", {"task_id": range(n), "core": np.arange(n) % 24, "submit": start, "ready": start + 10,
                            "dispatch": start + 100, "start": start + 300, "end": start + 9000, "finish": start + 9200})  # fmt: skip
    edges = table(
        "edges", {"pred": np.arange(2 * n) // 2 % (n - 1), "succ": np.arange(2 * n) // 2 % (n - 1) + 1}
    )
    page = swimlane.html(Records(tasks, edges, stats={"block_dim": 24}))
    assert len(page) < 5_000_000


# -- the script --------------------------------------------------------------------------------------------


def _ask(page: str, ask: str, hash: str = "") -> Any:
    scripts = "".join(packaged(name) for name in ("swimlane.js", "swimlane_input.js"))
    given = {"data": _data(page), "scripts": scripts, "hash": hash, "ask": ask}
    done = subprocess.run([str(_NODE), str(Path(__file__).with_name("swimlane_page.js"))], input=json.dumps(given),
                          capture_output=True, text=True, timeout=600)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_node = pytest.mark.skipif(not _NODE, reason="needs node")


@needs_node
def test_script_draws_lanes_in_both_orders(page: str) -> None:
    names = _ask(page, "return rows.filter(r => r.kind === 'core').map(r => r.name)")
    assert names == [
        f"{k}_{n}" for c in range(24) for k, n in (("AIC", c), ("AIV", 24 + 2 * c), ("AIV", 25 + 2 * c))
    ]
    names = _ask(page, "return rows.filter(r => r.kind === 'core').map(r => r.name)", "#group=type")
    assert names == [f"AIC_{n}" for n in range(24)] + [f"AIV_{n}" for n in range(24, 72)]
    others = _ask(page, "return rows.map(r => r.name)")
    assert {"critical path", "Orchestrator", "Sched_0", "Sched_1", "task ring"} <= set(others)


@needs_node
def test_script_finds_the_task_under_the_pointer(records: Records, page: str) -> None:
    rng = np.random.default_rng(0)
    t = records.tasks
    points = [(int(rng.choice(t["core"])), int(rng.integers(0, records.end))) for _ in range(200)]
    ask = f"""view.from = 0, view.to = 1400; // so that three pixels are three ns
      return {json.dumps(points)}.map(([core, at]) => barAt(byCore.get(core), start, end, at))"""
    for (core, at), found in zip(points, _ask(page, ask), strict=True):
        inside = [n for n in np.flatnonzero(t["core"] == core) if t["start"][n] - 3 < at < t["end"][n] + 3]
        assert found == (inside[0] if inside else -1)


@needs_node
def test_script_keeps_the_window_inside_the_run(records: Records, page: str) -> None:
    end = records.end
    asks = [(-500, 1000), (end - 10, end + 1000), (-9, end + 9), (5000, 5001), (100, 9000)]
    got = _ask(page, f"return {json.dumps(asks)}.map(([a, b]) => (show(a, b), [view.from, view.to]))")
    for (a, b), (x, y) in zip(asks, got, strict=True):
        assert 0 <= x < y <= end and y - x == min(end, max(20, b - a))
    assert got[4] == [100, 9000]


@needs_node
def test_script_searches_and_chooses(records: Records, page: str) -> None:
    found = _ask(
        page,
        "return ['softmax', '17', '#17', 'cpp:47', 'nothing'].map(w => (search.value = w, look(), matches))",
    )
    names = [records.name(int(f)) for f in records.tasks["func_id"]]
    softmax = [n for n, name in enumerate(names) if name == "softmax"]
    assert found == [softmax, [17], [17], softmax, []]
    chosen, hidden, title = _ask(
        page, "return [view.chosen, byId.detail.hidden, byId.detail.children[2].textContent]", "#task=54"
    )
    assert (chosen, hidden, title) == (54, False, f"{names[54]}(54)")


@needs_node
def test_script_draws_little_when_there_is_much() -> None:
    """Fifty thousand tasks in view cost a few thousand calls of the canvas, and hovering next to none."""
    n = 50_000
    start = np.arange(n) // 72 * 10_000
    tasks = table("tasks", {"task_id": range(n), "core": np.arange(n) % 72, "core_type": np.arange(n) % 72 >= 24,
                            "submit": start, "ready": start, "dispatch": start, "start": start, "end": start + 9000,
                            "finish": start + 9200})  # fmt: skip
    page = swimlane.html(Records(tasks, stats={"block_dim": 24}))
    first, hover = _ask(page, """const first = Object.values(calls).reduce((a, b) => a + b);
        view.hover = 5, draw(), paintAll();
        return [first, Object.values(calls).reduce((a, b) => a + b)]""")  # fmt: skip
    assert first < 5000 and hover < 200


@needs_node
def test_script_opens_pages_with_little_in_them() -> None:
    for records in (
        Records(),
        Records(table("tasks", {"task_id": [1], "core": [-1]})),
        simulate(1, 1).records,
    ):
        assert _ask(swimlane.html(records), "return rows.length") > 0
