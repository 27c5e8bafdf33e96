"""Affine maps as trees: `affine_map<(d0)[s0] -> (d0 * 4 + s0 floordiv 3)>`.

`asm/affine_text.py` reads them; other modules walk the tree. A difference is a sum with a product by -1, as
in MLIR, and prints as a difference again. Arithmetic is that of `index`: 64 bits, wrapping; a divisor must be
positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..isa.record import Record
from ..isa.scalars import WHOLE, fit
from .attrs import Attribute

T = TypeVar("T")


class AffineInput(Record):
    """A dimension or symbol, by its position: dimensions first, then symbols."""

    position: int


class AffineConstant(Record):
    value: int


class AffineBinary(Record):
    """`kind` is one of + * floordiv ceildiv mod."""

    kind: str
    lhs: AffineExpr
    rhs: AffineExpr


AffineExpr = AffineInput | AffineConstant | AffineBinary
DIVISIONS = ("floordiv", "ceildiv", "mod")


class BadDivisor(ArithmeticError):
    """A division by a number that is not positive."""

    def __init__(self, divisor: int) -> None:
        super().__init__(f"a divisor of {divisor}, which must be positive")


class AffineMapAttr(Attribute):
    dims: int
    symbols: int
    results: tuple[AffineExpr, ...]

    @property
    def value(self) -> AffineMapAttr:
        return self

    @property
    def inputs(self) -> int:
        return self.dims + self.symbols

    def __str__(self) -> str:
        dims = ", ".join(f"d{k}" for k in range(self.dims))
        symbols = ", ".join(f"s{k}" for k in range(self.symbols))
        results = ", ".join(self._text(e) for e in self.results)
        return f"affine_map<({dims}){f'[{symbols}]' if symbols else ''} -> ({results})>"

    def _text(self, e: AffineExpr, tight: bool = False) -> str:
        """Return the text of an expression; `tight` unless it is an operand of a sum."""
        if isinstance(e, AffineInput):
            return f"d{e.position}" if e.position < self.dims else f"s{e.position - self.dims}"
        if isinstance(e, AffineConstant):
            return str(e.value)
        if e.kind == "+":
            text = f"{self._text(e.lhs)} {self._addend(e.rhs)}"
        elif _negated(e):
            text = f"-{self._text(e.lhs, True)}"
        else:
            text = f"{self._text(e.lhs, True)} {e.kind} {self._text(e.rhs, True)}"
        return f"({text})" if tight else text

    def _addend(self, e: AffineExpr) -> str:
        """Return the right side of a sum with its sign."""
        if isinstance(e, AffineConstant) and e.value < 0:
            return f"- {-e.value}"
        if isinstance(e, AffineBinary) and _negated(e):
            return f"- {self._text(e.lhs, _is_sum(e.lhs))}"
        return f"+ {self._text(e, _is_sum(e))}"


def _negated(e: AffineBinary) -> bool:
    return e.kind == "*" and e.rhs == AffineConstant(-1)


def _is_sum(e: AffineExpr) -> bool:
    return isinstance(e, AffineBinary) and (e.kind == "+" or _negated(e))


def evaluate(e: AffineExpr, inputs: Sequence[int]) -> int:
    """Compute an expression; raise `BadDivisor`."""
    if isinstance(e, AffineInput):
        return inputs[e.position]
    if isinstance(e, AffineConstant):
        return e.value
    return _computed(e.kind, evaluate(e.lhs, inputs), evaluate(e.rhs, inputs))


_OPERATIONS = {"+": "add", "*": "mul", **{kind: kind for kind in DIVISIONS}}


def _computed(kind: str, lhs: int, rhs: int) -> int:
    if kind in DIVISIONS and rhs <= 0:
        raise BadDivisor(rhs)
    return int(fit("index")(WHOLE[_OPERATIONS[kind]](64)(lhs, rhs)))


_ROWS = {"+": "arith.addi", "*": "arith.muli", "floordiv": "arith.floordivsi", "ceildiv": "arith.ceildivsi"}


def as_arith(
    e: AffineExpr,
    inputs: Sequence[T],
    constant: Callable[[int], T],
    apply: Callable[[str, T, T], T],
    check: Callable[[T], None],
) -> T:
    """Compute an expression by operations of `arith` on indices. `check` ends the run if a divisor is not
    positive. Constant divisors have been checked before (`unusable`).
    """
    if isinstance(e, AffineInput):
        return inputs[e.position]
    if isinstance(e, AffineConstant):
        return constant(e.value)
    lhs, rhs = (as_arith(side, inputs, constant, apply, check) for side in (e.lhs, e.rhs))
    if e.kind in DIVISIONS and not isinstance(e.rhs, AffineConstant):
        check(rhs)
    if e.kind != "mod":
        return apply(_ROWS[e.kind], lhs, rhs)
    return apply("arith.subi", lhs, apply("arith.muli", apply("arith.floordivsi", lhs, rhs), rhs))


def unusable(found: AffineMapAttr) -> str:
    """Return why no operation can compute a map; empty if one can."""
    pending = list(found.results)
    while pending:
        e = pending.pop()
        if isinstance(e, AffineBinary):
            if e.kind in DIVISIONS and isinstance(e.rhs, AffineConstant) and e.rhs.value <= 0:
                return f"cannot compute {e.kind} by {e.rhs.value}: the divisor must be positive"
            pending += [e.lhs, e.rhs]
    return ""
