"""Results of tcvt for single codes and for whole tables of them: the oracles of the tests of both engines.

`converted` is the definition, by the exact functions of pto.isa.encoding. `expected` is a formulation of its own on
arrays: to a float type by a search for the nearest one of all numbers of the type, to an integer type by the
remainder of the floor. `test_conversion_codes` compares them.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np

from pto import isa
from pto.engine import elements
from pto.isa import encoding
from pto.isa.dtypes import DTYPES, DType

Array = np.ndarray[Any, Any]
#: Codes that one row of a tile holds.
LINE = 256
ROW: Any = isa.row("tcvt")
PAIRS: list[tuple[str, str, str]] = [(c, *pair) for c in ROW.isas for pair in ROW.combos[0].legal[c]]
SATURATION = (None, "ON", "OFF")
#: Pairs that do not saturate by default on hardware.
WRAP = ("f16->u8", "f16->i8", "f32->i16", "f16->i16", "i64->i32", "i32->i16")
#: What comes after the largest number of a type, where that begins a binade.
_NEXT = {"hif8": 49152.0}


def saturates(column: str, src: str, dst: str, asked: str | None) -> bool:
    wraps = f"{src}->{dst}" in WRAP
    if column == "cpu":
        return asked == "ON"
    if asked is None:
        return not wraps
    return asked == "ON" or (column == "a2a3" and not wraps)


def converted(src: str, dst: str, code: int, mode: str, saturate: bool, column: str) -> int:
    """Convert one element by tcvt, by the exact functions."""
    s, d = DTYPES[src], DTYPES[dst]
    x = encoding.decode(s, code)
    if src == dst:
        if src != "f32" or mode == "NONE" or not math.isfinite(x):
            return code if src != "f32" or mode == "NONE" else encoding.encode(d, x)
        return encoding.encode(d, math.copysign(encoding.round_integral(x, mode), x))
    if d.is_int:
        if s.is_float and not saturate and d.bits < 32 and column != "cpu" and abs(x) >= 2.0**31:
            return (2**31 - 1 if x > 0 else -(2**31)) & ((1 << d.bits) - 1)
        return encoding.encode(d, x, mode, saturate)
    nearest = "ROUND" if dst == "hif8" else "RINT"  # ties go away from zero to hif8, to even elsewhere
    if s.is_int:
        return encoding.encode(d, float(x), nearest, saturate)
    narrower = d.max_finite < s.max_finite or not d.inf
    if column != "cpu" and d.inf and not math.isfinite(x):
        return encoding.encode(d, x)  # the hardware clamps finite values only
    if math.isnan(x) and saturate and narrower and dst in ("f16", "bf16"):
        return encoding.encode(d, d.max_finite)
    return encoding.encode(d, x, nearest, saturate and narrower)


# -- tables of codes ---------------------------------------------------------------------------------------


@cache
def table(src: str) -> Array:
    """Every code of a type of up to 16 bits, else those worth converting, in whole lines."""
    bits = DTYPES[src].bits
    if bits <= 16:
        codes = np.arange(1 << bits, dtype=np.uint64)
    else:
        made = _hard_floats() if src == "f32" else _hard_integers(bits)
        codes = np.array(sorted({c & ((1 << bits) - 1) for c in made}), np.uint64)
    return np.resize(codes, -(-codes.size // LINE) * LINE).astype(elements.code_dtype(src)).reshape(-1, LINE)


def _hard_floats() -> list[int]:
    """Codes of f32: all powers of two, the numbers and the middles of the other types (some of those of 16 bits), ends
    of ranges and halves; and the neighbours of all of these."""
    found = [2.0**e for e in range(-149, 128)]
    found += [k / 4 for k in range(1100)]
    for d in DTYPES.values():
        if d.is_int:
            found += [float(edge + half) for edge in d.int_range for half in (0, 0.5, 1, 1.5)]
        elif d.bits <= 16:
            known, _ = grid(d)
            every = known[:: 1 if d.bits < 16 else 61]
            found += [*every, *((every[1:] + every[:-1]) / 2), *known[-3:], d.max_finite + last_step(d) / 2]
    with np.errstate(over="ignore"):
        codes = np.abs(np.array(found)).astype(np.float32).view(np.uint32).astype(np.int64)
    special = [0, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7F80FFFF, 0x7F810000, 0x7FC00000, 0x7FFFFFFF]
    near = {max(0, int(c) + k) for c in (*codes, *special) for k in (-1, 0, 1)}
    return [c | sign for c in near for sign in (0, 1 << 31) if c < 1 << 31]


def _hard_integers(bits: int) -> list[int]:
    """Powers of two, and middles between numbers of float types, with their neighbours and their negatives."""
    found = [0]
    for k, lost in itertools.product(range(bits), range(1, 55)):
        for top in (0, 1, 3) if lost <= k else ():
            found.append((1 << k) + (top << (k - lost)))
    return [s * v + e for v in found for s in (1, -1) for e in (-1, 0, 1)]


# -- numbers -----------------------------------------------------------------------------------------------


@cache
def grid(d: DType) -> tuple[Array, Array]:
    """The numbers from 0 on that a float type has, in rising order, and their codes."""
    known = sorted((encoding.decode(d, c), c) for c in range(1 << (d.bits - 1)))
    finite = [(v, c) for v, c in known if math.isfinite(v)]
    return np.array([v for v, _ in finite]), np.array([c for _, c in finite], np.uint64)


def last_step(d: DType) -> float:
    known, _ = grid(d)
    return float(_NEXT.get(d.name, 2 * known[-1] - known[-2]) - known[-1])


@cache
def values(src: str) -> Array:
    """The numbers of a table: float64, which is exact, or 64-bit integers."""
    codes, d = table(src), DTYPES[src]
    if d.is_float:
        if src == "f32":
            with np.errstate(invalid="ignore"):  # NaN of all kinds
                return codes.view(np.float32).astype(np.float64)
        return np.array([encoding.decode(d, c) for c in range(1 << d.bits)])[codes]
    wide = codes.astype(np.uint64)
    if d.kind == "u":
        return wide
    shift = np.uint64(64 - d.bits)
    return (wide << shift).view(np.int64) >> shift.astype(np.int64)


def whole(x: Array, mode: str) -> Array:
    """Numbers rounded to integral ones."""
    finite = np.where(np.isfinite(x), x, 0)
    low = np.floor(finite)
    rest = finite - low
    odd = np.mod(low, 2) == 1
    up = {
        "FLOOR": rest < 0, "CEIL": rest > 0, "TRUNC": (rest > 0) & (x < 0), "NONE": (rest > 0) & (x < 0),
        "RINT": (rest > 0.5) | ((rest == 0.5) & odd), "ODD": (rest > 0.5) | ((rest == 0.5) & ~odd),
        "ROUND": (rest > 0.5) | ((rest == 0.5) & (x > 0)),
    }[mode]  # fmt: skip
    return np.where(np.isfinite(x), low + up, x)


# -- conversions -------------------------------------------------------------------------------------------


def expected(column: str, src: str, dst: str, mode: str, asked: str | None) -> Array:
    """The codes that a table of `src` becomes, where every NaN is the one that encoding makes."""
    s, d = DTYPES[src], DTYPES[dst]
    saturate = saturates(column, src, dst, asked)
    if src == dst and (src != "f32" or mode == "NONE"):
        return table(src)
    if d.is_int:
        return _to_int(src, dst, mode if s.is_float else "", saturate, column != "cpu")
    if src == dst:
        x = values(src)
        return _nearest(d, np.copysign(whole(x, mode), x))
    narrows = s.is_float and (d.max_finite < s.max_finite or not d.inf)
    keeps_specials = column != "cpu" and d.inf  # the hardware clamps finite values only
    return _to_float(src, dst, saturate and (s.is_int or narrows), keeps_specials)


@cache
def _to_int(src: str, dst: str, mode: str, saturate: bool, clamped: bool) -> Array:
    d, x = DTYPES[dst], values(src)
    low, high = d.int_range
    if not mode:
        if saturate:
            ends = np.iinfo(x.dtype)
            x = np.clip(x, max(low, int(ends.min)), min(high, int(ends.max)))
        return _masked(d, x.view(np.uint64))
    x = whole(x, mode)
    if saturate:
        x = np.where(np.isnan(x), np.inf, x)
        inside = (x >= float(low)) & (x < float(high + 1))
        return _masked(
            d, np.where(inside, _low_bits(x), np.where(x < 0, np.uint64(low % 2**64), np.uint64(high)))
        )
    if clamped and d.bits < 32:  # to an i32, of which the low bits stay
        x = np.where(np.isnan(x), 0, np.clip(x, -(2.0**31), 2.0**31 - 1))
    via = 2.0**63 if dst in ("u8", "u32", "i64", "u64") else 2.0**31
    inside = (x >= -via) & (x < (2.0**64 if dst == "u64" else via))
    beyond = np.full(x.shape, 2**64 - int(via), np.uint64)
    if dst == "u64":
        beyond[x >= 2.0**64] = 0
    return _masked(d, np.where(inside, _low_bits(x), beyond))


def _low_bits(x: Array) -> Array:
    """Integral numbers that 64 bits hold, signed or not; others become 0."""
    upper = np.where((x >= 2.0**63) & (x < 2.0**64), x, 0).astype(np.uint64)
    return upper + np.where((x >= -(2.0**63)) & (x < 2.0**63), x, 0).astype(np.int64).view(np.uint64)


def _masked(d: DType, x: Array) -> Array:
    return (x.astype(np.uint64) & np.uint64((1 << d.bits) - 1)).astype(elements.code_dtype(d.name))


@cache
def _to_float(src: str, dst: str, saturate: bool, keeps_specials: bool) -> Array:
    d, x = DTYPES[dst], values(src)
    if DTYPES[src].is_int:
        x = x.astype(np.float64)
    if saturate:
        clamps = np.isfinite(x) if keeps_specials else ~np.isnan(x)
        x = np.where(clamps, np.clip(x, -d.max_finite, d.max_finite), x)
        if dst in ("f16", "bf16") and not keeps_specials:  # the clamp of the simulator
            x = np.where(np.isnan(x), d.max_finite, x)
    return _nearest(d, x)


def _nearest(d: DType, x: Array) -> Array:
    """Codes of the nearest numbers: ties to even, to hif8 away from zero; beyond the largest to infinity, else to NaN,
    else to the largest."""
    code = elements.code_dtype(d.name)
    sign = np.signbit(x).astype(np.uint64) << np.uint64(d.bits - 1)
    if d.name == "f32":
        with np.errstate(over="ignore"):
            found = x.astype(np.float32).view(np.uint32) & np.uint32(0x7FFFFFFF)
    else:
        known, codes = grid(d)
        size = np.where(np.isnan(x), 0, np.abs(x))
        middles = np.append((known[1:] + known[:-1]) / 2, known[-1] + last_step(d) / 2)
        at = np.searchsorted(middles, size)  # the lower one of a tie
        tie = middles[np.minimum(at, known.size - 1)] == size
        at = at + (tie & ((at % 2 == 1) | (d.name == "hif8")))
        if d.inf or d.nan:
            codes = np.append(codes, encoding.INF_CODES.get(d.name, encoding.NAN_CODES[d.name]))
        found = codes[np.minimum(at, codes.size - 1)]
        if d.name == "hif8":
            sign = np.where(found == 0, np.uint64(0), sign)
        elif d.nan and not d.inf:
            sign = np.where(found == encoding.NAN_CODES[d.name], np.uint64(0), sign)
    missing = encoding.NAN_CODES[d.name] if d.nan else encoding.encode(d, d.max_finite)
    return np.where(np.isnan(x), np.uint64(missing), found.astype(np.uint64) | sign).astype(code)
