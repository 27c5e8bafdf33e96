"""Fused arithmetic against Python's numbers and exact fractions, lane by lane, for every type and column."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.ir.types import VRegType
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..rows import Doubles, assert_codes, numbers
from .cases import VectorCase, over, plans_of, shown, width
from .test_arithmetic import fused, greatest, rounded, single, wrapped

ROWS = (
    "vprelu", "vexpdif", "vaddrelu", "vsubrelu", "vaxpy", "vaddreluconv", "vmulconv", "vmull", "vmula",
    "vmulscvt",
)  # fmt: skip


def code_of(dtype: str, value: Any) -> int:
    """The nearest element to an exact or special number."""
    if isinstance(value, Fraction):
        return rounded(dtype, value) if value else 0
    if DTYPES[dtype].is_int:
        return wrapped(value, dtype) % (1 << DTYPES[dtype].bits)
    return encoding.encode(dtype, value)


def exact(x: float, y: float, op: str) -> Any:
    """x op y without rounding; a float where the result is 0 or not finite, so that its sign is right."""
    found = {"+": x + y, "-": x - y, "*": x * y}[op]
    if not (math.isfinite(x) and math.isfinite(y)):
        return found
    a, b = Fraction(x), Fraction(y)
    return {"+": a + b, "-": a - b, "*": a * b}[op] or found


def ramp(value: Any) -> Any:
    """max(value, 0): a NaN stays."""
    return value if isinstance(value, float) and math.isnan(value) else value if value > 0 else 0.0


def element(dtype: str, value: Any) -> float:
    """A number rounded to a type."""
    return float(encoding.decode(dtype, code_of(dtype, value)))


def dtype_of(plan: Plan, name: str) -> str:
    """Element type of a register."""
    found = (plan.operands.get(name) or plan.results[name])[0]
    assert isinstance(found, VRegType)
    return str(found.dtype)


def filled(case: VectorCase, *names: str) -> list[list[Any]]:
    return [numbers(case.args[n].dtype, case.fill(n)) for n in names]


def lanes_on(case: VectorCase, source: str) -> list[bool]:
    """Return some lanes of the mask, of the width of a source; all without a mask."""
    lanes = case.args[source].lanes
    if "mask" not in case.args:
        return [True] * lanes
    return case.some_lanes("mask", width(case.args[source].dtype)).tolist()


def check(case: VectorCase, want: list[int], name: str = "r") -> None:
    case.execute()
    got = case.get(name)
    assert_codes(
        case.args[name].dtype, got[None], np.array([want], np.uint64).astype(got.dtype), shown(case.plan)
    )


def each(*names: str) -> list[Plan]:
    return [plan for name in names for plan in plans_of(name)]


def seeded(plan: Plan, seeds: int = 3) -> list[VectorCase]:
    return [VectorCase(plan, seed) for seed in range(seeds)]


def test_masks_are_there_and_not() -> None:
    for name in ROWS:
        forms = {"mask" in plan.operands for plan in plans_of(name)}
        assert forms == ({True} if name in ("vmull", "vmula", "vmulscvt") else {True, False}), name


@pytest.mark.parametrize("plan", each("vprelu"), ids=shown)
def test_prelu(plan: Plan) -> None:
    for case in seeded(plan):
        t, (x, a) = case.args["r"].dtype, filled(case, "input", "alpha")
        on = lanes_on(case, "r")
        check(
            case,
            [
                code_of(t, v if v >= 0 else exact(w, v, "*")) if o else 0
                for v, w, o in zip(x, a, on, strict=True)
            ],
        )


@pytest.mark.parametrize("plan", each("vaddrelu", "vsubrelu"), ids=shown)
def test_sum_and_difference_with_relu(plan: Plan) -> None:
    sign = "+" if plan.row.name == "vaddrelu" else "-"
    for case in seeded(plan):
        t, (x, y) = case.args["r"].dtype, filled(case, "lhs", "rhs")
        on = lanes_on(case, "r")
        check(
            case, [code_of(t, ramp(exact(v, w, sign))) if o else 0 for v, w, o in zip(x, y, on, strict=True)]
        )


@pytest.mark.parametrize("plan", each("vaxpy"), ids=shown)
def test_axpy(plan: Plan) -> None:
    for alpha in (0.0, -1.5, 1e-3, 0.1, 3e4, math.inf, math.nan):
        for case in seeded(plan, 1):
            t, (x, y) = case.args["r"].dtype, filled(case, "x", "y")
            case.args["alpha"] = alpha
            s = element(t, alpha)
            on = lanes_on(case, "r")
            check(case, [code_of(t, fused(s, v, w)) if o else 0 for v, w, o in zip(x, y, on, strict=True)])


@pytest.mark.parametrize("plan", each("vmula"), ids=shown)
def test_multiply_add(plan: Plan) -> None:
    for seed in range(3):
        case = VectorCase(plan, seed)
        t, (acc, x, y) = case.args["r"].dtype, filled(case, "acc", "lhs", "rhs")
        on = lanes_on(case, "r")
        whole = DTYPES[t].is_int
        check(case, [
            code_of(t, v * w + a if whole else fused(v, w, a)) if o else 0
            for a, v, w, o in zip(acc, x, y, on, strict=True)
        ])  # fmt: skip


@examples(25)
@given(st.sampled_from(["f32", "f16", "bf16"]), st.integers(0, 2**32 - 1))
def test_multiply_add_rounds_once(dtype: str, seed: int) -> None:
    """Short factors, and addends that are tiny or make the sum a tie: rounding twice would show."""
    case = VectorCase(next(p for p in plans_of("vmula", "a5") if dtype_of(p, "r") == dtype), seed)
    rng, lanes = case.rng, case.args["r"].lanes
    digits = {"f32": 24, "f16": 11, "bf16": 8}[dtype]
    short = [
        rng.integers(1, 1 << (digits // 2 + 1), lanes) * 2.0 ** rng.integers(-3, 4, lanes) for _ in range(2)
    ]
    least = -14 if dtype == "f16" else int(rng.choice([-14, -100]))  # or below all bits of an f64
    tiny = rng.choice([1.0, -1.0], lanes) * 2.0 ** rng.integers(least, 2, lanes)
    columns = [tiny, *short]
    codes = [[encoding.encode(dtype, float(v)) for v in column] for column in columns]
    values = [[encoding.decode(dtype, c) for c in column] for column in codes]
    for name, column in zip(("acc", "lhs", "rhs"), codes, strict=True):
        case.set(name, np.array(column, np.uint32))
    case.on("mask", True)
    check(case, [code_of(dtype, fused(x, y, a)) for a, x, y in zip(*values, strict=True)])


def exponential(difference: float, through_f32: bool) -> float:
    with np.errstate(all="ignore"):
        found = float(np.exp(np.float64(difference)))
    return single(found) if through_f32 else found


@pytest.mark.parametrize("plan", each("vexpdif"), ids=shown)
def test_exponential_of_a_difference(plan: Plan) -> None:
    for made in over(plan, part=("EVEN", "ODD")):
        for case in seeded(made):
            source, target = case.args["input"].dtype, case.args["r"].dtype
            x, y = filled(case, "input", "maximum")
            on = lanes_on(case, "input")
            found = [
                code_of(target, exponential(single(v - w), target == "f16")) if o else 0
                for v, w, o in zip(x, y, on, strict=True)
            ]
            if source != target:
                found = found[1 if case.op.attr("part") == "ODD" else 0 :: 2]
            check(case, found)


def test_every_pair_of_types_of_the_exponential() -> None:
    pairs = {(dtype_of(p, "input"), dtype_of(p, "r")) for p in plans_of("vexpdif")}
    assert pairs == {("f32", "f32"), ("f16", "f16"), ("f16", "f32")}


def narrowed(dtype: str, value: float) -> int:
    """Convert a number of the source type to a narrower one: ties to even; i8 saturates and has no NaN."""
    if dtype != "i8":
        return code_of(dtype, Fraction(value) if math.isfinite(value) and value else value)
    if math.isnan(value):
        return 0
    near = round(Fraction(value)) if math.isfinite(value) else int(math.copysign(128, value))
    return max(-128, min(127, near)) % 256


@pytest.mark.parametrize("plan", each("vaddreluconv", "vmulconv"), ids=shown)
def test_narrowing(plan: Plan) -> None:
    adds = plan.row.name == "vaddreluconv"
    for case in seeded(plan):
        source, target = case.args["lhs"].dtype, case.args["r"].dtype
        x, y = filled(case, "lhs", "rhs")
        on = lanes_on(case, "lhs")
        found: list[int] = []
        for v, w, o in zip(x, y, on, strict=True):
            value = element(source, exact(v, w, "+" if adds else "*"))
            found.append(narrowed(target, ramp(value) if adds else value) if o else 0)
        check(case, found + [0] * (case.args["r"].lanes - len(found)))


def test_narrowing_rounds_in_the_source_type_first() -> None:
    """64 + 0.5 + 2**-11 is above a tie, and 64.5 in f16, a tie that goes to 64."""
    case = VectorCase(next(p for p in plans_of("vaddreluconv", "a5") if dtype_of(p, "r") == "i8"))
    case.set("lhs", np.full(128, 64, np.float16).view(np.uint16))
    case.set("rhs", np.full(128, 0.5 + 2**-11, np.float16).view(np.uint16))
    case.on("mask", True)
    case.execute()
    assert case.get("r").tolist() == [64] * 128 + [0] * 128


@cache
def halves() -> tuple[list[float], dict[float, int]]:
    """The values of f16 in order, infinities included, and their codes."""
    codes = [c for c in range(1 << 16) if not math.isnan(encoding.decode("f16", c)) and c != 0x8000]
    by_value = {float(encoding.decode("f16", c)): c for c in codes}
    return sorted(by_value), by_value


def to_half(value: float, rounding: str) -> int:
    """Return the code of a number in f16, chosen between its neighbours by the mode."""
    if math.isnan(value):
        return 0x7E00
    ordered, code = halves()
    sign = 0x8000 if math.copysign(1, value) < 0 else 0
    if value in code:
        return code[value] | (sign if value == 0 else 0)
    at = bisect_right(ordered, value)
    low, high = ordered[at - 1], ordered[at]
    if rounding in "FCZ":
        down = rounding == "F" or (rounding == "Z" and value > 0)
        chosen = low if down else high
    elif rounding == "O":  # whatever is not exact goes to the neighbour whose last bit is set
        chosen = low if code[low] & 1 else high
    else:
        size = Fraction(32)  # between the last finite numbers, and to where the next one would be
        below = Fraction(value) - (Fraction(low) if math.isfinite(low) else Fraction(high) - size)
        above = (Fraction(high) if math.isfinite(high) else Fraction(low) + size) - Fraction(value)
        if below != above:
            chosen = low if below < above else high
        elif rounding == "A":
            chosen = low if value < 0 else high
        else:  # to the even one
            chosen = high if code[low] & 1 else low
    return code[chosen] | (sign if chosen == 0 else 0)


@pytest.mark.parametrize("plan", each("vmulscvt"), ids=shown)
def test_scale_and_convert(plan: Plan) -> None:
    words = ["R", "A", "F", "C", "Z", "O"]
    for k, made in enumerate(over(plan, rnd=[*words, *(f"ROUND_{w}" for w in words)], part=["EVEN", "ODD"])):
        case = VectorCase(made, k)
        (x,) = filled(case, "input")
        scalar = [0.37, 1.0, -3.0, 2.0**-14, 1e30, math.inf][k % 6]
        case.args["scalar"] = scalar
        if k % 2:  # ties, and their neighbours
            rng = case.rng
            x = [float(np.float32((2048 + n) * 2.0**-11 * (1 + e))) for n, e in zip(
                rng.integers(0, 4096, 64) / 2, rng.choice([0, 2.0**-22, -(2.0**-22)], 64), strict=True)]  # fmt: skip
            case.set("input", np.array(x, np.float32).view(np.uint32))
            scalar = case.args["scalar"] = [1.0, -1.0, 2.0**-15, 2.0**15][k % 4]
        on = lanes_on(case, "input")
        rounding = str(case.op.attr("rnd"))[-1]
        want = [0] * 128
        for n in range(64):
            product = single(x[n] * single(scalar))
            want[2 * n + (case.op.attr("part") == "ODD")] = to_half(product, rounding) if on[n] else 0
        check(case, want)


@pytest.mark.parametrize("plan", each("vmull"), ids=shown)
def test_wide_product(plan: Plan) -> None:
    for seed in range(3):
        case = VectorCase(plan, seed)
        x, y = filled(case, "lhs", "rhs")
        on = lanes_on(case, "lhs")
        products = [v * w if o else 0 for v, w, o in zip(x, y, on, strict=True)]
        check(case, [p % 2**32 for p in products], "low")
        assert case.get("high").tolist() == [(p >> 32) % 2**32 for p in products]


@pytest.mark.parametrize("name", ROWS)
def test_shadow_rounds_nothing(name: str) -> None:
    """A run in float64 gives what f64 arithmetic gives, to the last place but one of the result's type."""
    for plan in plans_of(name, "a5"):
        plain, double = VectorCase(plan, 7), VectorCase(plan, 7)
        double.core.port = Doubles()
        for case in (plain, double):
            for operand in plan.operands:
                if "mask" in operand:
                    case.some_lanes(operand)
                elif hasattr(case.args[operand], "lanes"):
                    case.fill(operand, 0)
            case.execute()
        for result in plan.results:
            dtype = plain.args[result].dtype
            got, want = (np.array(numbers(dtype, c.get(result)), np.float64) for c in (double, plain))
            if DTYPES[dtype].is_int:
                assert (np.abs(got - want) <= 1).all(), shown(plan)
            else:
                assert np.allclose(got, want, rtol=2.0**-6, atol=1e-3, equal_nan=True), shown(plan)


def test_greater_is_that_of_vmax() -> None:
    """The ReLU of these rows is a maximum with 0: it keeps NaN."""
    assert math.isnan(greatest(math.nan, 0.0))
    assert math.isnan(ramp(math.nan))
    case = VectorCase(plans_of("vaddrelu", "a5")[0])
    dtype = case.args["lhs"].dtype
    case.set("lhs", np.full(case.args["lhs"].lanes, encoding.encode(dtype, math.nan)))
    case.set("rhs", np.zeros(case.args["rhs"].lanes, np.uint32))
    case.on("mask", True)
    case.execute()
    assert all(math.isnan(v) for v in numbers(dtype, case.get("r")))
