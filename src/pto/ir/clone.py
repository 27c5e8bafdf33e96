"""A copy of a program for passes to change; the user keeps the original."""

from __future__ import annotations

from .core import Block, Module, Operation, Region, Successor, Value


def clone(module: Module) -> Module:
    """Return a deep copy; locations, names and table rows are shared."""
    values: dict[Value, Value] = {}
    blocks: dict[Block, Block] = {}
    branches: list[tuple[Operation, Operation]] = []
    op = _operation(module.op, values, blocks, branches)
    for made in op.walk():
        made.operands = [values.get(v, v) for v in made.operands]
    for old, made in branches:
        made.successors = tuple(
            Successor(blocks.get(s.block, s.block), [values.get(v, v) for v in s.args])
            for s in old.successors
        )
    return Module(op, module.source, module.implicit)


def _operation(
    op: Operation,
    values: dict[Value, Value],
    blocks: dict[Block, Block],
    branches: list[tuple[Operation, Operation]],
) -> Operation:
    """Copy an operation with its old operands: their copies are known only at the end."""
    made = Operation(
        op.name,
        op.row,
        op.operands,
        [r.type for r in op.results],
        dict(op.attrs),
        op.segments,
        op.loc,
    )
    for old, new in zip(op.results, made.results, strict=True):
        new.name = old.name
        values[old] = new
    if op.successors:
        branches.append((op, made))
    if op.regions:
        made.regions = [_region(region, made, values, blocks, branches) for region in op.regions]
    return made


def _region(
    region: Region,
    parent: Operation,
    values: dict[Value, Value],
    blocks: dict[Block, Block],
    branches: list[tuple[Operation, Operation]],
) -> Region:
    made = Region(parent)
    for block in region.blocks:
        copy = blocks[block] = made.add_block(block.label)
        for arg in block.args:
            values[arg] = copy.add_arg(arg.type, arg.name)
        for op in block.ops:
            copy.append(_operation(op, values, blocks, branches))
    return made
