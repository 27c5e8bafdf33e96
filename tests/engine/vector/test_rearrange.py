"""Rearrangement against lists of Python, lane by lane, for every element type and column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples

import pto
from pto.engine.reference.core import RunError
from pto.ir.types import VRegType
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


def dtype_of(plan: Plan, name: str) -> str:
    """Element type of a register."""
    found = (plan.operands.get(name) or plan.results[name])[0]
    assert isinstance(found, VRegType)
    return str(found.dtype)


def check(case: VectorCase, **want: Codes) -> None:
    case.execute()
    for name, codes in want.items():
        assert case.get(name).tolist() == codes, (shown(case.plan), name)


def cases_of(*names: str) -> list[tuple[Plan, int]]:
    return [(plan, seed) for name in names for plan in plans_of(name) for seed in range(2)]


def ids(value: Any) -> str | None:
    return shown(value) if isinstance(value, Plan) else None


@together(("plan", "seed"), cases_of("vintlv", "vdintlv"))
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


@together(("plan", "seed"), cases_of("vintlvv2", "vdintlvv2"))
def test_half_of_an_interleaving(plan: Plan, seed: int) -> None:
    for made in over(plan, part=PARTS):
        case = VectorCase(made, seed)
        lhs, rhs = (case.fill(n).tolist() for n in ("lhs", "rhs"))
        both = (interleaved if plan.row.name == "vintlvv2" else separated)(lhs, rhs)
        check(case, r=half(both, case.op.attr("part")))


def amounts(lanes: int) -> tuple[int, ...]:
    return 0, 1, lanes // 2, lanes - 1, lanes


@together("plan", plans_of("vslide"))
def test_slide(plan: Plan) -> None:
    for amount in amounts(VectorCase(plan).args["r"].lanes):
        case = VectorCase(plan, amount)
        newer, older = (case.fill(n).tolist() for n in ("src0", "src1"))
        case.args["amt"] = amount
        n = len(newer)
        check(case, r=[newer[i - amount] if i >= amount else older[n - amount + i] for i in range(n)])


@together("plan", plans_of("vshift"))
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


@together("plan", plans_of("vsqz"))
@together("share", [0, 0.3, 0.9, 1])
def test_squeeze(plan: Plan, share: float) -> None:
    case = VectorCase(plan, int(10 * share))
    codes = case.fill("src").tolist()
    on = case.on("mask", case.rng.random(len(codes)) < share)
    kept = [c for c, o in zip(codes, on, strict=True) if o]
    check(case, r=kept + [0] * (len(codes) - len(kept)))
    assert squeezed_bytes(case) == len(kept) * width(case.args["src"].dtype)


@together("plan", plans_of("vusqz"))
@together("share", [0, 0.5, 1])
def test_count_below(plan: Plan, share: float) -> None:
    case = VectorCase(plan, int(10 * share))
    lanes, bits = case.args["r"].lanes, 8 * width(case.args["r"].dtype)
    on = case.on("mask", case.rng.random(lanes) < share).tolist()
    check(case, r=[sum(on[:i]) % (1 << bits) for i in range(lanes)])


@examples(40)
@given(st.sampled_from(["i8", "i16", "i32"]), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_counts_say_where_squeezed_lanes_went(dtype: str, seed: int, share: float) -> None:
    squeeze = VectorCase(next(p for p in plans_of("vsqz", "a5") if dtype_of(p, "r") == dtype), seed)
    count = VectorCase(next(p for p in plans_of("vusqz", "a5") if dtype_of(p, "r") == dtype), seed)
    codes = squeeze.fill("src")
    on = squeeze.on("mask", squeeze.rng.random(codes.size) < share)
    count.on("mask", on)
    squeeze.execute()
    count.execute()
    front, at = squeeze.get("r"), count.get("r")  # counts as unsigned, so that 255 lanes of i8 fit
    assert (front[at[on]] == codes[on]).all()


@together(("plan", "seed"), cases_of("vperm"))
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


@together("plan", plans_of("vpack"))
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


@together("plan", [*plans_of("vsunpack"), *plans_of("vzunpack")])
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


_PROGRAM = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%gx: !pto.ptr<i32, gm>, %gy: !pto.ptr<i32, gm>) {{
    %zero = arith.constant 0 : i64
    %far = arith.constant 4096 : i64
    %one = arith.constant 1 : i64
    %len = arith.constant 512 : i64
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %x = pto.castptr %zero : i64 -> !pto.ptr<i32, ub>
    %y = pto.castptr %far : i64 -> !pto.ptr<i32, ub>
    pto.mte_gm_ub %gx, %x, %zero, %len nburst(%one, %len, %len) : !pto.ptr<i32, gm>, !pto.ptr<i32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {{
      %a = pto.vlds %x[%c0] : !pto.ptr<i32, ub> -> !pto.vreg<64xi32>
      %b = pto.vlds %x[%c64] : !pto.ptr<i32, ub> -> !pto.vreg<64xi32>
      {body}
      pto.vsts %p, %y[%c0] : !pto.vreg<64xi32>, !pto.ptr<i32, ub>
      pto.vsts %q, %y[%c64] : !pto.vreg<64xi32>, !pto.ptr<i32, ub>
    }}
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %y, %gy, %len nburst(%one, %len, %len) : !pto.ptr<i32, ub>, !pto.ptr<i32, gm>, i64, i64, i64, i64
    return
  }}
}}
"""


