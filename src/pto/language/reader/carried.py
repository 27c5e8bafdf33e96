"""What loops of cores carry, where it is not at once what they hand on.

- A part of memory that a loop replaces by what it computes begins as a copy of it.
- What one of two arms computes and the other takes from memory is a copy there.
- An array that holds nothing yet, and is a sum from the first iteration on, is valid as far as the sum is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .. import index
from ..ir import Block, Op, ShapedType, Value, is_memory, is_shaped, values_in
from ..operators.core import FUNCTIONS
from ..operators.cube import PRODUCTS
from .frame import Frame

#: Functions that give what they are given, or a part of it.
_THE_SAME = {
    "assemble", "store", "write", "scatter_update", "mscatter", "slice", "reshape", "view", "yield_",
    "reinterpret_view", "no_dep", "dump_tag",
}  # fmt: skip


def is_computed(body: Sequence[ast.stmt], name: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether statements give a name to what they compute, and not to memory."""
    for node in (n for part in body for n in ast.walk(part)):
        value = getattr(node, "value", None)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        if not any(isinstance(t, ast.Name) and t.id == name for t in targets):
            continue
        if isinstance(value, ast.BinOp | ast.UnaryOp):
            return True
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            owner = value.func.value
            of_language = isinstance(owner, ast.Attribute) or (
                isinstance(owner, ast.Name) and owner.id != "self"
            )
            if of_language and value.func.attr not in _THE_SAME:
                return True
        if isinstance(value, ast.Name) and value.id not in seen:
            if is_computed(body, value.id, seen | {name}):
                return True
    return False


def copied(f: Frame, memory: Value) -> Value:
    """A part of memory as an array of a core."""
    shape = list(memory.type.shape)
    made = FUNCTIONS["create_tensor"](f.build, shape, memory.type.dtype)
    return FUNCTIONS["assemble"](f.build, made, memory, [0] * len(shape))


def both_computed(f: Frame, blocks: list[Block], one: Any, two: Any) -> tuple[Any, Any]:
    """What two arms leave: where one has computed an array, that of the other is one too."""
    if not f.build.in_core or not is_shaped(one) or not is_shaped(two) or is_memory(one) == is_memory(two):
        return one, two
    found = []
    for block, value in zip(blocks, (one, two), strict=True):
        with f.build.into(block):
            found.append(copied(f, value) if is_memory(value) else value)
    return found[0], found[1]


def fitted(f: Frame, block: Block, arg: Value, begin: Any, now: Any) -> Any:
    """What a loop begins with: an array that holds nothing has the valid part of what takes its place."""
    made = begin.op if isinstance(begin, Value) else None
    if made is None or made.name not in ("create_tensor", "create_tile") or not _only_narrower(arg, now):
        return begin
    if made.args.get("init_value") is not None or not all(_adds(o, arg) for o in block.walk()):
        return begin
    valid = [_outside(f, block, n) for n in now.type.extent]
    if None in valid:
        return begin
    arg.type = arg.type.replace(valid=tuple(valid))
    copy = f.build.op(made.name, [arg.type], **made.args)
    copy.name, arg.begins = begin.name, copy
    return copy


def _only_narrower(arg: Value, now: Any) -> bool:
    if (
        not isinstance(now, Value)
        or not isinstance(now.type, ShapedType)
        or not isinstance(arg.type, ShapedType)
    ):
        return False
    a, b = arg.type, now.type
    alike = a.valid is None and a.dtype == b.dtype and index.same_dims(a.shape, b.shape)
    return alike and not index.same_dims(a.extent, b.extent)


def _adds(op: Op, arg: Value) -> bool:
    """Whether an operation leaves a value alone, or adds a product to it."""
    return arg not in set(values_in(op.args)) or (op.name in PRODUCTS and op.args.get("acc") is arg)


def _outside(f: Frame, block: Block, number: Any) -> Any:
    """A number of a loop, computed before it; None where only the loop knows it."""
    if not isinstance(number, Value) or not _is_in(number, block):
        return number
    op = number.op
    if op is None or not op.name.startswith("scalar.") or "dtype" in op.args:
        return None
    args = [_outside(f, block, a) for a in op.args.values()]
    return None if None in args else f.build.scalar(op.name.removeprefix("scalar."), *args)


def _is_in(value: Value, block: Block) -> bool:
    owner: Any = value.owner
    at = owner if isinstance(owner, Block) else owner.parent if owner is not None else None
    while at is not None:
        if at is block:
            return True
        at = at.outer.parent if isinstance(at.outer, Op) else None
    return False
