"""Addresses for all tiles of an auto program.

    %a = pto.alloc_tile : !pto.tile_buf<vec, 64x64xf32>        %c0_i64 = arith.constant 0 : i64
    %b = pto.alloc_tile : !pto.tile_buf<vec, 64x64xf32>   ->   %c16384_i64 = arith.constant 16384 : i64
                                                               %a = pto.alloc_tile addr = %c0_i64 : ..
                                                               %b = pto.alloc_tile addr = %c16384_i64 : ..

Each buffer is planned separately, for all functions that call each other. If everything fits, no bytes are
shared, so that pipes wait least. Otherwise tiles share bytes, the cheapest sharing first: see `SHARING`. As a
last resort, scratch that the target does not use and tiles without a write are not counted. Local memrefs
become `pto.pointer_cast`, reserved buffers get their `base`. The result is a program in manual form;
`ctx.plan` has the decisions, for `--explain-memory`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..diag import has_errors
from ..ir.attrs import IntAttr
from ..ir.core import Module, Operation, Value
from ..ir.facts import places_tile
from ..ir.types import I64
from ..isa.profiles import LOCATIONS
from .aliases import Aliases, AllocatedStorage
from .edit import constant, function_name, make, operations, replace_values, rewrite
from .liveness import Liveness
from .memory.accumulate import Accumulators
from .memory.placements import MemoryPlan
from .memory.strategy import Planner
from .pipeline import PassContext

__all__ = ["MemoryPlan", "components", "run"]


def run(ctx: PassContext) -> None:
    """Give every tile an address."""
    _drop_assignments(ctx.module)
    plan = MemoryPlan(ctx.module, ctx.profile)
    placed: dict[AllocatedStorage, int] = {}
    for functions, callees in components(ctx.module):
        aliases = Aliases(functions, callees, ctx.profile)
        for op in aliases.unsized:
            _reports().report_unsized(ctx, op)
        if not aliases.storages:
            continue
        spaces = _solve(ctx, aliases, least=False)
        if not all(spaces.values()):
            spaces = _solve(ctx, aliases, least=True)
        for space, fits in spaces.items():
            if fits:
                placed.update(space.addresses)
                plan.add(space)
            else:
                _reports().report(ctx, space)
    ctx.plan = plan
    if not has_errors(ctx.diagnostics):
        _write(placed)
        if any(space.sharing != "none" for f in plan.functions.values() for space in f.spaces.values()):
            _reports().warn_of_sharing(ctx, plan)


def _drop_assignments(module: Module) -> None:
    """Remove `pto.tassign` of tiles, which has no effect in auto mode: its result is the tile."""
    same: dict[Value, Value] = {}
    for function in module.functions:
        for region in function.regions:
            found = [op for op in operations(region) if places_tile(op)]
            same.update((result, op.operands[0]) for op in found for result in op.results)
            if found:
                rewrite(region, lambda op: [] if places_tile(op) else None)
                replace_values(region, same)


def _reports() -> ModuleType:
    """Return the module of reports about memory, which few programs need."""
    return import_module(f"{__package__}.memory.overflow")


def _solve(ctx: PassContext, aliases: Aliases, least: bool) -> dict[Planner, bool]:
    """Plan all buffers of some functions; return the plans, with True for each that fits."""
    live = Liveness(aliases, ctx.kinds, least)
    order = _by_first_write(live)
    accumulators = Accumulators(live)
    if not least:
        for op in accumulators.wrong:
            _reports().warn_of_accumulator(ctx, op)
    spaces: dict[Planner, bool] = {}
    for loc in LOCATIONS:
        here = [s for s in order if s.loc == loc]
        if here:
            space = Planner(ctx, live, loc, here, accumulators)
            spaces[space] = space.solve()
    return spaces


def components(module: Module) -> list[tuple[list[Operation], dict[Operation, Operation]]]:
    """Return groups of functions that call each other, with the definition for each call."""
    functions = [f for f in module.functions if f.regions and f.regions[0].blocks]
    group = {f: [f] for f in functions}
    callees: dict[Operation, Operation] = {}
    if len(functions) > 1:
        known = {(id(f.parent), function_name(f)): f for f in functions}
        anywhere = {function_name(f): f for f in reversed(functions)}
        for function in functions:
            for op in function.walk():
                if op.name == "func.call":
                    name = str(op.attr("callee"))
                    callee = known.get((id(function.parent), name)) or anywhere.get(name)
                    if callee is not None:
                        callees[op] = callee
                        if group[callee] is not group[function]:
                            group[function].extend(group[callee])
                            for f in group[callee]:
                                group[f] = group[function]
    number = {f: n for n, f in enumerate(functions)}
    parts = {id(g): sorted(g, key=lambda f: number[f]) for g in group.values()}
    return [(part, callees) for part in sorted(parts.values(), key=lambda part: number[part[0]])]


def _by_first_write(live: Liveness) -> list[AllocatedStorage]:
    """Return storages in the order of their first content; reserved ones last."""
    first: dict[int, int] = {}
    for masks in (live.writes, live.reads):
        seen = 0
        for bit in first:
            seen |= 1 << bit
        for step, mask in enumerate(masks):
            new = mask & ~seen
            if new:
                seen |= new
                for storage in live.aliases.members(new):
                    first[storage.bit] = step
    end = len(live.steps)
    return sorted(live.aliases.storages, key=lambda s: (s.reserved, first.get(s.bit, end), s.bit))


def _write(placed: dict[AllocatedStorage, int]) -> None:
    """Write the addresses into the program."""
    constants: dict[Operation, dict[int, Operation]] = {}
    for storage, address in placed.items():
        if storage.reserved:
            storage.op.set_attr("base", IntAttr(address, I64))
            continue
        known = constants.setdefault(storage.function, {})
        if address not in known:
            known[address] = constant(address, I64, storage.op, f"c{address}_i64")
        _place(storage.op, known[address].result)
    for function, known in constants.items():
        entry = function.regions[0].blocks[0]
        fresh = [known[address] for address in sorted(known)]
        for op in fresh:
            op.parent = entry
        entry.ops[:0] = fresh


def _place(op: Operation, address: Value) -> None:
    if op.name == "pto.alloc_tile":
        assert op.segments is not None
        op.operands = [address, *op.operands]
        op.segments = (1, *op.segments[1:])
        return
    made = make("pto.pointer_cast", op, addrs=[address])
    op.name, op.row, op.operands, op.segments, op.attrs = (
        made.name,
        made.row,
        made.operands,
        made.segments,
        made.attrs,
    )
