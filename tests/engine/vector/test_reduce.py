"""Reductions against plain Python, one lane at a time: both layouts, every element type, and no lane on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples

import pto
from pto.engine.reference.core import RunError
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..rows import Doubles, assert_codes, numbers
from .cases import VectorCase, plans_of, rows_of, shown, width
from .test_convert import float_code, to_float

ROWS = rows_of("reduction")

Array = np.ndarray[Any, Any]
Number = float | int

SEMANTICS = ("hw", "doc")
#: Lanes of a mask that are on: some, all, none, one, and the last.
MASKS = ("some", "all", "none", "one", "last", "few")


def set_mask(case: VectorCase, kind: str, size: int) -> list[bool]:
    lanes = 256 // size
    on = {
        "some": case.rng.random(lanes) < 0.6, "all": np.ones(lanes, bool), "none": np.zeros(lanes, bool),
        "one": np.arange(lanes) == case.rng.integers(lanes), "last": np.arange(lanes) == lanes - 1,
        "few": case.rng.random(lanes) < 0.08,
    }[kind]  # fmt: skip
    return case.on("mask", on, size).tolist()


def code(dtype: str, x: Number) -> int:
    if dtype[0] in "iu":
        return int(x) % 2 ** DTYPES[dtype].bits
    return to_float(dtype, x, "R", False)


def plus(dtype: str, x: Number, y: Number) -> Number:
    """One addition, rounded once to the element type."""
    if dtype[0] in "iu":
        return x + y
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    exact = Fraction(x) + Fraction(y)
    if exact == 0:
        return x + y  # the sign of zero
    found = to_float(dtype, exact, "R", False)  # type: ignore[arg-type]
    return numbers(dtype, np.array([found], np.uint32 if dtype == "f32" else np.uint16))[0]


def tree(dtype: str, values: list[Number]) -> Number:
    """Return the sum by a tree: neighbours first, then the sum of the left half and of the right half."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return plus(dtype, tree(dtype, values[:half]), tree(dtype, values[half:]))


def zero(dtype: str) -> Number:
    return 0 if dtype[0] in "iu" else 0.0


def key(x: Number) -> tuple[Number, Number]:
    return (x, math.copysign(1, x) if isinstance(x, float) else 0)


def best(dtype: str, values: list[Number], on: list[bool], largest: bool) -> tuple[Number, int]:
    """The extreme of the active lanes and the first lane that holds it; NaN before all, -0 below +0."""
    lanes = [n for n, bit in enumerate(on) if bit]
    nan = [n for n in lanes if math.isnan(values[n])]
    if nan:
        return math.nan, nan[0]
    if not lanes:
        low, high = (-math.inf, math.inf) if dtype[0] not in "iu" else DTYPES[dtype].int_range
        return (low if largest else high), 0
    found = (max if largest else min)(key(values[n]) for n in lanes)
    at = next(n for n in lanes if key(values[n]) == found)
    return values[at], at


def fill(case: VectorCase, seed: int) -> list[Number]:
    """The input: any codes, or few values so that equal ones are frequent, or sums without specials."""
    dtype = case.args["input"].dtype
    codes = case.fill("input", (0.5, 0.0, 0.04)[seed % 3])
    if seed % 3 == 1:
        few = [0.0, -0.0, -1.0, 1.0] if dtype[0] not in "iu" else [0, 1, 255]
        if seed % 2:
            few = few[:2]
        pool = np.array([code(dtype, v) for v in few]).astype(codes.dtype)
        codes = case.rng.choice(pool, codes.size)
        case.set("input", codes)
    return numbers(dtype, codes)


def run(plan: Plan, seed: int, semantics: str = "hw") -> tuple[VectorCase, list[Number], list[bool]]:
    case = VectorCase(plan, seed, semantics)
    values = fill(case, seed)
    on = set_mask(case, MASKS[seed % len(MASKS)], width(case.args["input"].dtype))
    case.execute()
    return case, values, on


def check(case: VectorCase, want: list[int]) -> None:
    got, dtype = case.get("r"), case.args["r"].dtype
    assert_codes(dtype, got[None], np.array([want], np.uint64).astype(got.dtype), shown(case.plan))


def plans(*names: str) -> list[Plan]:
    return [p for name in names for p in plans_of(name)]


def seeds(plan: Plan, count: int) -> range:
    """Return the seeds; fewer in the columns that only repeat the A5."""
    return range(count if plan.isa == "a5" else len(MASKS))


# -- sums --------------------------------------------------------------------------------------------------


@together("plan", plans("vcadd"))
def test_total(plan: Plan) -> None:
    for seed in seeds(plan, 18):
        case, values, on = run(plan, seed)
        dtype = case.args["r"].dtype
        found = tree(dtype, [x if bit else zero(dtype) for x, bit in zip(values, on, strict=True)])
        check(case, [code(dtype, found), *[0] * (case.args["r"].lanes - 1)])


