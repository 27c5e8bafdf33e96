"""Lane-wise arithmetic against Python's numbers, one lane at a time, for every element type and column."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each
from tests.sampling import examples

from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..rows import assert_codes, numbers
from .cases import VectorCase, plans_of, rows_of, shown, width

ROWS = rows_of("unary", "binary", "vec-scalar")

_CARRY = ("vaddc", "vsubc", "vaddcs", "vsubcs")
Number = float | int


def single(v: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(v))


def wrapped(v: int, dtype: str) -> int:
    """An integer modulo 2**bits, in the range of the type."""
    d = DTYPES[dtype]
    v &= (1 << d.bits) - 1
    return v - (1 << d.bits) if d.kind == "i" and v >> (d.bits - 1) else v


def divided(x: Number, y: Number) -> Number:
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            return 0
        q = abs(x) // abs(y)
        return q if (x < 0) == (y < 0) else -q
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def greatest(x: Number, y: Number) -> Number:
    if isinstance(x, float) and (math.isnan(x) or math.isnan(y)):
        return math.nan
    if x == y == 0 and isinstance(x, float):
        return -0.0 if math.copysign(1, x) == math.copysign(1, y) == -1 else 0.0
    return max(x, y)


def least(x: Number, y: Number) -> Number:
    if isinstance(x, float) and (math.isnan(x) or math.isnan(y)):
        return math.nan
    return -greatest(-x, -y)


def real(function: Callable[[float], float]) -> Callable[[str, float], float]:
    """Return a function of NumPy in float64, with infinities and NaN."""

    def of(dtype: str, x: float) -> float:
        with np.errstate(all="ignore"):
            found = float(function(np.float64(x)))
        return single(found) if dtype == "f16" else found

    return of


def fused(x: float, y: float, z: float) -> Number | Fraction:
    """x * y + z without any rounding."""
    if all(map(math.isfinite, (x, y, z))):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        return exact or x * y + z
    return x * y + z


def shifted_right(dtype: str, x: int, count: int) -> int:
    return x >> min(count, DTYPES[dtype].bits - 1) if DTYPES[dtype].kind == "i" or count < 64 else 0


def code_of(dtype: str, v: int) -> int:
    return v & ((1 << DTYPES[dtype].bits) - 1)


#: What each row computes on the numbers of one lane; integers may leave the range, they are wrapped.
MEANING: dict[str, Callable[..., Any]] = {
    "vabs": lambda t, x: abs(x),
    "vneg": lambda t, x: -x,
    "vexp": real(np.exp),
    "vln": real(np.log),
    "vsqrt": lambda t, x: real(np.sqrt)("f32", x),
    "vrsqrt": lambda t, x: divided(1.0, real(np.sqrt)("f32", x)),
    "vrec": lambda t, x: divided(1.0, x),
    "vrelu": lambda t, x: x if x > 0 else 0.0,
    "vnot": lambda t, x: ~x,
    "vbcnt": lambda t, x: bin(code_of(t, x)).count("1"),
    "vcls": lambda t, x: DTYPES[t].bits - 1 - (~x if x < 0 else x).bit_length(),
    "vmov": lambda t, x: x,
    "vadd": lambda t, x, y: x + y,
    "vsub": lambda t, x, y: x - y,
    "vmul": lambda t, x, y: x * y,
    "vdiv": lambda t, x, y: divided(x, y),
    "vmax": lambda t, x, y: greatest(x, y),
    "vmin": lambda t, x, y: least(x, y),
    "vand": lambda t, x, y: x & y,
    "vor": lambda t, x, y: x | y,
    "vxor": lambda t, x, y: x ^ y,
    "vshl": lambda t, x, y: x << code_of(t, y) if code_of(t, y) < DTYPES[t].bits else 0,
    "vshr": lambda t, x, y: shifted_right(t, x, code_of(t, y)),
    "vmadd": lambda t, x, y, z: fused(x, y, z),
    "vlrelu": lambda t, x, y: x if x >= 0 else y * x,
}
for _name in "add sub mul max min and or xor shl shr".split():
    MEANING[f"v{_name}s"] = MEANING[f"v{_name}"]

#: Rows whose operands are bit patterns, also those of floats.
BITWISE = ("vand", "vor", "vxor", "vands", "vors", "vxors", "vnot")


def expected(name: str, dtype: str, values: list[Number]) -> int:
    """Return the code of one lane, rounded once from the computation of the row."""
    d = DTYPES[dtype]
    found = MEANING[name](dtype, *values)
    if isinstance(found, Fraction):
        return rounded(dtype, found)
    if name in BITWISE:
        return found & ((1 << d.bits) - 1)
    if d.is_float:
        if dtype != "f64" and name not in ("vexp", "vln", "vmadd") and not math.isnan(found):
            found = single(found)
        return encoding.encode(d, found)
    return wrapped(int(found), dtype) & ((1 << d.bits) - 1)


def rounded(dtype: str, exact: Fraction) -> int:
    """The nearest element, ties to even: chosen among the neighbours of a first guess."""
    d = DTYPES[dtype]
    guess = encoding.encode(d, float(exact))
    sign = guess & 1 << (d.bits - 1)
    magnitude = guess ^ sign
    top = encoding.encode(d, math.inf)
    best: list[tuple[Fraction, int, int]] = []
    for code in (magnitude - 1, magnitude, magnitude + 1):
        if 0 <= code < top:
            value = Fraction(encoding.decode(d, code | sign))
            best.append((abs(value - exact), code & 1, code | sign))
    if magnitude >= top - 1:  # infinity stands for the number after the last
        last, before = (Fraction(encoding.decode(d, top - k)) for k in (1, 2))
        best.append((abs((last + (last - before)) * (-1 if sign else 1) - exact), top & 1, top | sign))
    return min(best)[2]


def lane_wise() -> list[Plan]:
    return [made for name in ROWS if name not in _CARRY for made in plans_of(name)]


def inputs(case: VectorCase) -> tuple[list[str], list[list[Number]]]:
    """Fill the operands; the numbers of every lane, operand by operand."""
    row = case.row
    names = [o.name for o in row.operands if "mask" not in o.kinds and o.name in case.args]
    columns: list[list[Number]] = []
    lanes = case.args["r"].lanes
    dtype = case.args["r"].dtype
    for name in names:
        if hasattr(case.args[name], "lanes"):
            codes = case.fill(name)
            if row.name in ("vshr",) and name == "rhs":
                codes = codes % DTYPES[dtype].bits
                case.set(name, codes)
            if row.name == "vshl" and name == "rhs":
                codes = np.where(case.rng.random(lanes) < 0.7, codes % DTYPES[dtype].bits, codes)
                case.set(name, codes)
            if row.name == "vdiv" and name == "rhs" and DTYPES[dtype].is_int:
                codes = np.where(codes == 0, 1, codes)
                case.set(name, codes)
            columns.append(
                list(map(int, codes)) if row.name in BITWISE else numbers(case.args[name].dtype, codes)
            )
        else:
            value: Number = float(case.rng.choice([0.0, -2.5, 1.0, 3e4, -1e-3]))
            if DTYPES[dtype].is_int:
                value = int(case.rng.integers(-100, 100))
                if row.name in ("vshls", "vshrs"):
                    value = abs(value) % DTYPES[dtype].bits
            case.args[name] = value
            d = DTYPES[dtype]
            exact = encoding.decode(d, encoding.encode(d, value))
            columns.append([encoding.encode(d, value) if row.name in BITWISE else exact] * lanes)
    return names, columns


@pytest.mark.parametrize("name", sorted({plan.row.name for plan in lane_wise()}))
def test_lane_by_lane(name: str) -> None:
    each(lane_by_lane, (plan for plan in lane_wise() if plan.row.name == name))


def lane_by_lane(plan: Plan) -> None:
    for seed in range(3):
        case = VectorCase(plan, seed)
        _, columns = inputs(case)
        dtype, lanes = case.args["r"].dtype, case.args["r"].lanes
        on = case.some_lanes("mask", width(dtype)) if "mask" in case.args else np.ones(lanes, bool)
        case.execute()
        want = [expected(plan.row.name, dtype, [c[n] for c in columns]) if on[n] else 0 for n in range(lanes)]
        got = case.get("r")
        assert_codes(dtype, got[None], np.array([want], np.uint64).astype(got.dtype), shown(plan))
        assert not got[~on].any()


@pytest.mark.parametrize("semantics", ["hw", "doc"])
@pytest.mark.parametrize("name", _CARRY)
def test_carry_chain_is_wide_arithmetic(name: str, semantics: str) -> None:
    """Flags chained lane by lane are 64-bit arithmetic, under either polarity."""
    adds = "add" in name
    for plan in plans_of(name):
        case = VectorCase(plan, 1, semantics)
        left, right = case.fill("lhs"), case.fill("rhs")
        on = case.some_lanes("mask")
        flag = "carry" if adds else "borrow"
        inverted = not adds and semantics == "hw"  # the flag says that nothing was borrowed
        flags = np.zeros(64, bool)
        if f"{flag}_in" in case.args:
            flags = case.some_lanes(f"{flag}_in") != inverted
        case.execute()
        for n in range(64):
            x, y, c = int(left[n]), int(right[n]), int(flags[n])
            exact = x + y + c if adds else x - y - c
            out_flag = not 0 <= exact < 2**32
            assert case.get("r")[n] == (exact % 2**32 if on[n] else 0)
            assert case.lanes(flag)[n] == (on[n] and out_flag != inverted)


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_fused_multiply_add_rounds_once(seed: int) -> None:
    """Products near a tie of the sum, where rounding twice would show."""
    plan = next(p for p in plans_of("vmadd", "a5") if "f32" in shown(p))
    case = VectorCase(plan, seed)
    rng = case.rng
    x = (1 + rng.integers(0, 2**12, 64) / 2**12).astype(np.float32)
    y = (1 + rng.integers(0, 2**12, 64) / 2**12).astype(np.float32)
    z = (rng.choice([1.0, 2.0**20, 2.0**-25, -1.0], 64) * (1 + rng.integers(0, 8, 64) / 8)).astype(np.float32)
    for name, v in zip(("acc", "lhs", "rhs"), (x, y, z), strict=True):
        case.set(name, v.view(np.uint32))
    case.on("mask", True)
    case.execute()
    want = [rounded("f32", Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))) for a, b, c in zip(x, y, z, strict=True)]  # fmt: skip
    assert case.get("r").tolist() == want
