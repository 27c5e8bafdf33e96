"""The view of tasks: the content of its page, and its behaviour in a real browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.perf.browser import browser, opened

from pto.diag import DiagnosticError
from pto.perf.analysis import PARTS, Analysis
from pto.perf.explorer import tasks
from pto.perf.records import Records
from pto.perf.tables import COUNTERS, table

from .schedule import simulate

__all__ = ["browser"]  # a fixture


@pytest.fixture(scope="module")
def records() -> Records:
    return simulate(208, 24, seed=2, width=40).records


@pytest.fixture(scope="module")
def page(records: Records) -> str:
    return tasks.html(records, "paged attention")


def _data(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    (run,) = json.loads(found)
    return run


def _columns(packed: dict[str, str]) -> dict[str, list[int]]:
    return {
        name: np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4")).tolist()
        for name, text in packed.items()
    }


def test_nothing_comes_from_elsewhere(page: str) -> None:
    assert not re.search(r"https?://|<link|<script[^>]+src|@import|url\((?!#)", page)
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>paged attention: swimlanes, times of this host</title>" in page
    assert '<span class="soft">times of this host</span></h1>' in page


def test_the_scripts_get_the_whole_run(records: Records, page: str) -> None:
    data = _data(page)
    told, events, links = (_columns(data[name]) for name in ("tasks", "events", "links"))
    assert data["tick"] == 1  # ns
    for name in ("cluster", "site", "submit", "ready", "dispatch", "start", "end", "finish"):
        assert told[name] == records.tasks[name].tolist()
    assert data["ids"] == records.tasks["task_id"].tolist()
    for row, e in enumerate(told["event"]):
        assert (events["task"][e], events["start"][e], events["done"][e]) == (row, *(
            int(records.tasks[name][row]) for name in ("start", "end")
        ))  # fmt: skip
        assert data["sites"][events["site"][e]][0] == records.name(int(records.tasks["func_id"][row]))
        assert data["lanes"][events["lane"][e]]["pipe"].endswith(f"_{records.tasks['core'][row]}")
    ids = records.tasks["task_id"]
    rows = sorted(
        (int(ids[p]), int(ids[s]), a, k)
        for p, s, a, k in zip(*(links[n] for n in ("pred", "succ", "arg", "kind")), strict=True)
    )
    assert rows == sorted(records.edges.tolist())
    a = Analysis(records)
    assert [events["task"][e] for e in events["path"]] == [s.row for s in a.path]
    assert [events["task"][e] for e in data["chain"]] == a.chain[0]
    path = next(n for n, lane in enumerate(data["lanes"]) if lane["pipe"] == "critical path")
    spent = dict.fromkeys(PARTS, 0)
    for e, lane in enumerate(events["lane"]):
        if lane == path:
            spent[data["sites"][events["site"][e]][0]] += events["done"][e] - events["start"][e]
    assert spent == a.path_parts
    assert told["by"] == a.binding.tolist()
    own = [lane for lane in data["lanes"] if lane["core"] < 0]
    assert [lane["pipe"] for lane in own] == ["critical path", "Orchestrator", "Sched_0", "Sched_1"]
    assert events["task"].count(-1) == len(records.phases) + sum(1 for s in a.path for p in s.parts() if p)
    assert data["stretch"] == 0 and len(data["cores"]) == 72 and data["total"] == records.end / 1000


def test_counters_equal_cards(records: Records, page: str) -> None:
    data = _data(page)
    shown = {c["name"]: c for c in data["counters"]}
    assert set(shown) == {COUNTERS[n] for n in set(records.counters["which"].tolist())}
    assert shown["task ring"]["limit"] == 1024
    assert shown["task ring"]["peak"] == records.stats["task_window_peak"]
    assert str(shown["task ring"]["peak"]) in [card[0] for card in data["cards"] if card[4] == "Task ring"]
    # events of the engine between two samples count in both
    records = simulate(40, seed=3).records
    records.stats["task_window_peak"] = 99
    data = _data(tasks.html(records))
    assert ["99"] == [card[0] for card in data["cards"] if card[4] == "Task ring"]
    assert {c["name"]: c for c in data["counters"]}["task ring"]["peak"] == 99


def test_tables(records: Records, page: str) -> None:
    a = Analysis(records)
    path = page[page.index("<h2>Critical path") : page.index("<h2>Functions")]
    rows = [int(n) for n in re.findall(r'<td class="l"><a href="#task" data-task="(\d+)">', path)]
    assert rows == [s.row for s in a.path]
    functions = page[page.index("<h2>Functions") : page.index("<h2>Longest gaps")]
    for f in a.functions:
        assert re.search(rf"<td >{f.func_id}</td>.*?{f.name}</td><td >{f.tasks}</td>", functions)
    assert sorted(f[1] for f in _data(page)["functions"]) == sorted(f.name for f in a.functions)


def test_a_long_path_is_cut_in_the_table_only() -> None:
    n = tasks.MOST_STEPS + 50
    start = np.arange(n) * 100
    rows = table("tasks", {"task_id": range(n), "submit": [0] * n, "ready": start, "dispatch": start, "start": start,
                            "end": start + 100, "finish": start + 100})  # fmt: skip
    page = tasks.html(Records(rows, table("edges", {"pred": range(n - 1), "succ": range(1, n)})))
    assert "and 50 more steps" in page and len(_columns(_data(page)["events"])["path"]) == n


def test_many_functions_have_colours_of_their_own() -> None:
    records = simulate(300).records
    records.tasks["func_id"] = np.arange(300) % 40
    page = tasks.html(records)
    colours = dict(re.findall(r"--f(\d+): ([^;]+);", page))
    assert len(colours) == 40 == len(set(colours.values()))


def test_runs_without_tasks_or_that_failed() -> None:
    assert "No task ran" in tasks.html(Records())
    assert "No task ran" in tasks.html(Records(table("tasks", {"task_id": [1], "core": [-1]})))
    records = simulate(40).records
    records.tasks["end"][7] = records.tasks["finish"][7] = -1
    assert _data(tasks.html(records))["problems"][-1] == "1 task did not run to the end"
    assert _data(tasks.html(simulate(40).records))["problems"] == []


def test_written_to_a_file(records: Records, page: str, tmp_path: Path) -> None:
    assert tasks.write(records, tmp_path / "run.html", "paged attention").read_text("utf-8") == page
    with pytest.raises(DiagnosticError, match="PTO-E0002"):
        tasks.write(records, tmp_path / "no" / "run.html")


# -- less of much ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [0, 1, 39, 40, 41, 5000])
def test_a_thin_curve_keeps_its_extremes(points: int) -> None:
    rng = np.random.default_rng(points)
    times, values = np.sort(rng.integers(0, 10**6, points)), rng.integers(0, 1000, points)
    thin_times, thin = tasks._thin(times, values, 40)
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
    monkeypatch.setattr(tasks, "MOST_PHASES", 400)
    rng = np.random.default_rng(3)
    n = 5000
    lengths = np.where(rng.random(n) < 0.001, 900_000, rng.integers(1, 60, n))
    start = np.cumsum(rng.integers(0, 100, n) + np.concatenate([[0], lengths[:-1]]))
    phases = table("phases", {"actor": rng.integers(-1, 2, n), "phase": rng.integers(0, 4, n), "start": start,
                              "end": start + lengths, "count": rng.integers(0, 9, n)})  # fmt: skip
    end = int(phases["end"].max())
    thin, stretch = tasks._thin_phases(phases, end)
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
    rows = table("tasks", {"task_id": range(n), "core": np.arange(n) % 24, "submit": start, "ready": start + 10,
                           "dispatch": start + 100, "start": start + 300, "end": start + 9000, "finish": start + 9200})  # fmt: skip
    edges = table(
        "edges", {"pred": np.arange(2 * n) // 2 % (n - 1), "succ": np.arange(2 * n) // 2 % (n - 1) + 1}
    )
    page = tasks.html(Records(rows, edges, stats={"block_dim": 24}))
    assert len(page) < 5_000_000


# -- in a browser ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(browser: Any, page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = opened(browser, tmp_path_factory.mktemp("page") / "run.html", page)
    yield found
    assert found.errors == []
    found.close()


def _names(shown: Any) -> list[str]:
    return shown.evaluate("explorer.rows.filter(r => r.lane !== undefined && r.core >= 0).map(r => r.pipe)")


def test_lanes_in_both_orders(shown: Any) -> None:
    by_cluster = [
        f"{k}_{n}" for c in range(24) for k, n in (("AIC", c), ("AIV", 24 + 2 * c), ("AIV", 25 + 2 * c))
    ]
    assert _names(shown) == by_cluster
    shown.locator("[data-group=type]").click()
    assert _names(shown) == [f"AIC_{n}" for n in range(24)] + [f"AIV_{n}" for n in range(24, 72)]
    shown.locator("[data-group=cluster]").click()
    shown.locator("[data-mark=chain]").click()
    assert not shown.evaluate("explorer.rows.some(r => r.pipe === 'critical path')")
    shown.locator("[data-mark=path]").click()
    curves = shown.evaluate("explorer.rows.filter(r => r.curve).map(r => r.curve.name)")
    assert {"task ring", "heap bytes"} <= set(curves)


def test_lanes_stand_above_the_fold_and_the_legend_with_them(shown: Any) -> None:
    for what in ("#key", "#over", "#lanes"):
        box = shown.locator(what).bounding_box()
        assert box["y"] + min(box["height"], 200) < 900
    assert shown.locator("#time #key .func").count() == 4


def test_click_a_task_and_follow_what_it_waits_for(records: Records, shown: Any) -> None:
    n = 54
    x, y = shown.evaluate(
        """n => { const run = explorer.runs[0], e = run.t.event[n]; explorer.pick(run, e, true);
          document.querySelector("#detail .close").click();
          return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
            const box = document.getElementById("lanes").getBoundingClientRect(), row = explorer.rows.find(r => r.lane === run.ev.lane[e]);
            done([box.left + explorer.px((run.ev.start[e] + run.ev.done[e]) / 2, box.width), box.top + 20 + row.y + row.h / 2 - document.getElementById("scroll").scrollTop]);
          }))) }""",
        n,
    )
    shown.mouse.click(x, y)
    card = shown.locator("#detail")
    assert card.locator("h3").inner_text() == f"{records.name(int(records.tasks['func_id'][n]))}({n})"
    assert "execution" in card.inner_text() and "Waits for" in card.inner_text()
    # the tip is right of the pointer: the card stays free
    tip = shown.locator("#tip").bounding_box()
    pinned = card.bounding_box()
    assert tip is None or tip["x"] >= pinned["x"] + pinned["width"]
    pred = card.locator("ul a").first
    name = pred.inner_text()
    pred.click()
    assert card.locator("h3").inner_text() == name
    shown.keyboard.press("Escape")
    assert not card.is_visible()
    shown.locator("#tables a[data-task]").first.click()
    assert card.is_visible()
    shown.keyboard.press("0")


def test_search_and_functions(records: Records, shown: Any) -> None:
    softmax = sum(records.name(int(f)) == "softmax" for f in records.tasks["func_id"])
    for words, count in (("softmax", softmax), ("17", 1), ("#17", 1), ("cpp:47", softmax), ("nothing", 0)):
        shown.fill("#search", words)
        assert shown.locator("#found").inner_text() == f"{count} found"
    shown.fill("#search", "")
    shown.locator("#key [data-func='0']").click()
    assert shown.locator("#key [data-func='0']").get_attribute("aria-pressed") == "true"
    shown.locator("#key [data-func='0']").click()


def test_addresses_open_at_a_place(browser: Any, page: str, tmp_path: Path) -> None:
    found = opened(browser, tmp_path / "run.html", page, "#task=54&group=type&theme=dark")
    assert "(54)" in found.locator("#detail h3").inner_text()
    assert found.evaluate("document.documentElement.dataset.theme") == "dark"
    assert _names(found)[1] == "AIC_1" and found.errors == []
    found.close()


def test_pages_with_little_in_them(browser: Any, tmp_path: Path) -> None:
    for n, records in enumerate(
        (Records(), Records(table("tasks", {"task_id": [1], "core": [-1]})), simulate(1, 1).records)
    ):
        found = opened(browser, tmp_path / f"{n}.html", tasks.html(records))
        assert found.errors == []
        found.close()


def test_many_tasks_are_drawn_in_few_strokes(browser: Any, tmp_path: Path) -> None:
    """Fifty thousand tasks in view cost a few thousand calls of the canvas."""
    n = 50_000
    start = np.arange(n) // 72 * 10_000
    records = Records(
        table("tasks", {"task_id": range(n), "core": np.arange(n) % 72, "core_type": np.arange(n) % 72 >= 24,
                        "submit": start, "ready": start, "dispatch": start, "start": start, "end": start + 9000,
                        "finish": start + 9200}), stats={"block_dim": 24})  # fmt: skip
    found = opened(browser, tmp_path / "run.html", tasks.html(records))
    calls = found.evaluate(
        """() => new Promise(done => { let calls = 0; const draw = CanvasRenderingContext2D.prototype.fillRect;
          CanvasRenderingContext2D.prototype.fillRect = function (...a) { calls++; draw.apply(this, a); };
          explorer.zoom(1.01), requestAnimationFrame(() => requestAnimationFrame(() => done(calls))); })"""
    )
    assert calls < 5000
    found.close()
