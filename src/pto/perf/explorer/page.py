"""The page of the explorer: datasets, the scripts that draw them, and files of datasets."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..files import packaged
from ..markup import document, escaped, script_json

#: Concatenated, the scripts are one module.
_SCRIPTS = ("data", "lanes", "memory", "source", "values", "detail", "totals", "tasks", "input")


def tick_of(us: float) -> float:
    """Return the nanoseconds per unit of time in columns of 32 bits: as fine as the length allows."""
    tick = 0.1
    while us * 1000 / tick > 2e9:
        tick *= 10
    return tick


def packed(values: Any) -> str:
    """Return a column of 32-bit numbers as text. It stores differences of neighbors, which compress better;
    the page adds them up."""
    import numpy as np

    column = np.asarray(values, np.int64).astype("<i4")
    column[1:] -= column[:-1].copy()
    return base64.b64encode(zlib.compress(column.tobytes(), 1)).decode()


def page(
    data: Sequence[Mapping[str, Any]], heading: str, note: str, view: str = "kernel", parts: str = "",
    below: str = "", style: str = "", sign: str = "@", times: str = "",
) -> str:  # fmt: skip
    """Return the page of one dataset, or of two datasets to compare. `parts` is further markup for scripts,
    `below` is the content below the lanes, `sign` precedes names, and `times` describes the kind of times."""
    title = " and ".join(f"{sign}{d['name']}" for d in data)
    body = f"""\
<div id="fold">
<header>
<div><h1>{escaped(heading)} of <code>{escaped(title)}</code> <span class="soft">{escaped(times)}</span></h1>
<p class="soft">{escaped(note)}</p></div>
<div class="controls">
<input id="search" type="search" placeholder="instruction or line" aria-label="Search" autocomplete="off"/>
<span id="found" class="soft" role="status"></span>
<span id="buttons"></span>
<button id="whole" title="all of the time (0)">Whole</button>
<button id="keys" title="keyboard">?</button>
<button id="theme" title="light or dark (t)">Theme</button></div>
</header>
<main>
<div class="cards" id="cards"></div>
<div id="explorer">
<div id="left"><div id="tabs" role="tablist"></div>
<div id="source" tabindex="0" aria-label="source"></div>
<aside id="detail" hidden></aside></div>
<div id="time">
<p class="key" id="key"></p>
<canvas id="over" aria-label="the whole time"></canvas>
<div id="scroll"><div id="spacer">
<canvas id="lanes" tabindex="0" aria-label="lanes"></canvas></div></div>
<div id="grip" title="drag to give memory more room"></div>
<div id="store"><canvas id="memory" aria-label="on-chip memory of a core"></canvas></div>
</div>
</div>
</main>
</div>
<div id="below">{below}</div>
<noscript>The page is drawn by a script.</noscript>
<div id="tip" hidden></div>
<dialog id="help"></dialog>
<script id="data" type="application/json">{script_json(data)}</script>
{parts}"""
    head = f"{title}: {', '.join(filter(None, (heading.lower(), times)))}"
    styles = packaged("explorer/base.css") + packaged("explorer/explorer.css") + style
    return document(head, body, styles, scripts(), view)


def scripts() -> str:
    """Return the script of every page of a timeline."""
    return "".join(packaged(f"explorer/{name}.js") for name in _SCRIPTS)


def loaded(path: str) -> dict[str, Any]:
    """Read the dataset from a file of `--timeline FILE.json`; raise `ValueError` if it has none."""
    found: Any = None
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)["otherData"]["view"]
        known = isinstance(found["name"], str) and 0 < found["total"] < 1e18
    except OSError as e:
        raise ValueError(f"cannot read '{path}': {e.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        known = False
    if not known:
        raise ValueError(f"expected a timeline in '{path}': write one with --timeline FILE.json")
    return found
