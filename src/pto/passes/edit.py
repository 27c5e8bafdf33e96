"""Helpers of passes to change a program: make operations, replace operations and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir.attrs import Attribute, IntAttr
from ..ir.core import Block, Operation, Region, Value
from ..ir.types import ScalarType, Type
from ..isa import row as find_row

#: Returns the operations that replace an operation, or None to keep it.
Visit = Callable[[Operation], "list[Operation] | None"]


def make(
    name: str,
    at: Operation,
    results: tuple[Type, ...] = (),
    attrs: dict[str, Attribute] | None = None,
    **operands: Value | list[Value] | None,
) -> Operation:
    """Make an operation by its full name, with operands by their names in the table, located at `at`."""
    row = find_row(name)
    assert row is not None, name
    flat: list[Value] = []
    segments: list[int] = []
    for declared in row.operands:
        given = operands.get(declared.name)
        values = [] if given is None else given if isinstance(given, list) else [given]
        flat.extend(values)
        segments.append(len(values))
    return Operation(
        row.full_name,
        row,
        flat,
        results,
        attrs,
        tuple(segments) if row.has_segments else None,
        at.loc,
    )


def constant(value: int, type: ScalarType, at: Operation, name: str = "") -> Operation:
    """Make an integer constant."""
    op = make("arith.constant", at, (type,), {"value": IntAttr(value, type)})
    op.result.name = name
    return op


def rewrite(region: Region, visit: Visit) -> None:
    """Call `visit` for every operation of a region, outer before inner, in order, and replace operations."""
    for block in region.blocks:
        _rewrite_block(block, visit)


def _rewrite_block(block: Block, visit: Visit) -> None:
    made: list[Operation] | None = None
    for index, op in enumerate(block.ops):
        new = visit(op)
        if new is not None:
            if made is None:
                made = block.ops[:index]
            for fresh in new:
                fresh.parent = block
            made.extend(new)
        elif made is not None:
            made.append(op)
        for region in op.regions:
            rewrite(region, visit)
    if made is not None:
        block.ops = made


def replace_values(region: Region, mapping: dict[Value, Value]) -> None:
    """Replace values by others, everywhere in a region."""
    if not mapping:
        return
    for op in operations(region):
        if any(v in mapping for v in op.operands):
            op.operands = [mapping.get(v, v) for v in op.operands]
        for successor in op.successors:
            successor.args = [mapping.get(v, v) for v in successor.args]


def operations(region: Region) -> Iterator[Operation]:
    """Yield every operation of a region, in pre-order."""
    for block in region.blocks:
        for op in block.ops:
            yield from op.walk()


def function_name(func: Operation) -> str:
    return str(func.attr("sym_name"))
