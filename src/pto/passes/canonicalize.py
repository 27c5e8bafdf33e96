"""Common subexpressions, constant folding, and removal of unused values.

    %a = arith.constant 4 : index                      %a = arith.constant 4 : index
    %b = arith.constant 4 : index           ->         %d = arith.addi %i, %a : index
    %c = arith.constant 0 : index
    %d = arith.addi %i, %b : index
    %e = arith.addi %d, %c : index          (%e is %d)

The pass changes only operations that compute a value without effects. Operations that allocate or name
storage, arrays of event ids, alignment state, vector registers, and operations with effects stay unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.core import Block, Operation, Region, Value, constant_of, folded
from ..ir.types import ScalarType
from .edit import constant, operations, replace_values
from .pipeline import PassContext

#: Regions in which only their arguments are visible.
_CLOSED = ("func.func", "pto.strict_vecscope")


def run(ctx: PassContext) -> None:
    for func in ctx.module.functions:
        region = func.regions[0]
        if region.blocks:
            simplify = _Simplify(region)
            simplify.region(region)
            if simplify.jumps:  # a use may precede its definition in the text
                replace_values(region, simplify.values)
            remove_unused(region)


class _Simplify:
    """A walk down a function: a known value holds in everything that its definition dominates."""

    def __init__(self, region: Region) -> None:
        self.values: dict[Value, Value] = {}  # replaced value -> new value
        self.known: dict[Any, Value] = {}  # expression -> its value
        self.jumps = False
        #: Operands whose view or tile a later operation moves, so that their definition does not determine
        #: their value.
        self.rebound = {
            v for op in operations(region) if op.row is not None and op.row.rebinds for v in op.operands
        }

    def region(self, region: Region) -> None:
        added: list[Any] = []
        for block in region.blocks[:1]:
            self.block(block, added)
        for block in region.blocks[1:]:  # only the first block is sure to have run before
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
            found = _fold(op)
            if isinstance(found, Value):
                values[op.results[0]] = found
                continue
            if found is None and len(op.results) > 1:
                kept.append(op)
                continue
            for result, made in zip(op.results, found or [op], strict=True):
                if made is not op:
                    made.parent = block
                    values[result] = made.results[0]
                key = _expression(made)
                same = known.get(key)
                if same is not None:
                    values[result] = values[made.results[0]] = same
                    continue
                known[key] = made.results[0]
                added.append(key)
                kept.append(made)
        block.ops = kept

    def inner(self, op: Operation) -> None:
        known = self.known
        if op.name in _CLOSED:
            self.known = {}
        for region in op.regions:
            self.region(region)
        self.known = known


def _takes_part(op: Operation) -> bool:
    return op.row is not None and op.row.repeatable and len(op.results) > 0


def _expression(op: Operation) -> Any:
    attrs = op.attrs
    if op.name == "arith.constant":
        return attrs["value"], op.results[0].type
    described = tuple(sorted((k, str(v)) for k, v in attrs.items())) if attrs else ()
    return op.name, tuple(op.operands), op.segments, described, op.results[0].type


# -- known results -----------------------------------------------------------------------------------------

#: Operations that return the other operand for a constant on the right (on the left if they commute).
_NEUTRAL = {"arith.addi": 0, "arith.subi": 0, "arith.muli": 1}


def _fold(op: Operation) -> Value | list[Operation] | None:
    """Return the folded results of an operation: an existing value, or constants."""
    row, name, operands = op.row, op.name, op.operands
    if row is None or row.set != "scalar" or not operands:
        return None
    numbers = [_number(v) for v in operands]
    if name == "arith.select":
        return None if numbers[0] is None else operands[1 if numbers[0] else 2]
    known = [n for n in numbers if n is not None]
    if len(known) == len(numbers):
        found = folded(op, known)
        return None if found is None else _constants(op, found)
    neutral = _NEUTRAL.get(name)
    if neutral is not None and numbers[1] == neutral:
        return operands[0]
    if neutral is not None and numbers[0] == neutral and name != "arith.subi":
        return operands[1]
    return None


def _number(value: Value) -> int | None:
    """Return the integer of a constant."""
    made = value.op
    if made is None or made.name != "arith.constant":
        return None
    number = constant_of(value)
    return number if isinstance(number, int) else None


def _constants(op: Operation, numbers: Sequence[int | float]) -> list[Operation] | None:
    """Make integer constants for the results of an operation."""
    made: list[Operation] = []
    for result, number in zip(op.results, numbers, strict=True):
        if not isinstance(result.type, ScalarType) or not isinstance(number, int):
            return None
        made.append(constant(number, result.type, op, result.name))
    return made


# -- unused values -----------------------------------------------------------------------------------------


def remove_unused(region: Region) -> int:
    """Remove pure operations whose results are unused, and then their operands; return their number."""
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
    for op in reversed(pure):  # uses come after definitions
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
