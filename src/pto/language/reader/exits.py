"""Turn returns in branches into one return at the end.

    if c:                    if c:
        return a                 returned_0_ = a
    rest                     else:
    return b                     rest
                                 returned_0_ = b
                             return returned_0_

Returns from loops and regions stay; the reader of bodies rejects them (body.py).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .jumps import placed


def single_exit(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements with a single return at the end, unchanged if that is impossible."""
    if not any(isinstance(n, ast.If) and _returns(n) for n in body):
        return [*body]
    found: list[ast.Return] = []
    if not _collect(body, found) or len({_count(r) for r in found}) != 1:
        return [*body]
    names = [f"returned_{i}_" for i in range(_count(found[0]))]
    out = _without(body, names)
    if names:
        loads: list[ast.expr] = [ast.Name(n, ast.Load()) for n in names]
        value = loads[0] if len(loads) == 1 else ast.Tuple(loads, ast.Load())
        out.append(placed(ast.Return(value), found[-1]))
    return out


def _returns(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Return) for n in ast.walk(node))


def _count(node: ast.Return) -> int:
    if isinstance(node.value, ast.Tuple):
        return len(node.value.elts)
    return 0 if node.value is None else 1


def _collect(body: Sequence[ast.stmt], found: list[ast.Return]) -> bool:
    """Return True if every path ends with a return outside of loops and regions."""
    for node in body:
        if isinstance(node, ast.Return):
            found.append(node)
            return True
        if isinstance(node, ast.If):
            ends = [_collect(arm, found) for arm in (node.body, node.orelse)]
            if all(ends):
                return True
        elif _returns(node):
            return False
    return False


def _without(body: Sequence[ast.stmt], names: list[str]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for i, node in enumerate(body):
        if isinstance(node, ast.Return):
            return [*out, *_set(node, names)]
        if isinstance(node, ast.If) and _returns(node):
            rest = body[i + 1 :]
            arms = (
                _without([*arm, *(() if _leaves(arm) else rest)], names) for arm in (node.body, node.orelse)
            )
            first, second = arms
            return [*out, ast.copy_location(ast.If(node.test, first or [_nothing(node)], second), node)]
        out.append(node)
    return out


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return _collect(body, [])


def _nothing(at: ast.AST) -> ast.stmt:
    return placed(ast.Pass(), at)


def _set(node: ast.Return, names: list[str]) -> list[ast.stmt]:
    if node.value is None:
        return []
    stores: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
    target = ast.Tuple(stores, ast.Store()) if isinstance(node.value, ast.Tuple) else stores[0]
    return [placed(ast.Assign([target], node.value), node)]
