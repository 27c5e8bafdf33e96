"""The memory map of a run as one HTML page: who lives where in each buffer, over the instructions of a core.

`html` draws everything here, as SVG; `memory_picture.js` adds hover details and zooming in time, and
`memory_picture.css` the two themes. The page needs nothing from elsewhere.

A map has time to the right and addresses upwards, in one of three scales that share the drawing code: *fit*
gives every tile the height of a label and squeezes what is free, *used* and *full* are true to scale.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise
from typing import Any

from ..isa.profiles import LOCATIONS
from .files import packaged, script_json
from .memory_map import HeldValue, Life, MapStep, MemoryMap, Overlap

#: Of the drawings: where the plot begins, how wide it is, the whole.
LEFT, WIDTH, TOTAL = 104.0, 1106.0, 1216.0
#: Advance of a character of a label, and the height it needs.
GLYPH, LINE = 6.65, 14.0
#: Least height of a tile and height of a gap in the fitted scale; height of a plot that is true to scale.
TILE, GAP, PLOT = 21.0, 13.0, 300.0
HUES = 8
#: Marks drawn of one tile, or of one ruler, before neighbours are drawn together.
MOST_MARKS = 1000

_KINDS = {"MTE2": "load", "MTE1": "load", "V": "work", "M": "work", "MTE3": "save", "FIX": "save"}
_CORES = {"AIC": "cube core", "AIV0": "vector core", "AIV1": "vector core"}


_FOOTER = """Time is counted in instructions of the core, in program order. A value lives from the instruction
that writes it to the last one that reads it. Drag across a map to zoom in time, double-click to see all
again."""


def html(memory_map: MemoryMap, kernel_name: str, about: str = "", footer: str = _FOOTER) -> str:
    """A page on the memory of the first block of a launch of `@kernel_name`.

    `about` and `footer` are markup that replaces what the page says of itself, where it shows something else.
    """
    cores = [_Core(memory_map, n, core) for n, core in enumerate(memory_map.lives)]
    body = "".join(c.section() for c in cores) or "<p>No tile was touched.</p>"
    data = {
        "left": LEFT,
        "width": WIDTH,
        "glyph": GLYPH,
        "most": MOST_MARKS,
        "cores": [c.data() for c in cores],
    }
    profile = memory_map.profile
    what = f"{profile.title} ({profile.name}), {_count(len(cores), 'core')} of block 0, in program order"
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(f"@{kernel_name}: memory")}</title>
<style>
{packaged("memory_picture.css")}</style>
</head>
<body data-mode="fit">
<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="clash" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="7" height="7" fill="var(--bad)" fill-opacity=".16"/>
<rect width="2" height="7" fill="var(--bad)" fill-opacity=".85"/></pattern>
<pattern id="free" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
<rect width="1" height="6" fill="var(--line)" fill-opacity=".6"/></pattern>
<clipPath id="plot"><rect x="{LEFT}" y="-10" width="{WIDTH}" height="5000"/></clipPath>
</defs></svg>
<header>
<div><h1>Memory of <code>{escape(f"@{kernel_name}")}</code></h1>
<p class="soft">{about or escape(what)}</p></div>
<div class="controls">
<span class="switch" role="group" aria-label="Address scale">
<button data-set="fit" aria-pressed="true" title="every tile legible, free space squeezed">Fit</button>
<button data-set="used" aria-pressed="false" title="true to scale, up to the highest tile">Used range</button>
<button data-set="full" aria-pressed="false" title="true to scale, up to the capacity">Full capacity</button>
</span><button id="theme" title="light or dark">Theme</button></div>
</header>
<main>
<div class="cards">{"".join(c.cards() for c in cores)}</div>
{_key() if cores else ""}
{body}
</main>
<footer>{footer}</footer>
<div id="tip" role="status"></div>
<script type="application/json" id="data">{script_json(data)}</script>
<script>
{packaged("memory_picture.js")}</script>
</body>
</html>
"""


