"""The explorer of a program: its stages, its launch, its server and its page in a browser."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.each import each
from tests.perf.browser import browser, opened

from pto.cli import explore as cli
from pto.diag import Source
from pto.explore.launch import LaunchPlan, launch
from pto.explore.page import page, staged
from pto.explore.server import _MOST, PageServer
from pto.explore.stages import Stages, stages

__all__ = ["browser"]  # a fixture

ROOT = Path(__file__).parents[2]
VEC_ADD = ROOT / "examples/01_vec_add.pto"


def seen(path: Path) -> Stages:
    return stages(Source(str(path), path.read_text(encoding="utf-8")))


def placed(found: Stages, title: str, word: str) -> list[int]:
    """The lines of the source of the lines of a sheet with a word."""
    sheet = next(s for s in found.sheets if s.title == title)
    return [p for line, p in zip(sheet.text.split("\n"), sheet.places, strict=True) if word in line]


def test_stages() -> None:
    """A pass that changes something has a sheet with its new lines; every line has its line of the source."""
    found = seen(VEC_ADD)
    assert [s.title for s in found.sheets] == [
        "source",
        "infer-layout",
        "plan-memory",
        "insert-sync",
        "C++",
        "image",
    ]
    assert placed(found, "insert-sync", "pto.tadd ") == placed(found, "C++", "TADD(") == [28]
    assert placed(found, "image", "    tadd ") == [28]
    sync = found.sheets[3]
    new = [sync.text.split("\n")[n].split()[0] for n in sync.new]
    assert {w.partition("[")[0] for w in new} == {"pto.set_flag", "pto.wait_flag", "pto.barrier"}
    assert placed(found, "C++", "TASSIGN(tc, ") == [24] and "without effect: kernel-kind" in sync.note


def test_all_examples() -> None:
    def check(path: Path) -> None:
        found = seen(path)
        for sheet in found.sheets:
            data = sheet.data()
            assert "\n".join("".join(words[1::2]) for words in data["lines"]) == sheet.text
            assert len(sheet.places) == len(data["lines"])
        assert (found.done is None) == any(d.severity == "error" for d in found.findings)
        assert found.done is None or [s.title for s in found.sheets][-2:] == ["C++", "image"]

    each(check, sorted((ROOT / "examples").rglob("*.pto")))


def test_launches() -> None:
    """Arrays have the size of their views; a program that leaves sizes open says so, and shows its plan."""
    race = ROOT / "examples/12_race.pto"
    source = Source("k.pto", race.read_text())
    done = stages(source).done
    assert done is not None
    view = launch(source, done, LaunchPlan())
    assert (
        [d.code for d in view.findings] == ["PTO-E2201"] and "on arrays of zeros" in view.note and view.page
    )
    source = Source(
        "k.pto",
        VEC_ADD.read_text()
        .replace("%c64, %c128]", "%n, %c128]", 1)
        .replace("%c: !pto.ptr<f32>", "%c: !pto.ptr<f32>, %n: index"),
    )
    done = stages(source).done
    assert done is not None
    view = launch(source, done, LaunchPlan())
    assert "no view says how large %a is" in view.note and "Memory" in view.page


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "k.html"
    assert cli.main([str(VEC_ADD), "-o", str(out), "--", "f32:64x128", "f32:64x128", "f32:64x128"]) == 0
    text = out.read_text(encoding="utf-8")
    assert "connect-src" not in text and "<textarea" not in text and "TADD(" in text
    assert (
        cli.main([str(tmp_path / "no.pto"), "-o", str(out)]) == 1 and "PTO-E0001" in capsys.readouterr().err
    )
    assert (
        cli.main([str(VEC_ADD), "-o", str(out), "--", "f99:4"]) == 1
        and "PTO-E2010" in capsys.readouterr().err
    )


# -- the server --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address that `pto explore` prints. An interrupt ends it."""
    with subprocess.Popen(
        [sys.executable, "-m", "pto.cli.main", "explore", str(VEC_ADD)], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        yield server.stderr.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(300) == 130


def asked(url: str, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
    address = urlsplit(url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
    try:
        connection.request(method, path, body.encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_edits_over_http(served: str) -> None:
    path = urlsplit(served).path
    status, text = asked(served, "GET", path)
    assert status == 200 and "connect-src 'self'" in text and "<textarea" in text
    edited = VEC_ADD.read_text().replace("pto.tadd ", "pto.tsub ")
    found = json.loads(asked(served, "POST", f"{path}stages", edited)[1])
    assert any("TSUB" in words for words in next(s for s in found["sheets"] if s["title"] == "C++")["lines"])
    assert "us on" in json.loads(asked(served, "POST", f"{path}launch", edited)[1])["note"]
    found = json.loads(asked(served, "POST", f"{path}stages", edited.replace("pto.tsub", "pto.tsbu"))[1])
    assert [(f["code"], f["line"]) for f in found["findings"]] == [("PTO-E0108", 28)] and len(
        found["sheets"]
    ) == 1


def test_strangers(served: str) -> None:
    """Only the page itself gets an answer: with the token, by the address, from no other site."""
    address = urlsplit(served)
    path = address.path
    for method, where, headers, status in (
        ("GET", "/", {}, 403), ("GET", f"/x{path[1:]}", {}, 403), ("POST", "/stages", {}, 403),
        ("GET", path, {"Host": f"localhost.example:{address.port}"}, 403), ("POST", f"{path}stages", {"Host": "a"}, 403),
        ("POST", f"{path}stages", {"Origin": "http://example.com"}, 403), ("POST", f"{path}stages", {"Origin": "null"}, 403),
        ("GET", f"{path}etc/passwd", {}, 404), ("POST", f"{path}other", {}, 404), ("GET", "/é", {}, 403),
        ("POST", f"{path}stages", {"Content-Length": str(_MOST + 1)}, 413), ("POST", f"{path}stages", {"Content-Length": "-1"}, 413),
    ):  # fmt: skip
        found = asked(served, method, where.replace("é", "%C3%A9"), **headers)
        assert found[0] == status and address.path[1:-1] not in found[1], (method, where, headers, found)
    assert asked(served, "GET", path)[0] == 200


def test_a_bug_does_not_end_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    import threading

    def fails(text: str) -> Any:
        raise AssertionError(text)

    with PageServer(0, lambda: "page", {"stages": fails}) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        path = urlsplit(server.url).path
        status, text = asked(server.url, "POST", f"{path}stages", "x")
        assert status == 500 and "this is a bug of pto: AssertionError: x" in text
        assert asked(server.url, "GET", path) == (200, "page")
        server.shutdown()
        thread.join()
    assert "AssertionError" in capsys.readouterr().err


# -- in a browser ------------------------------------------------------------------------------------------


def test_lines_are_linked(browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "k.html"
    assert cli.main([str(VEC_ADD), "-o", str(out)]) == 0
    tab = opened(browser, out)
    tab.locator("#right .l", has_text="TADD(").click()
    assert tab.locator("#left .l.lit").inner_text().startswith("28\n")
    inner = tab.frame_locator("#launch")
    inner.locator(":root[data-ready][data-inside]").wait_for()
    tab.get_by_role("tab", name="image").click()
    tab.locator("#left .l", has_text="pto.tload ins(%pb").click()
    assert "tload" in {r.split("\n")[1].split()[0] for r in tab.locator("#right .l.lit").all_inner_texts()}
    inner.locator("#detail:not([hidden])", has_text="line 27").wait_for()
    assert tab.errors == []


def test_an_edit_is_shown(browser: Any, served: str) -> None:
    tab = browser.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda e: errors.append(str(e)))
    tab.goto(served)
    tab.wait_for_selector(":root[data-ready]")
    text = tab.locator("#edit").input_value()
    assert text == VEC_ADD.read_text()
    tab.locator("#edit").fill(text.replace("pto.tadd ", "pto.tmul "))
    tab.locator("#right .l", has_text="TMUL(tc, ta, tb)").wait_for()
    tab.locator("#edit").fill(text.replace("pto.tadd ", "pto.nothing "))
    tab.locator(".finding.error", has_text="PTO-E0108").wait_for()
    assert tab.locator("#left .l.error").inner_text().startswith("28\n")
    assert errors == []


def test_an_edit_taken_back_leaves_the_picture(browser: Any, served: str) -> None:
    """Only changed lines are drawn: after edits that add, change and remove lines, the page looks as before."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.goto(served)
    tab.wait_for_selector(":root[data-ready]")
    text = VEC_ADD.read_text()

    def picture() -> list[bytes]:
        tab.evaluate(
            "for (const p of document.querySelectorAll('.pane')) p.scrollTop = 0; document.activeElement.blur()"
        )
        boxes = [tab.locator(f"#{pane}").bounding_box() for pane in ("left", "right")]
        return [  # without the round corners of the panes
            tab.screenshot(
                clip={
                    **b,
                    "x": b["x"] + 9,
                    "y": b["y"] + 9,
                    "width": b["width"] - 18,
                    "height": b["height"] - 18,
                }
            )
            for b in boxes
        ]

    before = picture()
    edits = [
        text.replace("pto.tadd ", "pto.tmul "),
        "// first\n" + text,
        text.replace("pto.tadd ", "pto.no "),
    ]
    for edit, seen in zip(edits, ("TMUL(tc", "TADD(tc", ""), strict=True):
        tab.locator("#edit").fill(edit)
        tab.locator("#right .l" if seen else ".finding.error", has_text=seen).wait_for()
        tab.wait_for_function(
            "lines => document.querySelectorAll('#left .l').length === lines", arg=edit.count("\n") + 1
        )
    tab.locator("#edit").fill(text)
    tab.wait_for_function("() => !document.querySelector('.finding.error, #right.stale')")
    tab.locator("#right .l", has_text="TADD(tc").wait_for()
    assert picture() == before


def test_the_page_of_a_program_with_errors(browser: Any, tmp_path: Path) -> None:
    found = seen(ROOT / "examples/10_wrong.pto")
    data = staged(found, found.sheets[0].title)
    tab = opened(browser, tmp_path / "k.html", page("k.pto", data))
    assert tab.locator(".finding.error", has_text="SA-0353").count() == 1
    assert tab.locator("#about").inner_text() == "the program has errors"
    assert tab.errors == []
