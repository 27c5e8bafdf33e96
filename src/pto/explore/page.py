"""The page of a program: data of `stages` and `launch`, and the script that draws them.

A page of `pto explore` sends edits to its server. A page in a file (`-o`) shows one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from ..diag import Diagnostic, Source
from ..perf.explorer.page import scripts
from ..perf.files import packaged
from ..perf.markup import document, escaped, script_json
from .launch import LaunchPlan, LaunchView, launch
from .stages import Stages


def staged(seen: Stages, name: str) -> dict[str, Any]:
    """Return the sheets of a text and its diagnostics."""
    return {"name": name, "sheets": [s.data() for s in seen.sheets], "findings": _findings(seen.findings)}


def launched(source: Source, seen: Stages, plan: LaunchPlan) -> dict[str, Any]:
    """Return the page of a launch and its findings."""
    done = seen.done
    view = LaunchView() if done is None else launch(source, done, plan)
    advice = [
        {"severity": "advice", "message": text, "file": source.name, "line": line}
        for text, line in view.advice
    ]
    return {"page": view.page, "note": view.note, "findings": [*_findings(view.findings), *advice]}


def page(title: str, data: dict[str, Any], served: bool = False) -> str:
    """Return the page of a program: `data` is that of `staged` and `launched`."""
    edit = '<textarea id="edit" spellcheck="false" wrap="off" aria-label="program"></textarea>' * served
    hint = "edits are not saved" * served
    body = f"""\
<header><h1><code>{escaped(title)}</code></h1>
<div class="controls"><span id="state" class="soft" role="status"></span>
<button id="theme" title="light or dark">Theme</button></div></header>
<main>
<div id="panes">
<section><div class="bar"><b>source</b> <span class="soft">{hint}</span></div>
<div class="pane" id="left"><div class="lines"></div>{edit}</div></section>
<section><div class="bar" id="tabs" role="tablist"></div>
<div class="pane" id="right" tabindex="0"><div class="lines"></div></div>
<div class="soft note" id="about"></div></section>
</div>
<section id="findings" aria-label="findings"></section>
<p class="soft" id="note"></p>
<iframe id="launch" title="timeline and memory" hidden></iframe>
</main>
<noscript>The page is drawn by a script.</noscript>
<script id="data" type="application/json">{script_json(data)}</script>"""
    style = packaged("explorer/base.css") + _own("explore.css")
    return document(f"{title}: explorer", body, style, _own("explore.js"), frames=scripts(), served=served)


def _own(name: str) -> str:
    return files("pto.explore").joinpath(name).read_text("utf-8")


def _findings(found: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    return [d.as_json() for d in found]
