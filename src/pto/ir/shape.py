"""What every stage takes for granted about an operation of a known row: counts, regions, key attributes.

The formats of the text forms build operations of the right shape by themselves. The generic form and bytecode
can say anything, so they check each operation here before it becomes part of a program.
"""

from __future__ import annotations

from typing import cast

from ..isa.enums import ENUMS
from ..isa.format import variables
from ..isa.row import Row
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
from .types import FunctionType

#: Regions that may be empty: a declaration has no body, an `if` no else branch.
_MAY_BE_EMPTY = {("func.func", 0), ("scf.if", 1)}

#: Attributes without which an operation cannot be printed, and their kinds.
_NEEDED: dict[str, dict[str, type[Attribute]]] = {
    "func.func": {"sym_name": StrAttr, "function_type": TypeAttr},
    "func.call": {"callee": SymbolAttr},
    "affine.apply": {"map": OpaqueAttr},
    "scf.index_switch": {"cases": DenseArrayAttr},
    "cf.switch": {"case_values": DenseArrayAttr},
}
_BRANCH_TARGETS = {"cf.br": 1, "cf.cond_br": 2}
_DYNAMIC = -(1 << 63)


def problem(op: Operation) -> str:
    """What is wrong with the shape of an operation; empty if nothing is."""
    row = op.row
    if row is None:
        return ""
    return (
        _operands(op, row) or _results(op, row) or _attributes(op, row) or _regions(op, row) or _special(op)
    )


def _operands(op: Operation, row: Row) -> str:
    groups = op.segments if row.has_segments else (1,) * len(row.operands)
    if groups is None or len(groups) != len(row.operands) or sum(groups) != len(op.operands):
        return f"takes {_range(row)} operands, got {len(op.operands)}"
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
    return f"has {least} results, got {len(op.results)}" if len(op.results) < least else ""


def _attributes(op: Operation, row: Row) -> str:
    for name, kind in _NEEDED.get(row.name, {}).items():
        if not isinstance(op.attrs.get(name), kind):
            return f"attribute '{name}' is missing or of the wrong kind"
    if not op.attrs:
        return ""
    for name in _placed(row):
        value = op.attrs.get(name)
        if value is not None and not _fits_place(row, name, value):
            return f"attribute '{name}' cannot be {value}"
    return ""


_places: dict[str, tuple[str, ...]] = {}


def _placed(row: Row) -> tuple[str, ...]:
    """Attributes that a format of the row gives a place of their own, where only their own kind can stand."""
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
        return isinstance(value, StrAttr) and (not attr.choices or value.value in attr.choices)
    if attr.kind == "symbol":
        return isinstance(value, SymbolAttr)
    if attr.kind == "ints":
        return isinstance(value, ArrayAttr | DenseArrayAttr)
    if attr.kind == "bool":
        return isinstance(value, BoolAttr | IntAttr)
    return True


def _regions(op: Operation, row: Row) -> str:
    if row.name == "scf.index_switch":
        wanted = 1 + len(op.attr("cases"))
    else:
        wanted = len(row.regions)
    if len(op.regions) != wanted:
        return f"has {wanted} regions, got {len(op.regions)}"
    for k, region in enumerate(op.regions):
        if not region.blocks and (row.name, k) not in _MAY_BE_EMPTY:
            return f"region {k} has no block"
    targets = _BRANCH_TARGETS.get(row.name, 0)
    if row.name == "cf.switch":
        targets = 1 + len(op.attr("case_values"))
    if len(op.successors) != targets:
        return f"has {targets} branch targets, got {len(op.successors)}"
    return ""


def _special(op: Operation) -> str:
    name = op.name
    if name == "func.func":
        return _function(op)
    if name == "arith.constant":
        value = op.attrs.get("value")
        if isinstance(value, IntAttr | FloatAttr):
            same = value.type == op.result.type
            return "" if same else f"a value of type {value.type} for a result of type {op.result.type}"
        known = isinstance(value, OpaqueAttr) and " : " in value.text
        return "" if known else "attribute 'value' is missing or of the wrong kind"
    if name == "scf.for":
        carried = len(op.operands) - 3
        args = len(op.regions[0].blocks[0].args)
        if args != 1 + carried or len(op.results) != carried:
            return f"carries {carried} values, but its body takes {args} and it has {len(op.results)} results"
    if name == "scf.while" and len(op.regions[0].blocks[0].args) != len(op.operands):
        return f"carries {len(op.operands)} values, but its body takes {len(op.regions[0].blocks[0].args)}"
    if name in ("memref.subview", "memref.reinterpret_cast"):
        for group in ("offsets", "sizes", "strides"):
            static = op.attr(f"static_{group}")
            if not isinstance(static, tuple):
                return f"attribute 'static_{group}' is missing or of the wrong kind"
            dynamic = sum(v == _DYNAMIC for v in cast("tuple[object, ...]", static))
            if dynamic != len(op.group(group)):
                return f"marks {dynamic} {group} as dynamic, but has {len(op.group(group))} values for them"
    return ""


def _function(op: Operation) -> str:
    signature = op.attrs["function_type"].value
    if not isinstance(signature, FunctionType):
        return "attribute 'function_type' is not a function type"
    blocks = op.regions[0].blocks
    if blocks and [a.type for a in blocks[0].args] != list(signature.inputs):
        return "the arguments of its body are not those of its type"
    notes = op.attrs.get("arg_attrs")
    if notes is not None and not (
        isinstance(notes, ArrayAttr) and all(isinstance(n, DictAttr) for n in notes.items)
    ):
        return "attribute 'arg_attrs' is not a list of dictionaries"
    return ""
