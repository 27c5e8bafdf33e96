"""Equal constants and pure values once, known results as constants, unused values not at all.

    %a = arith.constant 4 : index                      %a = arith.constant 4 : index
    %b = arith.constant 4 : index           ->         %d = arith.addi %i, %a : index
    %c = arith.constant 0 : index
    %d = arith.addi %i, %b : index
    %e = arith.addi %d, %c : index          (%e is %d)

Only operations that compute a value and touch nothing take part. What makes or names storage, arrays of event
ids, alignment state, vector registers and everything with an effect stays as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.attrs import BoolAttr, IntAttr
from ..ir.core import Block, Operation, Region, Value
from ..ir.types import ScalarType
from .edit import constant, operations, replace_values
from .pipeline import PassContext

#: Regions that see only what they are given.
_CLOSED = ("func.func", "pto.strict_vecscope")


def run(ctx: PassContext) -> None:
    for func in ctx.module.functions:
        region = func.regions[0]
        if region.blocks:
            simplify = _Simplify(region)
            simplify.region(region)
            if simplify.jumps:  # a use may stand before the definition it follows in time
                replace_values(region, simplify.values)
            remove_unused(region)


class _Simplify:
    """One walk down a function: what is known holds in everything that its definition dominates."""

    def __init__(self, region: Region) -> None:
        self.values: dict[Value, Value] = {}  # replaced ones
        self.known: dict[Any, Value] = {}  # expression -> its value
        self.jumps = False
        #: Operands of what points a view or a tile at another place: not what their definition says.
        self.rebound = {
            v for op in operations(region) if op.row is not None and op.row.rebinds for v in op.operands
        }

    def region(self, region: Region) -> None:
        added: list[Any] = []
        for block in region.blocks[:1]:
            self.block(block, added)
        for block in region.blocks[1:]:  # all that surely ran before is the first block
            self.jumps = True
            more: list[Any] = []
            self.block(block, more)
            for key in more:
                del self.known[key]
        for key in added:
            del self.known[key]

    def block(self, block: Block, added: list[Any]) -> None:
        values, known, rebound = self.values, self.known, self.rebound
        kept: list[Operation] = []
        for op in block.ops:
            if values:
                for v in op.operands:
                    if v in values:
                        op.operands = [values.get(v, v) for v in op.operands]
                        break
                for successor in op.successors:
                    successor.args = [values.get(v, v) for v in successor.args]
            if op.regions:
                self.inner(op)
                kept.append(op)
                continue
            if (
                not _takes_part(op)
                or op.results[0] in rebound
                or (rebound and rebound.intersection(op.operands))
            ):
                kept.append(op)
                continue
            result = op.results[0]
            folded = _fold(op)
            if isinstance(folded, Value):
                values[result] = folded
                continue
            if folded is not None:
                op = folded
                op.parent = block
                values[result] = op.results[0]
            key = _expression(op)
            same = known.get(key)
            if same is not None:
                values[result] = same
                if folded is not None:
                    values[op.results[0]] = same
                continue
            known[key] = op.results[0]
            added.append(key)
            kept.append(op)
        block.ops = kept

    def inner(self, op: Operation) -> None:
        known = self.known
        if op.name in _CLOSED:
            self.known = {}
        for region in op.regions:
            self.region(region)
        self.known = known


def _takes_part(op: Operation) -> bool:
    return op.row is not None and op.row.repeatable and len(op.results) == 1


def _expression(op: Operation) -> Any:
    attrs = op.attrs
    if op.name == "arith.constant":
        return attrs["value"], op.results[0].type
    described = tuple(sorted((k, str(v)) for k, v in attrs.items())) if attrs else ()
    return op.name, tuple(op.operands), op.segments, described, op.results[0].type


# -- known results -----------------------------------------------------------------------------------------

#: Bits of an index.
_INDEX = 64


def _wrapped(n: int, type: ScalarType) -> int:
    """A number as its type holds it: signed, but for truth values."""
    bits = type.bits or _INDEX
    n &= (1 << bits) - 1
    return n - (1 << bits) if bits > 1 and n >> (bits - 1) else n


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
    "arith.maxsi": max,
}
#: Operations that leave the other operand as it is, by the constant on the right (left: where they commute).
_NEUTRAL = {"arith.addi": 0, "arith.subi": 0, "arith.muli": 1}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
}  # fmt: skip
_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")


def _number(value: Value) -> int | None:
    """The integer a value is known to be."""
    made = value.op
    if made is None or made.name != "arith.constant":
        return None
    attr, type = made.attrs.get("value"), value.type
    if not isinstance(attr, IntAttr | BoolAttr) or not isinstance(type, ScalarType):
        return None
    return _wrapped(int(attr.value), type)


def _fold(op: Operation) -> Value | Operation | None:
    """What an operation is known to be: an existing value, or a constant in its place."""
    name = op.name
    if name == "arith.select":
        chosen = _number(op.operands[0])
        return None if chosen is None else op.operands[1 if chosen else 2]
    if name not in _FOLDED or not _is_integer(op.operands[0]) or not _is_integer(op.results[0], 1):
        return None
    a = _number(op.operands[0])
    if name in _CASTS:
        return None if a is None else _constant(op, a)
    b = _number(op.operands[1])
    if a is not None and b is not None:
        compare = _COMPARE.get(str(op.attr("predicate"))) if name == "arith.cmpi" else None
        if compare is not None:
            return _constant(op, int(compare(a, b)))
        return _constant(op, _INTEGER[name](a, b)) if name in _INTEGER else None
    neutral = _NEUTRAL.get(name)
    if neutral is not None and b == neutral:
        return op.operands[0]
    if neutral is not None and a == neutral and name != "arith.subi":
        return op.operands[1]
    return None


_FOLDED = frozenset((*_INTEGER, *_CASTS, "arith.cmpi"))


def _is_integer(value: Value, least: int = 2) -> bool:
    """An integer or index whose arithmetic is that of signed numbers."""
    t = value.type
    return isinstance(t, ScalarType) and not t.is_float and t.text[0] == "i" and (t.bits or _INDEX) >= least


def _constant(op: Operation, number: int) -> Operation:
    type = op.results[0].type
    assert isinstance(type, ScalarType)
    return constant(_wrapped(number, type), type, op, op.results[0].name)


# -- unused values -----------------------------------------------------------------------------------------


def remove_unused(region: Region) -> int:
    """Drop pure operations whose results nobody uses, and what only they used; how many."""
    counts: dict[Value, int] = {}
    pure: list[Operation] = []
    for op in operations(region):
        for v in op.operands:
            counts[v] = counts.get(v, 0) + 1
        for successor in op.successors:
            for v in successor.args:
                counts[v] = counts.get(v, 0) + 1
        row = op.row
        if row is not None and row.effect == "pure" and op.results and not op.regions:
            pure.append(op)
    dead: set[Operation] = set()
    for op in reversed(pure):  # what uses a value follows it
        if not any(counts.get(r) for r in op.results):
            dead.add(op)
            for v in op.operands:
                counts[v] -= 1
    if dead:
        _drop(region, dead)
    return len(dead)


def _drop(region: Region, dead: set[Operation]) -> None:
    for block in region.blocks:
        if not dead.isdisjoint(block.ops):
            block.ops = [op for op in block.ops if op not in dead]
        for op in block.ops:
            for inner in op.regions:
                _drop(inner, dead)
