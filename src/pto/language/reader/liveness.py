"""Liveness of names: those that statements set and need, and that must leave a loop, a branch or a region."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


class _NameUses:
    """Names in a part of a tree: those it reads, and those it sets, in order."""

    __slots__ = ("reads", "sets")

    def __init__(self) -> None:
        self.reads: dict[str, None] = {}
        self.sets: dict[str, None] = {}


def _names(node: ast.AST) -> _NameUses:
    """Return the names of a node, cached at the node, since nested loops query them repeatedly."""
    kept: _NameUses | None = node.__dict__.get("pto_names")
    if kept is None:
        kept = _NameUses()
        if isinstance(node, ast.Name):
            (kept.sets if isinstance(node.ctx, ast.Store) else kept.reads)[node.id] = None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            kept.reads[node.target.id] = None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.stmt | ast.keyword | ast.withitem | ast.comprehension):
                inner = _names(child)
                kept.reads.update(inner.reads)
                kept.sets.update(inner.sets)
        node.__dict__["pto_names"] = kept
    return kept


def assigned(statements: Iterable[ast.AST]) -> list[str]:
    """Return the names that statements set, in order; `x[...] = y` sets no name."""
    found: dict[str, None] = {}
    for node in statements:
        found.update(_names(node).sets)
    return list(found)


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """Return all names that are read in the nodes."""
    found: set[str] = set()
    for node in nodes:
        found.update(_names(node).reads)
    return found


def exposed(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements may read before they set them."""
    needs, _ = _flow(statements, set())
    return needs


def _flow(statements: Sequence[ast.stmt], known: set[str]) -> tuple[set[str], set[str]]:
    """Return the names that are read while unset, and those that are set afterwards on every path."""
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
    """Return the `init_values` of a loop, which then has results even without an iteration."""
    return (
        [k for k in node.iter.keywords if k.arg == "init_values"] if isinstance(node.iter, ast.Call) else []
    )


def assigned_names(target: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
