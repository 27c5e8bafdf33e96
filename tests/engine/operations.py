"""Results of the operations of expressions, formulated independently: exact integers, and Python's doubles.

`probe(name)` is an expression over a, b and c that shows one operation, `values(name, dtype)` are all
combinations of special values for it, and `truth(name, dtype)` the results. `unlike` compares with results of
a backend. If an operation is of floats or of integers only, the other types have no truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from pto.engine import elements
from pto.isa import encoding, meaning
from pto.isa.dtypes import DTYPES

from .rows import Array, special_codes

#: f16 and bf16 show where numbers are rounded.
TYPES = ("f32", "f16", "bf16", "i32", "u32")
#: Operations that need more than their own call as a probe.
_PROBES = {
    "where": "where(a < b, c, a)",
    "both": "where(a < b and b < c, 1, 0)",
    "either": "where(a < b or b < c, 1, 0)",
    "carries": "where(carries(a, b), 1, 0)",
    "unsigned": "where(unsigned(a) < unsigned(b), 1, 0)",
    **{name: f"{name}(a * b) + a - a" for name in ("round", "f16", "f32", "double")},
}


@cache
def probe(name: str) -> meaning.Expression:
    o = meaning.OPERATIONS[name]
    text = _PROBES.get(name)
    if text is None:
        args = "abc"[: o.arity]
        text = f" {o.sign} ".join(args) if o.sign else f"{name}({', '.join(args)})"
        if o.sign and o.arity == 1:
            text = f"{o.sign}a"
        if o.gives == "truth":
            text = f"where({text}, 1, 0)"
    return meaning.read(text)


def operands(name: str) -> str:
    """The letters of a probe."""
    return "".join(sorted(meaning.names(probe(name))))


@cache
def values(name: str, dtype: str) -> tuple[Array, ...]:
    """All combinations of special values, as elements."""
    codes = np.array(list(dict.fromkeys(special_codes(dtype))), np.uint64).astype(elements.code_dtype(dtype))
    found = zip(*itertools.product(codes.tolist(), repeat=len(operands(name))), strict=True)
    return tuple(np.array(c).astype(codes.dtype).view(elements.ARRAY_DTYPES[dtype]) for c in found)


@cache
def truth(name: str, dtype: str) -> Array | None:
    """Codes of the results; None where the operation is not of this type."""
    d = DTYPES[dtype]
    function = (_FLOATS if d.is_float else _INTEGERS).get(name)
    if function is None or (
        dtype in ("f16", "bf16") if name not in _ROUNDING else dtype not in ("f16", "bf16")
    ):
        return None
    out: list[int] = []
    for given in zip(*(v.tolist() for v in values(name, dtype)), strict=True):
        if name in DIVIDING and given[1] == 0:
            out.append(0)  # not compared
            continue
        out.append(encoding.encode(d, function(*given) if name != "round" else _element_sum(dtype, *given)))
    return np.array(out, np.uint64).astype(elements.code_dtype(dtype))


def unlike(name: str, dtype: str, found: Array) -> bool:
    """Return True if codes differ from those of the truth."""
    want = truth(name, dtype)
    assert want is not None
    differ = found != want
    if name in DIVIDING:
        differ &= values(name, dtype)[1] != 0
    if DTYPES[dtype].is_float and differ.any():
        x, y = (elements.decode(dtype, c, np.float64) for c in (found, want))
        differ &= ~(np.isnan(x) & np.isnan(y))
    return bool(differ.any())


# -- floats ------------------------------------------------------------------------------------------------


def _element_sum(dtype: str, a: float, b: float) -> float:
    """round(a * b) + a - a"""
    product = encoding.encode(DTYPES[dtype], _single(a * b))
    return _single(_single(float(encoding.decode(DTYPES[dtype], product)) + a) - a)


def _single(x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(x))


def _half(x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float16(np.float32(x)))


def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    """A function of math with C's results where Python raises."""

    def call(*args: float) -> float:
        with np.errstate(all="ignore"):
            try:
                return function(*args)
            except (ValueError, OverflowError, ZeroDivisionError):
                return float(getattr(np, _SAME[function])(*(np.float64(a) for a in args)))

    return call


_SAME: dict[Any, str] = {
    math.exp: "exp", math.exp2: "exp2", math.log: "log", math.log2: "log2", math.sqrt: "sqrt", math.pow: "power",
    math.sin: "sin", math.cos: "cos", math.fmod: "fmod",
}  # fmt: skip


