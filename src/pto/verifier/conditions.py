"""Branch conditions in a comparable form.

A condition becomes `(key, truth)`: two values that compute the same pure expression of the same SSA values
have the same key, and opposite conditions (`eq` and `ne`, `slt` and `sge`) differ only in `truth`. A
comparison of a loop's induction variable that holds exactly in the first or last iteration gets the key
(FIRST, loop) or (LAST, loop). With it the flag check finds that `if c {set} ... if c {wait}` has two paths,
not four.

Sums and casts from index to a narrower integer are assumed not to wrap run-time numbers, as in
`passes/sync/affine.py`. The numbers of a loop with constant bounds must fit. Casts that read a number as
unsigned, or drop bits of any other integer, stay in the key.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from ..ir.core import Block, Operation, Value, constant_of
from ..ir.facts import enclosing
from ..isa.scalars import bounds, width

Key = Any  # a nested tuple of strings, numbers, values and loops: compared and hashed only
Fact = tuple[Key, bool]

FIRST, LAST = "first iteration", "last iteration"
_DEPTH = 8  # depth of an expression that is compared by structure; deeper parts are compared by identity
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip


def condition_of(value: Value) -> Fact:
    """Return the fact that holds when an i1 is true; the key is None for a constant."""
    known = constant_of(value)
    if known is not None:
        return None, bool(known)
    op = value.op
    if op is not None and op.name == "arith.xori" and constant_of(op.operands[1]) == 1:
        key, truth = condition_of(op.operands[0])
        return key, not truth
    if op is None or op.name != "arith.cmpi":
        return key_of(value), True
    predicate, (a, b) = str(op.attr("predicate")), op.operands
    sign, relation = ("", predicate) if predicate in ("eq", "ne") else (predicate[0], predicate[1:])
    for tested, against, r in ((a, b, relation), (b, a, _SWAPPED[relation])):
        found = _iteration(tested, against, r, sign == "u")
        if found is not None:
            return found
    return _ordered(sign, relation, key_of(a), key_of(b))


def runs(loop: Operation) -> Fact:
    """Return the fact that holds when an scf.for has at least one iteration."""
    return _ordered("s", "lt", key_of(loop.operands[0]), key_of(loop.operands[1]))


def equals(value: Value, number: int) -> Fact:
    return _ordered("", "eq", key_of(value), ("constant", number))


def trip_count(loop: Operation) -> int | None:
    """Return the number of iterations of an scf.for with constant bounds."""
    lb, ub, step = (constant_of(v) for v in loop.operands[:3])
    if not (isinstance(lb, int) and isinstance(ub, int) and isinstance(step, int)) or step <= 0:
        return None
    return max(0, -((lb - ub) // step))


def depends_on(key: Key, scope: Operation) -> bool:
    """Return True if a condition depends on a value computed inside an operation."""
    if isinstance(key, tuple):
        parts = cast("tuple[Key, ...]", key)
        return any(depends_on(part, scope) for part in parts)
    if isinstance(key, Value):
        return _inside(key.owner, scope)
    return isinstance(key, Operation) and _inside(key, scope)


def key_of(value: Value, depth: int = _DEPTH) -> Key:
    known = constant_of(value)
    if known is not None:
        return "constant", known
    op = value.op
    if op is not None and _keeps_number(op):
        return key_of(op.operands[0], depth)
    query = op is not None and op.name.startswith("pto.get_") and not op.operands
    if op is None or depth == 0 or not (query or op.name.startswith("arith.")):
        return value
    attrs = tuple(sorted((name, str(a.value)) for name, a in op.attrs.items()))
    types: tuple[str, ...] = ()
    if len(op.operands) == 1 or len(op.results) > 1 or (op.row is not None and "unsigned(" in op.row.expr):
        types = str(op.operands[0].type) if op.operands else "", str(value.type)  # the width matters
    return op.name, attrs, types, value.index, tuple(key_of(v, depth - 1) for v in op.operands)


def _keeps_number(op: Operation) -> bool:
    """Check whether an operation is a cast that keeps the number, or is assumed to."""
    if op.name not in ("arith.extsi", "arith.index_cast", "arith.index_castui"):
        return False
    have, want = (width(str(v.type)) or 64 for v in (op.operands[0], op.results[0]))
    return have > 1 and want > 1 and (op.name != "arith.index_castui" or want <= have)


def _ordered(sign: str, relation: str, a: Key, b: Key) -> Fact:
    """Return a comparison as `eq` or `lt`, or its negation."""
    if relation in ("eq", "ne"):
        if isinstance(a, tuple) and a[0] == "constant":
            return ("eq", b, a), relation == "eq"  # type: ignore[reportUnknownVariableType]
        return ("eq", a, b), relation == "eq"
    if relation in ("gt", "le"):
        a, b = b, a
    return (sign + "lt", a, b), relation in ("lt", "gt")


def _iteration(x: Value, y: Value, relation: str, unsigned: bool) -> Fact | None:
    """Return the fact of `iv + constant RELATION y` that singles out the first or the last iteration."""
    base, offset, (least, most) = _linear(x)
    loop = _loop_of(base)
    if loop is None:
        return None
    step = constant_of(loop.operands[2])
    (to, shift, _), (lb, low, _), (ub, high, _) = (_linear(v) for v in (y, *loop.operands[:2]))
    trips = trip_count(loop)
    if unsigned and (min(offset, shift) < 0 or (lb is None and low < 0)):
        return None  # the unsigned order differs for negative numbers
    if trips is not None and to is None:
        assert isinstance(step, int)  # otherwise the number of iterations would be unknown
        if low < least or low + max(0, trips - 1) * step > most:
            return None
        points = (low + n * step for n in (0, 1, trips - 2, trips - 1))
        truths = [_COMPARE[relation](p + offset, shift) for p in points]
        if trips == 1 or (relation not in ("eq", "ne") and truths[0] == truths[3]):
            return None, truths[0]
        if trips and truths[0] != truths[1] and _only(relation, truths[0], early=True):
            return (FIRST, loop), truths[0]
        if trips and truths[3] != truths[2] and _only(relation, truths[3], early=False):
            return (LAST, loop), truths[3]
        return None
    if to is lb:
        at_first = _COMPARE[relation](low + offset, shift)
        next_one = _COMPARE[relation](low + offset + (step if isinstance(step, int) else 1), shift)
        if at_first != next_one and _only(relation, at_first, early=True):
            return (FIRST, loop), at_first
    elif to is not None and to is ub and isinstance(step, int):
        # ub - step <= iv < ub in the last iteration, iv < ub - step before: only this bound separates them.
        distance = shift - offset - high + step  # iv RELATION ub - step + distance
        if (relation, distance) in (("lt", 0), ("le", -1)) or (relation, distance, step) == ("ne", 0, 1):
            return (LAST, loop), False
        if (relation, distance) in (("ge", 0), ("gt", -1)) or (relation, distance, step) == ("eq", 0, 1):
            return (LAST, loop), True
    return None


def _only(relation: str, truth: bool, early: bool) -> bool:
    """Return True if a condition that changes once as the left side grows has this truth only in that one
    iteration.
    """
    if relation in ("eq", "ne"):
        return truth == (relation == "eq")
    return truth == ((relation in ("lt", "le")) == early)


def _linear(value: Value) -> tuple[Value | None, int, tuple[int, int]]:
    """Return a value as base + constant offset, with the range of the base in which no step of the sum wraps.
    The base is None for a constant."""
    offset = 0
    limits: list[tuple[int, int, int]] = []  # offset after a step, and the range of its type
    for _ in range(_DEPTH):
        known = constant_of(value)
        if isinstance(known, int):
            return None, offset + known, (known, known)
        op = value.op
        if op is None:
            break
        added = constant_of(op.operands[1]) if op.name in ("arith.addi", "arith.subi") else None
        if not isinstance(added, int) and not _keeps_number(op):
            break
        limits.append((offset, *bounds(str(value.type))))
        if isinstance(added, int):
            offset += added if op.name == "arith.addi" else -added
        value = op.operands[0]
    least, most = bounds(str(value.type))
    for behind, low, high in limits:
        least, most = max(least, low - offset + behind), min(most, high - offset + behind)
    return value, offset, (least, most)


def _loop_of(value: Value | None) -> Operation | None:
    """Return the scf.for whose induction variable a value is."""
    if value is None or value.index != 0 or not isinstance(value.owner, Block):
        return None
    loop = value.owner.outer
    return loop if loop is not None and loop.name == "scf.for" else None


def _inside(place: Operation | Block, scope: Operation) -> bool:
    return any(op is scope for op in enclosing(place))
