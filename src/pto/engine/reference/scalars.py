"""Scalar instructions from the expressions of their rows: `arith` and `math` over Python numbers.

Operations on integers are the functions of `isa.scalars`, which constant folding uses, too. Operations on
floats are computed in double and rounded once, which is correct rounding for + - * / and sqrt of types up to
32 bits. An expression becomes a function by composition (`isa.meaning.function`): no text is evaluated, and
an attribute selects an expression from a table.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from ...ir.core import Operation, scalar_function
from ...ir.types import ScalarType, ShapedType, Type
from ...isa import encoding, meaning
from ...isa.algorithms import kind_of
from ...isa.dtypes import DTYPES
from ...isa.scalars import DIVISIONS, TRUTHS, Number, any_width, deciding, fit
from .. import functions
from ..memory import array_of
from .instr import IllegalInstruction

Evaluate = Callable[..., Any]


def bits_of(type: Type) -> int:
    return 64 if getattr(type, "text", "") == "index" else getattr(type, "bits", None) or 64


def decode(dtype: str, code: int) -> Number:
    """Return the number of an element code."""
    found = encoding.decode(DTYPES[dtype], code)
    return float(found) if DTYPES[dtype].is_float else int(found)


def evaluator(op: Operation) -> Evaluate:
    """Return the function from operand values to the result (a tuple if there are several)."""
    row = op.row
    assert row is not None
    function = scalar_function(op)
    if function is not None:
        return _trapping(function) if _divides(row.expr) else function
    if row.algorithm:
        name, kind = kind_of(row)
        return ALGORITHMS[name](op, kind)
    decided = {name: str(op.attr(name)) for name in deciding(row.expr)}
    (expression,) = (meaning.decided(e, decided) for e in meaning.assigned(row.expr).values())
    function = _compiled(expression, tuple(row.operand_index), bits_of(op.operands[0].type))
    one = fit(str(op.result.type))
    return lambda *args: one(function(*args))


@cache
def _divides(expr: str) -> bool:
    return bool(expr) and any(meaning.uses(e, *DIVISIONS) for e in meaning.assigned(expr).values())


def _trapping(function: Evaluate) -> Evaluate:
    """Make a division by zero an error of the program."""

    def divide(x: int, y: int) -> int:
        try:
            return function(x, y)
        except ZeroDivisionError:
            raise IllegalInstruction("division of an integer by zero") from None

    return divide


def _is_float(type: Type) -> bool:
    return isinstance(type, ScalarType) and type.is_float


@cache
def _compiled(expression: meaning.Expression, operands: tuple[str, ...], bits: int) -> Evaluate:
    """Return an expression as a function of floats of some bits."""
    function = meaning.function(expression, operands, {name: make(bits) for name, make in REAL.items()})

    def guarded(*args: float) -> Any:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return guarded


def divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x) or math.isnan(y):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _exact(x: float, y: float, z: float) -> Any:
    """Return x * y + z as a fraction."""
    from fractions import Fraction  # few programs need it, and the import is slow

    return Fraction(x) * Fraction(y) + Fraction(z)


def _fma(x: float, y: float, z: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return x * y + z
    exact = _exact(x, y, z)
    return float(exact) if exact else x * y + z


def _fma_to_odd(x: float, y: float, z: float) -> float:
    """Return x * y + z in double, rounded to odd, so that a second rounding to a shorter type is correct."""
    near = _fma(x, y, z)
    if not all(map(math.isfinite, (x, y, z, near))):
        return near
    rest = _exact(x, y, z) - _exact(near, 1, 0)
    if rest and not struct.unpack("<q", struct.pack("<d", near))[0] & 1:
        near = math.nextafter(near, math.inf if rest > 0 else -math.inf)
    return near


def _fmod(x: float, y: float) -> float:
    if y == 0 or math.isinf(x) or math.isnan(x) or math.isnan(y):
        return math.nan
    return math.fmod(x, y)


def _maximum(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y):
        return math.nan
    return y if (x, math.copysign(1, x)) < (y, math.copysign(1, y)) else x


def _minimum(x: float, y: float) -> float:
    return -_maximum(-x, -y)


def _maxnum(x: float, y: float) -> float:
    return y if math.isnan(x) else x if math.isnan(y) else _maximum(x, y)


def _minnum(x: float, y: float) -> float:
    return y if math.isnan(x) else x if math.isnan(y) else _minimum(x, y)


def _whole(rounding: Callable[[float], int]) -> Callable[[float], float]:
    """Return a rounding to an integral value that keeps infinities, NaN and the sign of zero."""
    return lambda x: math.copysign(float(rounding(x)), x) if math.isfinite(x) else x


def _of_module(name: str) -> Callable[[int], Evaluate]:
    """Return a function of the compiled module. Floats up to 32 bits use the functions of f32."""
    return lambda bits: partial(functions.number, name, bits <= 32)


#: The operations of `isa.meaning` on floats of some bits.
REAL: dict[str, Callable[[int], Evaluate]] = {
    **{name: any_width(f) for name, f in {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
        "div": divide, "fmod": _fmod, "max": _maximum, "min": _minimum, "maxnum": _maxnum, "minnum": _minnum,
        "copysign": math.copysign, "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
        "floor": _whole(math.floor), "ceil": _whole(math.ceil), "trunc": _whole(math.trunc),
        "rint": _whole(round), "round_away": _whole(
            lambda x: int(math.copysign(math.floor(abs(x) + 0.5), x)) if abs(x) < 2**52 else int(x)
        ),
        **TRUTHS,
    }.items()},
    **{name: _of_module(name) for name in "exp exp2 log log2 tanh sin cos erf pow".split()},
    "fma": lambda bits: _fma if bits == 64 else _fma_to_odd,
}  # fmt: skip


# -- rows without an expression ---------------------------------------------------------------------------


def _constant(op: Operation, kind: str) -> Evaluate:
    value, type = op.attrs["value"].value, op.result.type
    if isinstance(type, ShapedType):
        return lambda: _dense(value, type)
    if not isinstance(value, bool | int | float):
        return lambda: value
    number = fit(str(op.result.type))(value)
    return lambda: number


_LARGEST_VECTOR = 1 << 16  # a register has 256 elements at most


def _dense(text: object, type: ShapedType) -> object:
    """Return a vector constant, `dense<0>` or `dense<[1, 2]>`."""
    import numpy as np

    inside = str(text).partition("<")[2].partition(">")[0].strip("[] ")
    shape = [d or 1 for d in type.dims]
    if len(shape) > 5 or math.prod(shape) > _LARGEST_VECTOR:
        raise IllegalInstruction(
            f"cannot make a constant of type {type}: expected at most {_LARGEST_VECTOR} elements"
        )
    try:
        numbers = [float(w) if type.elem.is_float else int(w, 0) for w in inside.split(",") if w.strip()]
        return np.array(np.broadcast_to(np.array(numbers), shape), array_of(str(type.dtype)))
    except (ValueError, OverflowError, TypeError):
        raise IllegalInstruction(f"expects a value of type {type}, got {str(text)[:80]}") from None


def _converted(op: Operation, kind: str) -> Evaluate:
    return _to_int(op, kind == "unsigned") if kind else _to_float(op)


def _to_int(op: Operation, unsigned: bool) -> Evaluate:
    name = "i64" if bits_of(op.result.type) > 32 else str(op.result.type)
    info = DTYPES["u" + name[1:] if unsigned else name] if name[1:] in ("8", "16", "32", "64") else None
    fits = fit(str(op.result.type))

    def convert(x: float) -> Number:
        if info is None or (math.isfinite(x) and info.int_range[0] <= math.trunc(x) <= info.int_range[1]):
            return fits(math.trunc(x)) if math.isfinite(x) else 0
        return fits(encoding.encode(info, x, "TRUNC"))  # out of range: the result of an x86-64 cast

    return convert


def _to_float(op: Operation) -> Evaluate:
    mode = {"to_nearest_even": "RINT", "downward": "FLOOR", "upward": "CEIL", "toward_zero": "TRUNC",
            "to_nearest_away": "ROUND"}.get(str(op.attr("roundingmode")), "RINT")  # fmt: skip
    info = op.result.type.info  # type: ignore[attr-defined]
    return lambda x: float(encoding.decode(info, encoding.encode(info, x, mode)))


def _bitcast(op: Operation, kind: str) -> Evaluate:
    source, result = op.operands[0].type, op.result.type
    fits = fit(str(result))
    if _is_float(source) == _is_float(result) and str(source) == str(result):
        return lambda x: x
    if _is_float(source):
        info = source.info  # type: ignore[attr-defined]
        to_code = lambda x: encoding.encode(info, x)  # noqa: E731
    else:
        mask = (1 << bits_of(source)) - 1
        to_code = lambda x: x & mask  # noqa: E731
    if _is_float(result):
        name = result.info.name  # type: ignore[attr-defined]
        return lambda x: decode(name, to_code(x))
    return lambda x: fits(to_code(x))


#: Functions for scalar rows without an expression, by their algorithm.
ALGORITHMS: dict[str, Callable[[Operation, str], Evaluate]] = {
    "constant": _constant, "scalar conversion": _converted, "scalar bits": _bitcast,
}  # fmt: skip
