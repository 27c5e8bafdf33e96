"""Conversions against exact fractions, one lane at a time: every pair and part; `test_convert_codes` has every code,
rounding and saturation."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..conversions import grid, last_step
from ..rows import Case, Doubles, assert_codes, every_plan, numbers
from .cases import VectorCase, over, plans_of, shown, width

ROWS = ("vcvt", "vtrc")

Array = np.ndarray[Any, Any]
Number = float | int


def away(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2)) if x >= 0 else math.ceil(x - Fraction(1, 2))


def odd(x: Fraction) -> int:
    """The integer itself, else of its two neighbours the odd one."""
    low = math.floor(x)
    return low if low == x or low % 2 else low + 1


ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "R": round, "A": away, "F": math.floor, "C": math.ceil, "Z": math.trunc, "O": odd,
}  # fmt: skip
#: Mantissa bits, smallest exponent and largest exponent of the float types.
FLOATS = {"f32": (23, -126, 127), "f16": (10, -14, 15), "bf16": (7, -126, 127)}


def float_code(dtype: str, value: float) -> int:
    """Code of a number that the type has."""
    if dtype == "f16":
        return int.from_bytes(struct.pack("<e", value), "little")
    code = int.from_bytes(struct.pack("<f", value), "little")
    return code if dtype == "f32" else code >> 16


def to_float(dtype: str, x: Number, rnd: str, sat: bool) -> int:
    """A number rounded to the units of its binade, then checked against the range."""
    mantissa, low, high = FLOATS[dtype]
    largest = float((2 - Fraction(1, 2**mantissa)) * Fraction(2) ** high)
    if math.isnan(x):
        return float_code(dtype, 0.0 if sat else math.nan)
    if math.isinf(x):
        return float_code(dtype, math.copysign(largest if sat else math.inf, x))
    exact = Fraction(x)
    exponent = max(low, abs(exact.numerator).bit_length() - exact.denominator.bit_length())
    if abs(exact) < Fraction(2) ** exponent:
        exponent = max(low, exponent - 1)
    unit = Fraction(2) ** (exponent - mantissa)
    found = abs(float(ROUNDINGS[rnd](exact / unit) * unit))
    if found > largest:
        inward = rnd in "ZO" or (rnd == "F" and x > 0) or (rnd == "C" and x < 0)
        found = largest if sat or inward else math.inf
    negative = x < 0 or (isinstance(x, float) and math.copysign(1, x) < 0)
    return float_code(dtype, -found if negative else found)


def to_narrow(dtype: str, x: float, rnd: str, sat: bool) -> int:
    """Between which two of the numbers of a type of up to 8 bits a number lies, and which of them it becomes."""
    known, codes = grid(DTYPES[dtype])
    beyond = encoding.INF_CODES.get(dtype, encoding.NAN_CODES.get(dtype, 0))
    sign = int(math.copysign(1, x) < 0) << (DTYPES[dtype].bits - 1)
    if math.isnan(x):
        return 0 if sat else encoding.NAN_CODES[dtype]
    if math.isinf(x):
        return (int(codes[-1]) if sat else beyond) | sign
    size, at = abs(x), int(np.searchsorted(known, abs(x), side="right")) - 1
    low = known[at]
    high = known[at + 1] if at + 1 < known.size else low + last_step(DTYPES[dtype])
    above, below = size - low, high - size
    up = {
        "R": above > below or (above == below and at % 2 == 1), "A": above >= below, "Z": False, "F": sign != 0,
        "C": sign == 0,
    }[rnd]  # fmt: skip
    at += int(up and size != low)
    if at == known.size:
        return (int(codes[-1]) if sat else beyond) | sign
    found = int(codes[at])
    return found if dtype == "hif8" and found == 0 else found | sign


def to_int(dtype: str, x: Number, rnd: str, sat: bool) -> int:
    bits = DTYPES[dtype].bits
    low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not math.isfinite(x):
        ends = (high, low % 2**bits) if sat else (2**bits - 1, 0)
        return 0 if math.isnan(x) else ends[x < 0]
    whole = ROUNDINGS[rnd](Fraction(x))
    return (min(max(whole, low), high) if sat else whole) % 2**bits


def expected(src: str, dst: str, x: Number, rnd: str, sat: bool) -> int:
    if DTYPES[dst].is_float and DTYPES[dst].bits <= 8:
        return to_narrow(dst, float(x), rnd, sat or DTYPES[dst].bits == 4)
    if dst in FLOATS:
        narrows = (src, dst) in {("f32", "f16"), ("f32", "bf16"), ("bf16", "f16")}
        return to_float(dst, x, rnd, sat and narrows)
    if src in FLOATS:
        return to_int(dst, x, rnd, sat or (src, dst) == ("f16", "i32"))
    return to_int(dst, x, rnd, sat and DTYPES[dst].bits < DTYPES[src].bits)


def codes_of(case: VectorCase, dst: str) -> Array:
    """Contents of the input: special values, any bits, ties, and numbers around the range of the result."""
    src = case.args["input"].dtype
    codes = case.fill("input", 0.6)
    if src not in FLOATS:
        return codes
    rng = case.rng
    limit = 2.0 ** DTYPES[dst].bits if dst not in FLOATS else 64.0
    some = np.round(rng.uniform(-limit, limit, codes.size) * 4) / 4
    some = np.where(rng.random(codes.size) < 0.5, np.round(rng.uniform(-40, 40, codes.size) * 4) / 4, some)
    near = np.array([float_code("f32", float(np.float32(v))) for v in some], np.uint32)
    if src == "f32":
        near = np.where(rng.random(codes.size) < 0.5, near, codes & 0xFFFFF000)  # ties of the narrower types
    elif src == "bf16":
        near = near >> 16
    else:
        with np.errstate(over="ignore"):
            near = near.view(np.float32).astype(np.float16).view(np.uint16)
    codes = np.where(rng.random(codes.size) < 0.5, near.astype(codes.dtype), codes)
    case.set("input", codes)
    return codes


def check(plan: Plan, seed: int) -> None:
    """Run a plan and hold every lane of the result against the formula of its shape."""
    attrs = {name: a.value for name, a in plan.attrs.items()}
    rnd = str(attrs.get("rnd", "R")).removeprefix("ROUND_")
    sat, part = attrs.get("sat") == "SAT", attrs.get("part")
    case = VectorCase(plan, seed)
    src, dst = _dtype(plan, "input"), _dtype(plan, "r")
    if DTYPES[src].bits == 4 or DTYPES[dst].bits == 4:
        check_pairs(case, src, dst, rnd, int(str(part)[1]))
        return
    values = numbers(src, codes_of(case, dst))
    on = case.some_lanes("mask", width(src)) if seed else case.on("mask", True, width(src))
    case.execute()
    ratio = max(width(src), width(dst)) // min(width(src), width(dst))
    k = {None: 0, "EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}[part]
    want = [0] * case.args["r"].lanes
    for n, x in enumerate(values):
        if not on[n]:
            continue
        if width(dst) <= width(src):
            want[ratio * n + k] = expected(src, dst, x, rnd, sat)
        elif n % ratio == k:
            want[n // ratio] = expected(src, dst, x, rnd, sat)
    got = case.get("r")
    assert_codes(dst, got[None], np.array([want], np.uint64).astype(got.dtype), shown(plan))


def check_pairs(case: VectorCase, src: str, dst: str, rnd: str, part: int) -> None:
    """Two lanes of bf16 are one byte out of four, the first one its low half."""
    wide = "r" if DTYPES[src].bits == 4 else "input"
    if wide == "input":
        x = numbers(src, codes_of(case, dst))
        on = case.some_lanes("mask", 2)
        want = [0] * 256
        for n in range(64):
            low, high = (expected(src, dst, x[2 * n + k], rnd, True) for k in (0, 1))
            want[4 * n + part] = (low | high << 4) * int(on[2 * n])
        case.execute()
        assert case.get("r").tolist() == want, shown(case.plan)
        return
    codes = case.fill("input", 0.6)
    on = case.some_lanes("mask", 1)
    case.execute()
    found = numbers("bf16", case.get("r"))
    for n in range(128):
        at = n // 2 * 4 + part
        value = encoding.decode(DTYPES[src], int(codes[at]) >> 4 * (n % 2) & 0xF) if on[at] else 0.0
        assert found[n] == value and math.copysign(1, found[n]) == math.copysign(1, value), (
            shown(case.plan),
            n,
        )


def every_way(plan: Plan, rounds: str = "RAFCZO") -> list[Plan]:
    sizes = [DTYPES[_dtype(plan, name)].bits for name in ("input", "r")]
    ratio = max(sizes) // min(sizes)
    choices: dict[str, Any] = {"rnd": list(rounds), "sat": ["NOSAT", "SAT"]}
    if ratio > 1:
        choices["part"] = ["EVEN", "ODD"] if ratio == 2 else ["P0", "P1", "P2", "P3"]
    return list(over(plan, **choices))


@pytest.mark.parametrize("plan", plans_of("vcvt", "a5"), ids=shown)
def test_every_part(plan: Plan) -> None:
    made = every_way(plan, "A" if _dtype(plan, "r") == "hif8" else "RO")
    assert len(made) in (4, 8, 16)
    for seed, each in enumerate(made):
        check(each, seed)


@pytest.mark.parametrize("column", ["cpu", "a2a3"])
def test_the_other_columns_convert_alike(column: str) -> None:
    for plan in plans_of("vcvt", column):
        for seed, each in enumerate(every_way(plan, "RO")[:3]):
            check(each, seed)


def test_long_names_of_roundings() -> None:
    for plan in plans_of("vcvt", "a5")[:5]:
        for seed, each in enumerate(over(plan, rnd=[f"ROUND_{r}" for r in "RAFCZO"])):
            check(each, seed)


def one(src: str, dst: str, **attrs: str) -> VectorCase:
    """An instance of a pair with every lane on."""
    plan = next(p for p in plans_of("vcvt", "a5") if (_dtype(p, "input"), _dtype(p, "r")) == (src, dst))
    case = VectorCase(next(over(plan, **{k: [v] for k, v in attrs.items()})))
    case.on("mask", True, width(src))
    return case


def _dtype(plan: Plan, name: str) -> str:
    return str((plan.operands.get(name) or plan.results[name])[0].dtype)  # type: ignore[union-attr]


def test_no_lane_on() -> None:
    for plan in plans_of("vcvt", "a5"):
        case = VectorCase(plan)
        case.fill("input")
        case.on("mask", False)
        case.execute()
        assert not case.get("r").any(), shown(plan)


def test_even_and_odd_halves_join() -> None:
    """Two conversions joined bit by bit hold every number once, in interleaved order."""
    case = one("f32", "f16", part="EVEN")
    left = case.rng.standard_normal(64).astype(np.float32)
    right = case.rng.standard_normal(64).astype(np.float32)
    case.set("input", left.view(np.uint32))
    case.execute()
    other = one("f32", "f16", part="ODD")
    other.set("input", right.view(np.uint32))
    other.execute()
    both = (case.get("r") | other.get("r")).view(np.float16)
    assert (both == np.stack([left, right], 1).ravel().astype(np.float16)).all()


def test_quarters_of_a_word() -> None:
    for k in range(4):
        wide = one("u8", "u32", part=f"P{k}")
        codes = wide.fill("input")
        wide.execute()
        assert wide.get("r").tolist() == codes[k::4].tolist()


@pytest.mark.parametrize(
    ("x", "rnd", "found"),
    [
        (2.5, "R", 2), (3.5, "R", 4), (2.5, "A", 3), (-2.5, "A", -3), (-2.5, "R", -2), (-0.25, "F", -1),
        (0.25, "C", 1), (-1.75, "Z", -1), (2.01, "O", 3), (2.99, "O", 3), (3.99, "O", 3), (-2.5, "O", -3),
        (-0.25, "O", -1), (4.0, "O", 4), (0.0, "O", 0),
    ],
)  # fmt: skip
def test_roundings_by_hand(x: float, rnd: str, found: int) -> None:
    case = one("f32", "i32", rnd=rnd)
    case.set("input", np.full(64, x, np.float32).view(np.uint32))
    case.execute()
    assert (case.get("r").view(np.int32) == found).all()


@pytest.mark.parametrize(
    ("dst", "sat", "found"),
    [
        ("i32", "SAT", (2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31))),
        ("i32", "NOSAT", (-1, 0, 0, -1294967296, 1294967296)),
        ("i16", "SAT", (32767, -32768, 0, 32767, -32768)),
        ("i16", "NOSAT", (-1, 0, 0, 24064, -24064)),
        ("i64", "SAT", (2**63 - 1, -(2**63), 0, 3 * 10**9, -3 * 10**9)),
        ("i64", "NOSAT", (-1, 0, 0, 3 * 10**9, -3 * 10**9)),
    ],
)
def test_out_of_range(dst: str, sat: str, found: tuple[int, ...]) -> None:
    """Infinities, NaN and numbers too large."""
    attrs = {} if dst == "i32" else {"part": "EVEN"}
    case = one("f32", dst, sat=sat, **attrs)
    given_ = np.zeros(64, np.float32)
    step = 2 if dst == "i64" else 1
    given_[: 5 * step : step] = np.inf, -np.inf, np.nan, 3e9, -3e9
    case.set("input", given_.view(np.uint32))
    case.execute()
    got = case.get("r").view({"i16": np.int16, "i32": np.int32, "i64": np.int64}[dst])
    assert tuple(got[: 5 * (64 // got.size or 2) : 2 if dst == "i16" else 1][:5].tolist()) == found


@examples(20)
@given(st.integers(0, 2**32 - 1))
def test_rounding_to_odd_lets_a_second_rounding_be_right(seed: int) -> None:
    """From i64 over f32 (to odd) to bf16 is as good as one rounding: the lost bits still show."""
    case = one("i64", "f32", rnd="O", part="EVEN")
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2**62), 2**62, 32)
    ties = (x >> 53 << 53) + rng.integers(-2, 3, 32)  # beside halfway points of bf16
    x = np.where(rng.random(32) < 0.5, ties, x >> rng.integers(0, 50, 32))
    case.set("input", x.view(np.uint64))
    case.execute()
    twice = case.get("r")[0::2].view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    assert twice.tolist() == [to_float("bf16", int(v), "R", False) for v in x]


@examples(40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["i16", "i32", "i64"]), st.integers(50, 75))
def test_low_bits_of_large_numbers(seed: int, dst: str, size: int) -> None:
    """Numbers of up to `size` bits and none beyond, so that no other large one is about."""
    case = one("f32", dst, sat="NOSAT", **({} if dst == "i32" else {"part": "EVEN"}))
    rng = np.random.default_rng(seed)
    x = np.ldexp(rng.uniform(-1, 1, 64), rng.integers(20, size + 1, 64)).astype(np.float32)
    case.set("input", x.view(np.uint32))
    case.execute()
    got = case.get("r")
    want = [int(np.rint(v)) % 2 ** DTYPES[dst].bits for v in x.astype(np.float64)]
    assert got[:: max(1, got.size // 64)].tolist() == (want[0::2] if dst == "i64" else want)


def test_one_nan_for_all() -> None:
    for rnd in "RAFCZO":
        case = one("f32", "f16", rnd=rnd, part="EVEN")
        case.set("input", np.array([0x7FC00000, 0xFFC00001, 0x7F800001, 0x7FFFFFFF] * 16, np.uint32))
        case.execute()
        assert set(case.get("r")[0::2].tolist()) == {0x7E00}


# -- vtrc --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", plans_of("vtrc"), ids=shown)
def test_integral_values(plan: Plan) -> None:
    names = [*"RAFCZ", *(f"ROUND_{r}" for r in "RAFCZ")]
    made = list(over(plan, round_mode=names))
    assert len(made) == 10
    for seed, each in enumerate(made):
        case = VectorCase(each, seed)
        dtype = case.args["r"].dtype
        values = numbers(dtype, codes_of(case, dtype))
        on = case.some_lanes("mask") if "mask" in case.args else np.ones(len(values), bool)
        case.execute()
        rnd = str(each.attrs["round_mode"].value).removeprefix("ROUND_")
        want = [0] * len(values)
        for n, x in enumerate(values):
            if on[n]:
                whole = (
                    x if not math.isfinite(x) else math.copysign(float(abs(ROUNDINGS[rnd](Fraction(x)))), x)
                )
                want[n] = to_float(dtype, whole, "R", False)
        got = case.get("r")
        assert_codes(dtype, got[None], np.array([want], np.uint64).astype(got.dtype), shown(each))


# -- beside the tile level ---------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("dst", ["bf16", "f16"])
def test_the_tile_conversion_rounds_alike(dst: str, column: str) -> None:
    """tcvt has one rounding between floats, R; clamping agrees on finite numbers."""
    tile = next(
        p for p in every_plan("tcvt", layouts=False)
        if p.isa == column and (_dtype(p, "src"), _dtype(p, "dst")) == ("f32", dst)
    )  # fmt: skip
    for sat, sat_mode in (("NOSAT", "OFF"), ("SAT", "ON")):
        made = next(over(tile, sat_mode=[sat_mode]))
        if column == "a2a3" and sat == "NOSAT":
            continue  # its tile conversion always clamps
        big = Case(made)
        codes = np.random.default_rng(7).integers(0, 2**32, 16 * 64, np.uint64).astype(np.uint32)
        codes[::7] = codes[::7] & 0xFFFF0000 | 0x8000  # ties
        codes[:6] = 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x80000000, 1
        finite = np.isfinite(codes.view(np.float32))
        big.set("src", codes.reshape(16, 64))
        with np.errstate(all="ignore"):
            big.run()
        want = big.get("dst").ravel()
        got = np.empty(16 * 64, np.uint16)
        for row in range(16):
            case = one("f32", dst, rnd="R", sat=sat, part="EVEN")
            case.set("input", codes[64 * row : 64 * row + 64])
            case.execute()
            got[64 * row : 64 * row + 64] = case.get("r")[0::2]
        same = finite if sat == "SAT" else np.ones_like(finite)
        assert_codes(dst, got[same][None], want[same][None])


def test_the_shadow_is_not_rounded() -> None:
    case = one("f32", "bf16", rnd="R", sat="SAT", part="EVEN")
    x = case.rng.standard_normal(64).astype(np.float32)
    case.set("input", x.view(np.uint32))
    kept: list[Array] = []

    class Twins(Doubles):
        def store(self, i: Any, place: Any, region: Any, codes: Array) -> None:
            kept.append(codes)

    case.core.port = Twins()
    case.execute()
    assert (kept[0][0, 0::2] == x.astype(np.float64)).all()


# -- whole programs ----------------------------------------------------------------------------------------

BF16 = """
module attributes {pto.target_arch = "a5"} {
  func.func @narrow(%gx: !pto.ptr<f32, gm>, %gy: !pto.ptr<bf16, gm>) {
    %zero = arith.constant 0 : index
    %vl = arith.constant 64 : index
    %n = arith.constant 256 : index
    %x_at = arith.constant 0 : i64
    %y_at = arith.constant 4096 : i64
    %one = arith.constant 1 : i64
    %l2 = arith.constant 0 : i64
    %in_len = arith.constant 1024 : i64
    %out_len = arith.constant 512 : i64
    %ux = pto.castptr %x_at : i64 -> !pto.ptr<f32, ub>
    %uy = pto.castptr %y_at : i64 -> !pto.ptr<bf16, ub>
    pto.mte_gm_ub %gx, %ux, %l2, %in_len nburst(%one, %in_len, %in_len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      scf.for %i = %zero to %n step %vl {
        %v = pto.vlds %ux[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %h = pto.vcvt %v, %all {rnd = "R", sat = "NOSAT", part = "EVEN"} : !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<128xbf16>
        pto.vsts %h, %uy[%i], %all {dist = "PK_B32"} : !pto.vreg<128xbf16>, !pto.ptr<bf16, ub>, !pto.mask<b32>
      }
    }
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %uy, %gy, %out_len nburst(%one, %out_len, %out_len) : !pto.ptr<bf16, ub>, !pto.ptr<bf16, gm>, i64, i64, i64, i64
    return
  }
}
"""


def test_a_program_that_narrows_contiguously() -> None:
    x = np.random.default_rng(3).standard_normal(256).astype(np.float32)
    y = np.zeros(256, ml_dtypes.bfloat16)
    result = pto.kernel(pto.parse(BF16), engine="reference").run(x, y, sanitize="all")
    assert not result.diagnostics
    assert (y.view(np.uint16) == x.astype(ml_dtypes.bfloat16).view(np.uint16)).all()
