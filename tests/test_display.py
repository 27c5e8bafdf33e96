"""Texts of public objects in `print` and notebooks."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.perf.browser import browser, opened
from tests.perf.schedule import simulate

import pto
import pto.language as pl
from pto import runtime
from pto.driver import Options, lowered

__all__ = ["browser"]  # a fixture

ROOT = Path(__file__).parents[1]
NOTEBOOK = """\
import numpy as np, pto
pto.parse("examples/12_race.pto")
---
x = np.ones((64, 128), np.float32)
result = pto.kernel("examples/12_race.pto").run(x, x, np.zeros_like(x), sanitize="all", timeline=True)
result
---
result.diagnostics[0]
"""


def objects() -> dict[str, Any]:
    """Public objects by name."""
    module = pto.parse(ROOT / "examples/01_vec_add.pto")
    x = np.ones((64, 128), np.float32)
    arrays = (x, x, np.zeros_like(x))
    result = pto.kernel(module).run(*arrays, timeline=True, memory_map=True, shadow="f64")
    racy = pto.kernel(ROOT / "examples/12_race.pto").run(*arrays, sanitize="all")
    done = lowered(module, None, Options(insert_sync=True))

    @pl.jit
    def double(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x + x

    run = runtime.run(lambda rt: None, record=True)
    found = {
        "module": module, "lowered": done, "plan": done.plan, "kernel": pto.kernel(module), "result": result,
        "timeline": result.timeline, "map": result.memory_map, "shadow": result.shadow, "racy": racy,
        "diagnostic": racy.diagnostics[0], "records": simulate(20).records, "run": run, "function": double,
        "watcher": pto.ranks(2), "row": pto.isa.row("tadd"),
    }  # fmt: skip
    try:
        found["proof"] = pto.prove(module)
    except pto.DiagnosticError as e:
        assert "PTO-E0006" in str(e)  # no solver
    return found


class Elements(HTMLParser):
    """The names of elements of a text, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        assert tag != "iframe" or dict(attrs)["sandbox"] == "allow-scripts"

    def handle_data(self, data: str) -> None:
        self.words += data


def test_texts_and_html() -> None:
    found = objects()
    for name, shown in found.items():
        assert " at 0x" not in f"{shown}{shown!r}", name
    framed = {
        n
        for n, x in found.items()
        if hasattr(x, "_repr_html_") and "iframe" in Elements(x._repr_html_()).names
    }
    assert framed == {"plan", "result", "timeline", "map", "records"}
    assert (
        pto.to_text(found["module"]) == str(found["module"]) == Elements(found["module"]._repr_html_()).words
    )
    assert repr(found["module"]) == "<Module @vec_add>" and "pto.set_flag" in str(found["lowered"])
    assert str(found["racy"].diagnostics[0]) == Elements(found["diagnostic"]._repr_html_()).words
    assert (
        "PTO-E2201" in str(found["racy"])
        and "us on" in str(found["timeline"])
        and "peak" in str(found["map"])
    )


def test_names_are_text() -> None:
    """A hostile name is no markup."""
    name = "<script>alert(1)</script>\\1B[31m&amp;"
    module = pto.parse(f'func.func @"{name}"(%p: !pto.ptr<f32>) {{\n  return\n}}\n')
    assert set(Elements(module._repr_html_()).names) == {"pre", "span"}
    wrong = pto.verify(
        pto.parse(
            f'func.func @"{name}"() {{\n  pto.set_flag[<PIPE_V>, <PIPE_V>, <EVENT_ID0>]\n  return\n}}\n'
        )
    )
    for d in wrong:
        assert set(Elements(d._repr_html_()).names) <= {"pre", "b"} and "\x1b" not in str(d)


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch in a notebook has a bar, which is gone at its end."""
    shown: list[str] = []

    class Handle:
        def update(self, markup: str) -> None:
            shown.append(markup)

    def display(markup: str, display_id: bool) -> Handle:
        shown.append(markup)
        return Handle()

    for name, module in {
        "IPython.display": SimpleNamespace(HTML=str, display=display),
        "ipykernel.kernelapp": SimpleNamespace(),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("pto.engine.progress._AFTER", 0)
    monkeypatch.setattr("pto.engine.progress._EACH", 0)
    x = np.ones((64, 128), np.float32)
    kernel = pto.kernel(ROOT / "examples/01_vec_add.pto", engine="reference")
    kernel(x, x, np.zeros_like(x), blocks=3)
    assert any('max="3"' in s and "of 3" in s for s in shown) and shown[-1] == ""
    shown.clear()
    kernel(x, x, np.zeros_like(x), progress=None)
    assert shown == []


def test_a_notebook(browser: Any, tmp_path: Path) -> None:
    """A real kernel of Jupyter shows objects by their HTML; the page of the notebook draws them."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    client = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(text) for text in NOTEBOOK.split("---\n")]
    book = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [cell.outputs[-1]["data"]["text/html"] for cell in book.cells]
    assert "pto.tadd" in Elements(shown[0]).words and "iframe" in Elements(shown[1]).names
    assert "PTO-E2201" in Elements(shown[2]).words
    page = "<!DOCTYPE html><html data-ready><body>" + "".join(shown) + "</body></html>"
    tab = opened(browser, tmp_path / "book.html", page)
    tab.frame_locator("iframe").locator(":root[data-ready]").wait_for()
    tab.frame_locator("iframe").locator("#source", has_text="tload").wait_for()  # visible
    assert tab.errors == []
