"""Comparison, selection, permutation, and registers made from scalars, against loops over lanes."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from tests.each import together

from pto.ir.types import VRegType
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..rows import Doubles, assert_codes, numbers
from .cases import VectorCase, over, plans_of, shown, width
from .masks import typed

ROWS = ("vcmp", "vcmps", "vsel", "vselr", "vselrv2", "vbr", "vdup", "vci", "vbitcast")

MODES = ("eq", "ne", "lt", "le", "gt", "ge")


def each(*names: str, **choices: Any) -> list[Plan]:
    return [made for name in names for plan in plans_of(name) for made in over(plan, **choices)]


def scalars(dtype: str) -> list[float | int]:
    """Numbers that an element type has, special ones too."""
    d = DTYPES[dtype]
    if d.is_float:
        return [
            encoding.decode(d, encoding.encode(d, v))
            for v in (0.0, -0.0, 1.0, -2.5, 100.125, 6e4, math.inf, math.nan)
        ]
    low, high = (-(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1) if d.kind == "i" else (0, (1 << d.bits) - 1)
    return [0, 1, 5, low, high, high - 3]


# -- comparison --------------------------------------------------------------------------------------------


def compared(mode: str, x: float | int, y: float | int) -> bool:
    """A comparison of Python numbers: with a NaN only ne holds."""
    return getattr(operator, mode)(x, y)


def check_mask(case: VectorCase, want: list[bool]) -> None:
    """The lanes of the result, and nothing in the other bits of their slots."""
    size = case.granule("m")
    image = case.image("m").reshape(-1, size)
    assert image[:, 0].tolist() == [int(v) for v in want]
    assert not image[:, 1:].any()


@together("plan", each("vcmp", cmp_mode=MODES))
def test_vcmp(plan: Plan) -> None:
    mode = str(plan.attrs["cmp_mode"].value)
    for seed in range(2):
        case = VectorCase(plan, seed)
        x, y = case.fill("src0"), case.fill("src1")
        y = np.where(case.rng.random(x.size) < 0.3, x, y)  # equal ones, too
        case.set("src1", y)
        dtype = case.args["src0"].dtype
        on = case.some_lanes("seed") if seed else case.on("seed", True)
        case.execute()
        xs, ys = numbers(dtype, x), numbers(dtype, y)
        check_mask(case, [bool(s) and compared(mode, a, b) for s, a, b in zip(on, xs, ys, strict=True)])


@together("plan", each("vcmps", cmp_mode=MODES))
def test_vcmps(plan: Plan) -> None:
    mode = str(plan.attrs["cmp_mode"].value)
    case = VectorCase(plan, 1)
    dtype = case.args["src"].dtype
    for s in scalars(dtype):
        x = case.fill("src")
        x = np.where(case.rng.random(x.size) < 0.2, encoding.encode(DTYPES[dtype], s), x).astype(x.dtype)
        case.set("src", x)
        case.args["scalar"] = s
        on = case.some_lanes("seed")
        case.execute()
        check_mask(
            case, [bool(o) and compared(mode, a, s) for o, a in zip(on, numbers(dtype, x), strict=True)]
        )


@pytest.mark.parametrize("name", ["vcmp", "vcmps"])
def test_comparison_with_everything_off(name: str) -> None:
    for plan in plans_of(name, "a5"):
        case = VectorCase(plan)
        case.on("seed", False)
        case.execute()
        assert not case.image("m").any()


# -- selection ---------------------------------------------------------------------------------------------


@together("plan", each("vsel"))
def test_vsel(plan: Plan) -> None:
    """Bits are chosen as they are, NaNs with their payload."""
    for seed in range(4):
        case = VectorCase(plan, seed)
        x, y = case.fill("src0", 1.0), case.fill("src1", 1.0)
        on = case.some_lanes("mask") if seed > 1 else case.on("mask", bool(seed))
        case.execute()
        assert case.get("r").tolist() == [
            a if m else b for m, a, b in zip(on, x.tolist(), y.tolist(), strict=True)
        ]


@pytest.mark.parametrize("plan", each("vselr", "vselrv2"), ids=shown)
def test_permutation(plan: Plan) -> None:
    """Indices are unsigned and wrap at the number of lanes."""
    case = VectorCase(plan, 1)
    lanes = case.args["src"].lanes
    source, any_index = case.fill("src", 1.0), case.fill("idx", 1.0)
    for index in (any_index, np.arange(lanes)[::-1], case.rng.permutation(lanes), np.zeros(lanes)):
        index = index.astype(any_index.dtype)
        case.set("idx", index)
        case.execute()
        assert case.get("r").tolist() == [source.tolist()[k % lanes] for k in index.tolist()]


@pytest.mark.parametrize("name", ["vselr", "vselrv2"])
def test_permutation_by_unsigned_indices(name: str) -> None:
    for plan in plans_of(name, "a5"):
        text = str(plan.operands["idx"][0])
        other = typed(plan, idx=text.replace("xi", "xui"))
        case = VectorCase(other, 2)
        source, index = case.fill("src"), case.fill("idx", 1.0)
        case.execute()
        assert case.get("r").tolist() == [source.tolist()[k % source.size] for k in index.tolist()]


# -- registers from scalars --------------------------------------------------------------------------------


def code(dtype: str, value: float | int) -> int:
    d = DTYPES[dtype]
    return encoding.encode(d, value) if d.is_float else int(value) & ((1 << d.bits) - 1)


@together("plan", each("vbr"))
def test_vbr(plan: Plan) -> None:
    case = VectorCase(plan)
    r = case.args["r"]
    for value in scalars(r.dtype):
        case.args["value"] = value
        case.execute()
        want = np.full((1, r.lanes), code(r.dtype, value), case.get("r").dtype)
        assert_codes(r.dtype, case.get("r")[None], want, f"vbr {value}")


def masked(plan: Plan) -> Plan:
    """vdup with a mask for the width of its elements."""
    dtype = str(plan.results["r"][0].dtype)  # type: ignore[attr-defined]
    return typed(plan, mask=f"!pto.mask<b{8 * width(dtype)}>")


POSITIONS = ("LOWEST", "HIGHEST", "POS_LOWEST", "POS_HIGHEST")


@together("plan", each("vdup", position=POSITIONS))
def test_vdup(plan: Plan) -> None:
    for made in (plan, masked(plan)):
        for seed in range(3):
            case = VectorCase(made, seed)
            r, source = case.args["r"], case.args["input"]
            on = np.ones(r.lanes, bool)
            if "mask" in case.args:
                on = case.on("mask", False) if seed == 0 else case.some_lanes("mask")
            if hasattr(source, "lanes"):
                codes = case.fill("input", 1.0)
                picked = int(codes[-1] if "HIGHEST" in str(plan.attrs["position"].value) else codes[0])
            else:
                value = scalars(r.dtype)[seed + 2]
                case.args["input"] = value
                picked = code(r.dtype, value)
            case.execute()
            assert case.get("r").tolist() == [picked if o else 0 for o in on]


def test_vdup_takes_the_lowest_lane_unless_told() -> None:
    for plan in plans_of("vdup", "a5"):
        case = VectorCase(plan, 4)
        if hasattr(case.args["input"], "lanes"):
            codes = case.fill("input")
            case.execute()
            assert set(case.get("r").tolist()) == {int(codes[0])}


ORDERS = {"ASC": 1, "DESC": -1, "INC_ORDER": 1, "DEC_ORDER": -1}


@together("plan", each("vci", order=tuple(ORDERS)))
def test_vci(plan: Plan) -> None:
    """Integers wrap, floats are rounded once from the exact sum."""
    step = ORDERS[str(plan.attrs["order"].value)]
    case = VectorCase(plan)
    r = case.args["r"]
    more = [2048.0, 2047.0, -65504.0, 16777216.0, 0.1] if DTYPES[r.dtype].is_float else []
    d = DTYPES[r.dtype]
    for start in [*scalars(r.dtype), *(encoding.decode(d, encoding.encode(d, v)) for v in more)]:
        case.args["index"] = start
        case.execute()
        want = [code(r.dtype, start + n if step > 0 else start - n) for n in range(r.lanes)]
        got = case.get("r")
        assert_codes(r.dtype, got[None], np.array([want], np.uint64).astype(got.dtype), f"vci {start}")


def test_vci_ascends_unless_told() -> None:
    for plan in plans_of("vci", "a5"):
        case = VectorCase(plan)
        case.args["index"] = 3
        case.execute()
        assert numbers(case.args["r"].dtype, case.get("r"))[:3] == [3, 4, 5]


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
def test_vbitcast_keeps_bytes(column: str) -> None:
    """Every element type as every other."""
    made = plans_of("vbitcast", column)
    types = [str(p.operands["input"][0]) for p in made]
    assert len(types) == (14 if column == "a5" else 11)
    for source in types:
        for target in types:
            case = VectorCase(typed(made[0], input=source, r=target), 5)
            case.fill("input", 1.0)
            case.execute()
            assert case.args["r"].buffer.data.tobytes() == case.args["input"].buffer.data.tobytes()


# -- with a shadow -----------------------------------------------------------------------------------------


def has_floats(plan: Plan) -> bool:
    types = [t[0] for t in (*plan.operands.values(), *plan.results.values())]
    return any(isinstance(t, VRegType) and DTYPES[str(t.dtype)].is_float for t in types)


MOVES = ("vsel", "vselr", "vbr", "vdup", "vci", "vcmp", "vcmps", "vbitcast")
SHADOWED = [p for name in MOVES for p in plans_of(name, "a5") if has_floats(p)]


@together("plan", SHADOWED)
def test_float64_run_agrees(plan: Plan) -> None:
    """Moves and comparisons of elements give the same in a run with float64."""
    results: list[Any] = []
    for doubled in (False, True):
        case = VectorCase(plan, 7)
        for name, value in case.args.items():
            if hasattr(value, "lanes") and name in plan.operands and not name.startswith(("mask", "seed")):
                finite = case.rng.integers(-50, 50, value.lanes)
                d = DTYPES[value.dtype]
                case.set(
                    name,
                    np.array(
                        [code(value.dtype, abs(int(v)) if d.kind == "u" else int(v)) for v in finite],
                        np.uint64,
                    ),
                )
        for mask in ("mask", "seed"):
            if mask in case.args:
                case.some_lanes(mask)
        if doubled:
            case.core.port = Doubles()
        case.execute()
        out = next(iter(plan.results))
        results.append(case.args[out].buffer.data.tobytes())
    assert results[0] == results[1]


def test_a_chosen_element_keeps_its_bits() -> None:
    """It is moved, not computed with; NaNs keep their bits."""
    plan = next(p for p in plans_of("vsel", "a5") if "bf16" in shown(p))
    case = VectorCase(plan, 1)
    case.set("src0", np.full(128, 0x7FC1, np.uint16))
    case.set("src1", np.full(128, 0xFF81, np.uint16))
    case.on("mask", np.arange(128) % 2 == 0)
    case.execute()
    assert case.get("r").tolist() == [0x7FC1, 0xFF81] * 64
