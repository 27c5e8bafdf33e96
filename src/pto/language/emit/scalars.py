"""Emit operations on scalars as operations of `arith`."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.attrs import StrAttr
from ...ir.core import Value as PtoValue
from ...ir.types import I1
from ..dtypes import DataType
from ..ir import Number, Op, Value, scalar_type
from .emission import Emission
from .types import number

_INT = {
    "add": "addi", "sub": "subi", "mul": "muli", "floordiv": "floordivsi", "min": "minsi", "max": "maxsi",
    "shl": "shli", "shr": "shrsi", "and": "andi", "or": "ori", "bitand": "andi", "bitor": "ori",
    "bitxor": "xori",
}  # fmt: skip
_FLOAT = {
    "add": "addf",
    "sub": "subf",
    "mul": "mulf",
    "truediv": "divf",
    "min": "minimumf",
    "max": "maximumf",
}
#: The unsigned variants of operations.
_UNSIGNED = {"floordiv": "divui", "min": "minui", "max": "maxui", "shr": "shrui"}
_COMPARE_INT = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_COMPARE_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def scalar(e: Emission, op: Op) -> PtoValue:
    """Emit an operation on numbers and return its result."""
    name = op.name.removeprefix("scalar.")
    args = list(op.args.values())
    if name == "cast":
        return e.cast(e.number(args[0]), args[0].type.dtype, op.args["dtype"])
    wide = _common(args)
    if name in _COMPARE_INT:
        lhs, rhs = (e.number(a, wide) for a in args)
        if wide.is_float:
            return e.build.op(
                "arith.cmpf", [I1], {"predicate": StrAttr(_COMPARE_FLOAT[name])}, lhs=lhs, rhs=rhs
            ).result
        word = _COMPARE_INT[name]
        if wide.is_unsigned and word.startswith("s"):
            word = f"u{word[1:]}"
        return e.build.op("arith.cmpi", [I1], {"predicate": StrAttr(word)}, lhs=lhs, rhs=rhs).result
    result = op.result.type.dtype
    type = number(result)
    if name == "not":
        return e.build.op("arith.xori", [I1], lhs=e.number(args[0]), rhs=e.literal(1, I1)).result
    if name == "neg":
        zero = e.literal(0, type)
        word = "arith.subf" if type.is_float else "arith.subi"
        return e.build.op(word, [type], lhs=zero, rhs=e.number(args[0], result)).result
    if name == "invert":
        return e.build.op("arith.xori", [type], lhs=e.number(args[0], result), rhs=e.literal(-1, type)).result
    if name == "abs":
        return e.build.op(
            "math.absf" if type.is_float else "math.absi", [type], operand=e.number(args[0], result)
        ).result
    lhs, rhs = (e.number(a, result) for a in args)
    if name == "mod" and not type.is_float:
        divide = "arith.divui" if result.is_unsigned else "arith.floordivsi"
        quotient = e.build.op(divide, [type], lhs=lhs, rhs=rhs).result
        product = e.build.op("arith.muli", [type], lhs=quotient, rhs=rhs).result
        return e.build.op("arith.subi", [type], lhs=lhs, rhs=product).result
    words = _FLOAT if type.is_float else {**_INT, **_UNSIGNED} if result.is_unsigned else _INT
    return e.build.op(f"arith.{words[name]}", [type], lhs=lhs, rhs=rhs).result


def _common(args: Sequence[Number]) -> DataType:
    """Return the common type of numbers: types of values win over those of literals, wider types over
    narrower."""
    types = [scalar_type(a) for a in args if isinstance(a, Value)] or [scalar_type(args[0])]
    found = types[0]
    for t in types[1:]:
        if t is not None and found is not None and t.bits > found.bits:
            found = t
    assert found is not None
    return found
