"""Python's operators on arrays, as in `a / b` and `a < b`, for bodies that are read or executed.

They follow NumPy: `/` of integers gives a float, a comparison gives a mask, and a mask beside an array is 1
and 0.
"""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ..dtypes import BOOL, DATA_TYPES, FP32
from ..enums import COMPARISONS
from ..ir import Dim, Number, Value, index, is_scalar, is_shaped
from ..ir.build import Build, power
from ..problems import TYPE
from .compute import compared
from .core import FUNCTIONS, Array, Operator
from .rows import spread

_X = TypeVar("_X", bound=Number)
_BITS = DATA_TYPES["INT16"]  # every target has `and` and `or` for this type
_ARITHMETIC = {"add": ("+", "add"), "sub": ("-", "sub"), "mul": ("*", "mul"), "truediv": ("/", "div")}
_LOGICAL = {"bitand": ("&", "and_"), "bitor": ("|", "or_"), "bitxor": ("^", "xor")}
_COMPARED = dict(zip(COMPARISONS, ("==", "!=", "<", "<=", ">", ">="), strict=True))


def is_mask(x: Array | Number) -> bool:
    """Check whether an array is the result of a comparison."""
    return is_shaped(x) and x.type.dtype == BOOL


def _numbers(b: Build, x: _X, other: Array | Number) -> _X:
    """Return a mask as 1 and 0, in the element type of the array beside it."""
    if not is_mask(x):
        return x
    if is_mask(other):
        b.fail(TYPE, "expected a number or an array as the other operand of a mask, got a mask",
               help="masks have `&`, `|` and `^`; pl.where(mask, 1.0, 0.0) is an array")  # fmt: skip
    return FUNCTIONS["cast"](b, x, other.type.dtype if is_shaped(other) else FP32)


def _arithmetic(name: str, b: Build, lhs: Array | Number, rhs: Array | Number) -> Array:
    lhs, rhs = _numbers(b, lhs, rhs), _numbers(b, rhs, lhs)
    if name == "truediv" and not any(x.type.dtype.is_float for x in (lhs, rhs) if is_shaped(x)):
        lhs, rhs = (FUNCTIONS["cast"](b, x, FP32) if is_shaped(x) else x for x in (lhs, rhs))
    if name == "sub" and not is_shaped(lhs):  # no instruction subtracts an array from a number
        return FUNCTIONS["add"](b, FUNCTIONS["neg"](b, rhs), lhs)
    return FUNCTIONS[_ARITHMETIC[name][1]](b, lhs, rhs)


def _power(b: Build, base: Array | Number, exponent: Array | Number) -> Array | Number:
    """Return a product for a constant whole exponent, a root for one half."""
    if is_shaped(base) and not is_shaped(exponent) and not isinstance(exponent, Value):
        if exponent == 0.5:
            return FUNCTIONS["sqrt"](b, base)
        if exponent == int(exponent) and 1 <= exponent <= 64:
            return power(base, int(exponent), lambda x, y: FUNCTIONS["mul"](b, x, y))
    return FUNCTIONS["pow"](b, base, exponent)


def _logical(name: str, b: Build, lhs: Array | Number, rhs: Array | Number) -> Array:
    bits = [FUNCTIONS["cast"](b, x, _BITS) for x in (lhs, rhs)]
    return compared(b, FUNCTIONS[_LOGICAL[name][1]](b, *bits), 0, "ne")


def _comparison(name: str, b: Build, lhs: Array | Number, rhs: Array | Number) -> Array:
    return compared(b, _numbers(b, lhs, rhs), _numbers(b, rhs, lhs), name)


def _negative(b: Build, x: Array | Number) -> Array:
    return FUNCTIONS["neg"](b, _numbers(b, x, x))


def _inverted(b: Build, x: Array | Number) -> Array:
    return compared(b, FUNCTIONS["cast"](b, x, _BITS), 0, "eq")


def assigned(b: Build, target: Value, sizes: list[Dim], dropped: list[int], value: Value | Number) -> Value:
    """Return the array that `target[window] = value` writes: a number fills the window, columns and rows are
    broadcast to its shape, and masks become 1 and 0."""
    shape = [n for i, n in enumerate(sizes) if i not in dropped]
    if not isinstance(value, Value) or is_scalar(value):
        return FUNCTIONS["full"](b, b.static(shape, "window"), target.type.dtype, value)
    array = _numbers(b, value, target)
    have, wanted, window = ([index.known(n) for n in dims] for dims in (array.type.shape, shape, sizes))
    if not b.in_core or None in have or None in window:
        return array
    if len(have) == len(wanted) and all(n in (1, m) for n, m in zip(have, wanted, strict=True)):
        return spread(b, array, shape, None)
    if len(have) > len(window) and [n for n in have if n != 1] == [n for n in window if n != 1]:
        # a column that is assigned to an array of one dimension
        return FUNCTIONS["reshape"](b, array, wanted)
    return array


#: Operators by the name of their operation on numbers. Operators only for masks are in `OF_MASKS`.
INFIX: dict[str, Operator] = {
    **{name: Operator(symbol, partial(_arithmetic, name)) for name, (symbol, _) in _ARITHMETIC.items()},
    **{name: Operator(symbol, partial(_logical, name)) for name, (symbol, _) in _LOGICAL.items()},
    **{name: Operator(symbol, partial(_comparison, name)) for name, symbol in _COMPARED.items()},
    "pow": Operator("**", _power),
    "matmul": Operator("@", lambda b, lhs, rhs: FUNCTIONS["matmul"](b, lhs, rhs)),
    "neg": Operator("-", _negative),
    "invert": Operator("~", _inverted),
}
ASSIGNED = Operator("=", assigned)
OF_MASKS = (*_LOGICAL, "invert")
