"""The text of functions: their syntax trees, and places in the files they come from."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import cache
from typing import Any

from ...diag import Source, Span
from ..problems import SYNTAX, fail

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class File:
    """A file of Python. Functions in it are found by the line that they begin at."""

    def __init__(self, name: str, text: str) -> None:
        self.source = Source(name, text)
        self.tree = ast.parse(text)
        self._ascii = text.isascii()
        self._functions: dict[tuple[int, str], _Function] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, _Function):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                self._functions[first, node.name] = node

    def function(self, line: int, name: str) -> ast.FunctionDef | None:
        found = self._functions.get((line, name))
        return found if isinstance(found, ast.FunctionDef) else None

    def span(self, node: Any) -> Span:
        """Where a node is written."""
        start = self._offset(node.lineno, node.col_offset)
        return Span(self.source, start, max(start + 1, self._offset(node.end_lineno, node.end_col_offset)))

    def _offset(self, line: int, column: int) -> int:
        start, end = self.source.bounds(line)
        if not self._ascii:  # columns of syntax trees are bytes
            column = len(self.source.text[start:end].encode()[:column].decode(errors="ignore"))
        return start + column


@cache
def _file(name: str, text: str) -> File:
    return File(name, text)


def file_of(function: Callable[..., Any]) -> tuple[File, ast.FunctionDef]:
    """The file of a function and its tree."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        fail(SYNTAX, f"the source of {function.__name__} cannot be read",
             help="write it in a file: functions are read from their text")  # fmt: skip
    file = _file(code.co_filename, "".join(lines))
    node = file.function(code.co_firstlineno, function.__name__)
    if node is None:
        fail(SYNTAX, f"{function.__name__} is not where it was in {code.co_filename}",
             help="the file has changed since it was loaded; a lambda cannot be read")  # fmt: skip
    return file, node
