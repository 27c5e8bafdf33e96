"""Element codes as arrays: `pto.isa.encoding` for whole arrays, by the loops of the compiled module.

Codes are unsigned arrays (`code_dtype`); a 4-bit element takes one byte here. Values are float32 (float64 for
f64) or integer arrays. Without the compiled module, or for an element type added after its last build,
`pto.isa.encoding` converts element by element, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ..isa import encoding
from ..isa.dtypes import DTYPES, DType

try:
    from pto import _native
except ImportError:
    _native = None

#: Element types that the compiled module lacks.
_NEWER = frozenset(DTYPES if _native is None else set(DTYPES) - {name for name, _ in _native.dtypes()})

Array = np.ndarray[Any, Any]
#: An element type, in the forms that NumPy takes.
NumpyType: TypeAlias = "np.dtype[np.generic] | type[np.generic] | str"

#: Element types of NumPy or ml_dtypes; hif8, the fp4 types and s4 use tables.
ARRAY_DTYPES: dict[str, np.dtype[np.generic]] = {
    d.name: np.dtype(getattr(np if hasattr(np, d.array) else ml_dtypes, d.array))
    for d in DTYPES.values()
    if d.array
}

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_INT_NAMES = {t: n for n, t in ARRAY_DTYPES.items() if t.kind in "iu"}


def has_compiled() -> bool:
    """Return True if the compiled module can be imported."""
    return _native is not None


def loops() -> ModuleType:
    """Return the compiled module."""
    if _native is None:
        raise ImportError("missing compiled module pto._native; build it with `make setup`")
    return _native


def _loops_of(*dtypes: str) -> ModuleType | None:
    """Return the compiled module if it has these element types, else None."""
    return _native if _native is not None and (not _NEWER or _NEWER.isdisjoint(dtypes)) else None


@cache
def code_dtype(dtype: str) -> np.dtype[Any]:
    """Return the array type of codes of `dtype`: the unsigned integer of its size, at least one byte."""
    return np.dtype(f"u{max(8, DTYPES[dtype].bits) // 8}")


def decode(dtype: str, codes: Array, to: NumpyType | None = None) -> Array:
    """Return the values of `codes`: float32 (f64: float64), integers, or `to`, a float type that is exact."""
    wide = _WIDE.get(dtype)
    if wide is not None and to is None and _native is not None:
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
    if out.kind == "f" and (fast := _loops_of(dtype)):
        return fast.decode(dtype, codes.ravel(), out.itemsize == 8).reshape(codes.shape)
    if d.is_int and dtype in ARRAY_DTYPES:
        return codes.view(ARRAY_DTYPES[dtype]).astype(out)
    if d.bits <= 8:
        return _values(d)[codes & ((1 << d.bits) - 1)].astype(out)
    return _each(codes, lambda code: encoding.decode(d, code), out)


def encode(dtype: str, values: Array, mode: str = "NONE", saturate: bool = False, nan: str = "max") -> Array:
    """Return the codes of float or integer `values`; see `pto.isa.encoding.encode`."""
    values = np.asarray(values)
    if values.dtype in (_F32, _F64):
        mode = _rounding(dtype, mode, nan)
        if fast := _loops_of(dtype):
            if values.ndim == 1 and values.flags.c_contiguous:
                return fast.encode(dtype, values, mode, saturate, nan)
            flat = np.ascontiguousarray(values).ravel()
            return fast.encode(dtype, flat, mode, saturate, nan).reshape(values.shape)
        return _each(values, lambda x: encoding.encode(dtype, x, mode, saturate, nan), code_dtype(dtype))
    if values.dtype in _INT_NAMES:
        source = _INT_NAMES[values.dtype]
        codes = np.ascontiguousarray(values).view(code_dtype(source))
        return codes if source == dtype else convert(codes, source, dtype, mode, saturate, nan)
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
    codes: Array, src: str, dst: str, mode: str = "NONE", saturate: bool = False, nan: str = "max"
) -> Array:
    """Return the codes in `dst` of the values that `codes` have in `src`; see `pto.isa.encoding.convert`."""
    s, d = DTYPES[src], DTYPES[dst]
    codes = _codes(s, codes)
    mode = _rounding(dst, mode, nan)
    if fast := _loops_of(src, dst):
        saturate = saturate and not encoding.keeps_infinity(s, d)
        return fast.convert(src, dst, codes.ravel(), mode, saturate, nan).reshape(codes.shape)
    return _each(codes, lambda code: encoding.convert(code, s, d, mode, saturate, nan), code_dtype(dst))


def _each(values: Array, one: Callable[[Any], object], out: np.dtype[np.generic]) -> Array:
    """Return an array of a function of every element."""
    return np.array([one(x) for x in values.ravel().tolist()], out).reshape(values.shape)


@np.errstate(invalid="ignore", over="ignore", under="ignore")
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
