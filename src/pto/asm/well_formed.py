"""What an operation has to be before anything else may look at it: counts of operands, results, regions and
blocks, and the kinds of the attributes that make up its text.

The generic form and attribute dictionaries can say anything. The parser turns down what breaks the form of an
operation, so that verifier and printers need not expect it; what is only illegal is left to the verifier.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.attrs import (
    ArrayAttr,
    DenseArrayAttr,
    DictAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
)
from ..ir.core import Operation
from ..ir.types import ERROR, FunctionType, ScalarType
from ..isa.row import Row

#: Stands for a value in the static lists of memref.subview and memref.reinterpret_cast.
DYNAMIC = -(1 << 63)


def complaint(op: Operation) -> str:
    """What is wrong with the form of an operation with a syntax of its own, or nothing."""
    check = _CHECKS.get(op.name)
    if check is None or any(v.type is ERROR for v in (*op.operands, *op.results)):
        return ""  # a value of unknown type has its own error
    return check(op)


def miscount(op: Operation, row: Row) -> str:
    """What is wrong with the counts of a generically written operation, or nothing."""
    results = [r for r in row.results if not r.variadic]
    required = sum(not r.optional for r in results)
    most = len(op.results) if len(results) < len(row.results) else len(results)
    if not required <= len(op.results) <= most:
        return f"{row.name} has {len(row.results)} results, got {len(op.results)}"
    many = op.name == "scf.index_switch"
    if len(op.regions) != len(row.regions) and not (many and op.regions):
        return f"{row.name} has {len(row.regions)} regions, got {len(op.regions)}"
    if op.successors and op.name not in ("cf.br", "cf.cond_br", "cf.switch"):
        return f"{row.name} has no successors"
    return ""


def _module(op: Operation) -> str:
    if len(op.regions[0].blocks) != 1 or op.regions[0].blocks[0].args:
        return "a module has one block without arguments"
    return _named(op) if "sym_name" in op.attrs else ""


def _named(op: Operation) -> str:
    name = op.attrs.get("sym_name")
    return "" if isinstance(name, StrAttr) else "sym_name is no string"


VISIBILITIES = tuple(map(StrAttr, ("public", "private", "nested")))


def _func(op: Operation) -> str:
    signature = op.attrs.get("function_type")
    if not isinstance(signature, TypeAttr) or not isinstance(signature.value, FunctionType):
        return "function_type is no function type"
    visibility = op.attrs.get("sym_visibility")
    if visibility is not None and visibility not in VISIBILITIES:
        return "sym_visibility is public, private or nested"
    notes = op.attrs.get("arg_attrs")
    if notes is not None and not (
        isinstance(notes, ArrayAttr)
        and len(notes.items) == len(signature.value.inputs)
        and all(isinstance(n, DictAttr) for n in notes.items)
    ):
        return "arg_attrs is no list with one dictionary per argument"
    blocks = op.regions[0].blocks
    if blocks and tuple(a.type for a in blocks[0].args) != signature.value.inputs:
        return f"the arguments of the body are not those of {signature.value}"
    return _named(op)


def _call(op: Operation) -> str:
    return "" if isinstance(op.attrs.get("callee"), SymbolAttr) else "callee is no symbol"


def _constant(op: Operation) -> str:
    value = op.attrs.get("value")
    type = op.results[0].type
    if isinstance(value, IntAttr | FloatAttr):
        return (
            "" if value.type == type else f"a value of type {value.type} cannot be a constant of type {type}"
        )
    if isinstance(value, OpaqueAttr) and not isinstance(type, ScalarType):
        return "" if value.text.endswith(f" : {type}") else f"value is no constant of type {type}"
    return "value is no number"


def _for(op: Operation) -> str:
    blocks = op.regions[0].blocks
    inits = op.operands[3:]
    if len(blocks) != 1 or len(blocks[0].args) != 1 + len(inits) or len(op.results) != len(inits):
        return "the body takes the induction variable and the carried values, which are also the results"
    types = [v.type for v in inits]
    carried = [a.type for a in blocks[0].args[1:]]
    if (
        types != carried
        or types != [r.type for r in op.results]
        or blocks[0].args[0].type != op.operands[0].type
    ):
        return "initial values, carried values and results differ in type"
    return ""


def _if(op: Operation) -> str:
    return "" if op.regions[0].blocks else "the first region is empty"


def _while(op: Operation) -> str:
    before, after = op.regions
    if not before.blocks or not after.blocks:
        return "both regions have a block"
    if [a.type for a in before.blocks[0].args] != [v.type for v in op.operands]:
        return "the first region takes the initial values"
    return ""


def _execute_region(op: Operation) -> str:
    return "" if op.regions[0].blocks else "the region is empty"


def _index_switch(op: Operation) -> str:
    cases = op.attrs.get("cases")
    if not isinstance(cases, DenseArrayAttr) or len(cases.value) != len(op.regions) - 1:
        return "cases holds one number per region after the default"
    return _numbers(cases) or ("" if all(r.blocks for r in op.regions) else "a region is empty")


def _numbers(array: DenseArrayAttr) -> str:
    ok = all(isinstance(v, int) and -(1 << 63) <= v < 1 << 63 for v in array.value)
    return "" if ok else "a case is no integer of 64 bits"


def _successors(count: int) -> Callable[[Operation], str]:
    def check(op: Operation) -> str:
        return "" if len(op.successors) == count else f"expected {count} successors, got {len(op.successors)}"

    return check


def _switch(op: Operation) -> str:
    cases = op.attrs.get("case_values")
    if (
        not op.successors
        or not isinstance(cases, DenseArrayAttr)
        or len(cases.value) != len(op.successors) - 1
    ):
        return "case_values holds one number per successor after the default"
    return _numbers(cases)


def _strided(op: Operation) -> str:
    for name in ("offsets", "sizes", "strides"):
        static = op.attrs.get(f"static_{name}")
        if not isinstance(static, DenseArrayAttr) or _numbers(static):
            return f"static_{name} is no list of 64-bit integers"
        if sum(v == DYNAMIC for v in static.value) != len(op.group(name)):
            return f"static_{name} and the {name} given do not fit"
    return ""


def _affine_apply(op: Operation) -> str:
    return "" if isinstance(op.attrs.get("map"), OpaqueAttr) else "map is no affine map"


_CHECKS: dict[str, Callable[[Operation], str]] = {
    "builtin.module": _module,
    "func.func": _func,
    "func.call": _call,
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.execute_region": _execute_region,
    "scf.index_switch": _index_switch,
    "cf.br": _successors(1),
    "cf.cond_br": _successors(2),
    "cf.switch": _switch,
    "memref.subview": _strided,
    "memref.reinterpret_cast": _strided,
    "affine.apply": _affine_apply,
}
