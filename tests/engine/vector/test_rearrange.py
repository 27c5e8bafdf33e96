"""Rearrangement against lists of Python, lane by lane, for every element type and column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto.engine.reference.core import RunError
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..rows import Doubles, assert_codes
from .cases import VectorCase, over, plans_of, rows_of, shown, width, with_attrs

ROWS = rows_of("rearrangement")

Codes = list[int]
PARTS = ("LOWER", "HIGHER")


def interleaved(lhs: Codes, rhs: Codes) -> Codes:
    return [v for pair in zip(lhs, rhs, strict=True) for v in pair]


def separated(lhs: Codes, rhs: Codes) -> Codes:
    both = lhs + rhs
    return both[::2] + both[1::2]


def half(codes: Codes, part: Any) -> Codes:
    n = len(codes) // 2
    return codes[n:] if part in ("HIGHER", 1) else codes[:n]


def extended(dtype: str, code: int) -> int:
    """A code in twice the width."""
    bits = DTYPES[dtype].bits
    negative = DTYPES[dtype].kind == "i" and code >> (bits - 1)
    return code | (((1 << bits) - 1) << bits if negative else 0)


def check(case: VectorCase, **want: Codes) -> None:
    case.execute()
    for name, codes in want.items():
        assert case.get(name).tolist() == codes, (shown(case.plan), name)


def cases_of(*names: str) -> list[tuple[Plan, int]]:
    return [(plan, seed) for name in names for plan in plans_of(name) for seed in range(2)]


def ids(value: Any) -> str | None:
    return shown(value) if isinstance(value, Plan) else None


@pytest.mark.parametrize(("plan", "seed"), cases_of("vintlv", "vdintlv"), ids=ids)
def test_interleaving(plan: Plan, seed: int) -> None:
    case = VectorCase(plan, seed)
    lhs, rhs = (case.fill(n).tolist() for n in ("lhs", "rhs"))
    both = (interleaved if plan.row.name == "vintlv" else separated)(lhs, rhs)
    check(case, low=half(both, 0), high=half(both, 1))


@pytest.mark.parametrize("plan", plans_of("vintlv", "a5"), ids=shown)
def test_separation_is_the_inverse_of_interleaving(plan: Plan) -> None:
    case, back = VectorCase(plan), VectorCase(plans_of("vdintlv", "a5")[plans_of("vintlv", "a5").index(plan)])
    lhs, rhs = case.fill("lhs"), case.fill("rhs")
    case.execute()
    back.set("lhs", case.get("low"))
    back.set("rhs", case.get("high"))
    check(back, low=lhs.tolist(), high=rhs.tolist())


@pytest.mark.parametrize(("plan", "seed"), cases_of("vintlvv2", "vdintlvv2"), ids=ids)
def test_half_of_an_interleaving(plan: Plan, seed: int) -> None:
    for made in over(plan, part=PARTS):
        case = VectorCase(made, seed)
        lhs, rhs = (case.fill(n).tolist() for n in ("lhs", "rhs"))
        both = (interleaved if plan.row.name == "vintlvv2" else separated)(lhs, rhs)
        check(case, r=half(both, case.op.attr("part")))


def amounts(lanes: int) -> tuple[int, ...]:
    return 0, 1, lanes // 2, lanes - 1, lanes


@pytest.mark.parametrize("plan", plans_of("vslide"), ids=shown)
def test_slide(plan: Plan) -> None:
    for amount in amounts(VectorCase(plan).args["r"].lanes):
        case = VectorCase(plan, amount)
        newer, older = (case.fill(n).tolist() for n in ("src0", "src1"))
        case.args["amt"] = amount
        n = len(newer)
        check(case, r=[newer[i - amount] if i >= amount else older[n - amount + i] for i in range(n)])


@pytest.mark.parametrize("plan", plans_of("vshift"), ids=shown)
def test_shift(plan: Plan) -> None:
    for amount in amounts(VectorCase(plan).args["r"].lanes):
        case = VectorCase(plan, amount)
        codes = case.fill("src").tolist()
        case.args["amt"] = amount
        check(case, r=[codes[i - amount] if i >= amount else 0 for i in range(len(codes))])


@pytest.mark.parametrize("name", ["vslide", "vshift"])
@pytest.mark.parametrize("over_by", [-1, 1])
def test_amount_outside_the_lanes(name: str, over_by: int) -> None:
    case = VectorCase(plans_of(name, "a5")[0])
    lanes = case.args["r"].lanes
    case.args["amt"] = -1 if over_by < 0 else lanes + 1
    with pytest.raises(RunError, match=f"0 and the lane count {lanes}, got {case.args['amt']}"):
        case.execute()


def squeezed_bytes(case: VectorCase) -> int:
    return int(case.core.special_register("SQZN", "i64").buffer.data.view(np.int64)[0])


@pytest.mark.parametrize("plan", plans_of("vsqz"), ids=shown)
@pytest.mark.parametrize("share", [0, 0.3, 0.9, 1])
def test_squeeze(plan: Plan, share: float) -> None:
    case = VectorCase(plan, int(10 * share))
    codes = case.fill("src").tolist()
    on = case.on("mask", case.rng.random(len(codes)) < share)
    kept = [c for c, o in zip(codes, on, strict=True) if o]
    check(case, r=kept + [0] * (len(codes) - len(kept)))
    assert squeezed_bytes(case) == len(kept) * width(case.args["src"].dtype)


@pytest.mark.parametrize("plan", plans_of("vusqz"), ids=shown)
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_count_below(plan: Plan, share: float) -> None:
    case = VectorCase(plan, int(10 * share))
    lanes, bits = case.args["r"].lanes, 8 * width(case.args["r"].dtype)
    on = case.on("mask", case.rng.random(lanes) < share).tolist()
    check(case, r=[sum(on[:i]) % (1 << bits) for i in range(lanes)])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["i8", "i16", "i32"]), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_counts_say_where_squeezed_lanes_went(dtype: str, seed: int, share: float) -> None:
    squeeze = VectorCase(next(p for p in plans_of("vsqz", "a5") if p.results["r"][0].dtype == dtype), seed)
    count = VectorCase(next(p for p in plans_of("vusqz", "a5") if p.results["r"][0].dtype == dtype), seed)
    codes = squeeze.fill("src")
    on = squeeze.on("mask", squeeze.rng.random(codes.size) < share)
    count.on("mask", on)
    squeeze.execute()
    count.execute()
    front, at = squeeze.get("r"), count.get("r")  # counts as unsigned, so that 255 lanes of i8 fit
    assert (front[at[on]] == codes[on]).all()


@pytest.mark.parametrize(("plan", "seed"), cases_of("vperm"), ids=ids)
def test_permutation(plan: Plan, seed: int) -> None:
    case = VectorCase(plan, seed)
    codes, index = case.fill("src").tolist(), case.fill("index", 1).tolist()
    check(case, r=[codes[k % len(codes)] for k in index])


def test_indices_are_unsigned_and_wrap() -> None:
    case = VectorCase(next(p for p in plans_of("vperm", "a5") if "f32" in shown(p)))
    codes = case.fill("src")
    case.set("index", np.array([0xFFFFFFFF, 64, 63, 0x80000001] * 16, np.uint32))
    case.execute()
    assert case.get("r")[:4].tolist() == codes[[63, 0, 63, 1]].tolist()


@pytest.mark.parametrize("plan", plans_of("vpack"), ids=shown)
def test_pack(plan: Plan) -> None:
    for made in (plan,) if "src1" in plan.operands else over(plan, part=PARTS):
        case = VectorCase(made, 3)
        bits = 8 * width(case.args["r"].dtype)
        low = [c % (1 << bits) for c in case.fill("src0", 1).tolist()]
        if "src1" in case.args:
            check(case, r=low + [c % (1 << bits) for c in case.fill("src1", 1).tolist()])
        else:
            zeros = [0] * len(low)
            check(case, r=low + zeros if case.op.attr("part") == "LOWER" else zeros + low)


@pytest.mark.parametrize("plan", [*plans_of("vsunpack"), *plans_of("vzunpack")], ids=shown)
def test_unpack(plan: Plan) -> None:
    for which in (0, 1) if "half" in plan.operands else PARTS:
        made = with_attrs(plan, part=which) if isinstance(which, str) else plan
        assert made is not None
        case = VectorCase(made, 5)
        if isinstance(which, int):
            case.args["half"] = which
        codes = case.fill("src", 1).tolist()
        check(case, r=[extended(case.args["src"].dtype, c) for c in half(codes, which)])


@pytest.mark.parametrize("name", ["vsunpack", "vzunpack"])
def test_only_two_halves(name: str) -> None:
    case = VectorCase(plans_of(name, "a5")[0])
    case.args["half"] = 2
    with pytest.raises(RunError, match="half to be 0 or 1, got 2"):
        case.execute()


@pytest.mark.parametrize("name", ROWS)
def test_shadows_move_along(name: str) -> None:
    """A run in float64 moves the same lanes."""
    for plan in plans_of(name, "a5"):
        plain, double = VectorCase(plan, 7), VectorCase(plan, 7)
        double.core.port = Doubles()
        for case in (plain, double):
            for operand, types in plan.operands.items():
                if "mask" in operand:
                    case.some_lanes(operand)
                elif hasattr(case.args[operand], "lanes") and types:
                    case.fill(operand)
            case.execute()
        for result in plan.results:
            got, want = double.get(result), plain.get(result)
            assert_codes(plain.args[result].dtype, got[None], want[None], shown(plan))
