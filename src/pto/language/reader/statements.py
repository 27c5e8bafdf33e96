"""Read statements in SSA form, one reader per kind. `read_body` reads a body of them."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import BOOL, DATA_TYPES, FP32, INDEX, TASK_ID
from ..ir import ArrayType, Value, index, is_scalar, is_shaped
from ..operators.core import OPERATORS
from ..operators.tasks import copy as copy_of_array
from ..problems import SYNTAX, TYPE, fail
from ..types import annotation, written_type
from .arms import read_if
from .assign import bind
from .body import READERS, read_body
from .expressions import binary, exactly, value_of
from .frame import Frame
from .jumps import JUMPS
from .loops import read_for, read_while
from .regions import read_with
from .yields import is_yield, yielded

__all__ = ["read_body"]


#: Element types of masks in annotations.
_BYTES = (DATA_TYPES["UINT8"], DATA_TYPES["INT8"])


def _assign(f: Frame, node: ast.Assign) -> None:
    value = _assigned_value(f, node.value, node.targets[0])
    if f.unit.exact is not None and isinstance(value, tuple) and value and _unnamed(node.targets[0]):
        _drop_unused_task(value[-1])
    for target in node.targets:
        bind(f, target, value)


def _annotated(f: Frame, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    value = _assigned_value(f, node.value, node.target)
    said = annotation(value_of(f, node.annotation))
    made = not isinstance(node.value, ast.Name) and not is_yield(node.value)  # other values keep their types
    if f.unit.exact is not None and said is not None and said.dtype is not None and isinstance(value, Value):
        if made:
            written = written_type(said)
            value.told = is_shaped(value) and written.dtype != value.type.dtype
            value.type = written
        elif said.kind == "scalar" and is_scalar(value) and value.type.dtype != said.dtype:
            if isinstance(node.value, ast.Name):
                value = OPERATORS["cast"].function(f.build, value, said.dtype)
        bind(f, node.target, value)
        return
    if said is not None and said.kind == "scalar" and said.dtype is not None and is_scalar(value):
        if isinstance(value, Value) and value.type.dtype != said.dtype:
            value = OPERATORS["cast"].function(f.build, value, said.dtype)
        elif not isinstance(value, Value) and said.dtype not in (INDEX, FP32, BOOL):
            value = OPERATORS["const"].function(f.build, value, said.dtype)
    if said is not None and is_shaped(value) and said.shape is not None:
        _check_annotation(f, node, value, said)
    bind(f, node.target, value)


def _check_annotation(f: Frame, node: ast.AnnAssign, value: Value, said: Any) -> None:
    if value.type.dtype == BOOL and said.dtype in _BYTES:
        return  # bytes of a mask, whose number depends on the target
    wrong = said.dtype is not None and said.dtype != value.type.dtype
    known = [(index.known(a), b) for a, b in zip(value.type.shape, said.shape, strict=False)]
    wrong |= len(said.shape) != value.type.rank or any(
        a is not None and isinstance(b, int) and a != b for a, b in known
    )
    if wrong:
        fail(TYPE, "type of the value does not match its annotation", f.span(node.annotation), got=value.type)


def _augmented(f: Frame, node: ast.AugAssign) -> None:
    from .expressions import _BINARY

    target, load = node.target, None
    if isinstance(target, ast.Name):
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    elif isinstance(target, ast.Subscript):  # reads and writes the window
        load = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    if load is None:
        fail(SYNTAX, "cannot update this in place: expected a name or a window", f.span(node))
    value = binary(f, node, _BINARY[type(node.op)], value_of(f, load), value_of(f, node.value))
    bind(f, node.target, value)


def _expression(f: Frame, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return  # a docstring
    if _is_for_execution_only(f, node.value):
        return
    if is_yield(node.value):
        values = yielded(f, node.value)
        if values:
            fail(
                SYNTAX,
                "missing name of a yielded value",
                f.span(node),
                help="x = pl.yield_(..); read x after the loop",
            )
        return
    value = value_of(f, node.value)
    if f.unit.exact is not None:
        task = value[-1] if isinstance(value, tuple) and value else value
        _drop_unused_task(task)


def _unnamed(target: ast.expr) -> bool:
    last = target.elts[-1] if isinstance(target, ast.Tuple) else None
    return isinstance(last, ast.Name) and last.id == "_"


def _drop_unused_task(task: object) -> None:
    """Drop the task result of a submission, because no name takes it."""
    if isinstance(task, Value) and task.type.dtype == TASK_ID and task.op is not None:
        if task.op.name == "call" and task in task.op.results:
            task.op.results.remove(task)


def _is_for_execution_only(f: Frame, node: ast.expr) -> bool:
    """Return True for `print` and `breakpoint`, which only executed bodies run (interpret.py)."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name in ("print", "breakpoint") and name not in f.names


def _assigned_value(f: Frame, node: ast.expr, target: ast.expr) -> object:
    """Return the assigned value; for a yield of one value, that value."""
    if not is_yield(node):
        value = value_of(f, node) if f.unit.exact is None else exactly(f, node)
        if isinstance(node, ast.Name) and isinstance(value, Value) and isinstance(value.type, ArrayType):
            return copy_of_array(f.build, value)  # later changes of one array do not affect the other
        return value
    values = yielded(f, node)
    return values[0] if len(values) == 1 and isinstance(target, ast.Name) else values


def _return(f: Frame, node: ast.Return) -> None:
    value = None if node.value is None else value_of(f, node.value)
    f.returned = [] if value is None else list(value) if isinstance(value, tuple) else [value]


def _jump(f: Frame, node: ast.stmt) -> None:
    """Reject a jump without an enclosing loop that handles it."""
    word = type(node).__name__.lower()
    fail(SYNTAX, f"cannot use {word} in a region or an unrolled loop", f.span(node), help=JUMPS)


def _pass(f: Frame, node: ast.stmt) -> None:
    pass


READERS |= {
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented, ast.Expr: _expression,
    ast.For: read_for, ast.While: read_while, ast.If: read_if, ast.With: read_with, ast.Return: _return,
    ast.Pass: _pass, ast.Break: _jump, ast.Continue: _jump,
}  # fmt: skip
