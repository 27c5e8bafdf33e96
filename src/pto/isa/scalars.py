"""Scalar operations on integers as functions of Python numbers, made from the expressions of their rows.

    function("lhs + rhs", ("lhs", "rhs"), (), ("i8", "i8"), ("i8",))(100, 100)  -> -56

The reference engine runs programs with these functions, and `ir.core.constant_of` folds constants with them,
so a folded constant is the number that a run computes.

A number is an int in the range of its type (signless types are signed, `i1` is 0 or 1, `index` has 64 bits)
or a float that the type can represent. Expressions read an `i1` as 0 or -1, and compute exact integers; the
result wraps to its type.

The table leaves three things undefined, and engines differ there: a division by zero, the smallest number
divided by -1, and a shift by the width or more. `folding` functions raise `UndefinedResult` for them, so a
program keeps the operation, and each engine computes it in its own way.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from .dtypes import DTYPES, SPELLINGS

Number = int | float
Function = Callable[..., Any]
Binary = Callable[[int, int], int]


class UndefinedResult(ArithmeticError):
    """An operation whose result the table does not define."""


# -- types --------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[su]?i(\d+)")
#: Width of the widest folded integers; no instruction has wider ones.
FOLDED = 64


@cache
def width(text: str) -> int | None:
    """Return the bits of an integer type, or None for another type."""
    found = _INTEGER.fullmatch(text)
    return 64 if text == "index" else int(found[1]) or None if found else None


@cache
def bounds(text: str) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type.

    Other types, and integers that are too wide for folding, have the range of 64 bits.
    """
    bits = min(width(text) or FOLDED, FOLDED)
    return (0, (1 << bits) - 1) if _is_unsigned(text) else (-1 << (bits - 1), (1 << (bits - 1)) - 1)


@cache
def fit(text: str) -> Callable[[Any], Number]:
    """Return the function that converts a number to a scalar type: integers wrap, floats are rounded once."""
    bits = width(text)
    if bits is not None:
        mask = (1 << bits) - 1
        if _is_unsigned(text):
            return lambda value: int(value) & mask
        half = 1 << (bits - 1)
        return lambda value: ((int(value) + half) & mask) - half
    info = SPELLINGS.get(text.removeprefix("!pto.").lower())
    name = info.name if info is not None and info.is_float else "f64"
    return float if name == "f64" else _round_f32 if name == "f32" else lambda value: _round(name, value)


def _is_unsigned(text: str) -> bool:
    return text == "i1" or text[0] == "u"


def _round_f32(value: Number) -> float:
    if isinstance(value, int) and value.bit_length() > 53:  # conversion to double would round first
        return _round("f32", value)
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _round(name: str, value: Number) -> float:
    from . import encoding

    return float(encoding.decode(DTYPES[name], encoding.encode(DTYPES[name], value)))


# -- operations ---------------------------------------------------------------------------------------------


def _quot(x: int, y: int) -> int:
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def _rem(x: int, y: int) -> int:
    return x - y * _quot(x, y)


def _ceildiv(x: int, y: int) -> int:
    return -(-x // y)


def _both(a: Any, b: Any) -> Any:
    return a and b


def _either(a: Any, b: Any) -> Any:
    return a or b


def _where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def any_width(f: Function) -> Callable[[int], Function]:
    """Return an entry of a table of operations for a function that is independent of the width."""
    return lambda bits: f


def _unsigned(bits: int) -> Function:
    return ((1 << bits) - 1).__and__


def _carries(bits: int) -> Binary:
    unsigned = _unsigned(bits)
    return lambda x, y: unsigned(x) + unsigned(y) >> bits != 0


def _mul_high(bits: int) -> Binary:
    return lambda x, y: x * y >> bits


def _shift(f: Binary) -> Callable[[int], Binary]:
    """Return a shift with an unsigned count; a count beyond the width shifts everything out."""

    def of_width(bits: int) -> Binary:
        unsigned = _unsigned(bits)
        return lambda x, n: f(x, min(unsigned(n), bits))

    return of_width


#: Comparisons and choices: the same functions for integers and floats.
TRUTHS: dict[str, Function] = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne, "both": _both, "either": _either, "where": _where,
}  # fmt: skip
_EXACT: dict[str, Function] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
    "quot": _quot, "rem": _rem, "floordiv": int.__floordiv__, "ceildiv": _ceildiv, "mod": operator.mod,
    "bit_and": int.__and__, "bit_or": int.__or__, "bit_xor": int.__xor__, "bit_not": operator.invert,
    "max": max, "min": min, **TRUTHS,
}  # fmt: skip
#: The operations of `isa.meaning` on integers of a width. They are exact, because results wrap when stored.
WHOLE: dict[str, Callable[[int], Function]] = {
    **{name: any_width(f) for name, f in _EXACT.items()},
    "shl": _shift(int.__lshift__), "shr": _shift(int.__rshift__), "mul_high": _mul_high, "carries": _carries,
    "unsigned": _unsigned,
}  # fmt: skip
#: Operations without a defined result for some operands.
DIVISIONS, SHIFTS = ("quot", "rem", "floordiv", "ceildiv", "mod"), ("shl", "shr")