class _Core:
    """What the page shows of one core."""

    def __init__(self, map: MemoryMap, number: int, name: str) -> None:
        self.map = map
        self.number = number
        self.name = name
        self.steps: list[MapStep] = map.steps.get(name, [])
        self.lives = [life for loc in map.buffers(name) for life in map.tiles(name, loc)]
        self.numbers = {life: n for n, life in enumerate(self.lives)}
        self.length = max([1, len(self.steps), *[v.last + 1 for v in self.lives]])
        self.overlaps = {loc: map.overlaps(name, loc) for loc in map.buffers(name)}
        #: What is drawn coarsely because there is much of it: spans of marks, levels of curves.
        self.fine: dict[tuple[float, ...], int] = {}

    def x(self, time: float) -> float:
        return LEFT + time / self.length * WIDTH

    # -- text and data ---------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        return self.name if self.name != "core" else ""

    def id(self, loc: str) -> str:
        return f"{self.number}-{loc}"

    def cards(self) -> str:
        out: list[str] = []
        for loc in self.map.buffers(self.name):
            capacity = max(1, self.map.capacity(loc))
            peak, top = self.map.peak(self.name, loc), self.map.top(self.name, loc)
            loose = self.map.peak(self.name, loc, False)
            clashes = len(self.overlaps[loc])
            shown = peak or loose
            lines = [f"{_size(peak)} of {_size(capacity)} alive"] if peak else []
            lines += [f"{_size(loose)} not placed"] if loose else []
            warning = f'<small class="warn">{_count(clashes, "overlap")}</small>' if clashes else ""
            name = " ".join(filter(None, (LOCATIONS[loc], self.title)))
            out.append(
                f'<a class="card{" bad" if clashes else ""}" href="#{self.id(loc)}"><b>{escape(name)}</b> '
                f"<span>{shown / capacity:.0%}</span>"
                f'<div class="meter"><u style="width:{min(100, 100 * top / capacity):.1f}%"></u>'
                f'<i style="width:{min(100, 100 * shown / capacity):.1f}%"></i></div>'
                + "".join(f"<small>{escape(line)}</small>" for line in lines)
                + f"{warning}</a>"
            )
        return "".join(out)

    def section(self) -> str:
        kind = _CORES.get(self.name, "")
        facts = ", ".join(filter(None, (kind, _count(len(self.steps), "instruction"))))
        heading = f"{escape(self.name)} <span class='soft'>{facts}</span>"
        figures = "".join(self.figure(loc) for loc in self.map.buffers(self.name))
        heading = f"<h2>{heading}</h2>" if self.title else ""
        return f'<section data-core="{self.number}">{heading}\n{figures}</section>\n'

    def data(self) -> dict[str, Any]:
        known: dict[tuple[str, int, str], int] = {}
        steps = [known.setdefault((s.name, s.line, s.pipe), len(known)) for s in self.steps]
        return {
            "ops": list(known), "steps": steps, "kinds": [_KINDS.get(pipe, "other") for _, _, pipe in known],
            "tiles": [self.details(life) for life in self.lives], "fine": list(self.fine),
        }  # fmt: skip

    def details(self, life: Life) -> dict[str, Any]:
        """What hovering over a tile shows."""
        where = (
            f"bytes {life.address}..{life.end} ({life.address:#x}..{life.end:#x}), {_size(life.size)}"
            if life.placed
            else f"{_size(life.size)}, not placed by the program"
        )
        lines = [
            f"{LOCATIONS[life.loc]} {where}",
            f"steps {life.first}..{life.last}, {_count(len(life.values), 'value')}",
        ]
        lines.append(f"{_count(life.writes, 'write')}, {_count(life.reads, 'read')}:")
        for (name, line, write), times in list(life.uses.items())[:12]:
            often = f" × {times}" if times > 1 else ""
            lines.append(f"    {name} in line {line} {'writes' if write else 'reads'} it{often}")
        if len(life.uses) > 12:
            lines.append(f"    and {len(life.uses) - 12} more")
        if life.is_view:
            lines.append("a view of " + ", ".join(sorted({f"%{v.name}" for v in life.views})))
        for o in self.overlaps[life.loc]:
            if life in (o.a, o.b):
                lines.append(f"overlaps %{(o.b if o.a is life else o.a).name} in bytes {o.low}..{o.high}")
        return {"title": f"%{life.name} {life.shape}", "lines": lines}

    # -- a buffer --------------------------------------------------------------------------------------

    def figure(self, loc: str) -> str:
        map, core = self.map, self.name
        placed, loose = map.tiles(core, loc, True), map.tiles(core, loc, False)
        capacity, clashes = map.capacity(loc), self.overlaps[loc]
        parts: list[str] = []
        if placed:
            peak, top = map.peak(core, loc), map.top(core, loc)
            more = f"{_count(len(placed), 'tile')}, addresses up to {top} ({_share(top, capacity)})"
            parts.append(_caption(LOCATIONS[loc], peak, capacity, more))
            hues = _hues(placed)
            for mode, scale in _scales(placed, capacity):
                parts.append(self.drawing(mode, scale, placed, clashes, hues, capacity))
            parts.append(self.foot(map.usage(core, loc).tolist(), capacity))
        problems = [_clash(o) for o in clashes] + [_beyond(v, capacity) for v in placed if v.end > capacity]
        if problems:
            items = "".join(f"<li>{escape(words)}</li>" for words in problems)
            parts.append(f'<ul class="clashes">{items}</ul>')
        if loose:
            need = map.peak(core, loc, False)
            more = f"{_count(len(loose), 'tile')} without an address; the engine keeps them apart"
            parts.append(_caption(f"{LOCATIONS[loc]}, not placed by the program", need, capacity, more))
            parts.append(self.loose(loose))
            if not placed:
                parts.append(self.foot(map.usage(core, loc, False).tolist(), capacity))
        parts.append(_table(placed + loose))
        return f'<figure id="{self.id(loc)}">{"".join(parts)}</figure>\n'

    def drawing(
        self,
        mode: str,
        scale: _Scale,
        lives: list[Life],
        clashes: list[Overlap],
        hues: dict[Life, int],
        capacity: int,
    ) -> str:
        """The map of a buffer in one scale."""
        height = scale.height
        out = [_box("plot", 0, height)]
        labels = _Labels()
        for low, high in scale.gaps:
            top, bottom = scale(high), scale(low)
            out.append(_box("gap", top, bottom - top))
            if bottom - top >= 12 and mode == "fit":
                note = f"{_size(high - low)} free"
                out.append(_text(LEFT + WIDTH - 8, (top + bottom) / 2 + 3.7, note, "note", "end"))
        for tick in scale.ticks:
            y = scale(tick)
            out.append(_line("grid", y))
            out.append(_text(LEFT - 8, min(max(y + 3.7, 8.5), height - 0.5), str(tick), "tick", "end"))
        order = sorted(lives, key=lambda v: (v.is_view, -v.size))  # small ones on top
        for part in (self.stay, self.values):
            out += [part(life, scale(life.end), scale(life.address), hues[life]) for life in order]
        for o in clashes:
            top, bottom = scale(o.high), scale(o.low)
            labels.taken += [(self.x(a), top, self.x(b), bottom) for a, b in _joined(o.spans, self.length)]
            out.append(self.marks(o.spans, top, bottom - top, "clash"))
        for life in [v for v in order if v.end > capacity]:
            a, b = self.extent(life)
            top, bottom = scale(life.end), scale(max(life.address, capacity))
            labels.taken.append((self.x(a), top, self.x(b), bottom))
            out.append(self.rect(a, b, top, bottom - top, "outside"))
        if capacity <= scale.limit:
            y = max(0.7, scale(capacity))
            out.append(_line("capacity", y))
            out.append(_text(LEFT + 8, y + 16, f"capacity {capacity}", "limit"))
            labels.taken.append((LEFT, y, LEFT + 150, y + 19))
        for life in sorted(lives, key=lambda v: (v.is_view, v.first)):
            out.append(self.label(life, scale(life.end), scale(life.address), labels))
        return self.svg(f"map {mode}", height + 2, out, f"map of {len(lives)} tiles")

    def extent(self, life: Life) -> tuple[float, float]:
        spans = _spans(life.values)
        return spans[0][0], max(b for _, b in spans)

    def stay(self, life: Life, top: float, bottom: float, hue: int) -> str:
        """A tile between its first and last use."""
        if life.is_view:
            return ""
        return self.marks(
            [self.extent(life)], top, max(1.5, bottom - top), f"stay hue{hue}", self.numbers[life]
        )

    def values(self, life: Life, top: float, bottom: float, hue: int) -> str:
        """The values of a tile; those of a view are outlines."""
        number, height = self.numbers[life], max(1.5, bottom - top)
        kind, inset = f"value hue{hue}", 0.0
        if life.is_view:
            kind, inset = "view", 2.0 if height > 10 else 0.5
        return self.marks(_spans(life.values), top + inset, height - 2 * inset, kind, number)

    def label(self, life: Life, top: float, bottom: float, labels: _Labels) -> str:
        """The name of a tile where there is room for it."""
        blocks = list(_joined(_spans(life.values), self.length))
        whole = self.extent(life)
        alone = not life.peers
        widest = max(blocks, key=lambda b: b[1] - b[0])
        beside = (whole[1], float(self.length))
        spots = [whole, widest, beside] if alone else [widest, *blocks[:8], whole]
        words = [f"%{life.name} {life.shape}", f"%{life.name}"]
        if bottom - top < 10:
            return ""
        middle = (top + bottom) / 2 + 3.9
        heights = [middle]
        if not alone and bottom - top >= 2 * LINE:
            heights = [top + 12.5, bottom - 5, middle]
            if life.views:
                heights = [bottom - 5, top + 12.5, middle]
        for text in words:
            for a, b in spots:
                for y in heights:
                    if labels.fits(text, self.x(a), self.x(b), y):
                        return self.words(a, b, y, words, text, "name")
        return self.words(*whole, middle, words, "", "name")  # room for it comes with zooming

    def loose(self, lives: list[Life]) -> str:
        """Tiles without an address, one below the other."""
        out: list[str] = []
        hues = _hues(lives)
        row = 20.0
        out.append(_box("plot", 0, row * len(lives)))
        for n, life in enumerate(sorted(lives, key=lambda v: (v.first, v.last))):
            top = n * row + 1.5
            out.append(_text(LEFT - 8, top + 12.2, _size(life.size), "tick", "end"))
            out += [part(life, top, top + row - 3, hues[life]) for part in (self.stay, self.values)]
            a, b = self.extent(life)
            text = f"%{life.name} {life.shape}"
            room = len(text) * GLYPH + 10
            if self.x(b) - self.x(a) >= room:
                out.append(self.words(a, b, top + 12.4, [text, f"%{life.name}"], text, "name"))
            elif self.x(b) + room < LEFT + WIDTH:
                out.append(self.words(b, self.length, top + 12.4, [text, f"%{life.name}"], text, "name"))
            else:
                out.append(_text(self.x(a) - 5, top + 12.4, text, "name", "end"))
        return self.svg("map", row * len(lives) + 2, out, f"{len(lives)} tiles without an address")

    def foot(self, usage: list[int], capacity: int) -> str:
        """Bytes alive over time, and the instructions."""
        band, ruler = 46.0, 17.0
        peak = max([1, *usage])
        y = [round(band + 4 - u / peak * (band - 8), 1) for u in usage]
        many = len(y) > MOST_MARKS
        path = [f"M0 {band + 4:.1f}"]
        for n, level in _levels(y, max(1, len(y) // MOST_MARKS)):
            path.append(f"H{n}V{level}")
        path.append(f"H{len(y)}V{band + 4:.1f}Z")
        curve = f' data-fine="{self.keep(_levels(y, 1))}"' if many else ""
        out = [
            _box("plot", 4, band),
            _text(LEFT - 8, 12, f"peak {_size(peak)}", "peaktext", "end"),
            _text(LEFT - 8, band + 2, "alive", "tick", "end"),
            f'<g clip-path="url(#plot)"><path class="area"{curve} d="{"".join(path)}" '
            f'transform="translate({LEFT} 0) scale({WIDTH / self.length:.6f} 1)"/></g>',
            _line("peak", 8),
        ]  # fmt: skip
        top = band + 10
        out.append(_text(LEFT - 8, top + 12, "instruction", "tick", "end"))
        for a, b, step in _runs(self.steps):
            kind = f"cell {_KINDS.get(step.pipe, 'other')}{' many' if many else ''}"
            out.append(self.rect(a, b, top, ruler, kind))
        if not many:
            for n, step in enumerate(self.steps):
                fits = self.x(1) - self.x(0) >= len(step.name) * GLYPH * 9.5 / 11 + 4
                out.append(self.words(n, n + 1, top + 12, [step.name], step.name if fits else "", "op"))
        ticks = top + ruler + 13
        for n in _round_steps(len(self.steps)):
            out.append(_text(self.x(n + 0.5), ticks, str(n), "tick time", "middle"))
        return self.svg("foot", ticks + 4, out, "bytes alive and instructions over time", (top, ruler, ticks))

    # -- marks -----------------------------------------------------------------------------------------

    def keep(self, pairs: Iterable[tuple[float, float]]) -> int:
        """A number for what is drawn in detail when a part of the time is looked at."""
        kept = tuple(v for pair in pairs for v in pair)
        return self.fine.setdefault(kept, len(self.fine))

    def marks(
        self, spans: list[tuple[float, float]], y: float, height: float, kind: str, tile: int | None = None
    ) -> str:
        """A mark for every span; where there are too many, neighbours are one until someone looks closer."""
        of = "" if tile is None else f' data-tile="{tile}"'
        if len(spans) > MOST_MARKS:
            kind += " many"
            of += f' data-fine="{self.keep(spans)}"'
        return "".join(self.rect(a, b, y, height, kind, of) for a, b in _joined(spans, self.length))

    def rect(self, a: float, b: float, y: float, height: float, kind: str, of: str = "") -> str:
        """A mark from one time to another."""
        return (
            f'<rect class="{kind}" x="{self.x(a):.2f}" y="{y:.2f}" width="{self.x(b) - self.x(a):.2f}" '
            f'height="{max(0.5, height):.2f}" data-a="{a:g}" data-b="{b:g}"{of}/>'
        )

    def words(self, a: float, b: float, y: float, choices: list[str], text: str, kind: str) -> str:
        """A label of what goes on from one time to another, of which the first that fits is shown."""
        hidden = "" if text else ' style="display:none"'
        pad = 2 if kind == "op" else 5
        return (
            f'<text class="{kind}" x="{self.x(a) + pad:.2f}" y="{y:.2f}" data-a="{a:g}" data-b="{b:g}" '
            f'data-words="{escape("|".join(choices))}"{hidden}>{escape(text or choices[0])}</text>'
        )

    def svg(
        self,
        kind: str,
        height: float,
        parts: Iterable[str],
        title: str,
        ruler: tuple[float, float, float] | None = None,
    ) -> str:
        marks = f' data-ruler="{" ".join(map(str, ruler))}"' if ruler is not None else ""
        return (
            f'<svg class="{kind}" viewBox="0 0 {TOTAL:.0f} {height:.0f}" role="img" '
            f'aria-label="{escape(title)}"{marks}>'
            + "".join(parts)
            + f'<rect class="chosen" y="0" width="0" x="0" height="{height:.0f}"/>'
            + f'<line class="cursor" x1="0" x2="0" y1="0" y2="{height:.0f}"/></svg>\n'
        )


# -- scales ------------------------------------------------------------------------------------------------


class _Scale:
    """From addresses to heights, by straight pieces between (address, y) points that go up."""

    def __init__(
        self, points: list[tuple[int, float]], ticks: list[int], gaps: list[tuple[int, int]]
    ) -> None:
        self.points = points
        self.height = points[0][1]
        self.limit = points[-1][0]
        self.ticks = ticks
        self.gaps = gaps
        self._addresses = [p[0] for p in points]

    def __call__(self, address: int) -> float:
        at = min(max(1, bisect_right(self._addresses, address)), len(self.points) - 1)
        (a, y), (b, z) = self.points[at - 1], self.points[at]
        return y + (z - y) * (min(address, self.limit) - a) / (b - a)


def _scales(lives: list[Life], capacity: int) -> Iterator[tuple[str, _Scale]]:
    top = max(v.end for v in lives)
    yield "fit", _fitted(lives, max(capacity, top))
    for mode, end in (("used", top), ("full", max(capacity, top))):
        yield mode, _Scale([(0, PLOT), (end, 0.0)], _round_addresses(end), [])


def _fitted(lives: list[Life], end: int) -> _Scale:
    """Every piece between two borders of tiles gets room for a label; free ones get a strip."""
    edges = sorted({0, end, *[v.address for v in lives], *[v.end for v in lives]})
    used = sum(b - a for a, b in pairwise(edges) if _covered(lives, a, b)) or 1
    room = min(240.0, 3 * TILE * len(lives))
    heights: list[float] = []
    gaps: list[tuple[int, int]] = []
    for low, high in pairwise(edges):
        if _covered(lives, low, high):
            several = sum(v.address <= low and high <= v.end for v in lives) > 1
            heights.append(max(TILE + LINE if several else TILE, room * (high - low) / used))
        else:
            heights.append(2 * GAP if high == end else GAP)
            gaps.append((low, high))
    y = sum(heights)
    points = [(0, y)]
    for edge, height in zip(edges[1:], heights, strict=True):
        y -= height
        points.append((edge, y))
    ticks: list[int] = []
    last = float("inf")
    for edge, y in points:
        if last - y >= 11.5:
            ticks.append(edge)
            last = y
    return _Scale(points, ticks, gaps)


def _covered(lives: list[Life], low: int, high: int) -> bool:
    return any(v.address <= low and high <= v.end for v in lives)


def _round_addresses(end: int) -> list[int]:
    step = 32
    while end / step > 8:
        step *= 2
    ticks = list(range(0, end + 1, step))
    return ticks if end - ticks[-1] < step / 2 else [*ticks, end]


def _round_steps(count: int) -> range:
    step, n = 1.0, 0
    while count / step > 16:
        step *= 2.5 if n % 3 == 1 else 2
        n += 1
    return range(0, count, int(step))


# -- marks in time -----------------------------------------------------------------------------------------


def _spans(values: list[HeldValue]) -> list[tuple[float, float]]:
    """When a tile holds its values: from the middle of a step that writes to that of the last that reads."""
    return [(v.start, v.last + 0.5 if v.last + 0.5 > v.start else v.last + 1.0) for v in values]


def _joined(spans: list[tuple[float, float]], length: int) -> Iterator[tuple[float, float]]:
    """Spans of time; where there are too many, those that are close together are one."""
    near = 0.0 if len(spans) <= MOST_MARKS else length / MOST_MARKS
    start, end = spans[0]
    for a, b in spans[1:]:
        if near and a - end < near:
            end = b
        else:
            yield start, end
            start, end = a, b
    yield start, end


def _levels(y: list[float], stretch: int) -> Iterator[tuple[int, float]]:
    """Where a curve changes, with the highest level of every stretch."""
    last = None
    for n in range(0, len(y), stretch):
        level = min(y[n : n + stretch])
        if level != last:
            yield n, level
            last = level


def _runs(steps: list[MapStep]) -> Iterator[tuple[int, int, MapStep]]:
    """Steps one by one, or of the same kind together where they are many."""
    if len(steps) <= MOST_MARKS:
        yield from ((n, n + 1, step) for n, step in enumerate(steps))
        return
    stretch = len(steps) // MOST_MARKS
    start = 0
    for n in range(stretch, len(steps), stretch):
        if _KINDS.get(steps[n].pipe) != _KINDS.get(steps[start].pipe):
            yield start, n, steps[start]
            start = n
    yield start, len(steps), steps[start]


class _Labels:
    """Where labels are already."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, float, float, float]] = []

    def fits(self, text: str, left: float, right: float, y: float) -> bool:
        """Take the room for a text if it is free."""
        width = len(text) * GLYPH
        box = (left, y - 9, left + width + 5, y + 3)
        if width + 10 > right - left or any(
            a < box[2] and box[0] < c and b < box[3] and box[1] < d for a, b, c, d in self.taken
        ):
            return False
        self.taken.append(box)
        return True


def _hues(lives: list[Life]) -> dict[Life, int]:
    """Colours in the order of the program; the same name has the same one, and so have views."""
    by_name: dict[str, int] = {}
    hues: dict[Life, int] = {}
    for life in sorted(lives, key=lambda v: (v.is_view, v.first)):
        shared = next((hues[v] for v in life.views if v in hues), None)
        hues[life] = by_name.setdefault(life.name, len(set(by_name.values())) if shared is None else shared)
    return {life: hue % HUES for life, hue in hues.items()}


# -- words -------------------------------------------------------------------------------------------------


def _box(kind: str, y: float, height: float) -> str:
    return f'<rect class="{kind}" x="{LEFT}" y="{y:.1f}" width="{WIDTH}" height="{height:.1f}"/>'


def _line(kind: str, y: float) -> str:
    return f'<line class="{kind}" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "") -> str:
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{at}>{escape(text)}</text>'


def _caption(title: str, peak: int, capacity: int, more: str) -> str:
    alive = f"peak {peak} of {capacity} bytes alive at a time (<b>{_share(peak, capacity)}</b>)"
    return f"<figcaption><h3>{title}</h3> <span>{alive}</span> <span class='soft'>{more}</span></figcaption>"


def _table(lives: list[Life]) -> str:
    head = "".join(f"<th{_left(n)}>{w}</th>" for n, w in enumerate(
        ("tile", "shape", "from byte", "to byte", "bytes", "steps", "line", "writes", "reads", "values")
    ))  # fmt: skip
    rows: list[str] = []
    for v in lives:
        where = (v.address, v.end) if v.placed else ("", "")
        cells = [f"<code>{escape(f'%{v.name}')}</code>", f"<code>{escape(v.shape)}</code>", *where, v.size,
                 f"{v.first}..{v.last}", v.line, v.writes, v.reads, len(v.values)]  # fmt: skip
        rows.append("<tr>" + "".join(f"<td{_left(n)}>{c}</td>" for n, c in enumerate(cells)) + "</tr>")
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>"
    return f"<details><summary>table of the tiles</summary>{table}</details>"


def _left(column: int) -> str:
    return ' class="l"' if column < 2 else ""


def _key() -> str:
    def sample(inside: str) -> str:
        return f'<svg width="34" height="16" viewBox="0 0 34 16" aria-hidden="true">{inside}</svg>'

    def box(kind: str, x: float = 1, width: float = 32, y: float = 1, height: float = 14) -> str:
        return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>'

    items = (
        (
            box("stay hue0") + box("value hue0", width=18),
            "a tile between its first and last use; solid while it holds a value",
        ),
        (box("value hue0") + box("view", 3, 28, 3, 10), "a view of another tile"),
        (box("clash"), "overlap: two values on the same bytes"),
        (
            box("load", 1, 10) + box("work", 12, 10) + box("save", 23, 10),
            "instructions that load, compute, store",
        ),
    )
    return '<div class="key">' + "".join(f"<span>{sample(s)}{words}</span>" for s, words in items) + "</div>"


def _clash(o: Overlap) -> str:
    writers = sorted({line for (_, line, write) in o.b.uses if write})
    readers = sorted({line for (_, line, write) in o.a.uses if not write})
    lines = f"; %{o.b.name} is written in {_lines(writers)}" if writers else ""
    lines += f", %{o.a.name} is read in {_lines(readers)}" if readers else ""
    return o.text() + lines


def _beyond(life: Life, capacity: int) -> str:
    return f"%{life.name} takes bytes {life.address}..{life.end}, beyond the capacity of {capacity}"


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6])) + (", .." if len(numbers) > 6 else "")
    return f"line{'s' if len(numbers) > 1 else ''} {shown}"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.1f}".removesuffix(".0") + " KiB"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "there is no such buffer"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
