"""Rewrite `break` and `continue` as truth values that loops and branches test.

    for i in pl.range(n):            i_at, left = 0, False
        if x > y:                    while i_at < n and not left:
            break                        i = i_at
        work                             if x > y:
                                             left = True
                                         if not left:
                                             work
                                         i_at = i_at + 1

`continue` only guards the rest of the body, and the loop remains a counting loop.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

#: Help for jumps in other places.
JUMPS = "break and continue are for pl.range and while"

_Stmt = TypeVar("_Stmt", bound=ast.stmt)


class Jumps:
    """The jumps of a loop body, without those of nested loops."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.breaks: list[ast.Break] = []
        self.continues: list[ast.Continue] = []
        self._look(body)

    def _look(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Break):
                self.breaks.append(node)
            elif isinstance(node, ast.Continue):
                self.continues.append(node)
            elif isinstance(node, ast.If):
                self._look(node.body)
                self._look(node.orelse)
            elif isinstance(node, ast.With):
                self._look(node.body)

    @property
    def first(self) -> ast.stmt | None:
        found = [*self.breaks, *self.continues]
        return min(found, key=lambda n: (n.lineno, n.col_offset)) if found else None


class Structured:
    """The body of a loop without jumps. `left` and `skipped` name the truth values."""

    def __init__(self, left: str, skipped: str) -> None:
        self.left = left
        self.skipped = skipped

    def body(self, statements: Sequence[ast.stmt], jumps: Jumps) -> list[ast.stmt]:
        out = self._block(statements)
        if jumps.continues:
            out.insert(0, assign(self.skipped, ast.Constant(False), statements[0]))
        return out

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, node in enumerate(statements):
            if isinstance(node, ast.Break | ast.Continue):
                name = self.left if isinstance(node, ast.Break) else self.skipped
                out.append(assign(name, ast.Constant(True), node))
                return out  # the rest is unreachable
            inner = Jumps([node])
            if inner.first is None:
                out.append(node)
                continue
            if _goes_on_in_body(node):
                assert isinstance(node, ast.If)
                arms = self._block([*node.body, *statements[i + 1 :]]), self._block(node.orelse)
                out.append(ast.copy_location(ast.If(node.test, *arms), node))
                return out
            out.append(self._within(node))
            rest = self._block(statements[i + 1 :])
            if rest:
                out.append(self._unless(inner, rest))
            return out
        return out

    def _within(self, node: ast.stmt) -> ast.stmt:
        """Rewrite a statement with jumps in it."""
        if isinstance(node, ast.If):
            made = ast.If(node.test, self._block(node.body), self._block(node.orelse))
        else:
            assert isinstance(node, ast.With)
            made = ast.With(node.items, self._block(node.body))
        return ast.copy_location(made, node)

    def _unless(self, jumps: Jumps, rest: list[ast.stmt]) -> ast.If:
        at = rest[0]
        flags = [n for n, found in ((self.left, jumps.breaks), (self.skipped, jumps.continues)) if found]
        test: ast.expr = ast.Name(flags[0], ast.Load())
        if len(flags) > 1:
            test = ast.BoolOp(ast.Or(), [ast.Name(n, ast.Load()) for n in flags])
        return placed(ast.If(ast.UnaryOp(ast.Not(), test), rest, []), at)


def _goes_on_in_body(node: ast.stmt) -> bool:
    """Return True if only the first branch continues. Names that only this branch sets then stay set."""
    if not isinstance(node, ast.If) or not node.orelse or Jumps(node.body).first is not None:
        return False
    return isinstance(node.orelse[-1], ast.Break | ast.Continue)


def assign(name: str, value: ast.expr, at: ast.AST) -> ast.Assign:
    return placed(ast.Assign([ast.Name(name, ast.Store())], value), at)


def placed(made: _Stmt, at: ast.AST) -> Any:
    """Give a new tree the location of another; parts with a location keep it."""
    for part in ast.walk(made):
        if isinstance(part, ast.stmt | ast.expr) and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return made