def run(body: str) -> tuple[Codes, Codes, Codes, Codes]:
    """The two vectors that a program reads and the two it writes."""
    x = np.random.default_rng(4).integers(-1000, 1000, 128).astype(np.int32)
    y = np.zeros(128, np.int32)
    result = pto.kernel(pto.parse(_PROGRAM.format(body=body)), engine="reference").run(x, y, sanitize="all")
    assert result.ok and not result.diagnostics, result.diagnostics
    return x[:64].tolist(), x[64:].tolist(), y[:64].tolist(), y[64:].tolist()


def test_program_that_moves_negative_numbers_to_the_front_and_back() -> None:
    a, _, p, q = run("""
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %nought = arith.constant 0 : i32
      %m = pto.vcmps %a, %nought, %all, "lt" : !pto.vreg<64xi32>, i32, !pto.mask<b32> -> !pto.mask<b32>
      %p = pto.vsqz %a, %m : !pto.vreg<64xi32>, !pto.mask<b32> -> !pto.vreg<64xi32>
      %at = pto.vusqz %m : !pto.mask<b32> -> !pto.vreg<64xi32>
      %spread = pto.vperm %p, %at : !pto.vreg<64xi32>, !pto.vreg<64xi32> -> !pto.vreg<64xi32>
      %nil = pto.vbr %nought : i32 -> !pto.vreg<64xi32>
      %q = pto.vsel %spread, %nil, %m : !pto.vreg<64xi32>, !pto.vreg<64xi32>, !pto.mask<b32> -> !pto.vreg<64xi32>
    """)
    negative = [v for v in a if v < 0]
    assert p == negative + [0] * (64 - len(negative))
    assert q == [min(v, 0) for v in a]


def test_program_that_packs_and_unpacks() -> None:
    a, b, p, q = run("""
      %low, %high = pto.vintlv %a, %b : !pto.vreg<64xi32>, !pto.vreg<64xi32> -> !pto.vreg<64xi32>, !pto.vreg<64xi32>
      %n = pto.vpack %low, %high, %c0 : !pto.vreg<64xi32>, !pto.vreg<64xi32>, index -> !pto.vreg<128xui16>
      %s = pto.vbitcast %n : !pto.vreg<128xui16> -> !pto.vreg<128xi16>
      %wide = pto.vsunpack %s, "HIGHER" : !pto.vreg<128xi16> -> !pto.vreg<64xi32>
      %five = arith.constant 5 : i16
      %p = pto.vslide %wide, %low, %five : !pto.vreg<64xi32>, !pto.vreg<64xi32>, i16 -> !pto.vreg<64xi32>
      %q = pto.vshift %p, %five : !pto.vreg<64xi32>, i16 -> !pto.vreg<64xi32>
    """)
    both = interleaved(a, b)
    assert p == both[59:64] + both[64:123]
    assert q == [0] * 5 + p[:59]
