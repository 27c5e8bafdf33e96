"""NumPy versions of compiled loops of the reference engine, for tests that compare the two bit by bit.

Functions have the names and the parameters of `pto.engine.elements` and of modules of `pto.engine.reference`.
`pack4` and `unpack4` go to and from storage with two 4-bit codes per byte, low nibble first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pto.engine.elements import ARRAY_DTYPES, Array, code_dtype, round_integral
from pto.engine.reference.matmul import single_or_none, to_odd
from pto.engine.reference.sort import BLOCK
from pto.isa import encoding
from pto.isa.dtypes import DTYPES, DType

_INTEGERS = {t: n for n, t in ARRAY_DTYPES.items() if t.kind in "iu"}
_F32_MAX = float(np.finfo(np.float32).max)
#: Rounding to f32 drops 29 bits of a double. At a midpoint, these bits shifted to the top are `_MIDPOINT`.
_SHIFT = 64 - 29
_MIDPOINT = np.iinfo(np.int64).min


_quiet = np.errstate(
    invalid="ignore", over="ignore", under="ignore"
)  # NaN and overflow are ordinary values here


# -- element codes ------------------------------------------------------------------------------------------


def decode(dtype: str, codes: Array, to: Any = None) -> Array:
    d = DTYPES[dtype]
    if to is not None:
        out = np.dtype(to)
    elif d.is_float:
        out = np.dtype(np.float64 if d.bits == 64 else np.float32)
    else:
        out = np.dtype(f"{d.kind}{max(8, d.bits) // 8}")
    return _decode(d, np.ascontiguousarray(codes), out)


def encode(dtype: str, values: Array, mode: str = "NONE", saturate: bool = False, nan: str = "max") -> Array:
    values = np.asarray(values)
    if values.dtype.kind == "f":
        rounding = encoding.rounding(DTYPES[dtype], mode)
        return _encode(DTYPES[dtype], values.astype(np.float64), rounding, saturate, nan)
    source = _INTEGERS[values.dtype]
    codes = np.ascontiguousarray(values).view(code_dtype(source))
    return codes if source == dtype else convert(codes, source, dtype, mode, saturate, nan)


def convert(
    codes: Array, src: str, dst: str, mode: str = "NONE", saturate: bool = False, nan: str = "max"
) -> Array:
    s, d = DTYPES[src], DTYPES[dst]
    return _convert(np.ascontiguousarray(codes), s, d, encoding.rounding(d, mode), saturate, nan)


def pack4(codes: Array) -> Array:
    flat = np.ascontiguousarray(codes, np.uint8).ravel()
    nibbles = np.zeros(flat.size + flat.size % 2, np.uint8)
    nibbles[: flat.size] = flat & 0xF
    return nibbles[0::2] | nibbles[1::2] << 4


def unpack4(data: Array, count: int) -> Array:
    flat = np.ascontiguousarray(data, np.uint8).ravel()
    return np.stack([flat & 0xF, flat >> 4], axis=-1).ravel()[:count]


@cache
def _values(d: DType) -> Array:
    """Return the value of every code of a small type."""
    found = [encoding.decode(d, c) for c in range(1 << d.bits)]
    return np.array(found, np.float32 if d.is_float else f"{d.kind}1")


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
        return _int_to_int(s, d, decode(s.name, codes), saturate)
    if s.is_int and s.bits == 64:
        if d.name == "f64" and mode != "RINT":  # rare: scalars only, and no NumPy cast rounds that way
            exact = [encoding.convert(int(c), s, d, mode, saturate) for c in codes.ravel()]
            return np.array(exact, np.uint64).reshape(codes.shape)
        values = decode(s.name, codes)
        wide = values.astype(np.float64) if d.name == "f64" else _round_to_odd(values)
    else:
        wide = decode(s.name, codes, np.float64)
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


# -- products, folds, random words, order of records --------------------------------------------------------


def fused_dot(a: Array, b: Array) -> Array:
    """Return the f32 results of acc = fma(a[i, k], b[k, j], acc), with one rank-1 update per k."""
    if a.shape[0] > b.shape[1]:
        return fused_dot(b.T, a.T).T  # the longer side innermost: fewer and longer inner loops
    span = _Span(a, b)
    return _chain_single(a, b) if span.single else _chain_double(a, b, span.deep)


def _short(x: Array) -> bool:
    """Return whether all are f32 numbers of at most 12 significant bits, so that products have 24."""
    single = single_or_none(x)
    return single is not None and not int(np.bitwise_or.reduce(single.view(np.uint32), axis=None)) & 0xFFF


def _chain_single(a: Array, b: Array) -> Array:
    columns, rows = np.ascontiguousarray(a.T, np.float32), np.ascontiguousarray(b, np.float32)
    acc = np.zeros((a.shape[0], b.shape[1]), np.float32)
    term = np.empty_like(acc)
    for column, row in zip(columns, rows, strict=True):
        np.einsum("i,j->ij", column, row, out=term)
        np.add(acc, term, out=acc)
    return acc


def _chain_double(a: Array, b: Array, deep: bool) -> Array:
    """Compute products and sums in double, each sum rounded to f32. Rounding twice is wrong only if the
    double is a midpoint of f32 and was itself rounded: these sums are made odd first. If `deep`, all rounded
    sums are made odd, because denormals have other midpoints."""
    columns, rows = np.ascontiguousarray(a.T, np.float64), np.ascontiguousarray(b, np.float64)
    acc = np.zeros((a.shape[0], b.shape[1]))
    total = np.empty_like(acc)
    bits = total.view(np.int64)
    short = np.zeros(acc.shape, np.float32)
    dropped = np.empty(acc.shape, np.int64)
    for column, row in zip(columns, rows, strict=True):
        if deep:
            term = np.multiply.outer(column, row)  # unlike einsum, it keeps the sign of a zero
            total[...] = to_odd(acc + term, acc, term)
        else:
            np.einsum("i,j->ij", column, row, out=total)
            np.add(total, acc, out=total)
            if np.left_shift(bits, _SHIFT, out=dropped).min(initial=0) == _MIDPOINT:
                i, j = np.nonzero(dropped == _MIDPOINT)
                total[i, j] = to_odd(total[i, j], acc[i, j], column[i] * row[j])
        short[...] = total
        acc[...] = short
    return short


class _Span:
    """The range of the products of two matrices. `single`: all are exact in f32, so an f32 product and an f32
    sum equal a fused step. `deep`: some have bits below the denormals of f32, where sums may vanish."""

    __slots__ = ("deep", "single")

    def __init__(self, a: Array, b: Array) -> None:
        low, high, short = 0, 1.0, True
        for x in (a, b):
            size = np.abs(x)
            low += int(np.frexp(size.min(initial=1.0, where=size > 0))[1]) - 1
            high *= float(size.max(initial=0.0))
            short = short and _short(x)
        self.single = short and low - 22 >= -149 and high <= _F32_MAX
        self.deep = low - 46 < -149


def fold_columns(x: Array, step: np.ufunc, steps: np.dtype[Any]) -> Array:
    """Fold the columns of a matrix from the first row to the last, with every step rounded to `steps`."""
    return step.accumulate(x.astype(steps, copy=False), axis=0, dtype=steps)[-1]


def philox(start: int, ahead: Array, keys: tuple[int, int], rounds: int) -> Array:
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    multipliers = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
    low = np.uint64(start & (1 << 64) - 1) + ahead
    high = np.uint64(start >> 64) + (low < ahead).astype(np.uint64)
    # Words 0 and 2 are multiplied, words 1 and 3 are not; all have 64 bits for the products.
    even = np.stack([low & mask, high & mask])
    odd = np.stack([low >> half, high >> half])
    for n in range(rounds):
        steps = zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)
        key = np.array([[(k + n * step) & 0xFFFFFFFF] for k, step in steps], np.uint64)
        crossed = (even * multipliers)[::-1]
        even, odd = (crossed >> half) ^ odd ^ key, crossed & mask
    return np.stack([even[0], odd[0], even[1], odd[1]]).astype(np.uint32)


def block_order(rank: Array, index: Array) -> Array:
    rows, cols = rank.shape
    records = rank.astype(np.uint64) << np.uint64(32) | index
    whole = cols // BLOCK * BLOCK
    order = np.empty((rows, cols), np.intp)
    for start, stop, width in ((0, whole, BLOCK), (whole, cols, cols - whole)):
        if start < stop:
            part = records[:, start:stop].reshape(rows, -1, width)
            found = np.argsort(part, axis=2, kind="stable")
            found += np.arange(start, stop, width)[:, None]
            order[:, start:stop] = found.reshape(rows, -1)
    order += np.arange(0, rows * cols, cols)[:, None]
    return order
