"""The page of a timeline, in a real browser: Chromium of the distribution through playwright, where both are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.perf.test_timeline import _LOOP, product, program, timed

from pto.cli.main import main
from pto.perf.timeline.export import written
from pto.perf.timeline.page import dataset, html, loaded

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def test_the_page_needs_nothing_else():
    text = html(timed(program(_LOOP.format("barrier V"))), "k")
    assert "http" not in text.replace("http-equiv", "")
    assert "virtual time of the machine" in text and "tload" in text


def test_a_file_to_compare_with(tmp_path: Path):
    timeline = timed(program(_LOOP.format("barrier V")))
    path = tmp_path / "a.json"
    path.write_bytes(written(timeline, str(path), "k"))
    assert loaded(str(path)) == json.loads(json.dumps(dataset(timeline, "k")))
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(ValueError, match="is no timeline"):
        loaded(str(tmp_path / "no.json"))


def test_pto_run_view(tmp_path: Path):
    kernel = "examples/06_loop_double_buffer.pto"
    first, page = tmp_path / "a.json", tmp_path / "b.html"
    assert main(["run", kernel, "--timeline", str(first), "--", "f32:256x128", "f32:256x128"]) == 0
    arguments = ["run", kernel, "--view", str(page), "--compare", str(first), "--machine", "910b4"]
    assert main([*arguments, "--", "f32:256x128", "f32:256x128"]) == 0
    assert "A against B" in page.read_text()


# -- in a browser ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: apt install chromium")
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    with sync_api.sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def opened(browser: Any, path: Path, text: str) -> Any:
    path.write_text(text)
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.errors = []
    page.on("pageerror", lambda e: page.errors.append(str(e)))
    page.goto(path.as_uri())
    page.wait_for_selector(":root[data-ready]")
    return page


def test_click_zoom_select_and_compare(browser: Any, tmp_path: Path):
    one, two = product(double=True), product(double=False)
    page = opened(browser, tmp_path / "t.html", html(one, "double", dataset(two, "serial")))
    state = "explorer.state()"
    # click on an instruction: its card, its line
    box = page.locator("#lanes").bounding_box()
    at = page.evaluate(
        """() => { const run = explorer.runs[0], row = explorer.rows.find(r => r.pipe === "M"), e = run.first[row.lane];
          const s = explorer.state(), w = document.getElementById("lanes").clientWidth - 136;
          const t = (run.ev.start[e] + run.ev.free[e]) / 2;
          return [128 + (t - s.from) / (s.to - s.from) * w, row.y + 20 + 6]; }"""
    )
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    assert "tmatmul" in page.locator("#detail").inner_text()
    assert "tmatmul" in page.locator("#source .lit").inner_text()
    # zoom by keyboard, and back
    whole = page.evaluate(state)
    page.keyboard.press("+")
    page.keyboard.press("+")
    near = page.evaluate(state)
    assert near["to"] - near["from"] < 0.5 * (whole["to"] - whole["from"])
    page.keyboard.press("0")
    assert page.evaluate(state)["from"] == whole["from"]
    # a range by dragging, with its totals
    assert "Whole run" in page.locator("#range").inner_text()
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 60, steps=4)
    page.mouse.up()
    found = page.locator("#range").inner_text()
    assert "Selected range" in found and "gm to l1" in found
    # the next one of the lane, the critical path, both runs, light and dark
    page.keyboard.press("n")
    page.keyboard.press("c")
    assert page.locator("#path").get_attribute("aria-pressed") == "true"
    assert "A against B" in page.locator("#compare").inner_text()
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") in ("dark", "light")
    page.fill("#search", "tload")
    assert "found" in page.locator("#found").inner_text()
    assert page.errors == []
    page.close()


def test_a_line_of_the_source_leads_to_its_instructions(browser: Any, tmp_path: Path):
    text = program(_LOOP.format("exp b b"))
    page = opened(browser, tmp_path / "t.html", html(timed(text), "k"))
    page.locator("#source .l", has_text="texp").click()
    assert "texp" in page.locator("#detail").inner_text()
    page.locator("#memory").click(position={"x": 300, "y": 20})
    assert page.errors == []
    page.close()


def test_counters_equal_what_the_timeline_says(browser: Any, tmp_path: Path):
    timeline = product(double=True)
    page = opened(browser, tmp_path / "t.html", html(timeline, "double"))
    shares = page.evaluate(
        """() => Object.fromEntries(explorer.rows.filter(r => !r.head).map(r =>
          [r.pipe, explorer.busyUntil(r.run, r.lane, 1e12) / 8]))"""
    )
    for use in timeline.pipes:
        if use.pipe in shares and use.pipe != "S":
            assert shares[use.pipe] == pytest.approx(use.busy, rel=1e-3)
    page.close()
