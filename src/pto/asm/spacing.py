"""Spaces between two neighboring tokens of a statement, as the printer writes them."""

from __future__ import annotations

from collections.abc import Sequence

from .lexer import EOF

_NONE_BEFORE = (",", ")", "]", ";", ">", "::")
_NONE_AFTER = ("(", "[", "<", "::")
_NAMED_PARTS = ("default", "offset", "sizes", "strides")  # `offset: [..]`, `default: ^bb1`
_FREE = ("*", "+", "/", "|", "?")  # only inside locations and the like: left as they are


class Spacing:
    """Walk over the statement at `begin`, token by token."""

    def __init__(self, tokens: Sequence[str], begin: int) -> None:
        self.t = tokens
        self.begin = begin
        self.name_at = self._name_at()
        self.name = tokens[self.name_at]
        self.open: list[str] = []  # brackets around the current token

    def _name_at(self) -> int:
        """Return the index of the operation's name, after its results."""
        at = self.begin
        if self.t[at][:1] == "%":
            while self.t[at] not in ("=", EOF):
                at += 1
            at += 1
        return min(at, len(self.t) - 1)

    def take(self, at: int) -> None:
        """Go past a token."""
        token = self.t[at]
        if token in ("(", "[", "{", "<"):
            self.open.append("loc(" if self.t[at - 1] == "loc" else token)
        elif token in (")", "]", "}", ">") and self.open:
            self.open.pop()

    def before(self, at: int, written: bool) -> bool:
        """Return True if a space precedes a token; `written` is True if the text has one."""
        last, token = self.t[at - 1], self.t[at]
        if token in _NONE_BEFORE or last in _NONE_AFTER or token == "}" or last == "{":
            return False
        if last == "." and at - 1 == self.begin:  # a directive
            return False
        if last in _FREE or token in _FREE:
            return written
        if last == "-":
            return not token[:1].isdigit()
        if token == ":":
            return self._before_colon(at, last)
        if last == ":":
            return not self._is_count(at - 1) and "loc(" not in self.open
        if "=" in (last, token):
            key = at - 1 if token == "=" else at - 2
            return key == self.begin or self.t[key][:1] != "#"  # PTO-AS: `#dir=row`
        word = last[:1].isalpha() or last[:1] == "_"
        if token == "(":
            if at - 1 == self.name_at:
                return last == "scf.while"
            return not (word or last[:1] in "@^#")
        if token == "[":
            return not (word or last[:1] in "%@^" or last == ")")
        if token == "<":
            return at - 1 == self.name_at or not (word or last[:1] == "%")
        return True

    def _is_count(self, at: int) -> bool:
        """Return True for the colon of `%r:2 = `."""
        return at < self.name_at and not self.open

    def _before_colon(self, at: int, last: str) -> bool:
        if self._is_count(at) or self.t[self.begin][:1] == "^" or last in _NAMED_PARTS:
            return False
        if "loc(" in self.open:
            return False
        if self.name in ("func.func", "func") and self.open == ["("]:
            return last[:1] != "%"
        return not (self.name == "cf.switch" and self.open == ["["])
