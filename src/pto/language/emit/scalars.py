"""Emit operations on scalars as operations of `arith`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.attrs import StrAttr
from ...ir.core import Value as PtoValue
from ...ir.types import I1, I64, INDEX, ScalarType
from ...isa.scalars import bounds, fit
from ..dtypes import DataType
from ..ir import Op, Value, scalar_type

if TYPE_CHECKING:
    from .incore import Emitter

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


def element(dtype: DataType) -> ScalarType:
    """Return the type of an element or a scalar."""
    from ...isa.dtypes import DTYPES

    if dtype.isa in ("index", "task"):
        return INDEX
    return I1 if dtype.isa == "i1" else ScalarType(DTYPES[dtype.isa].mlir)


def number(dtype: DataType) -> ScalarType:
    """Return the type of a scalar; integers are signless."""
    found = element(dtype)
    return ScalarType(found.text.removeprefix("u")) if found.text.startswith("ui") else found


def constant(e: Emitter, value: Any, type: ScalarType) -> PtoValue:
    """Return a literal, emitted once per function, at its beginning."""
    if type.is_float:
        return e.constant(float(value), type)
    if type.text == "i1":
        return e.constant(int(bool(value)), type)
    number, (least, most) = int(value), bounds(type.text)
    if not least <= number <= most - least:  # neither a signed nor an unsigned spelling
        number = int(fit(type.text)(number))
    return e.constant(number, type)


def scalar(e: Emitter, op: Op) -> PtoValue:
    """Emit an operation on numbers and return its result."""
    name = op.name.removeprefix("scalar.")
    args = list(op.args.values())
    if name == "cast":
        return cast(e, e.number(args[0]), args[0].type.dtype, op.args["dtype"])
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
        return e.build.op("arith.xori", [I1], lhs=e.number(args[0]), rhs=constant(e, 1, I1)).result
    if name == "neg":
        zero = constant(e, 0, type)
        word = "arith.subf" if type.is_float else "arith.subi"
        return e.build.op(word, [type], lhs=zero, rhs=e.number(args[0], result)).result
    if name == "invert":
        return e.build.op(
            "arith.xori", [type], lhs=e.number(args[0], result), rhs=constant(e, -1, type)
        ).result
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


def _common(args: list[Any]) -> DataType:
    """Return the common type of numbers: types of values win over those of literals, wider types over
    narrower."""
    types = [scalar_type(a) for a in args if isinstance(a, Value)] or [scalar_type(args[0])]
    found = types[0]
    for t in types[1:]:
        if t is not None and found is not None and t.bits > found.bits:
            found = t
    assert found is not None
    return found


def cast(e: Emitter, value: PtoValue, have: DataType, want: DataType) -> PtoValue:
    """Convert a number to another type."""
    a, b = number(have), number(want)
    if a == b:
        return value
    unsigned = have.is_unsigned or have.isa == "i1"
    if "index" in (a.text, b.text) and not a.is_float and not b.is_float:
        return e.build.op("arith.index_castui" if unsigned else "arith.index_cast", [b], src=value).result
    if a.text == "index":
        value, a = e.build.op("arith.index_cast", [I64], src=value).result, I64
    if b.text == "index":
        whole = e.build.op("arith.fptosi", [I64], src=value).result
        return e.build.op("arith.index_cast", [b], src=whole).result
    if a.is_float and b.is_float:
        name = "arith.extf" if (b.bits or 0) > (a.bits or 0) else "arith.truncf"
    elif a.is_float:
        name = "arith.fptoui" if want.is_unsigned else "arith.fptosi"
    elif b.is_float:
        name = "arith.uitofp" if unsigned else "arith.sitofp"
    elif (b.bits or 0) > (a.bits or 0):
        name = "arith.extui" if unsigned else "arith.extsi"
    else:
        name = "arith.trunci"
    return e.build.op(name, [b], src=value).result
