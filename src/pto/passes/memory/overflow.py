"""Reports of tiles that do not fit: the missing bytes, the tiles at the worst step, and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...diag import Source
from ...ir.core import Operation
from ...ir.types import TileBufType
from ...isa.profiles import LOCATIONS, PROFILES
from ..aliases import AllocatedStorage
from .accumulate import accumulated
from .pack import conflicts, smallest
from .placements import MemoryPlan, shape_of

if TYPE_CHECKING:
    from ..pipeline import PassContext
    from .strategy import Planner

#: Tiles listed one by one.
_LISTED = 12


def report_unsized(ctx: PassContext, op: Operation) -> None:
    ctx.report(
        op,
        "PTO-E0703",
        "cannot place storage of dynamic size",
        at=op.results[0],
        expected="constant extents",
        got=str(op.results[0].type),
        help="give the memref static dimensions",
    )


def report(ctx: PassContext, space: Planner) -> None:
    """Report that the tiles of a buffer do not fit."""
    _Overflow(ctx, space).report()


def warn_of_sharing(ctx: PassContext, plan: MemoryPlan) -> None:
    """Warn about flags of the author that do not order tiles which share bytes."""
    for function in plan.functions.values():
        if all(space.sharing == "none" for space in function.spaces.values()):
            continue
        ops = function.function.walk()
        flag = next((op for op in ops if op.row is not None and op.row.order == "set"), None)
        shared = ((t, t.shares()) for space in function.spaces.values() for t in space.tiles)
        found = next(((t, names) for t, names in shared if names), None) if flag is not None else None
        if flag is None or found is None:
            continue
        tile, others = found
        d = ctx.report(
            tile.storage.op,
            "PTO-E0704",
            f"%{tile.name} shares bytes with {', '.join(others[:3])}{', ..' if others[3:] else ''}, and the "
            f"flags of '@{function.name}' may not order their uses",
            at=tile.value,
            severity="warning",
            help="remove your flags and use --enable-insert-sync, or place the tiles by hand (level3)",
        )
        d.notes.append(("a flag set by hand", ctx.span(flag)))


def warn_of_accumulator(ctx: PassContext, op: Operation) -> None:
    """Warn about an accumulator that hardware would ignore, because it adds to the destination."""
    source, target = accumulated(op), op.get("dst")
    assert op.row is not None and source is not None and target is not None
    name = op.row.accumulates
    ctx.report(
        op,
        "PTO-E0705",
        f"cannot use %{source.name} as {name} of %{target.name}: the two tiles cannot share bytes",
        at=source,
        severity="warning",
        expected=f"a tile for {name} that has the type of dst and is not used later",
        got=f"%{source.name}, which is used later, or has another type",
        help="accumulate into the tile itself, or copy it first; engines on the CPU follow the text",
    )


class _Overflow:
    """The worst step of a buffer, after sharing as much as possible."""

    def __init__(self, ctx: PassContext, space: Planner) -> None:
        self.ctx = ctx
        self.space = space
        items, groups = space.least()
        self.peak, step = space.load(items, groups)
        loose = range(len(groups))
        self.needed = smallest(items, conflicts(items), loose, self.peak)
        self.there = [s for s in space.used if _at(s.spans, step) or _at(s.below, step)]
        self.there.sort(key=lambda s: (-s.footprint, s.bit))
        live = space.live
        self.op = live.steps[step] if step < len(live.steps) else self.there[0].op
        self.line = self.line_of(self.op)
        #: Bytes at the worst step: scratch of the target itself, and bytes that two tiles share.
        self.hidden = sum(h.size for h in space.hidden if _at(h.spans, step))
        together = sum(s.footprint for s in self.there) + self.hidden
        self.twice = 0 if live.calls else together - self.peak

    def line_of(self, op: Operation) -> str:
        return self.ctx.module.line(op)

    def report(self) -> None:
        loc, capacity = self.space.loc, self.space.capacity
        where = f"{loc} ({LOCATIONS[loc]})"
        if capacity == 0:
            what = f"{self.ctx.profile.name} has no {where} buffer"
        elif self.peak > capacity:
            why = f"{self.peak} bytes are in use at line {self.line}"
            what = f"tiles do not fit {where}: {why}, {capacity} are available"
        else:
            why = f"no packing was found below byte {self.needed}"
            what = f"tiles do not fit {where}: {why}, {capacity} are available"
        last = max(self.there, key=lambda s: (s.spans[0][0], s.bit))
        d = self.ctx.report(
            last.op,
            "PTO-E0702",
            what,
            at=last.value,
            expected=f"at most {capacity} bytes",
            got=f"{self.needed} bytes, {self.needed - capacity} too many",
            help=self.help(),
        )
        shared = f", {self.twice} of them for two" if self.twice > 0 else ""
        name = self.op.row.name if self.op.row is not None else self.op.name
        d.notes.append((f"in use at line {self.line} ({name}), {self.peak} bytes{shared}:", None))
        d.notes += [(self.row(s), None) for s in self.there[:_LISTED]]
        if self.hidden:
            d.notes.append((f"  scratch of {name} that the target allocates, {self.hidden} bytes", None))
        if len(self.there) > _LISTED:
            rest = sum(s.footprint for s in self.there[_LISTED:])
            d.notes.append((f"and {len(self.there) - _LISTED} more, {rest} bytes", None))

    def row(self, s: AllocatedStorage) -> str:
        lines = self.lines_of(self.users(s))
        used = f"used in lines {lines}" if lines else "used by the other end of its FIFO"
        return (
            f"  %{s.value.name or '?'} {shape_of(s)}, {s.footprint} bytes, line {self.line_of(s.op)}, {used}"
        )

    def lines_of(self, ops: list[Operation]) -> str:
        """Return the first and the last line of operations, for each of their files."""
        first: dict[Source, Operation] = {}
        last: dict[Source, Operation] = {}
        module = self.ctx.module
        for op in sorted(ops, key=lambda op: module.span(op).start):
            first.setdefault(module.span(op).source, op)
            last[module.span(op).source] = op
        return " and ".join(f"{module.span(a).line}..{module.line(last[s])}" for s, a in first.items())

    def users(self, s: AllocatedStorage) -> list[Operation]:
        live, bit = self.space.live, 1 << s.bit
        return [op for n, op in enumerate(live.steps) if (live.reads[n] | live.writes[n]) & bit]

    def smaller(self, over: int) -> str:
        """Suggest fewer rows for the largest tile and all tiles of its type."""
        big = self.there[0]
        type = big.value.type
        alike = [s for s in self.there if s.value.type is type or s.value.type == type]
        if not isinstance(type, TileBufType):
            return f"make %{big.value.name or '?'} {over} bytes smaller" if over < big.footprint else ""
        row = big.footprint // type.rows
        less = -(-over // (row * len(alike)))
        step = 16 if type.slayout != "none_box" else 1  # rows of a box stay together
        rows = (type.rows - less) // step * step
        if rows <= 0 or row == 0:
            return ""
        names = ", ".join(f"%{s.value.name or '?'}" for s in alike[:4]) + (", .." if len(alike) > 4 else "")
        return f"make {names} smaller: from {type.rows} to {rows} rows{' each' if len(alike) > 1 else ''}"

    def help(self) -> str:
        capacity, over = self.space.capacity, self.needed - self.space.capacity
        ways: list[str] = []
        if capacity:
            ways.append(
                self.smaller(over) or f"use tiles of 1/{-(-self.needed // capacity)} of the size, in a loop"
            )
        idle = [s for s in self.there if self.op not in self.users(s)]
        if idle and sum(s.footprint for s in idle) >= over:
            few = ", ".join(f"%{s.value.name or '?'}" for s in idle[:3]) + (", .." if len(idle) > 3 else "")
            ways.append(f"use {few} for the last time before line {self.line}, or allocate it later")
        if capacity and self.peak <= capacity:
            ways.append(f"place the tiles by hand (level3): only {self.peak} bytes are in use at a time")
        if self.hidden:
            ways.append(f"give the instruction of line {self.line} a scratch tile")
        homes = [p.name for p in PROFILES.values() if p.capacity[self.space.loc] >= self.needed]
        if homes and self.ctx.profile.name not in homes:
            ways.append(f"use a target with more memory: {' or '.join(homes)}")
        return "; ".join(ways)


def _at(spans: list[tuple[int, int]], step: int) -> bool:
    return any(a <= step <= b for a, b in spans)