def _divided(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _fused(a: float, b: float, c: float) -> Any:
    if not all(map(math.isfinite, (a, b, c))) or Fraction(a) * Fraction(b) + Fraction(c) == 0:
        return a * b + c
    return Fraction(a) * Fraction(b) + Fraction(c)


def _larger(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return max((a, b), key=lambda x: (x, math.copysign(1, x)))


def _smaller(a: float, b: float) -> float:
    return -_larger(-a, -b)


def _number(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: b if math.isnan(a) else a if math.isnan(b) else function(a, b)


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda a: math.copysign(function(a), a) if math.isfinite(a) else a


def _away(a: float) -> float:
    return math.trunc(a) + (math.copysign(1, a) if abs(a - math.trunc(a)) >= 0.5 else 0)


_TRUTHS: dict[str, Callable[..., Any]] = {
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b, "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b,
    "both": lambda a, b, c: a < b and b < c, "either": lambda a, b, c: a < b or b < c,
    "where": lambda a, b, c: c if a < b else a,
}  # fmt: skip
_FLOATS: dict[str, Callable[..., Any]] = {
    **_TRUTHS,
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": _divided,
    "neg": lambda a: -a, "abs": abs, "fma": _fused, "fmod": _guarded(math.fmod),
    "relu": lambda a: a if a > 0 else 0.0, "max": _larger, "min": _smaller,
    "maxnum": _number(_larger), "minnum": _number(_smaller), "copysign": math.copysign,
    "sqrt": _guarded(math.sqrt), "exp": _guarded(math.exp), "exp2": _guarded(math.exp2),
    "log": _guarded(math.log), "log2": _guarded(math.log2), "pow": _guarded(math.pow), "tanh": math.tanh,
    "sin": _guarded(math.sin), "cos": _guarded(math.cos), "erf": math.erf,
    "floor": _whole(math.floor), "ceil": _whole(math.ceil), "trunc": _whole(math.trunc), "rint": _whole(round),
    "round_away": _whole(_away),
    "round": _element_sum, "f16": lambda a, b: _single(_single(_half(_single(a * b)) + a) - a),
    "f32": lambda a, b: _single(_single(_single(a * b) + a) - a), "double": lambda a, b: _single(a * b) + a - a,
}  # fmt: skip


# -- integers ----------------------------------------------------------------------------------------------


def _low(x: int) -> int:
    """32 bits as an unsigned number."""
    return x & 0xFFFFFFFF


def _quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 32)
    return {1: 1, -1: -1 if b & 1 else 1}.get(a, 0)


def _shifted_left(a: int, b: int) -> int:
    return a << b if 0 <= b < 32 else 0


def _shifted_right(a: int, b: int) -> int:
    return a >> (b if 0 <= b < 32 else 32)


def _sign_bits(a: int) -> int:
    return 31 - (~a if a < 0 else a).bit_length()


_ROUNDING = ("round", "f16", "f32", "double")
DIVIDING = ("floordiv", "ceildiv", "quot", "mod", "rem")
_INTEGERS: dict[str, Callable[..., Any]] = {
    **{name: lambda *args, f=f: int(f(*args)) for name, f in _TRUTHS.items()},
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: _quotient(a, b) if b else 0, "neg": lambda a: -a, "abs": lambda a: abs(a),
    "floordiv": lambda a, b: math.floor(Fraction(a, b)), "ceildiv": lambda a, b: math.ceil(Fraction(a, b)),
    "quot": lambda a, b: math.trunc(Fraction(a, b)), "mod": lambda a, b: a - b * math.floor(Fraction(a, b)),
    "rem": lambda a, b: a - b * math.trunc(Fraction(a, b)),
    "fmod": lambda a, b: a - b * _quotient(a, b) if b else 0,
    "bit_and": lambda a, b: a & b, "bit_or": lambda a, b: a | b, "bit_xor": lambda a, b: a ^ b,
    "bit_not": lambda a: ~a, "shl": _shifted_left, "shr": _shifted_right,
    "mul_high": lambda a, b: a * b >> 32, "carries": lambda a, b: int(_low(a) + _low(b) >= 1 << 32),
    "popcount": lambda a: bin(_low(a)).count("1"), "cls": _sign_bits,
    "unsigned": lambda a, b: int(_low(a) < _low(b)),
    "relu": lambda a: max(a, 0), "max": lambda a, b: max(a, b), "min": lambda a, b: min(a, b),
    "pow": _power,
}  # fmt: skip
