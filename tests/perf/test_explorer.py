"""The explorer: the content of its pages, and their behaviour in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.perf.browser import browser, opened
from tests.perf.test_timeline import _LOOP, product, program, timed

from pto.cli.main import main
from pto.perf.explorer.kernel import dataset, html
from pto.perf.explorer.page import loaded
from pto.perf.timeline.export import written

__all__ = ["browser"]  # a fixture


def test_the_page_needs_nothing_else():
    text = html(timed(program(_LOOP.format("barrier V"))), "k")
    assert "http:" not in text and "https:" not in text
    assert "virtual time of the machine" in text and "tload" in text


def test_a_file_to_compare_with(tmp_path: Path):
    timeline = timed(program(_LOOP.format("barrier V")))
    path = tmp_path / "a.json"
    path.write_bytes(written(timeline, str(path), "k"))
    assert loaded(str(path)) == json.loads(json.dumps(dataset(timeline, "k")))
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(ValueError, match="expected a timeline"):
        loaded(str(tmp_path / "no.json"))


def test_pto_run_view(tmp_path: Path):
    kernel = "examples/06_loop_double_buffer.pto"
    first, page = tmp_path / "a.json", tmp_path / "b.html"
    assert main(["run", kernel, "--timeline", str(first), "--", "f32:256x128", "f32:256x128"]) == 0
    arguments = ["run", kernel, "--view", str(page), "--compare", str(first), "--machine", "910b4"]
    assert main([*arguments, "--", "f32:256x128", "f32:256x128"]) == 0
    assert "A against B" in page.read_text()


# -- in a browser ------------------------------------------------------------------------------------------


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
    said = page.locator("#detail").inner_text()
    assert "texp" in said and "A dry run has no values" in said
    page.locator("#memory").click(position={"x": 300, "y": 20})
    assert page.errors == []
    page.close()


def test_counters_equal_what_the_timeline_says(browser: Any, tmp_path: Path):
    timeline = product(double=True)
    page = opened(browser, tmp_path / "t.html", html(timeline, "double"))
    shares = page.evaluate(
        """() => Object.fromEntries(explorer.rows.filter(r => !r.head).map(r =>
          [r.pipe, explorer.us(explorer.busyUntil(r.run, r.lane, 1e12))]))"""
    )
    for use in timeline.pipes:
        if use.pipe in shares and use.pipe != "S":
            assert shares[use.pipe] == pytest.approx(timeline.machine.us(use.busy), rel=1e-3)
    page.close()


def kernel_view(path: Path, *options: str) -> None:
    """Write the view of a kernel with a known result: y = x + x, by rows; x[3, 5] is NaN."""
    x = np.arange(1024 * 128, dtype=np.float32).reshape(1024, 128)
    x[3, 5] = np.nan
    np.save(path.with_name("x.npy"), x)
    arguments = ["run", "examples/18_waits.pto", "-q", "--view", str(path), *options, "--"]
    assert main([*arguments, f"@{path.with_name('x.npy')}", "f32:1024x128"]) == 0


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("view") / "v.html"
    kernel_view(path)
    return path


def test_values_as_an_execution_saw_them(browser: Any, viewed: Path):
    page = opened(browser, viewed)
    page.evaluate("""() => { const run = explorer.runs[0], lane = run.lanes.findIndex(l => l.pipe === "V");
        explorer.pick(run, run.first[lane] + 1) }""")  # the second tadd: rows 64 to 127
    card = page.locator("#detail")
    page.wait_for_selector(".cells table")
    assert "8192 to 16383, mean 12287.5; no NaN" in card.inner_text()
    assert page.locator(".cells td").all_inner_texts()[:2] == ["8192", "8193"]
    card.locator(".operands button", has_text="%out").click()
    page.wait_for_function("document.querySelector('.cells td')?.textContent === '16384'")
    assert "when it was through" in card.inner_text()
    # elements where the pointer is
    box = page.locator(".heat").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2)
    assert page.locator(".cells td").all_inner_texts()[-1] == "32766"
    page.keyboard.press("p")  # the first one has the NaN; the operand stays open
    page.wait_for_selector(".cells .bad")  # where it is
    assert "1 NaN" in card.inner_text() and page.locator(".cells .bad").inner_text() == "NaN"
    assert "matrices are kept whole" in card.inner_text()
    assert page.errors == []
    page.close()


def test_values_beyond_the_budget_are_counted(browser: Any, tmp_path: Path):
    path = tmp_path / "v.html"
    kernel_view(path, "--values", "70K")
    page = opened(browser, path)
    kept, spent = page.evaluate("[explorer.runs[0].values.whole, explorer.runs[0].values.spent]")
    assert 0 < kept < page.evaluate("explorer.runs[0].values.snapshots.length") and spent <= 70 << 10
    page.evaluate("""() => { const run = explorer.runs[0], lane = run.lanes.findIndex(l => l.pipe === "V");
        explorer.pick(run, run.first[lane + 1] - 1) }""")
    said = page.locator("#detail").inner_text()
    assert "Its elements were not kept" in said and "first 122880, 122881" in said and "--values SIZE" in said
    page.close()


def test_the_cpp_of_an_instruction(browser: Any, viewed: Path):
    page = opened(browser, viewed)
    page.locator("#tabs button", has_text="C++").click()
    page.locator("#source .l.hot", has_text="TADD(").click()
    assert page.locator("#detail h3").inner_text() == "tadd"
    assert "TADD(" in page.locator(".sheet:not([hidden]) .lit").last.inner_text()
    page.locator("#tabs button", has_text=".pto").click()
    assert "pto.tadd" in page.locator(".sheet:not([hidden]) .lit").inner_text()
    assert page.errors == []
    page.close()


def test_memory_on_the_axis_of_time(browser: Any, tmp_path: Path):
    path = tmp_path / "m.html"
    arguments = ["run", "examples/15_overlap.pto", "-q", "--memory-map", str(path), "--"]
    assert main([*arguments, "f32:64x128", "f32:64x128", "f32:64x128"]) == 0
    page = opened(browser, path)
    assert page.evaluate("document.body.classList.contains('memory')")
    assert "%ta and %tb share bytes 16384..32768" in page.locator(".clashes").inner_text()
    assert "UB block 0 42%" in page.locator("#cards").inner_text()
    # a tile leads to who made it and to its line, an instruction to its tiles
    at = page.evaluate("""() => { const {s, scale, top} = explorer.memoryRows()[0], l = s.lives.find(l => l.name === "tc");
        const box = document.getElementById("memory").getBoundingClientRect();
        return [box.left + explorer.px(l.from[0], box.width) + 20, box.top + top + scale.y((l.low + l.high) / 2)] }""")
    page.mouse.click(*at)
    assert "%tc" in page.locator("#detail h3").inner_text()
    assert "pto.tadd" in page.locator(".sheet:not([hidden]) .lit").inner_text()
    page.locator("#detail a", has_text="tadd of line").click()
    assert page.locator("#detail h3").inner_text() == "tadd"
    page.locator("#detail a", has_text="%tb").click()
    assert "overlaps" in page.locator("#detail").inner_text()
    for scale in ("used", "full"):
        page.locator(f"[data-scale={scale}]").click()
    page.keyboard.press("m")
    assert not page.evaluate("document.body.classList.contains('memory')")
    assert page.errors == []
    page.close()


def test_kernels_with_little_to_show(browser: Any, tmp_path: Path):
    """One that does nothing, one of vector registers, one of two kinds of cores, ranks, one that failed."""
    nothing = tmp_path / "nothing.pto"
    nothing.write_text(
        'module attributes {pto.target_arch = "a3"} {\nfunc.func @k() attributes {pto.entry} {\nreturn\n}\n}\n'
    )
    ranks = ["--ranks", "2", "--", "window:i32:1x8", "window:i32:1", "context", "i32:1x8"]
    tiles = ["f32:64x128"] * 3
    cases = [
        (nothing, ["--"], 0), ("examples/08_vector_micro.pto", ["--", *["f32:100"] * 3, "100"], 0),
        ("examples/09_fifo_push_pop.pto", ["--", "f16:16x16", "f16:16x16", "f32:16x16"], 0),
        ("examples/ranks/01_hello.pto", ranks, 0), ("examples/12_race.pto", ["--sanitize", "race", "--", *tiles], 1),
    ]  # fmt: skip
    path = tmp_path / "v.html"
    for file, options, status in cases:
        option = "--memory-map" if status else "--view"
        arguments = ["run", str(file), "-q", "--engine", "reference", option, str(path)]
        assert main([*arguments, *options]) == status
        page = opened(browser, path)
        count = page.evaluate("explorer.runs[0].ev.lane.length")
        for e in range(count):
            page.evaluate("e => explorer.pick(explorer.runs[0], e, true)", e)
        for key in "mcn+0":
            page.keyboard.press(key)
        page.wait_for_timeout(50)
        assert page.errors == [], file
        page.close()
