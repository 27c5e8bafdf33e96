"""Matrix products against an exact scalar chain of fused multiply-adds."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine import elements
from pto.engine.reference.instr import IllegalInstruction
from pto.engine.reference.matmul import fused_dot
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import convert, decode, encode
from pto.witness.plan import Plan

from . import numpy_twins
from .rows import Array, Case, Doubles, every_plan, mixed_codes, outcome, random_codes, same, some_plans

ROWS = (
    "tmatmul", "tmatmul.acc", "tmatmul.bias", "tmatmul.mx", "tmatmul.mx.acc", "tmatmul.mx.bias",
    "tmatmul_mx_hif4", "tgemv", "tgemv.acc", "tgemv.bias", "tgemv.mx", "tgemv.mx.acc", "tgemv.mx.bias",
)  # fmt: skip

#: Valid (M, K, N) of the 16x64 by 64x32 witness: full, ragged, one row, one column, one step, empty.
SIZES = ((16, 64, 32), (5, 37, 19), (1, 64, 32), (16, 33, 1), (7, 1, 3), (0, 8, 32), (3, 8, 0), (4, 0, 5))
ADDENDS = ("acc_in", "c_in", "bias")


# -- the definition, one number at a time -------------------------------------------------------------------


def f32(x: Fraction | float) -> float:
    if isinstance(x, float):
        return ctypes.c_float(x).value
    return float(decode("f32", encode("f32", x)))


def fma(a: float, b: float, c: float) -> float:
    """a*b + c with one rounding to f32."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return f32(a * b + c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return f32(exact) if exact else a * b + c


def dot(a: list[float], b: list[float]) -> float:
    acc = 0.0
    for x, y in zip(a, b, strict=True):
        acc = fma(x, y, acc)
    return acc


