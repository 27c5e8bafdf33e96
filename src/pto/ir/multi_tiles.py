"""Rewrite tiles of several slots as one tile and windows of it.

    !mb = !pto.multi_tile_buf<vec, 16x64xf32, count=2>
    %mb = pto.alloc_multi_tile : !mb
    %t = pto.multi_tile_get %mb[%k] : !mb -> !tile
means
    %mb = pto.alloc_tile : !pto.tile_buf<vec, 32x64xf32>
    %row = arith.muli %k, %c16 : index
    %t = pto.subview %mb[%row, %c0] sizes [16, 64] : !pto.tile_buf<vec, 32x64xf32> -> !tile

Slots follow each other: the tile grows along its rows or columns, whichever its layout stores last. The
verifier and the driver work on that form, so that later stages need no slots.
"""

from __future__ import annotations

import re

from ..isa import row as find_row
from .attrs import ArrayAttr, Attribute, IntAttr, TypeAttr
from .clone import clone
from .core import Block, Module, Operation, Value, constant_of
from .types import INDEX, FunctionType, MultiTileBufType, TileBufType, Type

#: Operations that a lowered program no longer has.
ALLOC, GET = "pto.alloc_multi_tile", "pto.multi_tile_get"
#: Their replacements.
_MADE = ("pto.alloc_tile", "pto.subview")
_WRITTEN = re.compile(r"(?<![%\w])(?:alloc_multi_tile|multi_tile_get)\b")


def single_tiles(module: Module) -> Module:
    """Return the program with single tiles only: the given one if it has no others, else a copy."""
    if not any(op.name in (ALLOC, GET) or _takes_slots(op) for op in module.walk()):
        return module
    made = clone(module)
    types: dict[Value, MultiTileBufType] = {}
    values: dict[Value, Value] = {}
    blocks = [block for op in made.walk() for region in op.regions for block in region.blocks]
    for block in blocks:
        for value in (*block.args, *(r for op in block.ops for r in op.results)):
            if isinstance(value.type, MultiTileBufType):
                types[value] = value.type
                value.type = value.type.whole
    for op in made.walk():
        if _takes_slots(op):
            type = op.attrs["function_type"]
            op.attrs["function_type"] = TypeAttr(_single(type.value))
    for block in blocks:
        _rewrite(block, values, types)
    for op in made.walk():
        op.operands = [values.get(v, v) for v in op.operands]
        for successor in op.successors:
            successor.args = [values.get(v, v) for v in successor.args]
    return made


def _takes_slots(op: Operation) -> bool:
    """Return True if a function has a parameter of several slots. It may pass them on without selecting a
    slot.
    """
    type = op.attrs.get("function_type") if op.name == "func.func" else None
    return type is not None and _single(type.value) != type.value


def _single(type: FunctionType) -> FunctionType:
    inputs, results = (
        tuple(t.whole if isinstance(t, MultiTileBufType) else t for t in types)
        for types in (type.inputs, type.results)
    )
    return type.replace(inputs=inputs, results=results)


def name_in_messages(op: Operation) -> str:
    """Return the name of an operation for messages: that of the source, if the operation replaces it."""
    if op.name in _MADE and op.source is not None:
        found = _WRITTEN.search(op.source.text[op.start : op.end])
        if found:
            return found[0]
    return op.row.name if op.row else op.name


def _rewrite(block: Block, values: dict[Value, Value], types: dict[Value, MultiTileBufType]) -> None:
    ops: list[Operation] = []
    for op in block.ops:
        if op.name == ALLOC:
            made = [_make("pto.alloc_tile", op, op.result.type, {}, addr=op.group("addr"))]
        elif op.name == GET and op.operands[0] in types:
            made = _slot(op, types[op.operands[0]])
        else:
            ops.append(op)
            continue
        for fresh in made:
            fresh.parent = block
        made[-1].result.name = op.result.name
        values[op.result] = made[-1].result
        ops += made
    block.ops = ops


def _slot(op: Operation, of: MultiTileBufType) -> list[Operation]:
    source, slot = op.operands
    type = op.result.type
    assert isinstance(type, TileBufType)
    step = type.rows if of.grows_down else type.cols
    made = [zero := _constant(op, 0)]
    known = constant_of(slot)
    if isinstance(known, int):
        made.append(_constant(op, known * step))
    else:
        made.append(size := _constant(op, step))
        made.append(_make("arith.muli", op, INDEX, {}, lhs=[slot], rhs=[size.result]))
    at = made[-1].result
    offsets = [at, zero.result] if of.grows_down else [zero.result, at]
    valid: dict[str, list[Value]] = {}
    if type.valid is None:
        for name, extent in (("valid_row", type.v_row), ("valid_col", type.v_col)):
            given = source.op.group(name) if source.op is not None and source.op.name == ALLOC else ()
            if not given:
                made.append(_constant(op, extent or 0))
                given = [made[-1].result]
            valid[name] = list(given)
    sizes: dict[str, Attribute] = {"sizes": ArrayAttr(tuple(IntAttr(n) for n in type.shape))}
    made.append(_make("pto.subview", op, type, sizes, source=[source], offsets=offsets, **valid))
    return made


def _constant(at: Operation, value: int) -> Operation:
    return _make("arith.constant", at, INDEX, {"value": IntAttr(value, INDEX)})


def _make(
    name: str, at: Operation, result: Type, attrs: dict[str, Attribute], **operands: list[Value]
) -> Operation:
    row = find_row(name)
    assert row is not None, name
    groups = [list(operands.get(o.name, ())) for o in row.operands]
    segments = tuple(len(g) for g in groups) if row.has_segments else None
    return Operation(row.full_name, row, [v for g in groups for v in g], (result,), attrs, segments, at.loc)
