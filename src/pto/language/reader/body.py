"""Read a body statement by statement. Readers of statements register in `READERS` (statements.py)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..problems import SYNTAX, Problem, fail
from ..types import annotation
from . import liveness
from .expressions import value_of
from .frame import POISON, Frame, Quiet
from .hints import absent

READERS: dict[type, Callable[[Frame, Any], None]] = {}


def read_body(f: Frame, statements: Sequence[ast.stmt], live: set[str]) -> None:
    """Read statements; the names in `live` are needed after them."""
    after: list[set[str]] = []
    needed = set(live)
    for node in reversed(statements):
        after.append(set(needed))
        needed |= liveness.read([node])
    for node, later in zip(statements, reversed(after), strict=True):
        if f.returned is not None:  # statements after a return are unreachable
            break
        before, f.live = f.live, later
        try:
            _statement(f, node)
        except Problem as problem:
            f.unit.report(problem)
            _give_up(f, node)
        except Quiet:
            _give_up(f, node)
        finally:
            f.live = before


def _give_up(f: Frame, node: ast.stmt) -> None:
    if isinstance(node, ast.Return):
        f.returned = [POISON]
    for name in [*liveness.assigned([node]), *_defined(node)]:
        f.names[name] = POISON


def _defined(node: ast.stmt) -> list[str]:
    """Return the names that a definition or an import would bind."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(a.asname or a.name).partition(".")[0] for a in node.names]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def _statement(f: Frame, node: ast.stmt) -> None:
    reader = READERS.get(type(node))
    if reader is None:
        absent(f, node)
    f.build.place = f.span(node)
    f.build.said = annotation(value_of(f, node.annotation)) if isinstance(node, ast.AnnAssign) else None
    reader(f, node)


def stays(f: Frame, body: list[ast.stmt]) -> None:
    """Reject a return from within a loop, or from a branch of a run-time condition."""
    for found in (n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Return)):
        fail(SYNTAX, "unsupported return: a function returns only at its end", f.span(found),
             help="set names in branches and iterations, and return them at the end")  # fmt: skip
