"""What is known of a function before its body is read: its attributes, and whether names are set once."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..extern import cores_of
from ..ir import Function
from ..operators.core import OPERATORS
from ..problems import ARGUMENTS, NAME, PLACE, SYNTAX, Problem, fail
from .carry import shown
from .frame import Frame
from .source import File

if TYPE_CHECKING:
    from ..declare import Declared


def check_attributes(f: Frame, declared: Declared, node: ast.FunctionDef) -> None:
    """What the decorator tells is as good as a first `pl.func_attr`; other ones follow at once."""
    attrs = declared.attrs
    if attrs is not None:
        if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
            fail(ARGUMENTS, "attributes are a dictionary of words", _decorated(f, node), got=shown(attrs),
                 expected='attrs={"split": pl.SplitMode.UP_DOWN}')  # fmt: skip
        OPERATORS["func_attr"].function(f.build, dict(attrs))
    begun = False
    for statement in node.body:
        if not _is_attribute(statement):
            begun = begun or not _says_nothing(statement)
        elif begun:
            fail(PLACE, "attributes of a function come before everything else", f.span(statement),
                 help="make it the first statement")  # fmt: skip


def check_extern(function: Function, file: File, node: ast.FunctionDef) -> None:
    """A kernel in C++ is declared, perhaps with attributes, and has no body of ours."""
    cores_of(function)
    written = [s for s in node.body if not _says_nothing(s) and not _is_attribute(s)]
    if written:
        fail(SYNTAX, f"{function.name} is in C++, and has a body here, too", file.span(written[0]),
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
    """Of a function that says so, each name is set once where it stands, and nothing is written in place."""
    _once(f, node.body, {a.arg: a for a in ast.walk(node.args) if isinstance(a, ast.arg)})


def _once(f: Frame, body: Sequence[ast.stmt], known: dict[str, ast.AST]) -> None:
    for statement in body:
        for target in _targets(statement):
            if isinstance(target, ast.Subscript):
                f.unit.report(_twice(f, target, f"`{ast.unparse(target)} = ..` changes what it is given",
                                     "x = pl.assemble(y, part, offsets)"))  # fmt: skip
            elif isinstance(target, ast.Name) and target.id != "_":
                if target.id in known:
                    f.unit.report(_twice(f, target, f"'{target.id}' is set twice", "another name"))
                known[target.id] = target
        for inner in ("body", "orelse"):
            _once(f, [s for s in getattr(statement, inner, ()) if isinstance(s, ast.stmt)], {})


def _twice(f: Frame, target: ast.expr, message: str, help: str) -> Problem:
    try:
        fail(NAME, f"{message}, in a function that sets each name once", f.span(target),
             help=f"{help}; or leave out strict_ssa=True")  # fmt: skip
    except Problem as problem:
        return problem


def _targets(node: ast.stmt) -> list[ast.expr]:
    """What a statement sets, one by one."""
    if isinstance(node, ast.Assign):
        given = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        given = [node.target]
    else:
        given = []
    return [p for t in given for p in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
