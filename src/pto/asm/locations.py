"""The meaning of `loc(...)`: the location in another file that an operation came from.

`loc("k.py":3:5)` is a file, line and column. In a location of several parts (`callsite(a at b)`, `fused[a,
b]`, `"name"(a)`), the first part with a file counts; `#a` is an alias, defined anywhere in the text.
`loc(unknown)` has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..diag import Span, Unread
from ..ir.core import Operation
from .lexer import unquote

_DIGITS = 9  # maximum length of a line or column number
_DEPTH = 64  # maximum depth of nested aliases


class Locations:
    """Reads the locations of a text: `aliases` are its aliases, as ranges of tokens."""

    def __init__(self, tokens: Sequence[str], aliases: Mapping[str, range]) -> None:
        self._tokens = tokens
        self._aliases = aliases
        self._files: dict[str, Unread] = {}
        self._known: dict[str, Span | None] = {}

    def place(self, said: Sequence[tuple[Operation, range]]) -> None:
        """Set the declared locations of operations."""
        for op, tokens in said:
            found = self._read(tokens)
            if found is not None:
                op.loc = found

    def _read(self, where: range, depth: int = 0) -> Span | None:
        t = self._tokens
        for k in where:
            if t[k][:1] == '"' and k + 4 < where.stop and (t[k + 1], t[k + 3]) == (":", ":"):
                line, column = t[k + 2], t[k + 4]
                if line.isdecimal() and column.isdecimal() and max(len(line), len(column)) <= _DIGITS:
                    name = unquote(t[k])
                    return self._files.setdefault(name, Unread(name)).at(int(line), int(column))
            elif t[k][:1] == "#":
                found = self._alias(t[k], depth + 1)
                if found is not None:
                    return found
        return None

    def _alias(self, name: str, depth: int) -> Span | None:
        if name not in self._known:
            self._known[name] = None  # a cyclic alias has no effect
            where = self._aliases.get(name)
            if where is not None and depth <= _DEPTH:
                self._known[name] = self._read(where, depth)
        return self._known[name]