def mx_dot(a: list[float], b: list[float], sa: list[float], sb: list[float]) -> float:
    acc = 0.0
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        acc = f32(acc + x * y * sa[k // 32] * sb[k // 32])
    return acc


def hif4_scale(cell: list[int], t: int) -> float:
    ea, eb, low, high = cell
    if ea == 0xFF:
        return math.nan
    scale = 2.0 ** ((ea >> 2) - 48) * (1 + (ea & 3) / 4)
    return scale * 2.0 ** ((eb >> t // 8 & 1) + ((low | high << 8) >> t // 4 & 1))


def expected(case: Case, codes: dict[str, Array], i: int, j: int) -> int:
    """Code of dst[i, j] from the codes of the operands."""

    def value(name: str, r: int, c: int) -> Any:
        return decode(case.tile(name).dtype, int(codes[name][r, c]))

    left, right = ("lhs", "rhs") if "lhs" in case.args else ("a", "b")
    depth = case.tile(left).v_col
    a = [value(left, i, k) for k in range(depth)]
    b = [value(right, k, j) for k in range(depth)]
    addend = None
    for name in ADDENDS:
        if name in case.args:
            addend = value(name, 0 if name == "bias" else i, j)
    if isinstance(a[0] if a else 0, int) and case.tile("dst").dtype == "i32":
        return encode("i32", sum(x * y for x, y in zip(a, b, strict=True)) + (addend or 0))
    if case.row.name == "tmatmul_mx_hif4":
        for k in range(depth):
            g = k // 64 * 4
            a[k] *= hif4_scale([value("a_scale", i, g + q) for q in range(4)], k % 64)
            b[k] *= hif4_scale([value("b_scale", g + q, j) for q in range(4)], k % 64)
        total = dot(a, b)
    elif "a_scale" in case.args:
        groups = range(-(-depth // 32))
        sa, sb = [value("a_scale", i, g) for g in groups], [value("b_scale", g, j) for g in groups]
        total = mx_dot(a, b, sa, sb)
    else:
        total = dot(a, b)
    return encode("f32", total if addend is None else total + addend)


# -- running ------------------------------------------------------------------------------------------------


def sized(plan: Plan, m: int, k: int, n: int, seed: int = 0) -> Case:
    """A case whose operands have the valid regions of an MxK by KxN product."""
    case = Case(plan, seed)
    if case.row.name.startswith("tgemv") and plan.isa != "cpu":
        m = min(m, 1)
    lhs, rhs = ("lhs", "rhs") if "lhs" in case.args else ("a", "b")
    valid = {lhs: (m, k), rhs: (k, n), "dst": (m, n), "acc_in": (m, n), "c_in": (m, n), "bias": (1, n)}
    for name, (r, c) in valid.items():
        if name in case.args:
            case.tile(name).v_row, case.tile(name).v_col = r, c
    return case


def fill(case: Case, special: bool) -> None:
    for name, tile in case.args.items():
        if name.endswith("_scale"):
            # Scales near 1, with extreme ones and NaN among them if asked for.
            codes = (
                case.rng.integers(0, 256, tile.shape) if special else case.rng.integers(120, 134, tile.shape)
            )
            if tile.dtype == "u8" and not special:
                codes = case.rng.integers(170, 210, tile.shape)
            case.set(name, codes)
        elif special:
            case.set(name, mixed_codes(case.rng, tile.dtype, tile.shape))
        elif DTYPES[tile.dtype].is_float:
            case.set(
                name, elements.encode(tile.dtype, 2 * case.rng.standard_normal(tile.shape), saturate=True)
            )
        else:
            case.random(name)


def check(case: Case, count: int = 5) -> None:
    """Run, and compare some elements with the definition and the rest of the tile with its old content."""
    before = case.get("dst")
    m, n = case.tile("dst").v_row, case.tile("dst").v_col
    places = [(0, 0), (m - 1, n - 1)] if m and n else []
    places += [(int(case.rng.integers(m)), int(case.rng.integers(n))) for _ in range(count) if m and n]
    codes = {name: case.get(name) for name in case.args}
    want = {(i, j): expected(case, codes, i, j) for i, j in places}
    (got,) = outcome(case, "dst")
    for (i, j), code in want.items():
        assert same("f32" if case.tile("dst").dtype == "f32" else "i32", got[i : i + 1, j : j + 1],
                    np.array([[code]], np.uint32)), (case.plan, i, j, hex(got[i, j]), hex(code))  # fmt: skip
    before[:m, :n] = got[:m, :n]
    assert (before == got).all(), "elements outside the product changed"


@pytest.mark.parametrize("name", ROWS)
def test_forms(name: str) -> None:
    """Every column, element type and layout, through the valid regions."""
    for at, plan in enumerate(some_plans(name)):
        case = sized(plan, *SIZES[at % len(SIZES)], seed=at)
        fill(case, special=False)
        check(case)


@pytest.mark.parametrize("name", ROWS)
def test_valid_regions(name: str) -> None:
    for size in SIZES:
        case = sized(next(every_plan(name)), *size)
        fill(case, special=False)
        check(case)


@pytest.mark.parametrize("name", ROWS)
def test_special_values(name: str) -> None:
    """NaN, infinities, denormals and extremes, of every element type."""
    seen: set[tuple[str, ...]] = set()
    for plan in every_plan(name, layouts=False):
        case = sized(plan, 6, 12, 5, seed=len(seen))
        types = tuple(t.dtype for t in case.args.values())
        if types not in seen:
            seen.add(types)
            fill(case, special=True)
            check(case, count=12)


def plan_of(name: str, isa: str = "cpu", **dtypes: str) -> Plan:
    for plan in every_plan(name, layouts=False):
        case = Case(plan)
        if plan.isa == isa and all(case.tile(n).dtype == t for n, t in dtypes.items()):
            return plan
    raise AssertionError(name)


def test_accumulates_in_place() -> None:
    case = sized(plan_of("tmatmul.acc", lhs="f16"), 9, 20, 11)
    fill(case, special=False)
    case.args["acc_in"] = case.args["dst"]
    case.random("dst")
    check(case)


def test_integers_wrap() -> None:
    case = sized(plan_of("tmatmul.acc", lhs="u8"), 2, 64, 3)
    for name in ("lhs", "rhs"):
        case.set(name, np.full(case.tile(name).shape, 255))
    case.set("acc_in", np.full(case.tile("acc_in").shape, 2**31 - 5))
    (got,) = outcome(case, "dst")
    assert (got[:2, :3] == (2**31 - 5 + 64 * 255 * 255) % 2**32).all()


def test_the_product_starts_from_zero() -> None:
    case = sized(plan_of("tmatmul", lhs="f32"), 3, 0, 3)
    case.set("dst", np.full(case.tile("dst").shape, 0x7FC00000))
    (got,) = outcome(case, "dst")
    assert (got[:3, :3] == 0).all()


@pytest.mark.parametrize(("name", "region"), [("rhs", (20, 32)), ("dst", (15, 32)), ("dst", (16, 31))])
def test_sizes_that_do_not_fit(name: str, region: tuple[int, int]) -> None:
    case = sized(plan_of("tmatmul", lhs="f16"), 16, 64, 32)
    case.tile(name).v_row, case.tile(name).v_col = region
    with pytest.raises(IllegalInstruction):
        case.run()


# -- the chain ----------------------------------------------------------------------------------------------


def chain(a: Array, b: Array) -> Array:
    out = [[dot(list(map(float, row)), list(map(float, col))) for col in b.T] for row in a]
    return np.array(out, np.float32).reshape(a.shape[0], b.shape[1])


def every_dot(a: Array, b: Array) -> Iterator[Array]:
    """The chain in NumPy and, in both of its forms, compiled."""
    yield numpy_twins.fused_dot(a, b)
    yield fused_dot(a, b)
    yield elements.loops().dot_f64(*(np.ascontiguousarray(x, np.float64) for x in (a, b)))


#: Factors of 1 - 2**-46 and 1 + 2**-36: beside 1 by less than a double of 24 more bits can hold.
BESIDE_ONE = ((1 + 2.0**-23, 1 - 2.0**-23), ((2**23 + 2048) / 2**23, (2**24 - 4095) / 2**24))


@pytest.mark.parametrize("exponent", [0, -20, 30])
def test_rounds_once_at_midpoints(exponent: int) -> None:
    """A sum beside a midpoint of f32 that a double takes for the midpoint itself."""
    unit = 2.0**exponent
    for x, y in BESIDE_ONE:
        a = [
            [sign * (2**23 + k) * unit, other * x / 2 * unit]
            for k in (0, 1, 6, 7)
            for sign in (1, -1)
            for other in (1, -1)
        ]
        left, right = np.array(a, np.float32), np.array([[1], [y]], np.float32)
        want = chain(left, right)
        assert all((got == want).all() for got in every_dot(left, right))
        assert all((got == want.T).all() for got in every_dot(right.T, left.T))


@pytest.mark.parametrize("spread", [2, 9])
@pytest.mark.parametrize(
    ("bits", "low"), [(11, -40), (12, -40), (13, -40), (14, -40), (12, -75), (12, -85), (5, 60)]
)
def test_operands_of_few_bits(bits: int, low: int, spread: int) -> None:
    """Products that fit f32 exactly, and those that just do not: by length, or by magnitude."""
    rng = np.random.default_rng(bits + spread)
    a, b = (
        np.ldexp((rng.integers(2 ** (bits - 1), 2**bits, shape) | 1) * rng.choice([-1.0, 1.0], shape),
                 low + rng.integers(0, spread, shape)).astype(np.float32)
        for shape in ((6, 8), (8, 9))
    )  # fmt: skip
    with np.errstate(all="ignore"):
        want = chain(a, b).view(np.uint32)
        assert all(same("f32", got.view(np.uint32), want) for got in every_dot(a, b))


floats = st.one_of(
    st.floats(width=32, allow_nan=False),
    st.floats(width=16, allow_nan=False),
    st.integers(-(2**24), 2**24).map(float),
    st.sampled_from(
        [0.0, -0.0, 1.0, 2.0**-126, 2.0**-149, -(2.0**-149), 2.0**-75, -(2.0**-75), 3.0e38, math.inf]
    ),
)


@examples(150)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 3), st.data())
def test_chain_is_exact(m: int, k: int, n: int, data: st.DataObject) -> None:
    pick = st.lists(floats, min_size=m * k + k * n, max_size=m * k + k * n)
    flat = np.array(data.draw(pick), np.float32)
    a, b = flat[: m * k].reshape(m, k), flat[m * k :].reshape(k, n)
    want = chain(a, b)
    with np.errstate(all="ignore"):
        for got in every_dot(a, b):
            codes = np.ascontiguousarray(got).view(np.uint32)
            assert same("f32", codes, want.view(np.uint32)), (a, b, got, want)


def test_zero_keeps_its_sign_after_an_underflow() -> None:
    a = np.array([[-(2.0**-149), -0.0]], np.float32)
    b = np.array([[2.0**-149], [1.0]], np.float32)
    assert all(np.signbit(got[0, 0]) for got in every_dot(a, b))


# -- modes and shadows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("isa", "bits"), [("cpu", 23), ("a2a3", 11), ("a5", 10)])
@pytest.mark.parametrize("mode", ["ROUND", "RINT"])
def test_tf32_shortens_f32_operands(isa: str, bits: int, mode: str) -> None:
    case = sized(plan_of("tmatmul", isa, lhs="f32"), 4, 1, 4)
    case.core.registers["CTRL"] = 1 << 60 | 1 << 46 | (mode == "ROUND") << 47
    # Halfway between two numbers of `bits` mantissa bits, above an even and an odd one.
    unit = 2.0**-bits
    rows = [1 + unit / 2, 1 + 1.5 * unit, -1 - unit / 2, 1 + unit / 2 + 2.0**-23]
    case.set("lhs", random_codes(case.rng, "f32", case.tile("lhs").shape))
    case.set("rhs", np.full(case.tile("rhs").shape, encode("f32", 1.0)))
    codes = case.get("lhs")
    codes[:4, 0] = [encode("f32", x) for x in rows]
    case.set("lhs", codes)
    (got,) = outcome(case, "dst")
    short = [float(Fraction(round(Fraction(x) / Fraction(unit))) * Fraction(unit)) for x in rows]
    if mode == "ROUND":
        short[0], short[2] = 1 + unit, -1 - unit
    want = [f32(x) for x in (rows if isa == "cpu" else short)]
    assert [decode("f32", int(c)) for c in got[:4, 0]] == want


def test_hf32_keeps_eleven_bits() -> None:
    case = sized(plan_of("tmatmul", "a2a3", lhs="f32"), 1, 1, 1)
    case.core.registers["hf32"] = "ROUND"
    case.set("lhs", np.full(case.tile("lhs").shape, encode("f32", 1 + 2.0**-12)))
    case.set("rhs", np.full(case.tile("rhs").shape, encode("f32", 1.0)))
    (got,) = outcome(case, "dst")
    assert decode("f32", int(got[0, 0])) == 1 + 2.0**-11


@pytest.mark.parametrize("dtype", ["u8", "f8e8m0", "f32"])
def test_scales_of_the_assembler(dtype: str) -> None:
    """A `scaling` tile: bytes are e8m0 codes, other types their own numbers."""
    case = sized(plan_of("tmatmul.mx", a="f8e4m3", b="f8e4m3"), 2, 64, 2)
    fill(case, special=False)
    (want,) = outcome(case, "dst")
    for name in ("a_scale", "b_scale"):
        tile, codes = case.tile(name), case.get(name)
        wide = case.args["dst"].copy()
        wide.dtype, wide.bits = dtype, 32 if dtype == "f32" else 8
        wide.buffer, wide.address = case.core.buffers["vec"], 4096 if name == "a_scale" else 16384
        wide.layout, wide.box, wide.rows, wide.cols = "ND", (1, 1), *tile.shape
        wide.pitch = tile.shape
        case.args[name] = wide
        case.set(
            name, np.vectorize(lambda c: convert(int(c), "f8e8m0", dtype) if dtype == "f32" else c)(codes)
        )
    (got,) = outcome(case, "dst")
    assert (got == want).all()


@pytest.mark.parametrize("name", ROWS)
def test_shadow_run(name: str) -> None:
    """In a shadow run nothing is rounded before the store."""
    case = sized(next(every_plan(name)), 5, 17, 6)
    fill(case, special=False)
    case.core.port = Doubles()
    (got,) = outcome(case, "dst")
    plain = sized(next(every_plan(name)), 5, 17, 6)
    fill(plain, special=False)
    (want,) = outcome(plain, "dst")
    m, n = case.tile("dst").v_row, case.tile("dst").v_col
    x, y = (np.ascontiguousarray(c[:m, :n]).view(np.float32).astype(float) for c in (got, want))
    assert np.allclose(x, y, rtol=1e-5, atol=1e-4 * np.abs(y).max())


def test_a_larger_destination_keeps_the_rest() -> None:
    """The valid region of the left tile sets the number of rows."""
    case = sized(plan_of("tmatmul", lhs="f16"), 16, 64, 32)
    case.random("lhs"), case.random("rhs")
    case.set("dst", np.full(case.tile("dst").shape, 0x7FC00000))
    case.tile("lhs").v_row = 5
    case.run()
    got = case.get("dst")
    assert (got[5:] == 0x7FC00000).all() and (got[:5] != 0x7FC00000).all()