@together("semantics", SEMANTICS)
@together("plan", plans("vcgadd"))
def test_group_totals(plan: Plan, semantics: str) -> None:
    for seed in seeds(plan, 12):
        case, values, on = run(plan, seed, semantics)
        dtype, lanes = case.args["r"].dtype, case.args["r"].lanes
        masked = [x if bit else zero(dtype) for x, bit in zip(values, on, strict=True)]
        size = len(values) // 8
        want = [0] * lanes
        for g in range(8):
            want[g if semantics == "hw" else g * lanes // 8] = code(
                dtype, tree(dtype, masked[size * g : size * g + size])
            )
        check(case, want)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("plan", plans("vcpadd"), ids=shown)
def test_pairs_or_running_sums(plan: Plan, semantics: str) -> None:
    for seed in seeds(plan, 12):
        case, values, on = run(plan, seed, semantics)
        dtype, lanes = case.args["r"].dtype, len(values)
        if semantics == "hw":
            x = [v if bit else 0.0 for v, bit in zip(values, on, strict=True)]
            want = [code(dtype, plus(dtype, x[2 * k], x[2 * k + 1])) for k in range(lanes // 2)] + [0] * (
                lanes // 2
            )
        else:
            want, total = [], 0.0
            for v, bit in zip(values, on, strict=True):
                total = plus(dtype, total, v) if bit else total
                want.append(code(dtype, total))
        check(case, want)


def test_the_order_of_a_sum_shows() -> None:
    """1 is lost beside 2**24 unless a neighbour joins it first."""
    plan = next(p for p in plans_of("vcadd", "a5") if "f32" in shown(p))
    case = VectorCase(plan)
    x = np.zeros(64, np.float32)
    x[:4] = 1, 1, 2.0**24, 0
    case.set("input", x.view(np.uint32))
    case.on("mask", True)
    case.execute()
    assert case.get("r").view(np.float32)[0] == 2**24 + 2
    x[:4] = 1, 2.0**24, 1, 0
    case.set("input", x.view(np.uint32))
    case.execute()
    assert case.get("r").view(np.float32)[0] == 2**24


@examples(40)
@given(st.integers(0, 2**32 - 1), st.integers(-12, 30))
def test_sums_of_integers_are_exact_or_wrap(seed: int, size: int) -> None:
    for plan in plans_of("vcadd", "a5"):
        case = VectorCase(plan, seed)
        src, dst = case.args["input"].dtype, case.args["r"].dtype
        if src[0] == "f":
            continue
        codes = case.rng.integers(0, 2**63, case.args["input"].lanes, np.uint64)
        case.set("input", codes)
        on = set_mask(case, "some" if size % 2 else "all", width(src))
        case.execute()
        values = numbers(src, case.get("input"))
        exact = sum(v for v, bit in zip(values, on, strict=True) if bit)
        assert int(case.get("r")[0]) == exact % 2 ** DTYPES[dst].bits
        if (src, dst) in {("i16", "i32"), ("u16", "u32")}:
            assert numbers(dst, case.get("r"))[0] == exact


# -- extremes ----------------------------------------------------------------------------------------------


@together("plan", plans("vcmax", "vcmin"))
def test_extreme_and_where(plan: Plan) -> None:
    for seed in seeds(plan, 24):
        case, values, on = run(plan, seed)
        dtype = case.args["r"].dtype
        found, at = best(dtype, values, on, plan.row.name == "vcmax")
        got = case.get("r")
        assert (
            got[1] == at and not got[2:].any()
        )  # the lane is an integer, also where the elements are floats
        if any(on):
            assert got[0] == case.get("input")[at]
        assert_codes(dtype, got[None, :1], np.array([[code(dtype, found)]]).astype(got.dtype), shown(plan))


@together("semantics", SEMANTICS)
@together("plan", plans("vcgmax", "vcgmin"))
def test_group_extremes(plan: Plan, semantics: str) -> None:
    for seed in seeds(plan, 18):
        case, values, on = run(plan, seed, semantics)
        dtype, size = case.args["r"].dtype, len(values) // 8
        want = [0] * len(values)
        for g in range(8):
            part = slice(size * g, size * g + size)
            found, _ = best(dtype, values[part], on[part], plan.row.name == "vcgmax")
            want[g if semantics == "hw" else g * size] = code(dtype, found)
        check(case, want)


@together("plan", plans("vcbmax", "vcbmin"))
def test_extreme_and_mask(plan: Plan) -> None:
    for seed in seeds(plan, 18):
        case, values, on = run(plan, seed)
        dtype = case.args["r"].dtype
        found, _ = best(dtype, values, on, plan.row.name == "vcbmax")
        check(case, [code(dtype, found), *[0] * (len(values) - 1)])
        want = [bit and x == found for x, bit in zip(values, on, strict=True)]
        assert case.lanes("p").tolist() == want
        assert case.image("p").sum() == sum(want)  # one bit for each lane


def test_infinities_that_are_on_are_found_where_they_are() -> None:
    plan = next(p for p in plans_of("vcmax", "a5") if "f32" in shown(p))
    case = VectorCase(plan)
    case.set("input", np.full(64, float_code("f32", -math.inf), np.uint32))
    case.on("mask", np.arange(64) >= 40)
    case.execute()
    assert case.get("r")[:2].tolist() == [float_code("f32", -math.inf), 40]


# -- histograms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("plan", plans("chistv2", "dhistv2"), ids=shown)
def test_histogram(plan: Plan, half: int) -> None:
    for seed in range(6):
        case = VectorCase(plan, seed)
        acc = case.fill("acc")
        case.set("source", case.rng.integers(0, (256, 256, 8, 140)[seed % 4], 256))
        source = case.get("source").tolist()
        on = set_mask(case, MASKS[seed], 1)
        case.args["bin"] = half
        case.execute()
        counts = [sum(bit and s == v for s, bit in zip(source, on, strict=True)) for v in range(256)]
        if plan.row.name == "chistv2":
            counts = [sum(counts[: v + 1]) for v in range(256)]
        want = [(int(a) + c) % 2**16 for a, c in zip(acc, counts[128 * half :], strict=False)]
        assert case.get("r").tolist() == want


def test_a_bin_that_there_is_not() -> None:
    for name in ("chistv2", "dhistv2"):
        case = VectorCase(plans_of(name)[0])
        case.args["bin"] = 2
        with pytest.raises(RunError, match="expects bin to be 0 or 1, got 2"):
            case.execute()


# -- the float64 shadow ------------------------------------------------------------------------------------


class Twins(Doubles):
    """Keeps the stores of a shadow run, by first lane."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, Array]] = []

    def store(self, i: Any, place: Any, region: Any, codes: Array) -> None:
        self.kept.append((region.first[1], codes))


@pytest.mark.parametrize("name", ["vcadd", "vcmax", "vcgadd", "vcpadd", "vcgmin"])
def test_a_shadow_follows_numbers_and_not_lane_numbers(name: str) -> None:
    plan = next(p for p in plans_of(name, "a5") if "f16" in shown(p))
    case = VectorCase(plan)
    x = (case.rng.random(128) + 1).astype(np.float16)
    case.set("input", x.view(np.uint16))
    case.on("mask", True)
    port = case.core.port = Twins()
    case.execute()
    first = port.kept[0][1]
    assert first.dtype == np.float64
    wide = x.astype(np.float64)
    want = {"vcadd": wide.sum(), "vcmax": wide.max(), "vcgadd": wide[:16].sum(), "vcpadd": wide[:2].sum(),
            "vcgmin": wide[:16].min()}  # fmt: skip
    assert first[0, 0] == pytest.approx(want[name], rel=1e-15)
    if name == "vcmax":
        assert first.size == 1 and port.kept[1][0] == 1 and port.kept[1][1].dtype == np.uint16


# -- a whole program ---------------------------------------------------------------------------------------

TOP = """
module attributes {pto.target_arch = "a5"} {
  func.func @largest(%gx: !pto.ptr<f32, gm>, %gy: !pto.ptr<f32, gm>) {
    %zero = arith.constant 0 : index
    %x_at = arith.constant 0 : i64
    %y_at = arith.constant 4096 : i64
    %one = arith.constant 1 : i64
    %l2 = arith.constant 0 : i64
    %len = arith.constant 256 : i64
    %ux = pto.castptr %x_at : i64 -> !pto.ptr<f32, ub>
    %uy = pto.castptr %y_at : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %gx, %ux, %l2, %len nburst(%one, %len, %len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %v = pto.vlds %ux[%zero] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      %m = pto.vcmax %v, %all : !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
      pto.vsts %m, %uy[%zero], %all {dist = "NORM_B32"} : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
    }
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %uy, %gy, %len nburst(%one, %len, %len) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }
}
"""


def test_a_program_that_finds_the_largest() -> None:
    x = np.random.default_rng(5).standard_normal(64).astype(np.float32)
    y = np.ones(64, np.float32)
    result = pto.kernel(pto.parse(TOP), engine="reference").run(x, y, sanitize="all")
    assert not result.diagnostics
    assert y[0] == x.max() and y.view(np.uint32)[1] == x.argmax() and not y[2:].any()
