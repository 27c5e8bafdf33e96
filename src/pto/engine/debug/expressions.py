"""Expressions at a prompt, in a condition, in an editor: `%acc[0:4, 0:8]`, `%i * 2 > 7 and not %last`.

A name is a value of the program at the stop, with or without its `%` (which divides where a space follows);
`'x[i % 2]'` is a name of C++, which may be any text. `$dst` is the operand `dst` of the instruction at the
stop; `$block`, `$rank`, `$sub` and `$core` are those of the core. Arithmetic is as in Python; tiles, views,
pointers and registers can be indexed, and an element of one is a number. Length and depth of text, and its
work, are bounded.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

#: Limits for the characters and the depth of an expression.
LONGEST = 1000
DEEPEST = 40
#: Bits of a computed number.
_WIDEST = 1024


class ExpressionError(Exception):
    """An error in an expression, in words."""


class Slice(NamedTuple):
    """`3`, `2:8`, `:4`, `:`; `single` for one index."""

    start: int | None
    stop: int | None
    single: bool


class Index(NamedTuple):
    """A name with indices."""

    name: str
    slices: tuple[Slice, ...]


#: The value of a name with its indices: a number, or another value that can be shown.
Read = Callable[[Index], Any]
Compute = Callable[[Read], Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<name>%[\w$.]*[\w$]|\$\w+|[A-Za-z_][\w$]*|'[^']*')"
    r"|(?P<sign><=|>=|==|!=|&&|\|\||//|[-+*/<>()\[\],:!%])|(?P<bad>\S))"
)
_COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_WORDS = {"and": "&&", "or": "||", "not": "!"}
_CONSTANTS = {"true": 1, "false": 0, "nan": float("nan"), "inf": float("inf")}


class Expression:
    """A parsed text; `compute` returns its value, with a function that reads names. An expression that is
    only a name has `index`.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"expected an expression of at most {LONGEST} characters, got {len(text)}")
        self.text = text.strip()
        self._tokens = _tokens(self.text)
        self._at = 0
        self._depth = 0
        self.index: Index | None = None
        self.names: list[Index] = []
        self.compute: Compute = self._either()
        if self._at < len(self._tokens):
            raise ExpressionError(f"unexpected text after the expression: '{self._tokens[self._at][1]}'")
        if len(self.names) == 1 and self._alone:
            self.index = self.names[0]

    @property
    def _alone(self) -> bool:
        depth = 0
        for _, text in self._tokens[1:]:
            depth += (text == "[") - (text == "]")
            if depth == 0 and text != "]":
                return False
        return bool(self._tokens) and self._tokens[0][0] == "name"

    # -- reading ---------------------------------------------------------------------------------------

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        kind, text = self._tokens[self._at]
        return _WORDS.get(text, "") if kind == "name" else text if kind == "sign" else ""

    def _take(self, *signs: str) -> str:
        found = self._peek()
        if found in signs:
            self._at += 1
            return found
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            got = self._tokens[self._at][1] if self._at < len(self._tokens) else "the end"
            raise ExpressionError(f"expected '{sign}', got '{got}'")

    def _either(self) -> Compute:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"nested more than {DEEPEST} deep")
        found = self._chain(("||",), lambda: self._chain(("&&",), self._negated))
        self._depth -= 1
        return found

    def _chain(self, signs: tuple[str, ...], inner: Callable[[], Compute]) -> Compute:
        found = inner()
        while sign := self._take(*signs):
            found = _binary(sign, found, inner())
        return found

    def _negated(self) -> Compute:
        count = 0
        while self._take("!"):
            count += 1
        found = self._compared()
        if not count:
            return found
        odd = count % 2 == 1
        return lambda read: int(_truth(found(read)) != odd)

    def _compared(self) -> Compute:
        left = self._sum()
        sign = self._take(*_COMPARE)
        if not sign:
            return left
        right, compare = self._sum(), _COMPARE[sign]
        return lambda read: int(compare(_number(left(read)), _number(right(read))))

    def _sum(self) -> Compute:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "//", "%"), self._signed))

    def _signed(self) -> Compute:
        sign = 1
        while found := self._take("-", "+"):
            sign = -sign if found == "-" else sign
        inner = self._atom()
        return inner if sign > 0 else lambda read: -_number(inner(read))

    def _atom(self) -> Compute:
        if self._take("("):
            found = self._either()
            self._need(")")
            return found
        if self._at >= len(self._tokens):
            raise ExpressionError("expected a name or a number, got the end" if self._tokens else "is empty")
        kind, text = self._tokens[self._at]
        if kind == "number":
            self._at += 1
            value = _parsed(text)
            return lambda read: value
        if kind != "name" or text in _WORDS:
            raise ExpressionError(f"expected a name or a number, got '{text}'")
        self._at += 1
        if text in _CONSTANTS:
            constant = _CONSTANTS[text]
            return lambda read: constant
        index = Index(text.removeprefix("%").strip("'"), self._slices())
        self.names.append(index)
        return lambda read: read(index)

    def _slices(self) -> tuple[Slice, ...]:
        if not self._take("["):
            return ()
        found = [self._slice()]
        while self._take(","):
            found.append(self._slice())
        self._need("]")
        return tuple(found)

    def _slice(self) -> Slice:
        start = self._whole()
        if self._take(":"):
            return Slice(start, self._whole(), False)
        if start is None:
            raise ExpressionError("expected an index, as in [0, 3] or [0:4, 0:8]")
        return Slice(start, None, True)

    def _whole(self) -> int | None:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != "number":
            return None
        value = _parsed(self._tokens[self._at][1])
        if not isinstance(value, int):
            raise ExpressionError(f"expected a whole number as an index, got {value}")
        self._at += 1
        return value

    # -- computing -------------------------------------------------------------------------------------

    def number(self, read: Read) -> int | float:
        """Return a value, which must be a number."""
        return _number(self.compute(read))

    def __repr__(self) -> str:
        return f"<Expression {self.text}>"


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        m = _TOKEN.match(text, at)
        if m is None:
            break
        kind = str(m.lastgroup)
        word = m[kind]
        if kind == "bad":
            raise ExpressionError(f"cannot use '{word}' in an expression")
        found.append((kind, word))
        at = m.end()
    return found


def _parsed(text: str) -> int | float:
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    try:
        return int(text)
    except ValueError:
        return float(text)


def _number(value: object) -> int | float:
    if isinstance(value, bool | int | float):
        return value
    raise ExpressionError("expects numbers: an element of a tile is one, as in %t[0, 3]")


def _truth(value: object) -> bool:
    return bool(_number(value))


def _binary(sign: str, left: Compute, right: Compute) -> Compute:
    if sign == "&&":
        return lambda read: int(_truth(left(read)) and _truth(right(read)))
    if sign == "||":
        return lambda read: int(_truth(left(read)) or _truth(right(read)))
    return lambda read: _calculate(sign, _number(left(read)), _number(right(read)))


def _calculate(sign: str, a: int | float, b: int | float) -> int | float:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > _WIDEST:
        raise ExpressionError("numbers too large to compute with")
    try:
        if sign == "+":
            return a + b
        if sign == "-":
            return a - b
        if sign == "*":
            return a * b
        if sign == "//":
            return a // b
        if sign == "%":
            return a % b
        return a / b
    except ZeroDivisionError:
        raise ExpressionError("divides by zero") from None
    except OverflowError:
        raise ExpressionError("numbers too large to compute with") from None
