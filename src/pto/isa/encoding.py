"""Bit patterns of elements: exact scalar decoding, encoding and conversion between element types.

The code uses only integers, so every result is exact. The array versions (`pto.engine.elements` and the
native module) are tested against this module for every code.

A *code* is the bit pattern of an element as a non-negative integer. The code of a signed integer is its two's
complement, the code of a 4-bit element is one nibble.

Decisions that the sources leave open:

    * Special values are those of OCP: e4m3 has NaN (S.1111.111) and no infinity, e5m2 is IEEE-like, e8m0 0xFF
      is NaN, the fp4 formats have neither. hif8 has one zero, NaN 0x80 and infinities 0x6F/0xEF.
    * Encoding a NaN gives the canonical code of the type: payload and sign are lost. `convert` between equal
      types copies the code, and keeps both.
    * `RINT`, `ROUND` and `ODD` round to nearest, with ties to even, away from zero and to odd; `FLOOR`,
      `CEIL` and `TRUNC` are directed. "Even" and "odd" refer to the significand in units of the last place.
      So a format without mantissa bits (e8m0, hif8 below 2**-15) rounds 1.5 up with `RINT` and down with
      `ODD`.
    * `NONE` is the default rounding of the destination: truncation for integer types, ties away from zero for
      hif8 (the only rounding of its hardware conversion), ties to even for every other float type.
    * Overflow without saturation gives infinity, else NaN, else (fp4) the largest value. A rounding directed
      towards zero gives the largest finite value instead, as in IEEE 754.
    * Saturation clamps finite overflow and infinities to the largest finite value and keeps NaN. It applies
      only to range lost by narrowing: infinity stays infinity if the destination has infinities and its range
      covers the range of the source type.
    * e8m0 has neither sign nor zero: a negative value gives NaN; zero gives NaN, or the smallest scale when
      saturating; a positive value below the smallest scale gives the smallest scale.
    * A float out of the range of an integer type is clamped after rounding when saturating. Without
      saturation the result is that of a C cast on x86-64: through i64 for u8, u32 and i64, through i32 for
      the other types up to 32 bits, keeping the low bits; a value that does not fit the intermediate type
      becomes its minimum.
    * NaN to a type without NaN gives the largest value or zero when saturating (`nan="max"` or `"zero"`); for
      the fp4 formats also without saturation.
    * Integers convert to integers by clamping (saturating) or by keeping the low bits, and to floats with one
      correct rounding.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from .dtypes import DTYPES, ROUND_MODES, DType

if TYPE_CHECKING:
    from fractions import Fraction

#: Results of a saturating conversion of NaN to a type without NaN.
NAN_RULES = ("max", "zero")

#: Codes of special values, for types that have them.
INF_CODES: dict[str, int] = {
    **{d.name: ((1 << d.exp) - 1) << d.man for d in DTYPES.values() if d.exp and d.inf}, "hif8": 0x6F
}  # fmt: skip
NAN_CODES: dict[str, int] = {
    **{
        d.name: INF_CODES[d.name] | 1 << d.man - 1 if d.inf else (1 << d.exp + d.man) - 1
        for d in DTYPES.values()
        if d.exp and d.nan
    },
    "hif8": 0x80,
}

_TOWARD_ZERO = {("TRUNC", False), ("TRUNC", True), ("FLOOR", False), ("CEIL", True)}  # (mode, negative)


def rounding(dtype: DType | str, mode: str) -> str:
    """Return the rounding mode of a conversion to `dtype`: `NONE` becomes the default of the type."""
    d = _dtype(dtype)
    if mode not in ROUND_MODES:
        raise ValueError(f"unknown rounding mode {mode!r}: expected one of {', '.join(ROUND_MODES)}")
    if mode != "NONE":
        return mode
    return "TRUNC" if d.is_int else "ROUND" if d.name == "hif8" else "RINT"


def round_integral(value: Fraction | float | int, mode: str) -> int:
    """Return `value` rounded to an integer; `NONE` truncates."""
    return _rounded(*value.as_integer_ratio(), mode)


def _rounded(numerator: int, denominator: int, mode: str) -> int:
    low, rest = divmod(numerator, denominator)
    if mode == "FLOOR" or rest == 0:
        return low
    if mode == "CEIL":
        return low + 1
    if mode in ("TRUNC", "NONE"):
        return low if numerator > 0 else low + 1
    if 2 * rest != denominator:
        return low + (2 * rest > denominator)
    if mode == "ROUND":
        return low + (numerator > 0)
    return low + (low % 2 == (mode == "RINT"))


def decode(dtype: DType | str, code: int) -> float | int:
    """Return the value of a code: an int for integer types, else a float (a double represents all float
    types)."""
    d = _dtype(dtype)
    if not 0 <= code < 1 << d.bits:
        raise ValueError(f"expected a code of {d.bits} bits for {d.name}, got {code:#x}")
    if d.is_int:
        return code - (1 << d.bits) if d.kind == "i" and code >> (d.bits - 1) else code
    if d.name == "hif8":
        return _decode_hif8(code)
    negative = d.kind == "f" and bool(code >> (d.bits - 1))
    magnitude = code & ((1 << (d.bits - negative)) - 1)
    if d.nan and magnitude > INF_CODES.get(d.name, _max_code(d)):
        return math.nan
    if d.inf and magnitude == INF_CODES[d.name]:
        value = math.inf
    else:
        exp, man = magnitude >> d.man, magnitude & ((1 << d.man) - 1)
        if exp or not d.man:
            value = math.ldexp(man + (1 << d.man), exp - d.bias - d.man)
        else:
            value = math.ldexp(man, 1 - d.bias - d.man)
    return -value if negative else value


def encode(
    dtype: DType | str,
    value: Fraction | float | int,
    mode: str = "NONE",
    saturate: bool = False,
    nan: str = "max",
) -> int:
    """Return the code of `value`; see the module docstring for rounding, overflow and NaN.

    An `int` converts like an integer source (low bits when not saturating), a float or fraction like a
    floating source.
    """
    d = _dtype(dtype)
    mode = rounding(d, mode)
    if nan not in NAN_RULES:
        raise ValueError(f"unknown NaN rule {nan!r}: expected one of {', '.join(NAN_RULES)}")
    if d.is_float:
        return _encode_float(d, value, mode, saturate, nan)
    low, high = d.int_range
    if isinstance(value, int):
        return (min(max(value, low), high) if saturate else value) & _mask(d)
    if saturate:
        if math.isnan(value):
            return high if nan == "max" else 0
        if math.isinf(value):
            return (high if value > 0 else low) & _mask(d)
        return min(max(round_integral(value, mode), low), high) & _mask(d)
    return _cast_to_int(d, value, mode)


def convert(
    code: int,
    src: DType | str,
    dst: DType | str,
    mode: str = "NONE",
    saturate: bool = False,
    nan: str = "max",
) -> int:
    """Return the code in `dst` for the value of `code` in `src`. Equal types give a copy."""
    s, d = _dtype(src), _dtype(dst)
    value = decode(s, code)
    if s.name == d.name:
        return code
    return encode(d, value, mode, saturate and not keeps_infinity(s, d), nan)


def keeps_infinity(src: DType | str, dst: DType | str) -> bool:
    """Return True if `dst` covers the range of the float type `src` and has infinities, so that saturation
    has no effect."""
    s, d = _dtype(src), _dtype(dst)
    return s.is_float and d.inf and d.max_finite >= s.max_finite


def hif8_mantissa_bits(exponent: int) -> int:
    """Return the number of mantissa bits of a hif8 number in [2**exponent, 2**(exponent+1)); 0 below
    2**-15."""
    size = abs(exponent)
    return 3 if size < 4 else 2 if size < 8 else 1 if size < 16 or exponent > 0 else 0


def _dtype(dtype: DType | str) -> DType:
    return DTYPES[dtype] if isinstance(dtype, str) else dtype


def _mask(d: DType) -> int:
    return (1 << d.bits) - 1


@cache
def _max_code(d: DType) -> int:
    """Return the code of the largest finite value."""
    code = _rounded_code(d, *d.max_finite.as_integer_ratio(), "RINT")
    assert code is not None
    return code


def _unit_exponent(d: DType, e: int) -> int:
    """Return the exponent of the unit in the last place in the binade of 2**e, without an upper limit of the
    range."""
    if d.name == "hif8":
        return max(e, -22) - hif8_mantissa_bits(e)
    return max(e, 1 - d.bias if d.man else -d.bias) - d.man


def _encode_float(d: DType, value: Fraction | float | int, mode: str, saturate: bool, nan: str) -> int:
    if isinstance(value, float) and math.isnan(value):
        return NAN_CODES[d.name] if d.nan else _max_code(d) if nan == "max" else 0
    negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    if d.kind == "e":
        if negative and value != 0:
            return NAN_CODES[d.name]
        if value == 0:
            return 0 if saturate else NAN_CODES[d.name]
    sign = negative << (d.bits - 1) if d.kind == "f" else 0
    if isinstance(value, float) and math.isinf(value):
        return sign | _max_code(d) if saturate else _overflow_code(d, sign)
    code = _rounded_code(d, *value.as_integer_ratio(), mode)
    if code is None:
        clamp = saturate or (mode, negative) in _TOWARD_ZERO
        return sign | _max_code(d) if clamp else _overflow_code(d, sign)
    # hif8 has only one zero
    return sign | code if code or d.name != "hif8" else 0


def _overflow_code(d: DType, sign: int) -> int:
    """Return the code for overflow without saturation: infinity, else NaN, else the largest value."""
    if d.inf:
        return sign | INF_CODES[d.name]
    return NAN_CODES[d.name] if d.nan else sign | _max_code(d)


def _rounded_code(d: DType, numerator: int, denominator: int, mode: str) -> int | None:
    """Return the code of the magnitude of a fraction, rounded, or None if it exceeds the largest finite
    value."""
    above = abs(numerator)
    if not above:
        return 0
    e = above.bit_length() - denominator.bit_length()  # 2**e <= magnitude < 2**(e+1), or one less:
    e -= above << max(-e, 0) < denominator << max(e, 0)
    if d.kind == "e" and e < -d.bias:
        return 0
    unit = _unit_exponent(d, e)
    count = abs(_rounded(numerator << max(-unit, 0), denominator << max(unit, 0), mode))
    most, parts = d.max_finite.as_integer_ratio()
    if count * parts << max(unit, 0) > most << max(-unit, 0):
        return None
    if d.name == "hif8":
        return _hif8_codes()[math.ldexp(count, unit)]
    # Codes count units: a count that reaches the next binade is the first code there.
    return ((unit + d.man + d.bias - 1) << d.man) + count if count else 0


def _decode_hif8(code: int) -> float:
    sign = -1.0 if code & 0x80 else 1.0
    body = code & 0x7F
    if body >> 3 == 0:  # 0000mmm: powers of two only
        if body == 0:
            return math.nan if code else 0.0
        return sign * math.ldexp(1.0, body - 23)
    if body == 0x6F:
        return sign * math.inf
    if body >> 5:  # 11 / 10 / 01: D = 4, 3, 2 exponent bits
        d = (body >> 5) + 1
        rest, width = body & 0x1F, 5
    elif body >> 4:  # 001: D = 1
        d, rest, width = 1, body & 0xF, 4
    else:  # 0001: D = 0
        d, rest, width = 0, body & 0x7, 3
    m = width - d
    exponent = 0
    if d:
        field = rest >> m
        size = 1 << (d - 1) | (field & ((1 << (d - 1)) - 1))  # leading one is implicit
        exponent = -size if field >> (d - 1) else size
    return sign * math.ldexp((1 << m) + (rest & ((1 << m) - 1)), exponent - m)


@cache
def _hif8_codes() -> dict[float, int]:
    values = ((_decode_hif8(code), code) for code in range(128))
    return {v: code for v, code in values if math.isfinite(v)}


def _cast_to_int(d: DType, value: Fraction | float, mode: str) -> int:
    """Round a value, and cast it like C on x86-64."""
    special = not math.isfinite(value)
    whole = 0 if special else round_integral(value, mode)
    if d.name == "u64" and (value == math.inf or whole >= 1 << 63):
        return whole if whole < 1 << 64 and not special else 0
    via = 64 if d.name in ("u8", "u32", "i64", "u64") else 32
    if special or not -(1 << (via - 1)) <= whole < 1 << (via - 1):
        whole = -(1 << (via - 1))
    return whole & _mask(d)