def _defined(name: str, bits: int, f: Function) -> Function:
    """Return an operation that raises `UndefinedResult` for operands without a defined result."""
    unsigned, least = _unsigned(bits), -1 << (bits - 1)

    def shift(x: int, n: int) -> int:
        if unsigned(n) >= bits:
            raise UndefinedResult
        return f(x, n)

    def divide(x: int, y: int) -> int:
        if y == 0 or (y == -1 and x == least):
            raise UndefinedResult
        return f(x, y)

    return divide if name in DIVISIONS else shift if name in SHIFTS else f


# -- functions of rows --------------------------------------------------------------------------------------


@cache
def deciding(expr: str) -> tuple[str, ...]:
    """Return the attributes that the expressions of a row depend on."""
    from . import meaning

    return tuple(dict.fromkeys(a for e in meaning.assigned(expr).values() for a in meaning.attributes(e)))


@cache
def function(
    expr: str, operands: tuple[str, ...], decided: tuple[str, ...], types: tuple[str, ...],
    results: tuple[str, ...], folding: bool = False,
) -> Function | None:  # fmt: skip
    """Return the function that a row computes for operand types.

    The function returns a number, or a tuple for several results. `decided` has the values of the `deciding`
    attributes. Return None for an operation on floats, and for types or attributes that no legal program has.
    """
    from . import meaning

    values = dict(zip(deciding(expr), decided, strict=True))
    try:
        expressions = [meaning.decided(e, values) for e in meaning.assigned(expr).values()]
    except meaning.BadMeaning:
        return None
    if len(types) != len(operands) or len(results) != len(expressions):
        return None
    given = meaning.moved(expressions[0])
    if given and all(t == results[0] for n, t in zip(operands, types, strict=True) if n in given):
        # the function works on all values, including tiles and pointers
        return meaning.function(expressions[0], operands, TRUTHS)
    bits = width(types[0])
    if not bits or (folding and bits > FOLDED) or None in map(width, types):
        return None
    known = {name: make(bits) for name, make in WHOLE.items()}
    if folding:
        known = {name: _defined(name, bits, f) for name, f in known.items()}
    made = [meaning.function(e, operands, known) for e in expressions]
    if types[0] == "i1":
        made = [_signed_bits(f) for f in made]
    fitted = [_fitted(f, text, len(operands)) for f, text in zip(made, results, strict=True)]
    return fitted[0] if len(fitted) == 1 else lambda *args: tuple(f(*args) for f in fitted)


def _signed_bits(f: Function) -> Function:
    """Convert a function of signed numbers to a function of `i1`, whose 1 is -1 as a signed number."""
    return lambda *args: f(*[-x for x in args])


def _fitted(f: Function, text: str, count: int) -> Function:
    """Return a function of `count` numbers whose result is converted to a type. Most are functions of two
    signed integers."""
    bits = width(text)
    if bits is None or _is_unsigned(text) or count != 2:
        one = fit(text)
        return lambda *args: one(f(*args))
    return _wrapping(f, (1 << bits) - 1, 1 << (bits - 1))


def _wrapping(f: Binary, mask: int, half: int) -> Binary:
    return lambda x, y: ((f(x, y) + half) & mask) - half
