"""Python files of the user: loading, calls, and source locations of problems.

An exception in the file becomes a diagnostic at the line that raised it. A wrong value is shown where it is
written, as far as it is a literal.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..diag import Diagnostic, DiagnosticError, Span
from ..reading import read

_numbers = itertools.count()


class UserFile:
    """A loaded file; its names are attributes of `module`."""

    def __init__(self, path: str) -> None:
        source, problems = read(path)
        if source is None:
            raise DiagnosticError(problems)
        self.path = os.path.abspath(path)
        self.source = source
        self.module = self._load()

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self.module, name, default)

    def _load(self) -> ModuleType:
        name = f"pto_user_{os.path.basename(self.path).removesuffix('.py')}_{next(_numbers)}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        assert spec is not None and spec.loader is not None, "a .py file has a loader"
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and pickles look up their module
        # write no bytecode into the folder of the user
        kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            self.call(lambda: spec.loader.exec_module(module), "loading")  # pyright: ignore[reportOptionalMemberAccess]
        finally:
            sys.dont_write_bytecode = kept
        return module

    def call(self, function: Callable[..., Any], what: str, *args: Any) -> Any:
        """Call a function of the file; an exception becomes a diagnostic."""
        try:
            return function(*args)
        except (KeyboardInterrupt, DiagnosticError):
            raise
        except SyntaxError as e:
            place = self._line(e.lineno or 1) if e.filename == self.path else None
            raise DiagnosticError([
                Diagnostic("PTO-E2602", f"invalid Python in '{self.source.name}': {e.msg}", place)
            ]) from e  # fmt: skip
        except BaseException as e:  # also SystemExit: a script must not end its runner
            raise DiagnosticError([self._raised(e, what)]) from e

    def _raised(self, error: BaseException, what: str) -> Diagnostic:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self.path]
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        d = Diagnostic(
            "PTO-E2602",
            f"{what} '{self.source.name}' failed: {text}",
            self._line(lines[-1] or 1) if lines else None,
        )
        if isinstance(error, ModuleNotFoundError):
            d.help = f"install it (pip install {error.name})"
            if error.name == "torch":
                d.help += ", or use NumPy arrays, of ml_dtypes.bfloat16 where needed"
        elif len(lines) > 1 and lines[-2]:
            d.notes.append(("called from here", self._line(lines[-2])))
        return d

    # -- places --------------------------------------------------------------------------------------------

    def _line(self, number: int) -> Span | None:
        if not 1 <= number <= self.source.text.count("\n") + 1:
            return None
        start, end = self.source.bounds(number)
        text = self.source.text[start:end]
        return Span(self.source, start + len(text) - len(text.lstrip()), end)

    def span(self, *path: str | int) -> Span | None:
        """Return the source location of a value: the name of a variable, then indices and keys. For a value
        that is not a literal, return the location of its innermost enclosing literal."""
        node: ast.AST | None = None
        for statement in ast.parse(self.source.text).body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            if any(isinstance(t, ast.Name) and t.id == path[0] for t in targets):
                node = getattr(statement, "value", None) or statement
            elif isinstance(statement, ast.FunctionDef) and statement.name == path[0]:
                return self._line(statement.lineno)
        for step in path[1:]:
            inner = _inside(node, step)
            if inner is None:
                break
            node = inner
        return None if node is None else self._node(node)

    def _node(self, node: Any) -> Span:
        first = self.source.bounds(node.lineno)[0]
        line = self.source.line(node.lineno).encode()
        start = first + len(line[: node.col_offset].decode(errors="replace"))
        if node.end_lineno != node.lineno:
            return Span(self.source, start, self.source.bounds(node.lineno)[1])
        return Span(self.source, start, first + len(line[: node.end_col_offset].decode(errors="replace")))


def _inside(node: ast.AST | None, step: str | int) -> ast.AST | None:
    if isinstance(node, ast.List | ast.Tuple) and isinstance(step, int) and step < len(node.elts):
        return node.elts[step]
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == step:
                return value
    return None
