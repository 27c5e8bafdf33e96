"""Values that merge at a point from several paths: iterations of a loop, branches, ends of regions."""

from __future__ import annotations

import ast
from typing import Any

from ...diag import Span
from ..dtypes import BOOL, FP32, INDEX, TASK_ID
from ..ir import (
    ArrayType,
    Block,
    Op,
    ScalarType,
    ShapedType,
    TensorType,
    Type,
    Value,
    dims_of,
    index,
    is_memory,
    is_scalar,
    lies_in,
    replaced,
    retyped,
    scalar_type,
    values_in,
)
from ..operators.core import OPERATORS
from ..problems import MERGE, fail
from .frame import Frame
from .hoist import raised


def shown(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


def carries(value: object) -> bool:
    """Return True if a loop can carry a value; None is a missing task, and may become a task."""
    return value is None or is_scalar(value) or isinstance(value, Value)


def type_of(f: Frame, value: object) -> Type:
    if isinstance(value, Value):
        return value.type
    dtype = TASK_ID if value is None else scalar_type(value)
    assert dtype is not None
    return ScalarType(dtype)


def is_task(type: Type) -> bool:
    return isinstance(type, ScalarType) and type.dtype == TASK_ID


def typed(f: Frame, block: Block, value: object, type: Type) -> Any:
    """Return a literal as a number of the type that it merges with."""
    if isinstance(value, Value) or not isinstance(type, ScalarType) or type.dtype in (INDEX, FP32, BOOL):
        return value
    with f.build.into(block):
        return OPERATORS["const"].function(f.build, value, type.dtype)


OTHER_NAME = "give it another name; a loop over pl.unroll(..) is written out, and may change it"


def agree(f: Frame, node: ast.AST, name: str, arg: Value, now: Any) -> None:
    """Check that a name keeps its type over an iteration."""
    problem = mismatch(arg.type, now)
    if (
        problem
        and isinstance(arg.type, ScalarType)
        and isinstance(now, Value)
        and isinstance(now.type, ScalarType)
    ):
        if arg.type.dtype in (INDEX, FP32) and arg.type.dtype.is_float == now.type.dtype.is_float:
            arg.type = now.type  # its initial value was a literal
            return
    if problem and _begins_empty(arg, now):
        for value in (arg.begins, arg):
            assert value is not None and isinstance(now.type, ShapedType)
            value.type = value.type.replace(valid=now.type.valid)
        return
    if problem:
        storage = isinstance(arg.begins, Value) and is_memory(arg.begins)
        fail(MERGE, f"type of '{name}' changes in the loop", set_at(f, node, name), expected=arg.type,
             got=shown(now), help=written_into(name) if storage else OTHER_NAME)  # fmt: skip


def _begins_empty(arg: Value, now: object) -> bool:
    """Return True if a carried value began as empty memory of the same shape; then it gets the valid region
    of the result of an iteration.
    """
    made = arg.begins.owner if arg.begins is not None else None
    assert isinstance(arg.owner, Block)
    if not isinstance(made, Op) or made.name not in _EMPTY or made.args.get("init_value") is not None:
        return False
    if not isinstance(now, Value) or not isinstance(now.type, ShapedType) or now.type.dtype != arg.type.dtype:
        return False
    same = index.same_dims(arg.type.shape, now.type.shape)
    return same and all(raised(d, made, arg.owner) for d in now.type.extent if isinstance(d, Value))


#: Operations that make empty memory.
_EMPTY = ("create_tensor", "create_tile")


def held(f: Frame, block: Block, x: Value) -> Value:
    """Load a tensor to a tile; return the tensor itself if its extents are dynamic."""
    if any(index.known(d) is None for d in x.type.shape):
        return x
    with f.build.into(block):
        return OPERATORS["load"].function(
            f.build, x, [0] * x.type.rank, [index.known(d) for d in x.type.shape]
        )


def written_into(name: str) -> str:
    return f"{name}[..] = .. writes into it; {name} = .. only rebinds the name"


def set_at(f: Frame, node: ast.AST, name: str) -> Span:
    """Return the last place where a loop or a branch assigns a name."""
    found = [
        n for n in ast.walk(node)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and hasattr(n, "lineno")
    ]  # fmt: skip
    return f.span(max(found, key=lambda n: (n.lineno, n.col_offset), default=node))


def mismatch(type: Type, value: object) -> bool:
    """Return True if a value does not match a type."""
    if isinstance(type, ArrayType):
        return not isinstance(value, Value) or value.type != type
    if value is None:
        return not is_task(type)
    if not isinstance(value, Value):
        dtype = scalar_type(value)
        if not isinstance(type, ScalarType) or dtype is None:
            return True
        return dtype.is_float and not type.dtype.is_float
    other = value.type
    if isinstance(type, ShapedType):
        if not isinstance(other, ShapedType) or other.dtype != type.dtype:
            return True
        if isinstance(type, TensorType) != isinstance(other, TensorType) and is_memory(value):
            return True
        return not (index.same_dims(type.shape, other.shape) and index.same_dims(type.extent, other.extent))
    return other != type


def substitute(block: Block, old: Value, new: object) -> None:
    """Replace a value in a block."""

    def of(v: Value) -> Any:
        return new if v is old else v

    for op in block.walk():
        op.args = replaced(op.args, of)
        for result in op.results:
            result.type = retyped(result.type, of)


def dims_in(type: Type) -> list[Value]:
    return list(values_in(dims_of(type)))


def inside(value: Value, block: Block) -> bool:
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent if owner is not None else None
    return home is not None and lies_in(home, block)
