"""Strips of cells as SVG inside a page: what docs/drawings.py found out, made visible.

A drawing is a few rows with a label each. Colours of cells hold in a light and in a dark page; everything
else takes the colour of the text around it. The rows are also there as words, for readers that do not see
them.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Fills that dark text can be read on, neighbours far apart.
TONES = ("#8ec9ef", "#ffd27a", "#a6dba0", "#f6a5a0", "#cdb6f5", "#f7b77d", "#86d9cc", "#eab0d9")
_INK = "#1d1d1f"

WIDTH = 720  # of a drawing, in units that are pixels on a wide page
LABEL = 132  # of the column of labels
HIGH = 19
STEP = 24


@dataclass(frozen=True)
class Cell:
    """A text and its tone; without a tone grey, or hatched for unchanged bytes."""

    text: str
    tone: int | None = None
    kept: bool = False

    @property
    def words(self) -> str:
        return "kept" if self.kept else self.text.strip() or ("on" if self.tone is not None else "off")


ZERO = Cell("0")
KEPT = Cell("", kept=True)


@dataclass(frozen=True)
class Row:
    """A label, cells, a remark behind them. `last` are the cells at the end, where the middle is left out.
    After every `group` cells there is some space."""

    label: str
    cells: Sequence[Cell]
    last: Sequence[Cell] = ()
    remark: str = ""
    group: int = 0
    space: bool = False  # above the row

    @property
    def words(self) -> str:
        shown = " ".join(c.words for c in self.cells)
        rest = f" .. {' '.join(c.words for c in self.last)}" if self.last else ""
        return f"{self.label}: {shown}{rest}{f' ({self.remark})' if self.remark else ''}"


class _Canvas:
    """Rectangles of one kind become one path, which keeps a page small."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.paths: defaultdict[str, list[str]] = defaultdict(list)
        self.texts: defaultdict[str, list[str]] = defaultdict(list)

    def box(self, kind: str, x: float, y: float, w: float, h: float) -> None:
        self.paths[kind].append(f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z")

    def text(self, kind: str, x: float, y: float, words: str, room: float = 0) -> None:
        size = ' font-size="9"' if room and len(words) * 6.4 > room - 2 else ""
        if words.strip():
            self.texts[kind].append(f'<text x="{x:g}" y="{y:g}"{size}>{html.escape(words)}</text>')

    def parts(self) -> Iterable[str]:
        hatch = f"{self.name}-kept"
        yield (
            f'<pattern id="{hatch}" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path d="M0 0v5" stroke="currentColor" stroke-opacity=".45"/>'
            "</pattern>"
        )
        looks = {
            "zero": 'fill="currentColor" fill-opacity=".1"',
            "kept": f'fill="url(#{hatch})" stroke="currentColor" stroke-opacity=".35" stroke-width=".7"',
        }
        for kind, boxes in self.paths.items():
            look = looks.get(kind, f'fill="{kind}"')
            yield f'<path {look} d="{"".join(boxes)}"/>'
        styles = {
            "label": 'fill="currentColor"',
            "remark": 'fill="currentColor" fill-opacity=".7"',
            "zero": 'fill="currentColor" fill-opacity=".6" text-anchor="middle"',
            "cell": f'fill="{_INK}" text-anchor="middle"',
        }
        for kind, texts in self.texts.items():
            yield f"<g {styles[kind]}>{''.join(texts)}</g>"


def drawing(name: str, title: str, rows: Sequence[Row], cell: float = 26) -> str:
    """One drawing as a block of HTML, to stand in Markdown."""
    canvas = _Canvas(name)
    y = 2.0
    for row in rows:
        y += 9 if row.space else 0
        base = y + HIGH / 2 + 3.8
        canvas.text("label", 0, base, row.label)
        x: float = LABEL
        for n, each in enumerate(row.cells):
            x += 5 if row.group and n and n % row.group == 0 else 0
            _draw(canvas, each, x, y, cell)
            x += cell
        if row.last:
            canvas.text("remark", x + 5, base, "…")
            x += 20
            for each in row.last:
                _draw(canvas, each, x, y, cell)
                x += cell
        canvas.text("remark", x + 8, base, row.remark)
        y += STEP
    return _block(name, title, "; ".join(r.words for r in rows), canvas, y)


def _block(name: str, title: str, words: str, canvas: _Canvas, high: float) -> str:
    title, words = html.escape(title), html.escape(words)
    return (
        f'<div class="drawing" style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-labelledby="{name}-title {name}-words" viewBox="0 0 {WIDTH} {high:g}" '
        f'style="width:100%;min-width:600px;max-width:{WIDTH + 80}px;height:auto" '
        f'font-family="var(--md-code-font, ui-monospace), monospace" font-size="10.5">'
        f'<title id="{name}-title">{title}</title><desc id="{name}-words">{words}</desc>'
        f"{''.join(canvas.parts())}</svg></div>"
    )


def _draw(canvas: _Canvas, cell: Cell, x: float, y: float, wide: float) -> None:
    kind = "kept" if cell.kept else "zero" if cell.tone is None else TONES[cell.tone % len(TONES)]
    canvas.box(kind, x, y, wide - 1.5, HIGH)
    kind = "zero" if cell.tone is None else "cell"
    canvas.text(kind, x + (wide - 1.5) / 2, y + HIGH / 2 + 3.8, cell.text, wide)


# ------------------------------------------------------------------------------------------------- tiles


@dataclass(frozen=True)
class Grid:
    """A tile: a label above rows of cells."""

    label: str
    cells: Sequence[Sequence[Cell]]

    @property
    def words(self) -> str:
        return f"{self.label}: {' / '.join(' '.join(c.words for c in row) for row in self.cells)}"


def grids(name: str, title: str, parts: Sequence[Grid], cell: float = 27) -> str:
    """Tiles beside each other, in lines as wide as a drawing."""
    canvas = _Canvas(name)
    x = y = below = 0.0
    for part in parts:
        wide = max(len(part.cells[0]) * cell, 7.2 * len(part.label))
        if x and x + wide > WIDTH:
            x, y = 0.0, below
        canvas.text("label", x, y + 12, part.label)
        for r, row in enumerate(part.cells):
            for c, each in enumerate(row):
                _draw(canvas, each, x + c * cell, y + 18 + r * (HIGH + 2), cell)
        below = max(below, y + 18 + len(part.cells) * (HIGH + 2) + 10)
        x += wide + 22
    return _block(name, title, "; ".join(p.words for p in parts), canvas, below)
