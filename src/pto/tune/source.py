"""What parameters change in a program.

In a text (`.pto`, and arguments of a launch) `${TILE}` is the value of a parameter, `${TILE * 2}` that of an
expression, and `${TILE=128}` says which value it has where it is no parameter of the search; from there on
`${TILE}` is that one as well.

A Python file has a function `build(TILE, STAGES)` that gets parameters by name and returns a program, with
the arguments of a launch if they depend on it; or constants of those names, which are replaced, and a
function of the language (`@pl.jit`).
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from ..diag import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from .space import Point, evaluate, refuse

_PLACE = re.compile(r"\$\{([^{}]*)\}")
_DEFAULT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([^=].*)")


def fill(text: str, point: Point, name: str = "<text>") -> str:
    """The text with the values of parameters. What it names and nobody gives is an error at its place."""
    names = {**defaults(text), **point}

    def value(found: re.Match[str]) -> str:
        inside = default[1] if (default := _DEFAULT.fullmatch(found[1])) else found[1]
        try:
            return str(evaluate(inside, names))
        except (DiagnosticError, ValueError) as e:  # the latter of a number with too many digits to print
            problem = e.diagnostics[0] if isinstance(e, DiagnosticError) else Diagnostic("PTO-E2901", str(e))
            span = Span(Source(name, text), found.start(), found.end())
            raise DiagnosticError(
                [Diagnostic(problem.code, problem.message, span, help=problem.help)]
            ) from None

    return _PLACE.sub(value, text)


def defaults(text: str) -> Point:
    """What a text says of parameters itself."""
    out: Point = {}
    for found in _PLACE.finditer(text):
        if default := _DEFAULT.fullmatch(found[1]):
            out.setdefault(default[1], evaluate(default[2], out))
    return out


def named(text: str, name: str = "<text>") -> set[str]:
    """The names of parameters that a text has places for."""
    out: set[str] = set()
    for found in _PLACE.finditer(text):
        inside = default[1] if (default := _DEFAULT.fullmatch(found[1])) else found[1]
        try:
            out |= {n.id for n in ast.walk(ast.parse(inside.strip(), mode="eval")) if isinstance(n, ast.Name)}
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: it nests too deep
            message = f"'{found[0][:200]}' is no expression over parameters"
            span = Span(Source(name, text), found.start(), found.end())
            raise DiagnosticError([Diagnostic("PTO-E2901", message, span)]) from None
    return out - {"min", "max"}


def check_named(names: set[str], point: Mapping[str, Any], where: str) -> None:
    """Refuse parameters that change nothing."""
    for name in point:
        if name not in names:
            hint = did_you_mean(name, names) or (f"it has {', '.join(sorted(names))}" if names else "")
            add = (
                f"write {name} = .. at its top"
                if where.endswith(".py")
                else f"write ${{{name}}} where its value belongs"
            )
            raise refuse(f"{where} has no parameter '{name}'", hint or add)


# -- Python ------------------------------------------------------------------------------------------------


def python_names(text: str, path: str) -> set[str]:
    """What a Python file has for parameters: arguments of `build`, or constants."""
    tree = _tree(text, path)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "build":
            args = node.args
            return {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    return {name for name, _ in _constants(tree)}


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the names to which a file assigns constants: `A = 1`, `A: int = 1`, `A, B = 1, 2`."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs: list[tuple[ast.expr, ast.expr]] = [(target, node.value)]
                if isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                for name, value in pairs:
                    if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                        yield name.id, value


def load_python(text: str, path: str, point: Point) -> ModuleType:
    """The module of a file whose constants are those of a point."""
    tree = _tree(text, path)
    for name, constant in _constants(tree):
        if name in point:
            constant.value = point[name]
    module = ModuleType("pto_tuned")
    module.__file__ = path
    folder = os.path.dirname(os.path.abspath(path))
    kept = list(sys.path)
    sys.path.insert(0, folder)
    sys.modules[module.__name__] = module
    try:
        exec(compile(tree, path, "exec"), module.__dict__)  # a Python file is code; other texts are data
    finally:
        sys.path[:] = kept
    return module


def _tree(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError as e:
        raise refuse(f"{path}:{e.lineno}: {e.msg}") from None
