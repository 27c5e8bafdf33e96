"""Element codes as arrays: the NumPy twin of `pto.isa.encoding`, with compiled loops from the native module.

Codes are unsigned arrays (`code_dtype`); a 4-bit element takes one byte here, and `pack4`/`unpack4` go to and
from storage with two per byte, low nibble first. Values are float32 (float64 for f64) or integer arrays.

Every function takes `compiled`: True asks for the compiled loops, False for NumPy, None (default) for the
compiled loops if the module is available. Both give the same codes, and so does `pto.isa.encoding`; the tests
prove it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec

import ml_dtypes
import numpy as np

from ..isa import encoding
from ..isa.dtypes import DTYPES, DType

try:
    from pto import _native
except ImportError:
    _native = None

#: Element types added after the module was compiled: NumPy computes them until the next build.
_NEWER = frozenset(DTYPES if _native is None else set(DTYPES) - {name for name, _ in _native.dtypes()})

Array = np.ndarray[Any, Any]
P = ParamSpec("P")

#: Element types of NumPy or ml_dtypes; hif8, the fp4 types and s4 use tables.
ARRAY_DTYPES: dict[str, np.dtype[Any]] = {
    d.name: np.dtype(getattr(np if hasattr(np, d.array) else ml_dtypes, d.array))
    for d in DTYPES.values()
    if d.array
}

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_INT_NAMES = {t: n for n, t in ARRAY_DTYPES.items() if t.kind in "iu"}


def _quiet(f: Callable[P, Array]) -> Callable[P, Array]:
    """Suppress warnings of NumPy: NaN and overflow are ordinary values here."""

    @wraps(f)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Array:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            return f(*args, **kwargs)

    return wrapped


def has_compiled() -> bool:
    """Return True if the compiled module can be imported."""
    return _native is not None


def loops(compiled: bool | None, *dtypes: str) -> Any:
    """Return the compiled module if `compiled` allows it and it has these element types, else None; see the
    module docstring."""
    there = _native is not None and (not _NEWER or _NEWER.isdisjoint(dtypes))
    if compiled and not there:
        raise ImportError(
            "the compiled module pto._native is not there, or older; build it with `make setup`"
        )
    return _native if there and compiled is not False else None


@cache
def code_dtype(dtype: str) -> np.dtype[Any]:
    """Return the array type of codes of `dtype`: the unsigned integer of its size, at least one byte."""
    return np.dtype(f"u{max(8, DTYPES[dtype].bits) // 8}")


def decode(dtype: str, codes: Array, to: Any = None, *, compiled: bool | None = None) -> Array:
    """Return the values of `codes`: float32 (f64: float64), integers, or `to`, a float type that is exact."""
    wide = _WIDE.get(dtype)
    if wide is not None and to is None and compiled is not False and _native is not None:
        if codes.dtype != code_dtype(dtype):
            raise _unfit(dtype, codes)
        if codes.ndim == 1:  # fast path for short arrays
            return _native.decode(dtype, codes if codes.flags.c_contiguous else codes.copy(), wide)
        return _native.decode(dtype, codes.ravel(), wide).reshape(codes.shape)
    d = DTYPES[dtype]
    codes = _codes(d, codes)
    natural = _value_dtype(d)
    out = natural if to is None else np.dtype(to)
    if to is not None and (
        not np.can_cast(natural, out, "safe") or (natural.itemsize == 8 and out != natural)
    ):
        raise ValueError(f"{dtype} values are not exact in {out}")
    if out.kind == "f" and (fast := loops(compiled, dtype)):
        return fast.decode(dtype, codes.ravel(), out.itemsize == 8).reshape(codes.shape)
    return _decode(d, codes, out)


def encode(
    dtype: str,
    values: Array,
    mode: str = "NONE",
    saturate: bool = False,
    nan: str = "max",
    *,
    compiled: bool | None = None,
) -> Array:
    """Return the codes of float or integer `values`; see `pto.isa.encoding.encode`."""
    values = np.asarray(values)
    if values.dtype in (_F32, _F64):
        mode = _rounding(dtype, mode, nan)
        if fast := loops(compiled, dtype):
            if values.ndim == 1 and values.flags.c_contiguous:
                return fast.encode(dtype, values, mode, saturate, nan)
            flat = np.ascontiguousarray(values).ravel()
            return fast.encode(dtype, flat, mode, saturate, nan).reshape(values.shape)
        return _encode(DTYPES[dtype], values.astype(np.float64), mode, saturate, nan)
    if values.dtype in _INT_NAMES:
        source = _INT_NAMES[values.dtype]
        codes = np.ascontiguousarray(values).view(code_dtype(source))
        if source == dtype:
            return codes
        return convert(codes, source, dtype, mode, saturate, nan, compiled=compiled)
    _rounding(dtype, mode, nan)
    raise ValueError(f"cannot encode an array of {values.dtype}: expected float32, float64 or integers")


def encode_row(
    dtype: str, values: Array, mode: str = "NONE", saturate: bool = False, nan: str = "max"
) -> Array:
    """Encode float32 or float64 values in one dimension: a fast path for short arrays."""
    if _native is None:
        return encode(dtype, values, mode, saturate, nan)
    return _native.encode(dtype, values, _rounding(dtype, mode, nan), saturate, nan)


def convert(
    codes: Array,
    src: str,
    dst: str,
    mode: str = "NONE",
    saturate: bool = False,
    nan: str = "max",
    *,
    compiled: bool | None = None,
) -> Array:
    """Return the codes in `dst` of the values that `codes` have in `src`; see `pto.isa.encoding.convert`."""
    s, d = DTYPES[src], DTYPES[dst]
    codes = _codes(s, codes)
    mode = _rounding(dst, mode, nan)
    if fast := loops(compiled, src, dst):
        saturate = saturate and not encoding.keeps_infinity(s, d)
        return fast.convert(src, dst, codes.ravel(), mode, saturate, nan).reshape(codes.shape)
    return _convert(codes, s, d, mode, saturate, nan)


def pack4(codes: Array, *, compiled: bool | None = None) -> Array:
    """Pack two 4-bit codes into each byte, low nibble first; an odd count leaves the last nibble zero."""
    flat = np.ascontiguousarray(codes, np.uint8).ravel()
    if fast := loops(compiled):
        return fast.pack4(flat)
    nibbles = np.zeros(flat.size + flat.size % 2, np.uint8)
    nibbles[: flat.size] = flat & 0xF
    return nibbles[0::2] | nibbles[1::2] << 4


def unpack4(data: Array, count: int, *, compiled: bool | None = None) -> Array:
    """Return the first `count` 4-bit codes of `data`, one per byte."""
    flat = np.ascontiguousarray(data, np.uint8).ravel()
    if not 0 <= count <= 2 * flat.size:
        raise ValueError(f"{flat.size} bytes hold {2 * flat.size} nibbles, asked for {count}")
    if fast := loops(compiled):
        return fast.unpack4(flat, count)
    return np.stack([flat & 0xF, flat >> 4], axis=-1).ravel()[:count]


@_quiet
def round_integral(values: Array, mode: str) -> Array:
    """Round float `values` to integers (still floats); `NONE` truncates. NaN and infinities stay."""
    if mode == "RINT":
        return np.rint(values)
    if mode == "FLOOR":
        return np.floor(values)
    if mode == "CEIL":
        return np.ceil(values)
    whole = np.trunc(values)
    if mode in ("TRUNC", "NONE"):
        return whole
    rest = np.abs(values - whole)
    if mode == "ROUND":
        return np.where(rest >= 0.5, whole + np.copysign(1.0, values), whole)
    if mode == "ODD":
        return np.where(rest == 0.5, 2.0 * np.floor(values / 2.0) + 1.0, np.rint(values))
    raise ValueError(f"unknown rounding mode {mode!r}")


#: Float types; the key is True for f64 values.
_WIDE = {name: d.bits == 64 for name, d in DTYPES.items() if d.is_float and name not in _NEWER}


@cache
def _rounding(dtype: str, mode: str, nan: str) -> str:
    """Return the rounding of a mode, if the mode and the rule for NaN are known."""
    found = encoding.rounding(DTYPES[dtype], mode)
    if nan not in encoding.NAN_RULES:
        raise ValueError(f"unknown NaN rule {nan!r}: expected one of {', '.join(encoding.NAN_RULES)}")
    return found


def _codes(d: DType, codes: Array) -> Array:
    codes = np.ascontiguousarray(codes)
    if codes.dtype != code_dtype(d.name):
        raise _unfit(d.name, codes)
    return codes


def _unfit(dtype: str, codes: Array) -> ValueError:
    return ValueError(f"{dtype} codes are {code_dtype(dtype)}, got an array of {codes.dtype}")


def _value_dtype(d: DType) -> np.dtype[Any]:
    if d.is_float:
        return np.dtype(np.float64 if d.bits == 64 else np.float32)
    return np.dtype(f"{d.kind}{max(8, d.bits) // 8}")


@cache
def _values(d: DType) -> Array:
    """Return the value of every code of a small type."""
    return np.array([encoding.decode(d, c) for c in range(1 << d.bits)], _value_dtype(d))


@cache
def _magnitudes(d: DType) -> tuple[Array, Array]:
    """Return the non-negative values of a small float type, ascending (infinity included), and their
    codes."""
    half = _values(d)[: 1 << (d.bits - 1)].astype(np.float64)
    order = np.argsort(half)
    return half[order], order.astype(np.uint8)


@_quiet
def _decode(d: DType, codes: Array, out: np.dtype[Any]) -> Array:
    if d.name in ARRAY_DTYPES:
        found = codes.view(ARRAY_DTYPES[d.name]).astype(out)
        if d.name == "f16":  # NumPy keeps all bits of a NaN, the compiled loops its sign
            found = np.where(np.isnan(found), np.copysign(out.type(np.nan), found), found)
        return found
    return _values(d)[codes & ((1 << d.bits) - 1)].astype(out)


@_quiet
def _convert(codes: Array, s: DType, d: DType, mode: str, saturate: bool, nan: str) -> Array:
    if s == d:
        return codes & np.asarray((1 << s.bits) - 1, codes.dtype)
    if s.is_int and d.is_int:
        return _int_to_int(s, d, decode(s.name, codes, compiled=False), saturate)
    if s.is_int and s.bits == 64:
        if d.name == "f64" and mode != "RINT":  # rare: scalars only, and no NumPy cast rounds that way
            exact = [encoding.convert(int(c), s, d, mode, saturate) for c in codes.ravel()]
            return np.array(exact, np.uint64).reshape(codes.shape)
        values = decode(s.name, codes, compiled=False)
        wide = values.astype(np.float64) if d.name == "f64" else _round_to_odd(values)
    else:
        wide = decode(s.name, codes, np.float64, compiled=False)
    return _encode(d, wide, mode, saturate and not encoding.keeps_infinity(s, d), nan)


@_quiet
def _encode(d: DType, values: Array, mode: str, saturate: bool, nan: str) -> Array:
    if d.is_int:
        return _to_int(d, values, mode, saturate, nan)
    return _exact_codes(d, _representable(d, values, mode, saturate, nan))


def _representable(d: DType, values: Array, mode: str, saturate: bool, nan: str) -> Array:
    """Round `values` (float64) to numbers that `d` has."""
    if d.name == "f64":
        return np.clip(values, -d.max_finite, d.max_finite) if saturate else values
    finite = np.isfinite(values)
    x = np.where(finite, values, 0.0)
    if d.kind == "e":
        x = np.where(x > 0, np.maximum(x, 2.0**-d.bias), x)
    exponent = np.frexp(x)[1] - 1
    if d.name == "hif8":
        table = np.array([encoding.hif8_mantissa_bits(e) for e in range(-22, 17)])
        unit = np.maximum(exponent, -22) - table[np.clip(exponent, -22, 16) + 22]
    else:
        unit = np.maximum(exponent, 1 - d.bias if d.man else -d.bias) - d.man
    out = np.ldexp(round_integral(np.ldexp(x, -unit), mode), unit)
    limit = np.copysign(d.max_finite, values)
    beyond = np.copysign(np.inf, values) if d.inf else np.full_like(values, np.nan) if d.nan else limit
    inward = {"TRUNC": True, "FLOOR": values > 0, "CEIL": values < 0}.get(mode, False)
    out = np.where(
        np.abs(out) > d.max_finite, np.where(inward, limit, beyond) if not saturate else limit, out
    )
    out = np.where(np.isinf(values), limit if saturate else beyond, out)
    if d.kind == "e":
        out = np.where((values < 0) | ((values == 0) & (not saturate)), np.nan, out)
        out = np.where((values == 0) & saturate, 2.0**-d.bias, out)
    missing = np.nan if d.nan else d.max_finite if nan == "max" else 0.0
    return np.where(np.isnan(values), missing, out)


def _exact_codes(d: DType, values: Array) -> Array:
    """Return the codes of values that `d` represents."""
    if d.name in ARRAY_DTYPES:
        codes = values.astype(ARRAY_DTYPES[d.name]).view(code_dtype(d.name))
    else:
        known, order = _magnitudes(d)
        codes = order[np.minimum(np.searchsorted(known, np.abs(values)), len(known) - 1)]
        sign = np.signbit(values) & ((values != 0) | (d.name != "hif8"))
        codes = codes | (sign.astype(np.uint8) << (d.bits - 1))
    if not d.nan:
        return codes
    return np.where(np.isnan(values), np.asarray(encoding.NAN_CODES[d.name], codes.dtype), codes)


def _to_int(d: DType, values: Array, mode: str, saturate: bool, nan: str) -> Array:
    whole = round_integral(values, mode)
    low, high = d.int_range
    if saturate:
        inside = (whole >= float(low)) & (whole < float(high + 1))
        out = _whole_to_u64(np.where(inside, whole, 0.0))
        out = np.where(inside, out, np.where(whole < 0, np.uint64(low % 2**64), np.uint64(high)))
        out = np.where(np.isnan(values), np.uint64(high if nan == "max" else 0), out)
    else:
        bits = 64 if d.name in ("u8", "u32", "i64", "u64") else 32
        limit = 2.0 ** (bits - 1)
        inside = (whole >= -limit) & (whole < (2.0**64 if d.name == "u64" else limit))
        out = _whole_to_u64(np.where(inside, whole, 0.0))
        out = np.where(inside, out, np.uint64(2**64 - 2 ** (bits - 1)))
        if d.name == "u64":
            out = np.where(whole >= 2.0**64, np.uint64(0), out)
    return (out & np.uint64((1 << d.bits) - 1)).astype(code_dtype(d.name))


def _whole_to_u64(whole: Array) -> Array:
    """Convert whole numbers in [-2**63, 2**64) to their low 64 bits."""
    large = whole >= 2.0**63
    small = np.where(large, 0.0, whole).astype(np.int64).view(np.uint64)
    return np.where(large, np.where(large, whole, 0.0).astype(np.uint64), small)


def _int_to_int(s: DType, d: DType, values: Array, saturate: bool) -> Array:
    if saturate:
        low, high = max(s.int_range[0], d.int_range[0]), min(s.int_range[1], d.int_range[1])
        values = np.clip(values, np.asarray(low, values.dtype), np.asarray(high, values.dtype))
    wide = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    return (wide & np.uint64((1 << d.bits) - 1)).astype(code_dtype(d.name))


def _round_to_odd(values: Array) -> Array:
    """Convert 64-bit integers to doubles, with a lost remainder kept as a sticky last bit.

    A later rounding to 24 bits or fewer then gives what rounding the integer itself would give.
    """
    negative = values < 0
    bits = values.view(np.uint64)
    size = np.where(negative, ~bits + np.uint64(1), bits)
    cut = size & ~np.uint64(0x7FF) | (((size & np.uint64(0x7FF)) != 0).astype(np.uint64) << np.uint64(11))
    wide = np.where(size < np.uint64(1 << 53), size, cut).astype(np.float64)
    return np.where(negative, -wide, wide)
