"""vcvt: conversions of lanes to other element types.

A conversion that changes the width works on one lane of each group of lanes that share the wider element:
`part` names it. Rounding `O` is to odd in the strict sense: an inexact number gets the neighbour whose last
bit is 1, even if the other one is nearer. (`ODD` of the tile conversions is to nearest, with ties to odd.) In
saturating conversions, infinities become the largest number, and NaN becomes 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....isa.dtypes import DTYPES
from ... import elements
from ...elements import Array
from ..instr import Instr
from ..registry import executor
from .lanes import ALL, WIDTH, active, bits, full, put_raw, raw, values, width

#: The names of the roundings in `elements`; this module implements O.
MODES = {"R": "RINT", "A": "ROUND", "F": "FLOOR", "C": "CEIL", "Z": "TRUNC", "O": "O"}
#: The lane of a group for each part.
PARTS = {"EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}

_INFINITY = np.array(np.inf, np.float32)
_ONES = np.array(2**64 - 1, np.uint64)


def mode(name: str) -> str:
    """Return the rounding of an attribute; ROUND_x is x."""
    return MODES[name.removeprefix("ROUND_")]


@lru_cache
def saturates(src: str, dst: str) -> bool | None:
    """Return whether a pair of types saturates: always, never, or (None) if `sat` says so."""
    s, d = DTYPES[src], DTYPES[dst]
    if (src, dst) == ("f16", "i32"):
        return True  # only infinities and NaN do not fit
    if s.is_int and d.is_int:
        return None if d.bits < s.bits else False
    if s.is_int:
        return False  # every integer is in the range of the floats it can become
    return None if d.is_int or d.max_finite < s.max_finite else False


@executor("convert lanes")
def convert(i: Instr) -> None:
    src, dst = (value.type.elem for value in (i.op.operands[0], i.op.results[0]))  # type: ignore[attr-defined]
    if src.pairs:
        _from_pairs(i, str(src.dtype))
        return
    if dst.pairs:
        _to_pairs(i, str(dst.dtype))
        return
    size, to = width(i, "input"), width(i, "r")
    on, part = active(i, "mask", size), PARTS.get(i.attr("part"), 0)
    source = raw(i, "input")
    if to > size:
        source = source[part :: to // size]
        on = ALL[to] if full(on) else on[part :: to // size]
    codes = converted(i, source, i.dtype("input"), i.dtype("r"), i.attr("rnd"), i.attr("sat") == "SAT")
    if to >= size:
        put_raw(i, "r", codes, on)
        return
    spread = np.zeros(i.args["r"].lanes, codes.dtype)
    spread[part :: size // to] = codes if full(on) else np.where(on, codes, spread[:1])
    put_raw(i, "r", spread)


def _from_pairs(i: Instr, src: str) -> None:
    """Convert from pairs: every fourth byte is two lanes, with the low half first."""
    part = PARTS[i.attr("part")]
    found = bits(i, "input")[part::4]
    codes = np.stack((found & 0xF, found >> 4), 1).reshape(-1)
    on = np.repeat(active(i, "mask", 1)[part::4], 2)
    put_raw(i, "r", i.encoded(elements.decode(src, codes), i.dtype("r")), on)


def _to_pairs(i: Instr, dst: str) -> None:
    """Convert to pairs: two lanes become every fourth byte; always saturated."""
    x = values(i, "input")
    x = np.where(np.isnan(x), x.dtype.type(0), x)
    rounding = mode(i.attr("rnd"))
    codes = _odd_codes(x, dst, True) if rounding == "O" else elements.encode(dst, x, rounding, True)
    pair = codes[::2] | codes[1::2] << 4
    spread = np.zeros(WIDTH, np.uint8)
    spread[PARTS[i.attr("part")] :: 4] = np.where(active(i, "mask", 2)[::2], pair, 0)
    put_raw(i, "r", spread)


def converted(i: Instr, source: Array, src: str, dst: str, rnd: str, sat: bool) -> Array:
    """Convert elements from `raw` to elements of another type."""
    x = i.decoded(src, source)
    clamp = saturates(src, dst)
    saturate = sat if clamp is None else clamp
    rounding = mode(rnd)
    if DTYPES[dst].is_float:
        if saturate and np.count_nonzero(lost := np.isnan(x)):
            x = np.where(lost, np.zeros(1, x.dtype), x)
        if not i.exact:
            limit = DTYPES[dst].max_finite if saturate else np.inf
            return np.clip(x.astype(np.float64, copy=False), -limit, limit)
        return _to_odd(x, dst, saturate) if rounding == "O" else i.encoded(x, dst, rounding, saturate)
    if x.dtype.kind != "f":
        return i.encoded(x, dst, "TRUNC", saturate, "zero")
    if rounding == "O":
        x, rounding = _odd(x), "TRUNC"
    if saturate:
        return i.encoded(x, dst, rounding, True, "zero")
    return i.encoded(_low_bits(x, rounding, DTYPES[dst].bits), dst)


def _to_odd(x: Array, dst: str, saturate: bool) -> Array:
    """Truncate numbers towards zero, and set the last bit of inexact ones. The largest finite number is odd,
    so only infinities overflow."""
    return _odd_codes(x, dst, saturate).view(elements.ARRAY_DTYPES[dst])


def _odd_codes(x: Array, dst: str, saturate: bool) -> Array:
    codes = elements.encode(dst, x, "TRUNC", saturate)
    kept = elements.decode(dst, codes)
    lost = (kept.astype(x.dtype) if x.dtype.kind in "iu" else kept) != x
    return (codes | (lost & np.isfinite(x))).astype(codes.dtype)


def _odd(x: Array) -> Array:
    """Replace numbers that are not integral by their odd neighbours."""
    whole = np.trunc(x)
    return np.where((whole != x) & (np.fmod(whole, 2) == 0), whole + np.copysign(1, x), whole)


def _low_bits(x: Array, rounding: str, bits: int) -> Array:
    """Round numbers to integral ones, modulo 2**bits. NaN and -inf give 0; +inf gives a number with all bits
    set.
    """
    if x.dtype == np.float32 and bits <= 32:
        # numbers outside i64 become its least number; the low 32 bits of such a large f32 are 0, too
        found = elements.encode("i64", x, rounding)
        infinite = x == _INFINITY
        if np.count_nonzero(infinite):
            np.copyto(found, _ONES, where=infinite)
        return found
    whole = elements.round_integral(x, rounding)
    if np.count_nonzero(np.abs(whole) < 2.0**62) == whole.size:
        return whole.astype(np.int64)
    rest = np.fmod(np.abs(whole), 2.0**bits)
    found = np.where(np.isnan(rest), 0, rest).astype(np.uint64)
    found = np.where(whole < 0, np.negative(found), found)
    return np.where(whole == np.inf, np.uint64(2**bits - 1), found)
