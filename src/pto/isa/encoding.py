"""What an element's bits mean: exact scalar decode, encode and conversion between element types.

Integers only, so every result is exact by construction. The array versions
(`pto.engine.elements` and the native module) are tested against this file code by code.

A *code* is the element's bit pattern as a non-negative integer; a signed integer's code is its two's
complement, a 4-bit element's code is one nibble.

Decisions, where the sources leave room:

* Special values are OCP's: e4m3 has NaN (S.1111.111) and no infinity, e5m2 is IEEE-like, e8m0 0xFF is NaN,
  the fp4 formats have neither. hif8 has one zero, NaN 0x80 and infinities 0x6F/0xEF.
* Encoding a NaN gives the one canonical code of the type: payload and sign are not kept. `convert` between
  equal types is a copy of the code, so there they are.
* `RINT`, `ROUND` and `ODD` are nearest, with ties to even, away from zero and to odd; `FLOOR`, `CEIL` and
  `TRUNC` are directed. "Even" and "odd" speak of the significand counted in units of the last place, so a
  format without mantissa bits (e8m0, hif8 below 2**-15) rounds 1.5 up under `RINT` and down under `ODD`.
* `NONE` is the rounding that the destination does by itself: truncation to an integer type, ties away from
  zero to hif8 (the only rounding its hardware conversion has), ties to even to every other float type.
* Overflow without saturation goes to infinity, else to NaN, else (fp4) to the largest value. A rounding
  directed towards zero stops at the largest finite value instead, as in IEEE 754.
* Saturation clamps finite overflow and infinities to the largest finite value and keeps NaN. It concerns
  range lost by narrowing: an infinity stays one when the destination has infinities and its range covers
  the source type's.
* e8m0 has neither sign nor zero: a negative value is NaN; zero is NaN, or the smallest scale when saturating;
  any positive value below the smallest scale becomes it.
* A float out of the range of an integer type clamps after rounding when saturating. Without saturation it
  does what a C cast does on x86-64: through i64 for u8, u32 and i64, through i32 for the other types up to
  32 bits, keeping the low bits; what does not fit the intermediate type is its minimum.
* NaN to a type that has none is the largest value or zero when saturating (`nan="max"` or `"zero"`); for the
  fp4 formats this also holds without saturation.
* Integers convert to integers by clamping (saturating) or by keeping the low bits, and to floats by one
  correct rounding.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from .dtypes import DTYPES, ROUND_MODES, DType

if TYPE_CHECKING:
    from fractions import Fraction

#: What a saturating conversion makes of NaN when the destination type has none.
NAN_RULES = ("max", "zero")

#: Codes of the special values of types that have them.
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
    """The rounding that `mode` stands for in a conversion to `dtype`: `NONE` resolved, others unchanged."""
    d = _dtype(dtype)
    if mode not in ROUND_MODES:
        raise ValueError(f"unknown rounding mode {mode!r}: expected one of {', '.join(ROUND_MODES)}")
    if mode != "NONE":
        return mode
    return "TRUNC" if d.is_int else "ROUND" if d.name == "hif8" else "RINT"


def round_integral(value: Fraction | float | int, mode: str) -> int:
    """`value` rounded to an integer; `NONE` truncates."""
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
    """The value of a code: an int for integer types, else a float (every float type fits a double)."""
    d = _dtype(dtype)
    if not 0 <= code < 1 << d.bits:
        raise ValueError(f"code {code:#x} does not fit the {d.bits} bits of {d.name}")
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
    """The code that `value` becomes; see the module docstring for rounding, overflow and NaN.

    An `int` converts as an integer source would (low bits when not saturating), a float or fraction as a
    floating source would.
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
    """The code in `dst` of the value that `code` has in `src`; a plain copy when the types are equal."""
    s, d = _dtype(src), _dtype(dst)
    value = decode(s, code)
    if s.name == d.name:
        return code
    return encode(d, value, mode, saturate and not keeps_infinity(s, d), nan)


def keeps_infinity(src: DType | str, dst: DType | str) -> bool:
    """Whether `dst` covers the range of the float type `src` and has infinities: saturation never acts."""
    s, d = _dtype(src), _dtype(dst)
    return s.is_float and d.inf and d.max_finite >= s.max_finite


def hif8_mantissa_bits(exponent: int) -> int:
    """Mantissa bits of a hif8 number in [2**exponent, 2**(exponent+1)); none below 2**-15."""
    size = abs(exponent)
    return 3 if size < 4 else 2 if size < 8 else 1 if size < 16 or exponent > 0 else 0


def _dtype(dtype: DType | str) -> DType:
    return DTYPES[dtype] if isinstance(dtype, str) else dtype


def _mask(d: DType) -> int:
    return (1 << d.bits) - 1


@cache
def _max_code(d: DType) -> int:
    """Code of the largest finite value."""
    code = _rounded_code(d, *d.max_finite.as_integer_ratio(), "RINT")
    assert code is not None
    return code


def _unit_exponent(d: DType, e: int) -> int:
    """Exponent of the unit in the last place of numbers in the binade of 2**e (range unbounded above)."""
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
    # hif8 has one zero only.
    return sign | code if code or d.name != "hif8" else 0


def _overflow_code(d: DType, sign: int) -> int:
    """What a value too large becomes without saturation: infinity, else NaN, else the largest value."""
    if d.inf:
        return sign | INF_CODES[d.name]
    return NAN_CODES[d.name] if d.nan else sign | _max_code(d)


def _rounded_code(d: DType, numerator: int, denominator: int, mode: str) -> int | None:
    """Code of the magnitude of a fraction, rounded; None where that is beyond the largest finite value."""
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
    """An x86-64 C cast, with the rounding done first."""
    special = not math.isfinite(value)
    whole = 0 if special else round_integral(value, mode)
    if d.name == "u64" and (value == math.inf or whole >= 1 << 63):
        return whole if whole < 1 << 64 and not special else 0
    via = 64 if d.name in ("u8", "u32", "i64", "u64") else 32
    if special or not -(1 << (via - 1)) <= whole < 1 << (via - 1):
        whole = -(1 << (via - 1))
    return whole & _mask(d)
