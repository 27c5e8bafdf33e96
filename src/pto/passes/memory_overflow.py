"""What to say when tiles do not fit: how much is missing, who is there at the worst moment, and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.core import Operation
from ..ir.types import TileBufType
from ..isa.profiles import LOCATIONS, PROFILES
from .aliases import Storage
from .allocate import conflicts, load, smallest

if TYPE_CHECKING:
    from .pipeline import PassContext
    from .share_memory import Planner

#: Tiles listed one by one.
_LISTED = 12


def report_unsized(ctx: PassContext, op: Operation) -> None:
    ctx.report(
        op,
        "PTO-E0703",
        "storage of unknown size cannot be placed",
        at=op.results[0],
        expected="constant extents",
        got=str(op.results[0].type),
        help="give the memref static dimensions",
    )


def report(ctx: PassContext, space: Planner) -> None:
    """The error of a buffer whose tiles do not fit."""
    capacity, loc = space.capacity, space.loc
    items, members = space.least()
    peak, step = load(items)
    needed = smallest(items, conflicts(items), range(len(items)))
    there = [
        s for n, item in enumerate(items) for s in members[n] if _at(s.spans, step) and _at(item.spans, step)
    ]
    shown = sorted(there, key=lambda s: (-s.footprint, s.bit))
    last = max(there, key=lambda s: (s.spans[0][0], s.bit))
    op = space.live.steps[step] if step < len(space.live.steps) else last.op
    line = _line(ctx, op)
    where = f"{loc} ({LOCATIONS[loc]})"
    if capacity == 0:
        what = f"{ctx.profile.name} has no {where} buffer"
    elif peak > capacity:
        what = f"tiles do not fit {where}: {peak} bytes are in use at line {line}, {capacity} are available"
    else:
        what = (
            f"tiles do not fit {where}: no way was found to place them below {needed} bytes, "
            f"{capacity} are available"
        )
    d = ctx.report(
        last.op,
        "PTO-E0702",
        what,
        at=last.value,
        expected=f"at most {capacity} bytes",
        got=f"{needed} bytes, {needed - capacity} too many",
        help=_help(ctx, space, shown, needed, line),
    )
    total = sum(s.footprint for s in there)
    d.notes.append((f"in use at line {line} ({_name(op)}), {total} bytes:", None))
    for s in shown[:_LISTED]:
        d.notes.append((_row(ctx, space, s), None))
    if len(shown) > _LISTED:
        rest = sum(s.footprint for s in shown[_LISTED:])
        d.notes.append((f"and {len(shown) - _LISTED} more, {rest} bytes", None))


def _row(ctx: PassContext, space: Planner, s: Storage) -> str:
    from .memory_plan import shape_of

    live = space.live
    bit = 1 << s.bit
    touching = [op for n, op in enumerate(live.steps) if (live.reads[n] | live.writes[n]) & bit]
    lines = [_line(ctx, op) for op in touching]
    used = f"used in lines {min(lines)}..{max(lines)}" if lines else "used by another core"
    return f"%{s.value.name or '?'} {shape_of(s)}, {s.footprint} bytes, line {_line(ctx, s.op)}, {used}"


def _help(ctx: PassContext, space: Planner, shown: list[Storage], needed: int, line: int) -> str:
    ways: list[str] = []
    over = needed - space.capacity
    big = shown[0]
    type = big.value.type
    if isinstance(type, TileBufType) and over < big.footprint:
        per_row = big.footprint / type.rows
        rows = int((big.footprint - over) // per_row)
        name = f"%{big.value.name or '?'}"
        if rows >= 1:
            ways.append(f"make {name} {over} bytes smaller (at most {rows} of its {type.rows} rows)")
        else:
            ways.append(f"make {name} {over} bytes smaller")
    elif len(shown) > 1 and over >= big.footprint:
        half = -(-needed // max(1, space.capacity))
        ways.append(f"work on tiles of 1/{half} of the size" if half > 1 else "split the tiles")
    later = [s for s in shown if not _touched_near(space, s, line)]
    if later and sum(s.footprint for s in later) >= over:
        ways.append(f"use {_names(later)} earlier, or load it again after line {line}")
    homes = [p.name for p in PROFILES.values() if p.capacity[space.loc] >= needed]
    if homes:
        ways.append(f"it fits {' and '.join(homes)}")
    return "; ".join(ways)


def _touched_near(space: Planner, s: Storage, line: int) -> bool:
    live = space.live
    bit = 1 << s.bit
    return any(
        (live.reads[n] | live.writes[n]) & bit and _line(space.ctx, op) == line
        for n, op in enumerate(live.steps)
    )


def _names(storages: list[Storage]) -> str:
    names = [f"%{s.value.name or '?'}" for s in storages[:3]]
    return ", ".join(names) + (", .." if len(storages) > 3 else "")


def _name(op: Operation) -> str:
    return op.row.name if op.row is not None else op.name


def _line(ctx: PassContext, op: Operation) -> int:
    return ctx.module.source.place(op.start)[0]


def _at(spans: list[tuple[int, int]], step: int) -> bool:
    return any(a <= step <= b for a, b in spans)
