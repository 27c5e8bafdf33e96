"""Scalar instructions from the expressions of their rows: `arith` and `math` over Python numbers.

A register holds an int in the range of its type (signless types signed, `i1` 0 or 1) or a float that the type
has. Float operations are computed in double and rounded once, which is exact rounding for + - * / and sqrt
of types up to 32 bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from ...ir.core import Operation
from ...ir.types import ScalarType, ShapedType, Type
from ...isa import encoding, meaning
from ...isa.algorithms import kind_of
from ...isa.dtypes import DTYPES
from .. import functions
from ..memory import array_of
from .instr import IllegalInstruction

Number = int | float
Evaluate = Callable[..., Any]


def bits_of(type: Type) -> int:
    return 64 if getattr(type, "text", "") == "index" else getattr(type, "bits", None) or 64


@cache
def fit(text: str) -> Callable[[Any], Number]:
    """What turns any number into one of a scalar type: wraps integers, rounds floats."""
    type = ScalarType(text)
    info = type.info
    if info is not None and info.is_float:
        if info.name == "f64":
            return float
        if info.name == "f32":
            return _round_f32
        return lambda value: _round_small(info.name, value)
    bits = bits_of(type)
    mask = (1 << bits) - 1
    if text == "i1" or text.startswith("u"):
        return lambda value: int(value) & mask
    half = 1 << (bits - 1)
    return lambda value: ((int(value) + half) & mask) - half


def _round_f32(value: Any) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _round_small(name: str, value: Any) -> float:
    return float(encoding.decode(DTYPES[name], encoding.encode(DTYPES[name], float(value))))


def decode(dtype: str, code: int) -> Number:
    """The number an element code stands for."""
    found = encoding.decode(DTYPES[dtype], code)
    return float(found) if DTYPES[dtype].is_float else int(found)


def evaluator(op: Operation) -> Evaluate:
    """A function of the operand values that gives the result (a tuple where there are several)."""
    row = op.row
    assert row is not None
    if row.algorithm:
        name, kind = kind_of(row)
        return ALGORITHMS[name](op, kind)
    expressions = tuple(_decided(op, e) for e in meaning.assigned(row.expr).values())
    types = {o.name: str(v.type) for o, v in op.named()}
    source = op.operands[0].type
    function = _compiled(expressions, tuple(types), bits_of(source), _is_float(source))
    given = meaning.moved(expressions[0])
    if given and all(types[n] == str(op.result.type) for n in given):
        return function  # any values, tiles and pointers too
    if str(source) == "i1":
        function = _signed_bits(function)
    fits = [fit(str(r.type)) for r in op.results]
    if len(fits) == 1:
        one = fits[0]
        return lambda *args: one(function(*args))
    return lambda *args: tuple(f(v) for f, v in zip(fits, function(*args), strict=True))


def _decided(op: Operation, expression: meaning.Expression) -> meaning.Expression:
    values = {name: str(op.attr(name)) for name in meaning.attributes(expression)}
    return meaning.decided(expression, values) if values else expression


def _signed_bits(function: Evaluate) -> Evaluate:
    """A function of signed numbers for operands of type i1, whose 1 is -1 as such."""
    return lambda *args: function(*[-x for x in args])


def _is_float(type: Type) -> bool:
    return isinstance(type, ScalarType) and type.is_float


@cache
def _compiled(
    expressions: tuple[meaning.Expression, ...], operands: tuple[str, ...], bits: int, is_float: bool
) -> Evaluate:
    """A function of the operands; it gives a tuple where there are several expressions."""
    spelled = _REAL if is_float else _WHOLE
    results = [
        meaning.fold(e, str, str, lambda operation, *args: spelled[operation].format(*args))
        for e in expressions
    ]
    body = f"({', '.join(results)})" if len(results) > 1 else results[0]
    extremes = {"max": _maximum, "min": _minimum} if is_float else {"max": max, "min": min}
    fma = _fma if bits == 64 else _fma_to_odd
    sizes = {"bits": bits, "mask": (1 << bits) - 1}
    names: dict[str, Any] = {**_NAMES, **_functions(bits), **extremes, **sizes, "fma": fma}
    function = eval(f"lambda {', '.join(operands)}: {body}", names)
    if not is_float:
        return function

    def guarded(*args: float) -> Any:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return guarded


def _functions(bits: int) -> dict[str, Any]:
    """What the compiled module computes. Floats up to 32 bits have the functions of f32."""
    return {name: partial(functions.number, name, bits <= 32) for name in _COMPILED}


def divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x) or math.isnan(y):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _floordiv(x: int, y: int) -> int:
    if y == 0:
        raise IllegalInstruction("division of an integer by zero")
    return x // y


def _quot(x: int, y: int) -> int:
    q = _floordiv(abs(x), abs(y))
    return q if (x < 0) == (y < 0) else -q


def _exact(x: float, y: float, z: float) -> Any:
    """x y + z."""
    from fractions import Fraction  # which few programs need, and takes long to import

    return Fraction(x) * Fraction(y) + Fraction(z)


def _fma(x: float, y: float, z: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return x * y + z
    exact = _exact(x, y, z)
    return float(exact) if exact else x * y + z


def _fma_to_odd(x: float, y: float, z: float) -> float:
    """What rounds to a shorter type as if at once: the double keeps what it loses as an odd last bit."""
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
    """A rounding to an integral value that keeps infinities, NaN and the sign of zero."""
    return lambda x: math.copysign(float(rounding(x)), x) if math.isfinite(x) else x


#: Functions of the compiled module.
_COMPILED = ("exp", "exp2", "log", "log2", "tanh", "sin", "cos", "erf", "pow")
#: Python for what all numbers compare alike.
_TRUTHS: dict[str, str] = {
    "less": "({} < {})", "less_equal": "({} <= {})", "greater": "({} > {})", "greater_equal": "({} >= {})",
    "equal": "({} == {})", "not_equal": "({} != {})", "both": "({} and {})", "either": "({} or {})",
    "where": "({1} if {0} else {2})",
}  # fmt: skip
#: Python for the operations of `isa.meaning` on integers: exact, so that results wrap where they are stored.
#: A shift count is read as unsigned, and one beyond the width shifts everything out.
_WHOLE: dict[str, str] = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "neg": "(-{})", "abs": "abs({})",
    "quot": "quot({}, {})", "rem": "({0} - {1} * quot({0}, {1}))",
    "floordiv": "floordiv({}, {})", "ceildiv": "-floordiv(-{}, {})",
    "mod": "({0} - {1} * floordiv({0}, {1}))",
    "bit_and": "({} & {})", "bit_or": "({} | {})", "bit_xor": "({} ^ {})", "bit_not": "(~{})",
    "shl": "({} << min({} & mask, bits))", "shr": "({} >> min({} & mask, bits))",
    "mul_high": "({} * {} >> bits)", "carries": "(({} & mask) + ({} & mask) > mask)",
    "unsigned": "({} & mask)",
    "max": "max({}, {})", "min": "min({}, {})", **_TRUTHS,
}  # fmt: skip
#: The same on floats.
_REAL: dict[str, str] = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "neg": "(-{})", "abs": "abs({})",
    "div": "divide({}, {})", "fma": "fma({}, {}, {})", **_TRUTHS,
    **{name: f"{name}({{}})" for name in (
        "sqrt exp exp2 log log2 tanh erf sin cos floor ceil trunc rint round_away").split()},
    **{name: f"{name}({{}}, {{}})" for name in "fmod max min maxnum minnum copysign pow".split()},
}  # fmt: skip
_NAMES: dict[str, Any] = {
    "__builtins__": {},
    "abs": abs,
    "quot": _quot,
    "floordiv": _floordiv,
    "divide": divide,
    "fmod": _fmod,
    "maxnum": _maxnum,
    "minnum": _minnum,
    "copysign": math.copysign,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "trunc": _whole(math.trunc),
    "rint": _whole(round),
    "round_away": _whole(
        lambda x: int(math.copysign(math.floor(abs(x) + 0.5), x)) if abs(x) < 2**52 else int(x)
    ),
}


# -- rows that are no expression --------------------------------------------------------------------------


def _constant(op: Operation, kind: str) -> Evaluate:
    value, type = op.attrs["value"].value, op.result.type
    if isinstance(type, ShapedType):
        return lambda: _dense(value, type)
    if not isinstance(value, bool | int | float):
        return lambda: value
    number = fit(str(op.result.type))(value)
    return lambda: number


_LARGEST_VECTOR = 1 << 16  # a register has 256 elements at most


def _dense(text: Any, type: ShapedType) -> Any:
    """A vector constant, `dense<0>` or `dense<[1, 2]>`."""
    import numpy as np

    inside = str(text).partition("<")[2].partition(">")[0].strip("[] ")
    shape = [d or 1 for d in type.dims]
    if len(shape) > 5 or math.prod(shape) > _LARGEST_VECTOR:
        raise IllegalInstruction(f"cannot make a constant of type {type}: expected at most {_LARGEST_VECTOR} elements")
    try:
        numbers = [float(w) if type.elem.is_float else int(w, 0) for w in inside.split(",") if w.strip()]
        return np.array(np.broadcast_to(np.array(numbers), shape), array_of(str(type.dtype)))
    except (ValueError, OverflowError, TypeError):
        raise IllegalInstruction(f"{str(text)[:80]} is no value of type {type}") from None


def _converted(op: Operation, kind: str) -> Evaluate:
    return _to_int(op, kind == "unsigned") if kind else _to_float(op)


def _to_int(op: Operation, unsigned: bool) -> Evaluate:
    name = "i64" if bits_of(op.result.type) > 32 else str(op.result.type)
    info = DTYPES["u" + name[1:] if unsigned else name] if name[1:] in ("8", "16", "32", "64") else None
    fits = fit(str(op.result.type))

    def convert(x: float) -> Number:
        if info is None or (math.isfinite(x) and info.int_range[0] <= math.trunc(x) <= info.int_range[1]):
            return fits(math.trunc(x)) if math.isfinite(x) else 0
        return fits(encoding.encode(info, x, "TRUNC"))  # out of range: what an x86-64 cast gives

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
        to_code: Callable[[Any], int] = lambda x: encoding.encode(info, x)  # noqa: E731
    else:
        mask = (1 << bits_of(source)) - 1
        to_code = lambda x: x & mask  # noqa: E731
    if _is_float(result):
        name = result.info.name  # type: ignore[attr-defined]
        return lambda x: decode(name, to_code(x))
    return lambda x: fits(to_code(x))


#: What scalar rows without an expression do, by their algorithm.
ALGORITHMS: dict[str, Callable[[Operation, str], Evaluate]] = {
    "constant": _constant, "scalar conversion": _converted, "scalar bits": _bitcast,
}  # fmt: skip
