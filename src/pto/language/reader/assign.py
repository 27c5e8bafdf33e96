"""Targets of assignments: names, tuples of names, windows and elements of arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..ir import Dim, Value, index, is_scalar, is_shaped, is_tensor
from ..operators.core import OPERATORS
from ..operators.infix import assigned
from ..operators.memory import in_core
from ..operators.tasks import element
from ..problems import SYNTAX, TYPE, fail
from .carry import shown
from .expressions import value_of, window
from .frame import Frame


def bind(f: Frame, target: ast.expr, value: object) -> None:
    """Bind the value on the right to a name, several names, or a window of an array."""
    if isinstance(target, ast.Name):
        if isinstance(value, Value) and not value.name:
            value.name = target.id
        f.rebound(target, value)
        f.names[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values = list(value) if isinstance(value, tuple | list) else None
        if (
            values is not None
            and len(target.elts) == 2 < len(values)
            and isinstance(target.elts[0], ast.Tuple)
        ):
            values = [tuple(values[:-1]), values[-1]]  # (a, b), task = pl.submit(..)
        if values is None or len(values) != len(target.elts):
            got = f"{len(values)} values" if values is not None else shown(value)
            fail(TYPE, f"expected {len(target.elts)} values", f.span(target), got=got)
        for part, item in zip(target.elts, values, strict=True):
            bind(f, part, item)
    elif isinstance(target, ast.Subscript):
        _write_window(f, target, value)
    else:
        fail(SYNTAX, f"cannot assign to {type(target).__name__}", f.span(target))


def _write_window(f: Frame, target: ast.Subscript, value: object) -> None:
    owner = value_of(f, target.value)
    f.build.place = f.span(target)
    if isinstance(owner, Value) and not is_shaped(owner) and hasattr(owner.type, "extent"):
        at = value_of(f, target.slice)
        value = element(f.build, owner, value, "value")
        f.build.append("array.write", [], {"x": owner, "offset": f.build.as_index(at), "value": value})
        return
    if not is_shaped(owner):
        fail(TYPE, "cannot assign an element: expected an array", f.span(target), got=shown(owner))
    offsets, sizes, dropped = window(f, target, owner)
    f.build.place = f.span(target)
    one = len(dropped) == owner.type.rank
    if not one if is_scalar(value) else not (is_tensor(value) and is_tensor(owner)):
        in_core(f.build, f"`{ast.unparse(target)} = ..`")
    if is_scalar(value) and one:
        OPERATORS["write"].function(f.build, owner, offsets, value)
        return
    if one:
        fail(
            TYPE,
            "cannot assign an array to one element",
            f.span(target),
            help="assign to a window: `x[i:i + n]`",
        )
    if not is_shaped(value) and not is_scalar(value):
        fail(TYPE, "expected an array or a number for the window", f.span(target), got=shown(value),
             help="pass an array, as a parameter of the function")  # fmt: skip
    wanted = [n for i, n in enumerate(sizes) if i not in dropped]
    if not isinstance(value, Value) or is_scalar(value) or f.unit.exact is None:
        value = assigned(f.build, owner, sizes, dropped, value)
    if not index.same_dims(value.type.shape, wanted):
        _reach(f, target, value, sizes)
    OPERATORS["assemble"].function(f.build, owner, value, offsets)


def _reach(f: Frame, target: ast.AST, value: Value, sizes: Sequence[Dim]) -> None:
    """Reject an array whose valid region does not fill the window that it is assigned to; check only constant
    extents.
    """
    if any(index.known(n) not in (None, 1) for n in sizes[: max(0, len(sizes) - value.type.rank)]):
        fail(
            TYPE,
            "shape of the value does not match the window",
            f.span(target),
            expected=_dims(sizes),
            got=value.type,
        )
    for have, want in zip(value.type.extent[::-1], sizes[::-1], strict=False):
        if index.known_difference(have, want) not in (None, 0):
            fail(
                TYPE,
                "shape of the value does not match the window",
                f.span(target),
                expected=_dims(sizes),
                got=value.type,
            )


def _dims(dims: Sequence[Any]) -> str:
    return "[" + ", ".join(str(d) if isinstance(d, int) else d.name or "?" for d in dims) + "]"
