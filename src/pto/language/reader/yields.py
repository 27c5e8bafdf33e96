"""`pl.yield_`: values that a loop or a branch hands on by position."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .expressions import value_of
from .frame import Frame


def is_yield(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == "yield_"
    )


def yielded(f: Frame, node: Any) -> tuple[object, ...]:
    values = [value_of(f, part) for part in node.args]
    f.names["yield "] = values  # not a valid name of a program
    return tuple(values)


def yield_target(body: Sequence[ast.stmt]) -> ast.expr | None:
    """Return the target of the yield that ends a body."""
    for node in reversed(body):
        if (
            isinstance(node, ast.With) and node is body[-1]
        ):  # a region ends with it, and the enclosing loop hands it on
            return yield_target(node.body)
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.expr) and is_yield(getattr(node, "value", None)):
            return target
    return None


def yield_names(body: Sequence[ast.stmt]) -> list[str]:
    """Return the target names of the yield that ends a body."""
    target = yield_target(body)
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [p.id for p in parts if isinstance(p, ast.Name)]
