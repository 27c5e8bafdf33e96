"""Texts of public objects for `print`, and HTML for notebooks (`str(x)`, `x._repr_html_()`).

| object | text | HTML |
| --- | --- | --- |
| module | the program | the program in colors |
| lowered program | its diagnostics and the program after the passes | both in colors |
| diagnostic | as tools print it | the same in colors |
| result of a launch | verdict, diagnostics | with its timeline, or else its memory map |
| timeline, memory map, records of tasks | tables | their pages |
| run of a graph | diagnostics, summary | with its swimlanes |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from .diag import Diagnostic, render, visible
from .shown import Shown

#: Height of a page in a notebook, in pixels.
_HEIGHT = 680
#: Kind of a word -> its style, readable on light and on dark pages.
_STYLES = {
    "comment": "color: #7a8594; font-style: italic", "string": "color: #b0690f", "value": "color: #2f7fb5",
    "symbol": "color: #9a5fc0", "label": "color: #9a5fc0", "type": "color: #2a8a7c",
    "attribute": "color: #7d8420", "keyword": "color: #cf4a5f",
    "instruction": "color: #4a7fd6; font-weight: 600",
    "element": "color: #2a8a7c", "location": "color: #7d8420", "number": "color: #b0690f",
}  # fmt: skip
#: Color of a terminal -> the same in HTML.
_SHADES = {"31": "#d1242f", "33": "#a96400", "36": "#0a7ea4", "32": "#1a7f37"}


def text(shown: Shown) -> str:
    return _of(shown)[0](shown)


def html(shown: Shown) -> str:
    return _of(shown)[1](shown)


def _of(shown: Shown) -> tuple[Callable[[Any], str], Callable[[Any], str]]:
    names = (f"{c.__module__.removeprefix('pto.')}.{c.__name__}" for c in type(shown).__mro__)
    return next(_TABLE[name] for name in names if name in _TABLE)


def frame(page: str) -> str:
    """Return a page as a frame, which can neither read nor change the notebook."""
    style = f"width: 100%; height: {_HEIGHT}px; border: 0"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'


def _pre(markup: str) -> str:
    """Return markup in columns; a style of the notebook may have another font."""
    return f'<pre style="font-family: monospace; white-space: pre; overflow-x: auto">{markup}</pre>'


def plain(words: str) -> str:
    """Return text as HTML, with its line breaks."""
    return _pre(escape(visible(words, layout=True)))


def diagnostics(found: Iterable[Diagnostic]) -> str:
    """Return diagnostics in the colors of a terminal; nothing without diagnostics."""
    words = escape(render(found, color=True))
    for number, shade in _SHADES.items():
        words = words.replace(f"\x1b[1;{number}m", f'<b style="color: {shade}">')
    return _pre(words.replace("\x1b[0m", "</b>")) if words else ""


def program(source: str) -> str:
    """Return a program in colors."""
    from .lsp.grammar import colored

    out: list[str] = []
    behind = 0
    for start, end, kind in (*colored(source), (len(source), len(source), "")):
        between, word = (escape(visible(t, layout=True)) for t in (source[behind:start], source[start:end]))
        out += [between, f'<span style="{_STYLES[kind]}">{word}</span>' if kind in _STYLES else word]
        behind = end
    return _pre("".join(out))


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _module(m: Any) -> str:
    from .asm import to_text

    return to_text(m)


def _plan(plan: Any, page: bool = False) -> str:
    from .passes import explain_memory

    return frame(explain_memory.html(plan)) if page else explain_memory.text(plan)


def _result_page(result: Any) -> str:
    drawn = ""
    if result.timeline is not None:
        drawn = frame(result.timeline.html(result.task, None, result.memory_map))
    elif result.memory_map is not None:
        drawn = html(result.memory_map)
    return plain(repr(result)[1:-1].removeprefix("LaunchResult ")) + diagnostics(result.diagnostics) + drawn


def _checked(result: Any) -> str:
    from .engine.sanitize import summary

    done = "ok" if result.ok else f"{len(result.diagnostics)} diagnostics"
    return f"{done}, {summary(result.checked, result.unchecked)}" if result.checked else done


def _map_page(map: Any) -> str:
    from .perf.explorer.memory import html as page

    return frame(page(map, "kernel"))


def _summary(records: Any) -> str:
    from .perf.summary import text as summary

    return summary(records)


def _lanes(records: Any) -> str:
    from .perf.explorer.tasks import html as page

    return frame(page(records))


def _run_page(run: Any) -> str:
    lanes = _lanes(run.records) if len(run.records.tasks) else plain(run.summary())
    return diagnostics(run.diagnostics) + lanes


#: Name of a class -> its text and its HTML.
_TABLE: dict[str, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    "ir.core.Module": (_module, lambda m: program(_module(m))),
    "driver.Lowered": (
        lambda done: _lines(render(done.diagnostics), _module(done.module)),
        lambda done: diagnostics(done.diagnostics) + program(_module(done.module)),
    ),
    "diag.Diagnostic": (lambda d: render([d]), lambda d: diagnostics([d])),
    "engine.result.LaunchResult": (
        lambda r: _lines(repr(r)[1:-1].removeprefix("LaunchResult "), render(r.diagnostics)),
        _result_page,
    ),
    "perf.timeline.timeline.Timeline": (lambda t: t.text(), lambda t: frame(t.html())),
    "perf.memory_map.MemoryMap": (lambda map: map.text(), _map_page),
    "engine.sanitize.shadow.Shadow": (lambda s: s.text(), lambda s: plain(s.text())),
    "passes.memory.placements.MemoryPlan": (_plan, lambda plan: _plan(plan, page=True)),
    "proof.prove.Proof": (
        lambda proof: _lines(*proof.lines, render(proof.diagnostics)),
        lambda proof: plain(_lines(*proof.lines)) + diagnostics(proof.diagnostics),
    ),
    "language.programs.compiled.RunResult": (
        lambda r: render(r.diagnostics) or _checked(r),
        lambda r: diagnostics(r.diagnostics) + plain(_checked(r)) + "".join(map(html, r.launches[:1])),
    ),
    "perf.records.Records": (_summary, _lanes),
    "runtime.runs.Ran": (lambda run: _lines(render(run.diagnostics), run.summary()), _run_page),
}
