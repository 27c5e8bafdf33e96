"""Preconditions of all stages about an operation of a known row: counts, regions, key attributes.

The formats of the text forms always build well-formed operations. The generic form, attribute dictionaries
and bytecode may not, so an operation is checked here before it becomes part of a program; other illegal
operations are left to the verifier.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from ..isa.enums import ENUMS
from ..isa.format import variables
from ..isa.row import Row
from .affine import AffineMapAttr, unusable
from .attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    DictAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
)
from .core import Operation
from .types import ERROR, FunctionType, ScalarType, ShapedType

#: Regions that may be empty: a declaration has no body, an `if` no else branch.
_MAY_BE_EMPTY = {("func.func", 0), ("scf.if", 1)}
_BRANCHES = ("cf.br", "cf.cond_br", "cf.switch")

#: Marks a value in the static lists of memref.subview and memref.reinterpret_cast.
DYNAMIC = -(1 << 63)


def problem(op: Operation) -> str:
    """Return the problem with the shape of an operation; empty if the shape is right."""
    return miscount(op) or (_attributes(op, op.row) if op.row is not None else "") or special(op)


def miscount(op: Operation) -> str:
    """Return the problem with the numbers of operands, results and regions; empty if they are right."""
    row = op.row
    return _operands(op, row) or _results(op, row) or _regions(op, row) if row is not None else ""


def special(op: Operation) -> str:
    """Return the problem of an operation that has its own syntax; empty if it has none."""
    check = _CHECKS.get(op.name)
    if check is None or any(v.type is ERROR for v in (*op.operands, *op.results)):
        return ""  # a value of unknown type has its own error
    return check(op)


def _operands(op: Operation, row: Row) -> str:
    groups = op.segments if row.has_segments else (1,) * len(row.operands)
    if groups is None or len(groups) != len(row.operands) or sum(groups) != len(op.operands):
        return f"expected {_range(row)} operands, got {len(op.operands)}"
    for size, o in zip(groups, row.operands, strict=True):
        if not o.variadic and (size > 1 or (size == 0 and not o.optional and row.dialect != "cf")):
            return f"operand '{o.name}' is given {size} times"
    return ""


def _range(row: Row) -> str:
    least = sum(not o.optional and not o.variadic for o in row.operands)
    if any(o.variadic for o in row.operands):
        return f"at least {least}"
    return str(least) if least == len(row.operands) else f"{least} to {len(row.operands)}"


def _results(op: Operation, row: Row) -> str:
    least = sum(not r.optional and not r.variadic for r in row.results)
    many = any(r.variadic for r in row.results)
    if least <= len(op.results) and (many or len(op.results) <= len(row.results)):
        return ""
    return f"expected {least} results, got {len(op.results)}"


def _regions(op: Operation, row: Row) -> str:
    cases = row.name == "scf.index_switch"  # one region per case, after the default
    if len(op.regions) != len(row.regions) and not (cases and op.regions):
        return f"expected {len(row.regions)} regions, got {len(op.regions)}"
    for k, region in enumerate(op.regions):
        if not region.blocks and (row.name, k) not in _MAY_BE_EMPTY:
            return f"missing block in region {k}"
    if op.successors and row.name not in _BRANCHES:
        return "unexpected branch targets"
    return ""


def _attributes(op: Operation, row: Row) -> str:
    if not op.attrs:
        return ""
    for name in _placed(row):
        value = op.attrs.get(name)
        if value is not None and not _fits_place(row, name, value):
            return f"attribute '{name}' cannot be {value}"
    return ""


_places: dict[str, tuple[str, ...]] = {}


def _placed(row: Row) -> tuple[str, ...]:
    """Return attributes with a place in a format of the row, where only their own kind is legal."""
    found = _places.get(row.name)
    if found is None:
        custom = row.format == "custom"
        names = {a.name for a in row.attrs if custom and a.choices}
        for items in () if custom else row.formats:
            names.update(v for v in variables(items) if v in row.attr_index)
        found = _places[row.name] = tuple(sorted(names))
    return found


def _fits_place(row: Row, name: str, value: Attribute) -> bool:
    attr = row.attr_index[name]
    if attr.kind in ENUMS:
        return isinstance(value, EnumAttr | OpaqueAttr)
    if attr.keyword or (attr.choices and attr.kind == "str"):
        return isinstance(value, StrAttr) and attr.admits(value.value)
    if attr.kind == "symbol":
        return isinstance(value, SymbolAttr)
    if attr.kind == "ints":
        return isinstance(value, ArrayAttr | DenseArrayAttr)
    if attr.kind == "bool":
        return isinstance(value, BoolAttr | IntAttr)
    return True


def _module(op: Operation) -> str:
    if len(op.regions[0].blocks) != 1 or op.regions[0].blocks[0].args:
        return "expected one block without arguments in a module"
    return _named(op) if "sym_name" in op.attrs else ""


def _named(op: Operation) -> str:
    name = op.attrs.get("sym_name")
    return "" if isinstance(name, StrAttr) else "expected a string for sym_name"


VISIBILITIES = tuple(map(StrAttr, ("public", "private", "nested")))


def _func(op: Operation) -> str:
    signature = op.attrs.get("function_type")
    if not isinstance(signature, TypeAttr) or not isinstance(signature.value, FunctionType):
        return "expected a function type for function_type"
    visibility = op.attrs.get("sym_visibility")
    if visibility is not None and visibility not in VISIBILITIES:
        return "expected public, private or nested for sym_visibility"
    notes = op.attrs.get("arg_attrs")
    if notes is not None and not (
        isinstance(notes, ArrayAttr)
        and len(notes.items) == len(signature.value.inputs)
        and all(isinstance(n, DictAttr) for n in notes.items)
    ):
        return "expected a list with one dictionary per argument for arg_attrs"
    blocks = op.regions[0].blocks
    if blocks and tuple(a.type for a in blocks[0].args) != signature.value.inputs:
        return f"the arguments of the body differ from those of {signature.value}"
    return _named(op)


def _call(op: Operation) -> str:
    return "" if isinstance(op.attrs.get("callee"), SymbolAttr) else "expected a symbol for callee"


def _constant(op: Operation) -> str:
    value = op.attrs.get("value")
    type = op.results[0].type
    if isinstance(value, IntAttr | FloatAttr):
        return (
            "" if value.type == type else f"a value of type {value.type} cannot be a constant of type {type}"
        )
    if isinstance(value, OpaqueAttr) and not isinstance(type, ScalarType):
        if not value.text.endswith(f" : {type}"):
            return f"expected a constant of type {type}"
        return _dense(value.text.removesuffix(f" : {type}"), type) if isinstance(type, ShapedType) else ""
    return "expected a number"


_MOST_ELEMENTS = 1 << 16


def _dense(text: str, type: ShapedType) -> str:
    """Return why a constant list is malformed: expected one number for all elements, or one for each."""
    count = prod(d or 1 for d in type.dims)
    if count > _MOST_ELEMENTS:
        return f"expected a constant of at most {_MOST_ELEMENTS} elements, got {count}"
    body = text.removeprefix("dense<").removesuffix(">").strip()
    numbers = body.removeprefix("[").removesuffix("]").split(",") if body[:1] == "[" else [body]
    if len(numbers) != count and body[:1] == "[":
        return f"expected one number or a list of {count}, got {len(numbers)}"
    number = r"-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][-+]?[0-9]{1,2})?" if type.elem.is_float else _WHOLE
    for text in numbers:
        if not re.fullmatch(number, text.strip()):
            return f"expected a number of type {type.elem}, got '{text.strip()[:40]}'"
        if not type.elem.is_float and int(text, 0).bit_length() > (type.elem.bits or 64):
            return f"expected a number of type {type.elem}, got {int(text, 0)}"
    return ""


_WHOLE = r"-?(?:0|[1-9][0-9]{0,20}|0x[0-9a-fA-F]{1,16})"


def _for(op: Operation) -> str:
    blocks = op.regions[0].blocks
    inits = op.operands[3:]
    if len(blocks) != 1 or len(blocks[0].args) != 1 + len(inits) or len(op.results) != len(inits):
        return (
            "expected the induction variable and the carried values as arguments of the body, and the "
            "carried values as results"
        )
    types = [v.type for v in inits]
    carried = [a.type for a in blocks[0].args[1:]]
    if (
        types != carried
        or types != [r.type for r in op.results]
        or blocks[0].args[0].type != op.operands[0].type
    ):
        return "initial values, carried values and results differ in type"
    return ""


def _while(op: Operation) -> str:
    if [a.type for a in op.regions[0].blocks[0].args] != [v.type for v in op.operands]:
        return "expected the initial values as arguments of the first region"
    return ""


def _index_switch(op: Operation) -> str:
    cases = op.attrs.get("cases")
    if not isinstance(cases, DenseArrayAttr) or len(cases.value) != len(op.regions) - 1:
        return "expected one number in cases for each region after the default"
    return _numbers(cases)


def _numbers(array: DenseArrayAttr) -> str:
    ok = all(isinstance(v, int) and -(1 << 63) <= v < 1 << 63 for v in array.value)
    return "" if ok else "expected 64-bit integers"


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
        return "expected one number in case_values for each successor after the default"
    return _numbers(cases)


def _strided(op: Operation) -> str:
    for name in ("offsets", "sizes", "strides"):
        static = op.attrs.get(f"static_{name}")
        if not isinstance(static, DenseArrayAttr) or _numbers(static):
            return f"expected a list of 64-bit integers for static_{name}"
        if sum(v == DYNAMIC for v in static.value) != len(op.group(name)):
            return f"the number of dynamic entries in static_{name} differs from the number of {name}"
    return ""


def _affine_apply(op: Operation) -> str:
    found = op.attrs.get("map")
    if not isinstance(found, AffineMapAttr):
        return "expected an affine_map for 'map'"
    if len(found.results) != 1:
        return f"expected a map with one result, got {len(found.results)}"
    if len(op.operands) != found.inputs:
        return f"expected {found.inputs} operands for the map, got {len(op.operands)}"
    return unusable(found)


_CHECKS: dict[str, Callable[[Operation], str]] = {
    "builtin.module": _module,
    "func.func": _func,
    "func.call": _call,
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.while": _while,
    "scf.index_switch": _index_switch,
    "cf.br": _successors(1),
    "cf.cond_br": _successors(2),
    "cf.switch": _switch,
    "memref.subview": _strided,
    "memref.reinterpret_cast": _strided,
    "affine.apply": _affine_apply,
}
