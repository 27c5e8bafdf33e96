"""Draw the outcomes of a search: a colored grid for two parameters, bars otherwise. The output is an SVG
file, or a self-contained page with the drawing and a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import log

from ..perf.files import write_text
from ..perf.markup import document, escaped
from .measure import TIMED, Outcome
from .space import Space, refuse

_CELL, _ROW, _TOP, _WIDE = 84, 22, 58, 760
#: Color of text on a colored cell, in every theme.
_INK = "#1a1a1a"
_MOST_BARS = 60
_HEAD = 28  # height of the title
_STYLE = """\
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }
body { margin: 2rem; max-width: 60rem }
table { border-collapse: collapse; margin-top: 1.5rem; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .8rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap }
th:last-child, td:last-child { text-align: left; white-space: normal }
.best { font-weight: bold }
svg { max-width: 100%; height: auto }
h1 { font-size: 1.4rem }"""


def write(path: str, title: str, space: Space, outcomes: Sequence[Outcome]) -> None:
    """Write the picture to a file, by its extension."""
    kind = os.path.splitext(path)[1].lower()
    if kind == ".svg":
        write_text(path, svg(title, space, outcomes))
    elif kind in (".html", ".htm"):
        write_text(path, html(title, space, outcomes))
    else:
        raise refuse(f"expected a file name that ends in .svg or .html, got '{path}'")


def svg(title: str, space: Space, outcomes: Sequence[Outcome], page: bool = False) -> str:
    """Return the drawing as SVG. On a `page`, which has its own title and background, leave both out."""
    several = [name for name, values in space.params.items() if len(values) > 1]
    if len(several) == 2 and len(space.params) == 2:
        return _grid(title, space, outcomes, page)
    return _bars(title, outcomes, page)


def html(title: str, space: Space, outcomes: Sequence[Outcome]) -> str:
    """Return the drawing and the table as a page."""
    head = "".join(f"<th>{escaped(n)}</th>" for n in (*space.params, "us", "x best", "busiest", "what"))
    best = _best(outcomes)
    rows = "\n".join(
        ('<tr class="best">' if o.status == TIMED and o.us == best else "<tr>")
        + "".join(f"<td>{escaped(c)}</td>" for c in (*o.params.values(), *_cells(o, best)))
        + "</tr>"
        for o in outcomes
    )
    body = f"""\
<h1>Search of <code>{escaped(title)}</code></h1>
<p>Microseconds by the cost model; colors from the fastest to the slowest, by their ratio.</p>
{svg(title, space, outcomes, True)}
<table><thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody></table>"""
    return document(f"{title}: search", body, _STYLE)


def _best(outcomes: Sequence[Outcome]) -> float:
    return min((o.us for o in outcomes if o.status == TIMED), default=0.0)


def _cells(o: Outcome, best: float) -> tuple[str, ...]:
    if o.status != TIMED:
        return "", "", "", f"{o.status}: {o.code} {o.why}"
    return f"{o.us:.2f}", f"{o.us / best:.2f}" if best else "-", f"{o.busy} {o.share:.0%}", ""


def _open(title: str, width: float, height: float, page: bool) -> list[str]:
    if page:
        height -= _HEAD
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 {_HEAD if page else 0} {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12"'
    )
    if page:
        return [f'{head} fill="currentColor">']
    words = escaped(f"{title}: us by the cost model")
    return [
        f"{head}>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        f'<text x="12" y="22" font-size="14" font-weight="bold">{words}</text>',
    ]


def _colour(us: float, best: float, worst: float) -> str:
    """Return a color from green for the best through yellow to red for the worst, by the logarithm of the
    ratio to the best. Equal ratios have equal distances in color."""
    at = log(us / best) / log(worst / best) if worst > best > 0 else 0.0
    return f"hsl({120 - 120 * at:.0f} 65% 70%)"


def _grid(title: str, space: Space, outcomes: Sequence[Outcome], page: bool) -> str:
    (across, columns), (down, rows) = space.params.items()
    best = _best(outcomes)
    worst = max((o.us for o in outcomes if o.status == TIMED), default=0.0)
    left = 28 + 8 * max(len(str(word)) for word in (down, *rows))
    width, height = left + _CELL * len(columns) + 12, _TOP + 34 * len(rows) + 12
    out = _open(title, max(width, 420), height, page)
    out.append(f'<text x="{left}" y="40" font-weight="bold">{escaped(across)}</text>')
    right = f'x="{left - 10}" text-anchor="end"'
    out.append(f'<text {right} y="{_TOP - 6}" font-weight="bold">{escaped(down)}</text>')
    for n, value in enumerate(columns):
        x, word = left + _CELL * (n + 0.5) - 1, escaped(value)
        out.append(f'<text x="{x}" y="{_TOP - 6}" text-anchor="middle">{word}</text>')
    for n, value in enumerate(rows):
        out.append(f'<text {right} y="{_TOP + 34 * n + 21}">{escaped(value)}</text>')
    for o in outcomes:
        x = left + _CELL * columns.index(o.params[across])
        y = _TOP + 34 * rows.index(o.params[down])
        timed = o.status == TIMED
        fill = _colour(o.us, best, worst) if timed else "#eeeeee"
        text = f"{o.us:.2f}" if timed else o.status
        weight = ' font-weight="bold"' if timed and o.us == best else ""
        told = "" if timed else f"<title>{escaped(o.code)} {escaped(o.why)}</title>"
        out.append(f'<g>{told}<rect x="{x}" y="{y}" width="{_CELL - 2}" height="32" fill="{fill}"/>')
        middle = f'x="{x + _CELL / 2 - 1}" y="{y + 21}" text-anchor="middle"'
        out.append(f'<text {middle}{weight} fill="{_INK}">{escaped(text)}</text></g>')
    return "\n".join((*out, "</svg>")) + "\n"


def _bars(title: str, outcomes: Sequence[Outcome], page: bool) -> str:
    timed = [o for o in outcomes if o.status == TIMED][:_MOST_BARS]
    best, worst = _best(outcomes), max((o.us for o in timed), default=1.0) or 1.0
    labels = [", ".join(f"{k}={v}" for k, v in o.params.items()) for o in timed]
    left = 24 + 7 * max((len(text) for text in labels), default=0)
    wide = max(_WIDE, left + 290)  # keep room for bars beside long labels
    out = _open(title, wide, 44 + _ROW * len(timed) + 12, page)
    for n, (o, label) in enumerate(zip(timed, labels, strict=True)):
        y = 40 + _ROW * n
        length = (wide - left - 90) * o.us / worst
        out.append(f'<text x="12" y="{y + 14}">{escaped(label)}</text>')
        size = f'width="{length:.1f}" height="{_ROW - 4}"'
        out.append(f'<rect x="{left}" y="{y}" {size} fill="{_colour(o.us, best, worst)}"/>')
        out.append(f'<text x="{left + length + 6:.1f}" y="{y + 14}">{o.us:.2f}</text>')
    return "\n".join((*out, "</svg>")) + "\n"
