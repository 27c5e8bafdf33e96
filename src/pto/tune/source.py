"""Replacement of parameters in a program.

In a text (`.pto`, and arguments of a launch) `${TILE}` is the value of a parameter, and `${TILE * 2}` the
value of an expression. `${TILE=128}` gives the parameter a value for runs that do not search it; `${TILE}` in
the rest of the text has the same value.

A Python file has a function `build(TILE, STAGES)` that gets the parameters by name. It returns a program, or
a program and the arguments of its launch. Instead of `build`, a file can have constants of those names, which
are replaced, and a function of the language (`@pl.jit`).
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from types import ModuleType
from typing import Any

from ..diag import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from .space import Point, evaluate, refuse

_PLACE = re.compile(r"\$\{([^{}]*)\}")
_DEFAULT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([^=].*)")


def fill(text: str, point: Point, name: str = "<text>") -> str:
    """Return the text with the values of parameters; raise an error at the source location of a parameter
    without a value."""
    names = {**defaults(text), **point}

    def value(found: re.Match[str]) -> str:
        inside = default[1] if (default := _DEFAULT.fullmatch(found[1])) else found[1]
        try:
            return str(evaluate(inside, names))
        except (DiagnosticError, ValueError) as e:  # ValueError: a number has too many digits to print
            problem = e.diagnostics[0] if isinstance(e, DiagnosticError) else Diagnostic("PTO-E2901", str(e))
            span = Span(Source(name, text), found.start(), found.end())
            raise DiagnosticError(
                [Diagnostic(problem.code, problem.message, span, help=problem.help)]
            ) from None

    return _PLACE.sub(value, text)


def defaults(text: str) -> Point:
    """Return the values that a text gives to parameters itself."""
    out: Point = {}
    for found in _PLACE.finditer(text):
        if default := _DEFAULT.fullmatch(found[1]):
            out.setdefault(default[1], evaluate(default[2], out))
    return out


def named(text: str, name: str = "<text>") -> set[str]:
    """Return the names of the parameters that a text uses."""
    out: set[str] = set()
    for found in _PLACE.finditer(text):
        inside = default[1] if (default := _DEFAULT.fullmatch(found[1])) else found[1]
        try:
            out |= {n.id for n in ast.walk(ast.parse(inside.strip(), mode="eval")) if isinstance(n, ast.Name)}
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two for deep nesting
            message = f"expected an expression over parameters, got '{found[0][:200]}'"
            span = Span(Source(name, text), found.start(), found.end())
            raise DiagnosticError([Diagnostic("PTO-E2901", message, span)]) from None
    return out - {"min", "max"}


def check_named(names: Collection[str], point: Mapping[str, Any], where: str) -> None:
    """Refuse parameters that the program does not use."""
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


def parameters(text: str, path: str) -> dict[str, str]:
    """Return the parameters of a file, each with its value outside a search or an empty text. The parameters
    of a Python file are the arguments of `build`, or its constants."""
    if not path.endswith(".py"):
        known = defaults(text)
        return {name: str(known.get(name, "")) for name in sorted(named(text, path))}
    tree = _tree(text, path)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "build":
            args = node.args
            first = [a.arg for a in (*args.posonlyargs, *args.args)]
            unset = [None] * (len(first) - len(args.defaults))
            values = [*unset, *args.defaults, *args.kw_defaults]
            names = [*first, *(a.arg for a in args.kwonlyargs)]
            return {n: ast.unparse(v) if v is not None else "" for n, v in zip(names, values, strict=True)}
    return {name: repr(constant.value) for name, constant in _constants(tree)}


def listing(text: str, path: str) -> str:
    """Return the parameters of a file as text for a message."""
    known = [f"{name}={value}" if value else name for name, value in parameters(text, path).items()]
    return f"it has {', '.join(known)}" if known else ""


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the names to which a file assigns constants: `A = 1`, `A: int = 1`, `A, B = 1, 2`."""

    def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.Constant]]:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            for part, its in zip(target.elts, value.elts, strict=False):
                yield from pairs(part, its)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            yield target.id, value

    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from pairs(target, node.value)


def load_python(text: str, path: str, point: Point) -> ModuleType:
    """Return the module of a file with the values of a point for its constants."""
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
        # executes the file of the user; other texts are only data
        exec(compile(tree, path, "exec"), module.__dict__)
    finally:
        sys.path[:] = kept
    return module


def _tree(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError as e:
        raise refuse(f"{path}:{e.lineno}: {e.msg}") from None
