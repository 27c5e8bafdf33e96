"""Checks before the body of a function is read: its attributes, and single assignment of names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir import Function
from ..operators.core import OPERATORS
from ..problems import ARGUMENTS, NAME, PLACE, SYNTAX, Problem, fail
from ..programs.extern import cores_of
from .carry import shown
from .frame import Frame
from .source import PythonFile

if TYPE_CHECKING:
    from ..declare import Declared


def check_attributes(f: Frame, declared: Declared, node: ast.FunctionDef) -> None:
    """Apply attributes from the decorator as a first `pl.func_attr`; others must directly follow."""
    attrs = declared.attrs
    if attrs is not None:
        if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
            fail(ARGUMENTS, "expected a dictionary with string keys for the attributes", _decorated(f, node),
                 got=shown(attrs),
                 expected='attrs={"split": pl.SplitMode.UP_DOWN}')  # fmt: skip
        OPERATORS["func_attr"].function(f.build, dict(attrs))
    begun = False
    for statement in node.body:
        if not _is_attribute(statement):
            begun = begun or not _says_nothing(statement)
        elif begun:
            fail(PLACE, "expected attributes before all other statements", f.span(statement),
                 help="make it the first statement")  # fmt: skip


def check_extern(function: Function, file: PythonFile, node: ast.FunctionDef) -> None:
    """Check a C++ kernel: its declaration may have attributes, and has no body."""
    cores_of(function)
    written = [s for s in node.body if not _says_nothing(s) and not _is_attribute(s)]
    if written:
        fail(SYNTAX, f"unexpected body of {function.name}, a C++ kernel", file.span(written[0]),
             expected="...", help="leave external_source= out, or the body")  # fmt: skip


def _decorated(f: Frame, node: ast.FunctionDef) -> Any:
    given = [
        k.value
        for d in node.decorator_list
        if isinstance(d, ast.Call)
        for k in d.keywords
        if k.arg == "attrs"
    ]
    return f.span(given[0] if given else node)


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_attribute(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute | ast.Name):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    return name == OPERATORS["func_attr"].name


def check_set_once(f: Frame, node: ast.FunctionDef) -> None:
    """Check a function with strict_ssa: each name is assigned once, and nothing is written in place."""
    _once(f, node.body, {a.arg: a for a in ast.walk(node.args) if isinstance(a, ast.arg)})


def _once(f: Frame, body: Sequence[ast.stmt], known: dict[str, ast.AST]) -> None:
    for statement in body:
        for target in _targets(statement):
            if isinstance(target, ast.Subscript):
                f.unit.report(_twice(f, target, f"`{ast.unparse(target)} = ..` writes in place",
                                     "x = pl.assemble(y, part, offsets)"))  # fmt: skip
            elif isinstance(target, ast.Name) and target.id != "_":
                if target.id in known:
                    f.unit.report(_twice(f, target, f"'{target.id}' is assigned twice", "another name"))
                known[target.id] = target
        for inner in ("body", "orelse"):
            _once(f, [s for s in getattr(statement, inner, ()) if isinstance(s, ast.stmt)], {})


def _twice(f: Frame, target: ast.expr, message: str, help: str) -> Problem:
    try:
        fail(NAME, f"{message}, in a function with strict_ssa=True", f.span(target),
             help=f"use {help}, or leave out strict_ssa=True")  # fmt: skip
    except Problem as problem:
        return problem


def _targets(node: ast.stmt) -> list[ast.expr]:
    """Return the targets of a statement."""
    if isinstance(node, ast.Assign):
        given = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        given = [node.target]
    else:
        given = []
    return [p for t in given for p in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
