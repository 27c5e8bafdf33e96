"""Outcomes of a search as a picture: a grid of colours where two parameters were searched, bars otherwise; as
SVG, or as a page with the table below it that needs nothing from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

from ..perf.files import write_text
from .measure import TIMED, Outcome
from .space import Space, refuse

_CELL, _ROW, _LEFT, _TOP, _WIDE = 96, 22, 150, 64, 760
_MOST_BARS = 60


def write(path: str, title: str, space: Space, outcomes: Sequence[Outcome]) -> None:
    """Write the picture to a file, by its extension."""
    kind = os.path.splitext(path)[1].lower()
    if kind == ".svg":
        write_text(path, svg(title, space, outcomes))
    elif kind in (".html", ".htm"):
        write_text(path, html(title, space, outcomes))
    else:
        raise refuse(f"'{path}' is no name of a picture", "a file .svg or .html")


def svg(title: str, space: Space, outcomes: Sequence[Outcome]) -> str:
    """The picture."""
    several = [name for name, values in space.params.items() if len(values) > 1]
    if len(several) == 2 and len(space.params) == 2:
        return _grid(title, space, outcomes)
    return _bars(title, outcomes)


def html(title: str, space: Space, outcomes: Sequence[Outcome]) -> str:
    """A page."""
    head = "".join(f"<th>{escape(n)}</th>" for n in (*space.params, "us", "x best", "busiest", "what"))
    best = _best(outcomes)
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td>{escape(str(c))}</td>" for c in (*o.params.values(), *_cells(o, best)))
        + "</tr>"
        for o in outcomes
    )
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(title)}: search</title>
<style>
:root {{ color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }}
body {{ margin: 2rem; max-width: 60rem }}
table {{ border-collapse: collapse }}
th, td {{ padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #8884 }}
svg {{ max-width: 100%; height: auto }}
</style>
</head>
<body>
<h1>Search of <code>{escape(title)}</code></h1>
<p>Times are those of the cost model.</p>
{svg(title, space, outcomes)}
<table><thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody></table>
</body>
</html>
"""


def _best(outcomes: Sequence[Outcome]) -> float:
    return min((o.us for o in outcomes if o.status == TIMED), default=0.0)


def _cells(o: Outcome, best: float) -> tuple[str, ...]:
    if o.status != TIMED:
        return "", "", "", f"{o.status}: {o.code} {o.why}"
    return f"{o.us:.2f}", f"{o.us / best:.2f}" if best else "-", f"{o.busy} {o.share:.0%}", ""


def _open(title: str, width: float, height: float) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        f'<text x="12" y="22" font-size="14" font-weight="bold">{escape(title)}: us by the cost model</text>',
    ]


def _colour(us: float, best: float, worst: float) -> str:
    """Green for the best, through yellow to red."""
    at = (us - best) / (worst - best) if worst > best else 0.0
    return f"hsl({120 - 120 * at:.0f} 65% 70%)"


def _grid(title: str, space: Space, outcomes: Sequence[Outcome]) -> str:
    (across, columns), (down, rows) = space.params.items()
    best = _best(outcomes)
    worst = max((o.us for o in outcomes if o.status == TIMED), default=0.0)
    width, height = _LEFT + _CELL * len(columns) + 12, _TOP + 34 * len(rows) + 12
    out = _open(title, max(width, 420), height)
    out.append(f'<text x="{_LEFT}" y="42">{escape(across)}</text>')
    out.append(f'<text x="12" y="{_TOP - 6}">{escape(down)}</text>')
    for n, value in enumerate(columns):
        x, word = _LEFT + _CELL * (n + 0.5), escape(str(value))
        out.append(f'<text x="{x}" y="{_TOP - 6}" text-anchor="middle">{word}</text>')
    for n, value in enumerate(rows):
        out.append(f'<text x="12" y="{_TOP + 34 * n + 21}">{escape(str(value))}</text>')
    for o in outcomes:
        x = _LEFT + _CELL * columns.index(o.params[across])
        y = _TOP + 34 * rows.index(o.params[down])
        timed = o.status == TIMED
        fill = _colour(o.us, best, worst) if timed else "#eeeeee"
        text = f"{o.us:.2f}" if timed else o.status
        weight = ' font-weight="bold"' if timed and o.us == best else ""
        told = "" if timed else f"<title>{escape(o.code)} {escape(o.why)}</title>"
        out.append(f'<g>{told}<rect x="{x}" y="{y}" width="{_CELL - 2}" height="32" fill="{fill}"/>')
        middle = f'x="{x + _CELL / 2 - 1}" y="{y + 21}" text-anchor="middle"'
        out.append(f"<text {middle}{weight}>{escape(text)}</text></g>")
    return "\n".join((*out, "</svg>")) + "\n"


def _bars(title: str, outcomes: Sequence[Outcome]) -> str:
    timed = [o for o in outcomes if o.status == TIMED][:_MOST_BARS]
    best, worst = _best(outcomes), max((o.us for o in timed), default=1.0) or 1.0
    labels = [", ".join(f"{k}={v}" for k, v in o.params.items()) for o in timed]
    left = 24 + 7 * max((len(text) for text in labels), default=0)
    out = _open(title, _WIDE, 44 + _ROW * len(timed) + 12)
    for n, (o, label) in enumerate(zip(timed, labels, strict=True)):
        y = 40 + _ROW * n
        length = (_WIDE - left - 90) * o.us / worst
        out.append(f'<text x="12" y="{y + 14}">{escape(label)}</text>')
        size = f'width="{length:.1f}" height="{_ROW - 4}"'
        out.append(f'<rect x="{left}" y="{y}" {size} fill="{_colour(o.us, best, worst)}"/>')
        out.append(f'<text x="{left + length + 6:.1f}" y="{y + 14}">{o.us:.2f}</text>')
    return "\n".join((*out, "</svg>")) + "\n"
