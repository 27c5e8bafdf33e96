"""vcvt of every code of up to 16 bits, and of hard codes of wider ones: all pairs, roundings and saturations.

Whole tables go through the function behind the instruction, which takes arrays of any size; `test_convert` has lanes,
masks and parts, and the definition by fractions that checks the oracle here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sampling import EVERY, some

from pto.engine import elements
from pto.engine.memory import array_of
from pto.engine.reference.instr import Instr
from pto.engine.reference.vector.convert import converted
from pto.isa.dtypes import DTYPES

from ..conversions import grid, table, values
from ..rows import assert_codes
from .cases import VectorCase, plans_of
from .test_convert import FLOATS, _dtype, to_narrow
from .test_convert import expected as by_fractions

Array = np.ndarray[Any, Any]

#: Elements of 4 bits go in pairs: `test_convert` has them.
PAIRS = [
    (s, d)
    for s, d in ((_dtype(p, "input"), _dtype(p, "r")) for p in plans_of("vcvt", "a5"))
    if DTYPES[s].bits > 4 and DTYPES[d].bits > 4
]
#: Roundings that a type of 8 bits has.
NARROW = {"f8e4m3": "RAZ", "f8e5m2": "RAZ", "hif8": "A"}
WAYS = [(rnd, sat) for rnd in "RAFCZO" for sat in (False, True)]


def clamps(src: str, dst: str, sat: bool) -> bool:
    """Return True if a conversion holds its results in range, requested or not."""
    if (src, dst) == ("f16", "i32"):
        return True
    if DTYPES[src].is_int:
        return sat and DTYPES[dst].bits < DTYPES[src].bits and DTYPES[dst].is_int
    return sat and (DTYPES[dst].is_int or DTYPES[dst].max_finite < DTYPES[src].max_finite)


def to_integers(src: str, dst: str, rnd: str, sat: bool) -> Array:
    x, bits = values(src), DTYPES[dst].bits
    low, high = DTYPES[dst].int_range
    if src not in FLOATS:
        ends = np.iinfo(x.dtype)
        found = np.clip(x, max(low, int(ends.min)), min(high, int(ends.max))) if sat else x
        return found.astype(np.uint64) & np.uint64(2**bits - 1)
    finite = np.where(np.isfinite(x), x, 0)
    down, rest = np.floor(finite), finite - np.floor(finite)
    odd = np.mod(down, 2) == 1
    up = {
        "R": (rest > 0.5) | ((rest == 0.5) & odd), "A": (rest > 0.5) | ((rest == 0.5) & (finite > 0)),
        "F": rest < 0, "C": rest > 0, "Z": (rest > 0) & (finite < 0), "O": (rest > 0) & ~odd,
    }[rnd]  # fmt: skip
    whole = down + up
    size = np.fmod(np.abs(whole), 2.0**bits).astype(np.uint64)  # exact: a power of two
    wrapped = np.where(whole < 0, np.uint64(0) - size, size) & np.uint64(2**bits - 1)
    if not sat:
        return np.where(x == np.inf, np.uint64(2**bits - 1), np.where(np.isfinite(x), wrapped, np.uint64(0)))
    whole = np.where(np.isfinite(x), whole, np.where(np.isnan(x), 0, x))
    inside = (whole >= float(low)) & (whole < float(high + 1))
    ends = np.where(whole < 0, np.uint64(low % 2**bits), np.uint64(high))
    return np.where(inside, np.where(np.isfinite(x), wrapped, np.uint64(0)), ends)


def to_halves(src: str, dst: str, rnd: str, sat: bool) -> Array:
    """To f16 and bf16: between which two of its numbers each lies, and which of them it becomes."""
    x = values(src).astype(np.float64)  # exact up to 32 bits
    known, _ = grid(DTYPES[dst])  # their codes are 0, 1, 2, ..
    count = known.size
    known = np.append(known, 2 * known[-1] - known[-2])  # where infinity begins
    size = np.where(np.isfinite(x), np.abs(x), 0)
    at = np.minimum(np.searchsorted(known, size, side="right") - 1, count)
    middle = (known[np.minimum(at, count)] + known[np.minimum(at + 1, count)]) / 2
    negative = np.signbit(x)
    up = {
        "R": (size > middle) | ((size == middle) & (at % 2 == 1)), "A": size >= middle, "F": negative,
        "C": ~negative, "Z": size < 0, "O": at % 2 == 0,
    }[rnd]  # fmt: skip
    found = at + (up & (known[at] != size) & (at < count))
    inward = np.isin(rnd, ("Z", "O")) | ((rnd == "F") & ~negative) | ((rnd == "C") & negative)
    found = np.where(found >= count, np.where(inward | sat, count - 1, count), found)
    found = np.where(np.isinf(x), count - 1 if sat else count, found).astype(np.uint64)
    found |= negative.astype(np.uint64) << np.uint64(15)
    nan = 0 if sat else 0x7E00 if dst == "f16" else 0x7FC0
    return np.where(np.isnan(x), np.uint64(nan), found)


def to_words(src: str, rnd: str) -> Array:
    """Convert integers to f32: the first 24 bits, rounded by the rest."""
    x = values(src)
    negative = x < 0
    size = np.where(negative, np.uint64(0) - x.astype(np.uint64), x.astype(np.uint64))
    length = sum((size >> np.uint64(k) != 0).astype(np.uint64) for k in range(64))
    shift = np.maximum(length, np.uint64(24)) - np.uint64(24)
    first, rest = size >> shift, size & ((np.uint64(1) << shift) - np.uint64(1))
    half, odd = np.uint64(1) << (np.maximum(shift, np.uint64(1)) - np.uint64(1)), first % np.uint64(2) == 1
    up = {
        "R": (rest > half) | ((rest == half) & odd), "A": rest >= half, "F": negative, "C": ~negative,
        "Z": rest < 0, "O": ~odd,
    }[rnd]  # fmt: skip
    found = np.ldexp((first + (up & (rest > 0))).astype(np.float64), shift.astype(np.int32))
    return np.where(negative, -found, found).astype(np.float32).view(np.uint32)


def oracle(src: str, dst: str, rnd: str, sat: bool) -> Array:
    sat = clamps(src, dst, sat)
    code = elements.code_dtype(dst)
    if dst in NARROW:
        return np.array([to_narrow(dst, x, rnd, sat) for x in values(src).ravel().tolist()], code)
    if dst in ("f16", "bf16"):
        return to_halves(src, dst, rnd, sat).astype(code)
    if dst != "f32":
        return to_integers(src, dst, rnd, sat).astype(code)
    if DTYPES[src].bits <= 16:
        return values(src).astype(np.float32).view(np.uint32)  # exact
    return to_words(src, rnd)


@pytest.mark.parametrize(
    ("src", "dst"), dict.fromkeys(some(PAIRS, 4, by=lambda p: p[0]) + some(PAIRS, 4, by=lambda p: p[1]))
)
def test_every_code(src: str, dst: str) -> None:
    codes = table(src).ravel().view(array_of(src))
    case = VectorCase(
        next(p for p in plans_of("vcvt", "a5") if (_dtype(p, "input"), _dtype(p, "r")) == (src, dst))
    )
    i = Instr(case.op, case.args, case.core, "V")
    for rnd, sat in WAYS:
        if rnd not in NARROW.get(dst, rnd):
            continue
        want = oracle(src, dst, rnd, sat).reshape(1, -1)
        for parts in (
            1,
            16,
        ):  # all together, then each among its neighbours: large ones change the way of small ones
            with np.errstate(all="ignore"):
                found = [converted(i, part, src, dst, rnd, sat) for part in np.array_split(codes, parts)]
            got = np.concatenate([f.view(elements.code_dtype(dst)) for f in found]).reshape(1, -1)
            assert_codes(dst, got, want, (src, dst, rnd, sat, parts))


@pytest.mark.parametrize("src", dict.fromkeys(s for s, _ in PAIRS))
def test_the_oracle_is_the_definition(src: str) -> None:
    """All of 8 bits in `make matrix`; else a code out of many, others for each pair and way."""
    x = values(src).ravel().tolist()
    step = 1 if len(x) <= 256 and EVERY else len(x) // 40
    for k, dst in enumerate(d for s, d in PAIRS if s == src):
        for m, (rnd, sat) in enumerate(WAYS):
            if dst in NARROW:  # there the definition is the oracle
                continue
            want = oracle(src, dst, rnd, sat).ravel()
            for at in range((31 * k + 7 * m) % step, len(x), step):
                found = by_fractions(src, dst, x[at], rnd, sat)
                assert want[at] == found or x[at] != x[at], (dst, rnd, sat, x[at])
