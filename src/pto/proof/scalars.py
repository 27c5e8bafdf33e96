"""Scalar instructions on terms, from the expressions of their rows (`isa/meaning.py`).

Every result is the number that a run computes: a result that may leave its type, and an operation without an
entry, raise `NoTerm`; the walk then takes an unknown number of the type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..ir.core import Operation
from ..ir.types import ScalarType
from ..isa import meaning
from ..isa.scalars import bounds, deciding, width
from ..symbolic import terms
from ..symbolic.terms import Int, Truth, both, choose, either, eq, floordiv, is_int, negated


class NoTerm(Exception):
    """A result that is not followed; the message has the reason."""


class Scalars:
    """Operations of expressions on terms of `bits` bits. `holds` decides a condition at this point; `claim`
    checks a condition, which holds from then on."""

    def __init__(
        self, bits: int, holds: Callable[[Truth], bool], claim: Callable[[Truth, str], None],
        remainder: Callable[[Int, int], int | None],
    ) -> None:  # fmt: skip
        self.bits, self.holds, self.claim, self.remainder = bits, holds, claim, remainder
        same = {n: getattr(operator, n) for n in ("add", "sub", "mul", "neg")}
        compared = {"less": operator.lt, "less_equal": operator.le, "greater": operator.gt}
        compared |= {"greater_equal": operator.ge, "equal": eq, "max": terms.greatest}
        self.known: dict[str, Callable[..., Any]] = {
            **same, **compared, "min": terms.least, "not_equal": lambda a, b: negated(eq(a, b)),
            "both": both, "either": either, "abs": lambda a: terms.greatest(a, -a),
            "bit_not": lambda a: -a - 1,
            "where": self.where, "unsigned": self.unsigned, "quot": self.quot, "rem": self.rem,
            "floordiv": self.floordiv, "ceildiv": lambda a, b: -self.floordiv(-a, b), "mod": self.mod,
            "shl": self.shl, "shr": self.shr, "bit_and": self.bit_and, "bit_or": self.bit_or,
            "bit_xor": lambda a, b: self.bit_or(a, b, False),
        }  # fmt: skip

    def sign(self, x: Int) -> int:
        """Return 1 for a number that is never negative, -1 for one that is never positive; else 0."""
        return 1 if self.holds(x >= 0) else -1 if self.holds(x <= 0) else 0

    def where(self, condition: Truth, a: Any, b: Any) -> Any:
        if terms.is_truth(a) and terms.is_truth(b):
            return either(both(condition, a), both(negated(condition), b))
        return choose(condition, a, b)

    def unsigned(self, x: Int) -> Int:
        sign = 1 if is_int(x) and x >= 0 else self.sign(x)  # type: ignore[operator]
        if sign > 0:
            return x
        return choose(x < 0, x + (1 << self.bits), x)

    def divisor(self, b: Int) -> tuple[int, Int]:
        """Return the sign and the magnitude of a divisor."""
        self.claim(negated(eq(b, 0)), "division by zero")
        sign = self.sign(b)
        if not sign:
            raise NoTerm("a divisor of either sign")
        return sign, sign * b

    def floordiv(self, a: Int, b: Int) -> Int:
        sign, size = self.divisor(b)
        return floordiv(sign * a, size)

    def mod(self, a: Int, b: Int) -> Int:
        if is_int(b) and b > 0 and (known := self.remainder(a, b)) is not None:  # type: ignore[operator,arg-type]
            return known
        return a - b * self.floordiv(a, b)

    def quot(self, a: Int, b: Int) -> Int:
        sign, size = self.divisor(b)
        whole = self.sign(a)
        if whole:
            return sign * whole * floordiv(whole * a, size)
        return sign * choose(a >= 0, floordiv(a, size), -floordiv(-a, size))

    def rem(self, a: Int, b: Int) -> Int:
        if is_int(b) and b > 0 and self.sign(a) > 0:  # type: ignore[operator]
            return self.mod(a, b)
        return a - b * self.quot(a, b)

    def _count(self, n: Int) -> int:
        if not is_int(n) or not 0 <= n < self.bits:  # type: ignore[operator]
            raise NoTerm("a shift by a number that is not constant")
        return 1 << n  # type: ignore[operator]

    def shl(self, a: Int, n: Int) -> Int:
        return a * self._count(n)

    def shr(self, a: Int, n: Int) -> Int:
        return floordiv(a, self._count(n))

    def bit_and(self, a: Any, b: Any) -> Any:
        if terms.is_truth(a) and terms.is_truth(b):
            return both(a, b)
        if is_int(a):
            a, b = b, a
        if is_int(b) and b >= 0 and b & (b + 1) == 0:  # the low bits, of negative numbers, too
            return self.mod(a, b + 1)
        raise NoTerm("bits of a number")

    def bit_or(self, a: Any, b: Any, both_set: bool = True) -> Any:
        if terms.is_truth(a) and terms.is_truth(b):
            return both(either(a, b), both_set or negated(both(a, b)))
        raise NoTerm("bits of a number")


#: Operations that read truth values as they are; others read an i1 as 0 or -1.
_OF_TRUTHS = ("both", "either", "where", "bit_and", "bit_or", "bit_xor")


def compute(
    op: Operation, operands: list[Any], holds: Callable[[Truth], bool], claim: Callable[[Truth, str], None],
    remainder: Callable[[Int, int], int | None],
) -> list[Any]:  # fmt: skip
    """Return the results of a scalar operation; raise `NoTerm` if one of them is not followed."""
    row = op.row
    assert row is not None
    if not row.expr:
        raise NoTerm(f"'{op.name}' is not followed")
    decided = {name: str(op.attr(name)) for name in deciding(row.expr)}
    types = [str(v.type) for v in op.operands]
    bits = width(types[0])
    if bits is None or not all(width(str(r.type)) for r in op.results):
        raise NoTerm(f"'{op.name}' computes with numbers that are not followed")
    known = Scalars(bits, holds, claim, remainder).known
    found: list[Any] = []
    for expression, result in zip(meaning.assigned(row.expr).values(), op.results, strict=True):
        expression = meaning.decided(expression, decided)
        if meaning.unknown(known, expression):
            raise NoTerm(f"'{op.name}' is not followed")
        truths = {p.operation for p in meaning.parts(expression) if isinstance(p, meaning.Apply)} <= {
            *_OF_TRUTHS
        }
        given = operands if truths else [terms.as_int(x, -1) for x in operands]
        value = meaning.function(expression, tuple(row.operand_index), known)(*given)
        found.append(fitted(value, str(result.type), holds))
    return found


def fitted(value: Any, text: str, holds: Callable[[Truth], bool]) -> Any:
    """Return a result as a number of its type; raise `NoTerm` if it may leave the type."""
    if text == "i1":
        return value if terms.is_truth(value) else eq(terms.mod(value, 2), 1)
    value = terms.as_int(value, -1)
    low, high = bounds(text)
    if not holds(both(value >= low, value <= high)):
        raise NoTerm(f"may leave the range of {text}")
    return value


def is_number(type: object) -> bool:
    """Return True for integers, which the walk follows."""
    return isinstance(type, ScalarType) and width(str(type)) is not None
