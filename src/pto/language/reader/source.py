"""The text of functions: syntax trees, and source locations in their files."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ...diag import Source, Span
from ..problems import SYNTAX, fail

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class PythonFile:
    """A Python file. Functions are found by their first line."""

    def __init__(self, name: str, text: str) -> None:
        self.source = Source(name, text)
        self.tree = ast.parse(text)
        self._ascii = text.isascii()
        self._functions: dict[tuple[int, str], _Function] = {}
        self._places: dict[object, ast.AST] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, _Function):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                self._functions[first, node.name] = node

    def function(self, line: int, name: str) -> ast.FunctionDef | None:
        found = self._functions.get((line, name))
        return found if isinstance(found, ast.FunctionDef) else None

    def node(self, place: tuple[object, ...]) -> ast.AST | None:
        """Return the expression at the position of a code object (first line, last line, first and last
        column); without columns, the statement of the line."""
        if not self._places:
            for node in ast.walk(self.tree):
                if isinstance(node, ast.expr):
                    self._places[node.lineno, node.end_lineno, node.col_offset, node.end_col_offset] = node
                elif isinstance(node, ast.stmt):  # nested statements come later
                    for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                        self._places[line] = node
        return self._places.get(tuple(place)) or self._places.get(place[0])

    def span(self, node: Any) -> Span:
        """Return the source location of a node."""
        start = self._offset(node.lineno, node.col_offset)
        return Span(self.source, start, max(start + 1, self._offset(node.end_lineno, node.end_col_offset)))

    def _offset(self, line: int, column: int) -> int:
        start, end = self.source.bounds(line)
        if not self._ascii:  # columns of syntax trees are in bytes
            column = len(self.source.text[start:end].encode()[:column].decode(errors="ignore"))
        return start + column


@lru_cache(64)  # an editor has a text for each change
def _file(name: str, text: str) -> PythonFile:
    return PythonFile(name, text)


def file_at(name: str, names: dict[str, Any] | None = None) -> PythonFile | None:
    """Return a Python file by its name; None if its text is not available."""
    text = "".join(linecache.getlines(name, names)) or (_command() if name == _COMMAND else "")
    return _file(name, text) if text else None


_COMMAND = "<string>"  # the file name of `python -c`, and of other code without a file


def _command() -> str:
    """Return the text of `python -c`, which some Python versions do not keep."""
    words = sys.orig_argv
    return words[words.index("-c") + 1] if "-c" in words[:-1] else ""


def class_at(cls: type) -> Span | None:
    """Return the source location of a class; None if its text is not available."""
    module = sys.modules.get(cls.__module__)
    file = file_at(getattr(module, "__file__", None) or cls.__module__, vars(module) if module else None)
    if file is None:
        return None
    words = cls.__qualname__.replace(".<locals>", "").split(".")
    nodes: list[ast.AST] = [file.tree]
    for word in words:
        nodes = [
            n for outer in nodes for n in ast.walk(outer)
            if n is not outer and isinstance(n, ast.ClassDef | _Function) and n.name == word
        ]  # fmt: skip
    return file.span(nodes[-1]).head if nodes else None


def file_of(function: Callable[..., object]) -> tuple[PythonFile, ast.FunctionDef]:
    """Return the file of a function, and its tree."""
    code = function.__code__
    file = file_at(code.co_filename, function.__globals__)
    node = None if file is None else file.function(code.co_firstlineno, function.__name__)
    if file is None or (node is None and code.co_filename == _COMMAND):
        fail(SYNTAX, f"cannot read the source of {function.__name__}",
             help="write it in a file: functions are read from their text")  # fmt: skip
    if node is None:
        fail(SYNTAX, f"cannot find {function.__name__} in {code.co_filename}",
             help="the file has changed since it was loaded; a lambda cannot be read")  # fmt: skip
    return file, node


def surroundings(function: Callable[..., object], enclosing: Mapping[str, object]) -> Callable[[str], object]:
    """Return a function that looks up a name as the given function sees it; it raises KeyError for unknown
    names.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def find(name: str) -> object:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:  # set later in the enclosing function, or never
                raise KeyError(name) from None
        if name in enclosing:
            return enclosing[name]
        return function.__globals__[name]

    return find
