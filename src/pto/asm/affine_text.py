"""Text of affine maps to trees, by MLIR's grammar: the only reader of them.

map   ::= `affine_map` `<` `(` names `)` (`[` names `]`)? `->` `(` (sum (`,` sum)*)? `)` `>`
sum   ::= term ((`+` | `-`) term)*
term  ::= factor ((`*` | `floordiv` | `ceildiv` | `mod`) factor)*
factor ::= `-` factor | `(` sum `)` | name | integer
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..ir.affine import DIVISIONS, AffineBinary, AffineConstant, AffineExpr, AffineInput, AffineMapAttr

_TOKEN = r"(?:\s|//[^\n]*)*([A-Za-z_][A-Za-z0-9_$.]*|0[xX][0-9a-fA-F]+|[0-9]+|->|[^\s])"
_LARGEST = (1 << 63) - 1
_DIGITS = 40  # longer numbers do not fit, and CPython takes quadratic time to read them
_DEEPEST = 100  # levels of a tree; a sum of that many terms has that depth


class _Read(NamedTuple):
    """An expression, the height of its tree, and whether a dimension is in it."""

    expr: AffineExpr
    depth: int = 0
    varies: bool = False


class AffineTextError(Exception):
    """A text that is not an affine map: message, the offending part (start, end in the text) and code."""

    def __init__(self, message: str, part: tuple[int, int], code: str = "PTO-E0107") -> None:
        super().__init__(message)
        self.message, self.part, self.code = message, part, code


def parse_affine_map(text: str) -> AffineMapAttr:
    """Read `affine_map<...>`; raises `AffineTextError`."""
    return _AffineReader(text).map()


class _AffineReader:
    def __init__(self, text: str) -> None:
        self.text = text
        found = list(re.finditer(_TOKEN, text, re.ASCII))  # compiled on first use
        self.t = [m[1] for m in found] + [""]
        self.starts = [m.start(1) for m in found] + [len(text)]
        self.i = 0
        self.names: dict[str, int] = {}
        self.dims = 0

    def fail(self, message: str, at: int | None = None, code: str = "PTO-E0107") -> AffineTextError:
        at = self.i if at is None else at
        return AffineTextError(message, (self.starts[at], self.starts[at] + len(self.t[at])), code)

    def expected(self, what: str) -> AffineTextError:
        got = self.t[self.i]
        shown = f"'{got if len(got) <= 40 else got[:37] + '...'}'" if got else "the end"
        return self.fail(f"affine_map: expected {what}, got {shown}")

    def eat(self, text: str) -> None:
        if self.t[self.i] != text:
            raise self.expected(f"'{text}'")
        self.i += 1

    def accept(self, *texts: str) -> str:
        found = self.t[self.i]
        if found not in texts:
            return ""
        self.i += 1
        return found

    def map(self) -> AffineMapAttr:
        self.eat("affine_map")
        self.eat("<")
        self.dims = self._names("(", ")")
        symbols = self._names("[", "]") if self.t[self.i] == "[" else 0
        self.eat("->")
        self.eat("(")
        results: list[AffineExpr] = []
        while self.t[self.i] != ")" or results:
            results.append(self.sum(0).expr)
            if not self.accept(","):
                break
        self.eat(")")
        self.eat(">")
        if self.t[self.i]:
            raise self.expected("the end of the map")
        return AffineMapAttr(self.dims, symbols, tuple(results))

    def _names(self, opening: str, closing: str) -> int:
        """Read a list of names; return how many there are."""
        self.eat(opening)
        before = len(self.names)
        while self.t[self.i] != closing or len(self.names) > before:
            name = self.t[self.i]
            if not _is_name(name) or name in DIVISIONS:
                raise self.expected("the name of a dimension or symbol")
            if name in self.names:
                raise self.fail(f"affine_map: '{name[:40]}' is defined twice")
            self.names[name] = len(self.names)
            self.i += 1
            if not self.accept(","):
                break
        self.eat(closing)
        return len(self.names) - before

    # -- expressions --------------------------------------------------------------------------------------

    def sum(self, depth: int) -> _Read:
        found = self.term(depth)
        while kind := self.accept("+", "-"):
            at = self.i - 1
            rhs = self.term(depth)
            found = self.make("+", found, rhs if kind == "+" else self.negated(rhs, at), at)
        return found

    def term(self, depth: int) -> _Read:
        found = self.factor(depth)
        while kind := self.accept("*", *DIVISIONS):
            at = self.i - 1
            found = self.make(kind, found, self.factor(depth), at)
        return found

    def factor(self, depth: int) -> _Read:
        if depth > _DEEPEST:
            raise self.too_deep(self.i)
        at, text = self.i, self.t[self.i]
        if self.accept("-"):
            return self.negated(self.factor(depth + 1), at)
        if self.accept("("):
            found = self.sum(depth + 1)
            self.eat(")")
            return found
        if text.isascii() and text[:1].isdigit():
            self.i += 1
            hexadecimal = text[:2].lower() == "0x"
            value = int(text, 16 if hexadecimal else 10) if len(text) <= _DIGITS else _LARGEST + 1
            if value > _LARGEST:
                raise self.fail("affine_map: number does not fit in 64 bits", at, "PTO-E0104")
            return _Read(AffineConstant(value))
        if text in self.names:
            self.i += 1
            return _Read(AffineInput(self.names[text]), varies=self.names[text] < self.dims)
        if _is_name(text) and text not in DIVISIONS:
            raise self.fail(f"affine_map: unknown dimension or symbol '{text[:40]}'")
        raise self.expected("an expression")

    def negated(self, e: _Read, at: int) -> _Read:
        if isinstance(e.expr, AffineConstant):
            return _Read(AffineConstant(-e.expr.value))
        return self.make("*", e, _Read(AffineConstant(-1)), at)

    def make(self, kind: str, lhs: _Read, rhs: _Read, at: int) -> _Read:
        if kind == "*" and lhs.varies and rhs.varies:
            raise self.fail(
                "affine_map: cannot multiply dimensions: expected a constant or symbol as a factor", at
            )
        if kind in DIVISIONS and rhs.varies:
            raise self.fail(
                f"affine_map: cannot {kind} by a dimension: the divisor must be constant or symbolic", at
            )
        depth = max(lhs.depth, rhs.depth) + 1
        if depth > _DEEPEST:
            raise self.too_deep(at)
        return _Read(AffineBinary(kind, lhs.expr, rhs.expr), depth, lhs.varies or rhs.varies)

    def too_deep(self, at: int) -> AffineTextError:
        return self.fail(f"affine_map: an expression nests deeper than {_DEEPEST} levels", at, "PTO-E0105")


def _is_name(token: str) -> bool:
    return token.isascii() and (token[:1].isalpha() or token[:1] == "_")
