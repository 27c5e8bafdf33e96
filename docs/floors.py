"""The floors of the house as a picture, from the lines `a  <-  b` of docs/architecture.md."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

_PAGE = Path(__file__).with_name("architecture.md")
#: What each is about, in few words.
IDEAS = {
    "isa": "the instruction table", "ir": "programs as objects", "asm": "text forms", "bytecode": "PTO-BC",
    "reading": "files and texts", "verifier": "legality", "perf": "pictures of runs",
    "passes": "placing, syncing", "driver": "one way through", "codegen": "C++",
    "image": "calls of the machine", "objects": "machine code", "engine": "runs, sanitizers",
    "runtime": "graphs of tasks", "language": "Python", "witness": "legal examples", "cli": "pto and ptoas",
    "compat": "names of others", "host": "whole programs",
    "checking": "what pto check says", "lsp": "editors",
    "display": "print, notebooks", "explore": "a page of a program",
    "tune": "searches", "program": "control flow", "proof": "for all parameters",
    "symbolic": "terms, solver",
}  # fmt: skip
_WIDE, _HIGH, _GAP, _STEP = 124, 40, 20, 66


def supports(page: str) -> dict[str, list[str]]:
    """Floor -> those that it stands on directly, as they are drawn."""
    block = re.search(r"## Layers\n+```text\n(.*?)```", page, re.DOTALL)
    assert block is not None
    found: dict[str, list[str]] = {}
    for line in block[1].splitlines():
        steps = [re.findall(r"\w+", step) for step in line.split("<-")]
        for floor in (f for step in steps for f in step):
            found.setdefault(floor, [])
        for lower, upper in pairwise(steps):
            for floor in upper:
                found[floor] += [f for f in lower if f not in found[floor]]
    return found


def depth(floor: str, below: dict[str, list[str]]) -> int:
    """Return the number of floors above one: each is drawn below the lowest floor that stands on it."""
    return 1 + max((depth(up, below) for up, lows in below.items() if floor in lows), default=-1)


def floors() -> str:
    """The picture as a block of HTML, to stand in Markdown."""
    page = _PAGE.read_text(encoding="utf-8")
    below = supports(page)
    levels: dict[int, list[str]] = {}
    for floor in below:
        levels.setdefault(depth(floor, below), []).append(floor)
    most = max(map(len, levels.values()))
    wide = most * (_WIDE + _GAP) - _GAP
    at: dict[str, tuple[float, float]] = {}
    for level, names in sorted(levels.items(), reverse=True):
        names.sort(key=lambda f: sum(at[b][0] for b in below[f]) / max(len(below[f]), 1))  # fewer crossings
        left = (wide - len(names) * (_WIDE + _GAP) + _GAP) / 2
        for n, floor in enumerate(names):
            at[floor] = left + n * (_WIDE + _GAP), level * _STEP + 1
    half = _WIDE / 2
    lines = [
        f'<path d="M{x0 + half:g} {y0:g}Q{x0 + half:g} {y1 + _STEP:g} {x1 + half:g} {y1 + _HIGH:g}"/>'
        for up, lows in below.items()
        for (x1, y1), (x0, y0) in ((at[up], at[low]) for low in lows)
    ]
    boxes = [f'<rect x="{x:g}" y="{y:g}" width="{_WIDE}" height="{_HIGH}" rx="4"/>' for x, y in at.values()]
    texts: list[str] = []
    for floor, (x, y) in at.items():
        texts.append(f'<text x="{x + half:g}" y="{y + 17:g}" font-weight="bold">{floor}</text>')
        texts.append(f'<text x="{x + half:g}" y="{y + 32:g}" font-size="10.5">{IDEAS[floor]}</text>')
    said = "; ".join(f"{up} on {', '.join(lows)}" for up, lows in below.items() if lows)
    high = len(levels) * _STEP - _STEP + _HIGH + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" role="img" '
        'style="max-width:100%;height:auto" font-family="sans-serif" font-size="13">'
        f"<title>Which floor stands on which</title><desc>{said}</desc>"
        f'<g stroke="currentColor" stroke-opacity=".45" fill="none">{"".join(lines)}</g>'
        f'<g fill="#8ec9ef" stroke="currentColor" stroke-opacity=".45">{"".join(boxes)}</g>'
        f'<g fill="#1d1d1f" text-anchor="middle">{"".join(texts)}</g></svg>\n'
    )
