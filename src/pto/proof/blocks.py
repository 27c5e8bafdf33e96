"""Races between blocks, and between the cores of a block: pairs of accesses to the same argument, on two
symbolic cores."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

from ..engine.sanitize.race_access import hazard
from ..symbolic.terms import Term, Truth, eq, negated, replaced, symbols
from .context import GlobalAccess, ProofContext
from .order import elsewhere
from .values import changed, meet


def across(context: ProofContext) -> None:
    """Compare every two accesses to global memory on two cores."""
    for a, b in combinations_with_replacement(context.accesses.values(), 2):
        context.solver.check_time()
        ordered = a.phase != b.phase or (a.atomic and b.atomic) or not (a.write or b.write)
        if not ordered and a.place.root is b.place.root:
            _compare(context, a, b)


def _compare(context: ProofContext, a: GlobalAccess, b: GlobalAccess) -> None:
    values = elsewhere(b.loops, symbols((b.place, b.facts)), context.block, context.subblock)
    change: Callable[[Any], Any] = lambda x: replaced(x, values)  # noqa: E731
    shared = meet(a.place, changed(b.place, change))
    if shared is False:
        return
    facts: list[Any] = [*a.facts, *map(change, b.facts), shared]
    kind = hazard(a.write, b.write)
    line = f" at line {b.op.loc.line}" if b.op.loc is not None else ""
    block, sub = context.block, context.subblock
    if isinstance(block, Term):
        other = change(block)
        apart = [other < context.blocks, negated(eq(block, other))]
        why = f"{kind} race between blocks, with the access{line}"
        context.violated("blocks", a.op, [*facts, *apart], why, b.op)
    if not context.mixed:
        return
    same: list[Truth] = [eq(block, change(block))] if isinstance(block, Term) else []
    if a.core != b.core:
        why = f"{kind} race between cores, with the access{line}"
        context.violated("pipes", a.op, [*facts, *same], why, b.op)
    elif a.core == "vector" and isinstance(sub, Term):
        why = f"{kind} race between vector cores, with the access{line}"
        context.violated("pipes", a.op, [*facts, *same, negated(eq(sub, change(sub)))], why, b.op)
