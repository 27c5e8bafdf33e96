"""The result of memory planning for people: `text` for a terminal, `html` as a page with a map.

    UB of @softmax: 67648 of 196608 bytes in use at most (34%), addresses up to 100480 (51%), 21 steps
      no bytes are shared
      0 [#################################...............................] 196608
            bytes  tile  shape       line  writes  reads  steps  shared with
         0..32768  %tx   16x512xf32    61       3      6  |#######------|

The page is that of `pto run --memory-map`, with steps of the program text instead of steps of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.core import Operation
from ..ir.facts import pipe_of
from .memory.placements import BufferSpace, FunctionPlan, MemoryPlan, PlacedTile
from .memory.strategy import SHARING

if TYPE_CHECKING:
    from ..perf.memory_map import Life

#: Characters of the bar of a buffer and, at most, of the lifetime of a tile.
_BAR, _LIFE = 64, 48

_TIME = "Steps are instructions that access tiles, in text order; a loop counts as one iteration."


def text(plan: MemoryPlan) -> str:
    """Return a table of the tiles of every buffer."""
    parts = [
        _space(plan, function, space)
        for function in plan.functions.values()
        for space in function.spaces.values()
    ]
    return "\n\n".join(parts) if parts else "no tile to place"


def _space(plan: MemoryPlan, function: FunctionPlan, space: BufferSpace) -> str:
    capacity, peak, top = space.capacity, space.peak, space.top
    out = [
        f"{space.title} of @{function.name}: {peak} of {capacity} bytes in use at most "
        f"({_share(peak, capacity)}), addresses up to {top} ({_share(top, capacity)}), "
        f"{_count(len(function.steps), 'step')}",
        f"  {SHARING[space.sharing]}",
        f"  0 [{_bar(space)}] {capacity}",
    ]
    tiles = sorted(space.tiles, key=lambda t: (not t.spans, t.address, t.first))
    rows = [["bytes", "tile", "shape", "line", "writes", "reads", "steps", "shared with"]]
    for t in tiles:
        uses = t.uses()
        shares = t.shares()
        rows.append([
            f"{t.address}..{t.end}", f"%{t.name}", t.shape, plan.module.line(t.storage.op),
            str(sum(u.writes for u in uses)), str(sum(u.reads for u in uses)), _life(t, len(function.steps)),
            ", ".join(shares[:3]) + (f" and {len(shares) - 3} more" if len(shares) > 3 else ""),
        ])  # fmt: skip
    widths = [max(len(r[n]) for r in rows) for n in range(len(rows[0]))]
    for r in rows:
        cells = [w.ljust(widths[n]) if n in (1, 2, 6, 7) else w.rjust(widths[n]) for n, w in enumerate(r)]
        out.append(("  " + "  ".join(cells)).rstrip())
    for step, name, end in space.calls():
        if end:
            out.append(f"  step {step} calls @{name}, which uses bytes 0..{end}")
    return "\n".join(out)


def _life(tile: PlacedTile, steps: int) -> str:
    """Return the steps at which a tile is live: '#', or '+' for a part of them."""
    if not tile.spans:
        return "|no use|"
    width = min(_LIFE, max(1, steps))
    out = ""
    for n in range(width):
        low, high = n * steps // width, max(n * steps // width + 1, (n + 1) * steps // width)
        busy = sum(max(0, min(b + 1, high) - max(a, low)) for a, b in tile.spans)
        out += "#" if busy == high - low else "+" if busy else "-"
    return f"|{out}|"


def _bar(space: BufferSpace) -> str:
    """Return the used parts of a buffer: '#', or '=' if tiles share."""
    ends = [(t.address, t.end) for t in space.tiles if t.spans]
    bar = ""
    for n in range(_BAR):
        low, high = n * space.capacity / _BAR, (n + 1) * space.capacity / _BAR
        there = [(a, b) for a, b in ends if a < high and low < b]
        shared = any(c < b and a < d for n, (a, b) in enumerate(there) for c, d in there[:n])
        bar += "=" if shared else "#" if there else "."
    return bar


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "no such buffer"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


# -- the page ----------------------------------------------------------------------------------------------


def html(plan: MemoryPlan) -> str:
    """Return a page with the map of every buffer: steps to the right, addresses upwards."""
    from ..perf.explorer.memory import html as draw
    from ..perf.memory_map import MapStep, MemoryMap  # not needed to compile

    picture = MemoryMap(plan.profile)
    for function in plan.functions.values():
        core = f"@{function.name}" if len(plan.functions) > 1 else "core"
        picture.steps[core] = [
            MapStep(_name(op), plan.line(op), pipe_of(op, plan.profile) or "S") for op in function.steps
        ]
        picture.lives[core] = _lives(plan, function)
    names = [f"@{name}" for name in plan.functions]
    title = names[0][1:] if len(names) == 1 else ", ".join(names)[1:]
    ways = {f"{s.title}: {SHARING[s.sharing]}" for f in plan.functions.values() for s in f.spaces.values()}
    about = f"planned for {plan.profile.title} ({plan.profile.name}). {'; '.join(sorted(ways))}. {_TIME}"
    source = plan.module.source
    return draw(picture, title, about, {source.name: source.text} if source is not None else None)


def _lives(plan: MemoryPlan, function: FunctionPlan) -> list[Life]:
    from ..perf.memory_map import HeldValue, Life

    lives: list[Life] = []
    for space in function.spaces.values():
        here: list[Life] = []
        for tile in space.tiles:
            if not tile.spans:
                continue
            uses = tile.uses()
            life = Life(space.loc, tile.name, tile.address, tile.size, plan.line(tile.storage.op), tile.shape)
            writing = {u.step for u in uses if u.writes}
            for first, last in tile.spans:
                value = HeldValue(first, first in writing)
                value.last = last
                life.values.append(value)
            life.writes, life.reads = len(writing), sum(u.reads for u in uses)
            life.written = max(writing, default=-1)
            for u in uses:
                for kind in (*([False] if u.reads else []), *([True] if u.writes else [])):
                    life.uses[_name(u.op), plan.line(u.op), kind] = 1
            for other in here:
                if other.address < life.end and life.address < other.end:
                    other.peers.append(life)
                    life.peers.append(other)
            here.append(life)
        lives += here
    return lives


def _name(op: Operation) -> str:
    return op.row.name if op.row is not None else op.name
