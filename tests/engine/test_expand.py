"""Broadcasts and their arithmetic, one element at a time in exact scalar arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine.reference.instr import IllegalInstruction
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import decode, encode

from .rows import (
    Array,
    Case,
    Doubles,
    assert_codes,
    element_type,
    outcome,
    random_codes,
    some_plans,
    sprinkled_codes,
)

OPERATIONS = ("add", "sub", "mul", "div", "max", "min", "expdif")
ARITHMETIC = tuple(f"{axis}expand{op}" for axis in ("trow", "tcol") for op in OPERATIONS)
ROWS = ("trowexpand", "tcolexpand", *ARITHMETIC)

VALID = [(16, 64), (7, 13), (1, 64), (16, 1), (1, 1), (0, 5), (3, 0)]


def divided(dtype: str, a: float, b: float) -> float | int:
    if not DTYPES[dtype].is_float:
        # A zero divisor is an error of the program; the engine gives 0.
        return 0 if b == 0 else abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def element(op: str, dtype: str, x: int, y: int) -> int:
    """One element of dst from two codes."""
    a, b = decode(dtype, x), decode(dtype, y)
    if op == "max":
        return y if a < b else x
    if op == "min":
        return y if b < a else x
    if op == "expdif":
        return encode(dtype, exponential(decode(dtype, encode(dtype, a - b))))
    return encode(dtype, {"add": a + b, "sub": a - b, "mul": a * b, "div": divided(dtype, a, b)}[op])


def wanted(case: Case, dst: Array, src0: Array, src1: Array) -> Array:
    """The whole of dst afterwards."""
    name, tile = case.row.name, case.tile("dst")
    op = name.partition("expand")[2]
    out = dst.copy()
    for i in range(tile.v_row):
        for j in range(tile.v_col):
            if name.startswith("tcol"):
                x, y = src0[i, j], src1[0, j]
            else:
                x, y = src0[i, j % case.tile("src0").v_col], src1[i, j % case.tile("src1").v_col]
            out[i, j] = element(op, tile.dtype, int(x), int(y))
    return out


def set_valid(case: Case, rows: int, cols: int) -> None:
    for n in ("dst", "src0", "src1"):
        tile = case.tile(n)
        tile.v_row, tile.v_col = rows, cols
        if case.row.name.startswith("trow") and case.plan.operands[n][0].v_col < case.tile("dst").cols:
            tile.v_col = min(32 * 8 // tile.bits, tile.cols)  # a block, or a scalar per row
        elif tile.cols == 1:
            tile.v_col = 1
        if case.row.name.startswith("tcol") and n == "src1":
            tile.v_row = 1


def check(case: Case, rng: np.random.Generator, any_bits: bool = False) -> None:
    codes: dict[str, Array] = {}
    for n in ("dst", "src0", "src1"):
        tile = case.tile(n)
        codes[n] = random_codes(rng, tile.dtype, tile.shape, True) if any_bits or n == "dst" else (
            sprinkled_codes(rng, tile.dtype, tile.shape)
        )  # fmt: skip
        case.set(n, codes[n])
    want = wanted(case, codes["dst"], codes["src0"], codes["src1"])
    (got,) = outcome(case, "dst")
    tile = case.tile("dst")
    assert_codes(tile.dtype, got, want, (case.row.name, case.plan.isa, tile.valid))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_every_plan(name: str) -> None:
    rng = np.random.default_rng(1)
    for k, plan in enumerate(some_plans(name)):
        case = Case(plan)
        for rows, cols in (VALID[k % len(VALID)], (5, 21)):
            set_valid(case, rows, cols)
            check(case, rng)


@pytest.mark.parametrize("name", [n for n in ARITHMETIC if n.startswith("trow")])
@pytest.mark.parametrize("form", ["src1", "src0"])
@pytest.mark.parametrize("width", [1, 8, 16])
def test_either_operand_may_repeat(name: str, form: str, width: int) -> None:
    """The broadcast operand in either position; the order of the operation stays."""
    rng = np.random.default_rng(2)
    plan = some_plans(name)[0]
    full, other = plan.operands["src0"][0], "src0" if form == "src1" else "src1"
    plan = plan.replace(operands={**plan.operands, form: (full,), other: (full,)})
    case = Case(plan)
    for tile in (case.tile(n) for n in ("dst", "src0", "src1")):
        tile.v_row, tile.v_col = 6, 37
    case.tile(form).v_col = width
    check(case, rng)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_in_place(name: str) -> None:
    """dst on the storage of the full operand."""
    rng = np.random.default_rng(3)
    for plan in some_plans(name):
        case = Case(plan)
        if case.tile("dst").layout != case.tile("src0").layout:
            continue
        case.tile("dst").address = case.tile("src0").address
        set_valid(case, 3, 21)
        codes = {n: sprinkled_codes(rng, case.tile(n).dtype, case.tile(n).shape) for n in ("src0", "src1")}
        for n, made in codes.items():
            case.set(n, made)
        want = wanted(case, codes["src0"], codes["src0"], codes["src1"])
        (got,) = outcome(case, "dst")
        assert_codes(case.tile("dst").dtype, got, want, name)


@pytest.mark.parametrize("name", ARITHMETIC)
@examples(20)
@given(st.data())
def test_any_codes(name: str, data: st.DataObject) -> None:
    case = Case(data.draw(st.sampled_from([p for p in some_plans(name) if p.isa == "cpu"])))
    set_valid(case, data.draw(st.integers(0, 5)), data.draw(st.integers(0, 12)))
    check(case, np.random.default_rng(data.draw(st.integers(0, 2**32))), any_bits=data.draw(st.booleans()))


@pytest.mark.parametrize("name", ["trowexpand", "tcolexpand"])
@pytest.mark.parametrize("valid", VALID)
def test_copies(name: str, valid: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    rows, cols = valid
    for plan in some_plans(name):
        case = Case(plan)
        src, dst = case.tile("src"), case.tile("dst")
        made = random_codes(rng, src.dtype, src.shape, True)
        case.set("src", made, (rows, 1) if name == "trowexpand" else (1, cols))
        want = random_codes(rng, dst.dtype, dst.shape, True)
        case.set("dst", want, valid)
        for i in range(rows):
            for j in range(cols):
                want[i, j] = made[i, 0] if name == "trowexpand" else made[0, j]
        (got,) = outcome(case, "dst")
        assert (got == want).all(), (plan.isa, src.dtype)  # bit patterns, NaN too


def f16_case(name: str, a: Any, b: Any) -> Case:
    case = Case(next(p for p in some_plans(name) if element_type(p, "dst") == "f16"))
    case.set("src0", np.array([[a]], np.float16).view(np.uint16), (1, 1))
    case.set("src1", np.array([[b]], np.float16).view(np.uint16), (1, 1))
    case.tile("dst").v_row = case.tile("dst").v_col = 1
    return case


def test_the_difference_is_rounded_before_the_exponential() -> None:
    """10 - 2**-10 is 10 in f16."""
    (got,) = outcome(f16_case("trowexpandexpdif", 10, 2**-10), "dst")
    assert got[0, 0] == encode("f16", math.exp(10.0)) != encode("f16", math.exp(10 - 2**-10))


@pytest.mark.parametrize("code", [0x1F79, 0x25CF])
def test_the_exponential_rounds_once(code: int) -> None:
    """The two numbers of f16 whose exponential a stop in f32 would round differently."""
    x = float(decode("f16", code))
    twice = encode("f16", decode("f32", encode("f32", math.exp(x))))
    (got,) = outcome(f16_case("tcolexpandexpdif", x, 0), "dst")
    assert got[0, 0] == encode("f16", math.exp(x)) != twice


def test_an_operand_without_columns_is_refused() -> None:
    case = f16_case("trowexpandadd", 1, 1)
    case.tile("src1").v_col = 0
    with pytest.raises(IllegalInstruction, match="src1"):
        case.run()


def test_a_shadow_run_does_not_round() -> None:
    case = f16_case("trowexpandexpdif", 10, 2**-10)
    case.core.port = Doubles()
    (got,) = outcome(case, "dst")
    assert got[0, 0] == encode("f16", math.exp(10 - 2**-10))
    for name in ("trowexpand", "tcolexpand"):
        case = Case(next(p for p in some_plans(name) if element_type(p, "dst") == "f16"))
        case.core.port = Doubles()
        case.set("src", np.full((1, 1), 0x3E01, np.uint16), (1, 1))
        case.tile("dst").v_row = case.tile("dst").v_col = 1
        assert outcome(case, "dst")[0][0, 0] == 0x3E01
