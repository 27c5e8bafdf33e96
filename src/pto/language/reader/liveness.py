"""Which names statements set and need: what has to leave a loop, an arm or a region."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def assigned(statements: Iterable[ast.stmt]) -> list[str]:
    """Names that statements set, in order; `x[...] = y` sets no name, it writes through one."""
    found: dict[str, None] = {}
    for node in statements:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found[part.id] = None
    return list(found)


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that are read anywhere in them."""
    return {
        part.id
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def exposed(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that statements may read before they set them."""
    needs, _ = _flow(statements, set())
    return needs


def _flow(statements: Sequence[ast.stmt], known: set[str]) -> tuple[set[str], set[str]]:
    """Names that are read while not known, and those that are known for certain afterwards."""
    needs: set[str] = set()
    known = set(known)
    for node in statements:
        if isinstance(node, ast.If):
            needs |= read([node.test]) - known
            first, after_first = _flow(node.body, known)
            second, after_second = _flow(node.orelse, known)
            needs |= first | second
            known |= after_first & after_second
        elif isinstance(node, ast.For):
            needs |= read([node.iter]) - known
            inner = {*known, *assigned_names(node.target)}
            needs |= _flow(node.body, inner)[0]
            if _gives(node):
                known |= set(assigned(node.body[-1:]))
        elif isinstance(node, ast.While):
            needs |= read([node.test]) - known
            needs |= _flow(node.body, known)[0]
        elif isinstance(node, ast.With):
            for item in node.items:
                needs |= read([item.context_expr]) - known
                if item.optional_vars is not None:
                    known |= assigned_names(item.optional_vars)
            more, known = _flow(node.body, known)
            needs |= more
        else:
            needs |= read([node]) - known
            known |= set(assigned([node]))
    return needs, known


def _gives(node: ast.For) -> list[ast.keyword]:
    """Whether a loop gives what it yields even after no iteration."""
    return (
        [k for k in node.iter.keywords if k.arg == "init_values"] if isinstance(node.iter, ast.Call) else []
    )


def assigned_names(target: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
