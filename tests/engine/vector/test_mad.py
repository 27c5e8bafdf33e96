"""Cube products of pointers against sums of exact numbers: all types, forms and clauses, and every layout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples

from pto.engine.reference.core import RunError
from pto.engine.reference.matmul import saturated_dot
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import decode, encode
from pto.witness.plan import Plan

from ..rows import Doubles, assert_codes, mixed_codes, random_codes
from ..test_matmul import dot, f32, fma, mx_dot
from .cases import over, plans_of, shown
from .fractals import Array, Bench, c0, element, l0a, l0b, l0c, read, scales_of_columns, scales_of_rows, write

MAD = ("mad", "mad_acc", "mad_bias")
MX = ("mad_mx", "mad_mx_acc", "mad_mx_bias")
ROWS = (*MAD, *MX)
PLANS = [p for name in ROWS for p in plans_of(name)]
F32_MAX = DTYPES["f32"].max_finite
each_plan = together("plan", PLANS)


class Product(Bench):
    """An instance with random operands; `expected` gives the numbers one at a time."""

    def __init__(self, plan: Plan, m: int, k: int, n: int, seed: int = 0, special: bool = False) -> None:
        super().__init__(plan, seed, m=m, k=k, n=n)
        self.m, self.k, self.n = m, k, n
        self.scaled = plan.row.name in MX
        self.codes: dict[str, Array] = {}
        for name, shape in (("lhs", (m, k)), ("rhs", (k, n)), ("dst", (m, n)), ("bias", (1, n))):
            if name in self.args:
                make = mixed_codes if special else random_codes
                self.codes[name] = make(self.rng, self.pointer(name).dtype, shape)
        if self.scaled:
            groups = k // 32
            low, high = (0, 256) if special else (118, 136)
            self.codes["ls"] = self.rng.integers(low, high, (m, groups)).astype(np.uint8)
            self.codes["rs"] = self.rng.integers(low, high, (groups, n)).astype(np.uint8)
        self.place()

    def place(self) -> None:
        lhs, rhs = self.pointer("lhs"), self.pointer("rhs")
        gemv = self.m == 1 and not self.op.attr("disable_gemv")
        left = (lambda r, c: c) if gemv else l0a(self.isa, self.m, self.k, lhs.dtype)
        write(lhs, left, self.codes["lhs"])
        write(rhs, l0b(self.k, self.n, rhs.dtype), self.codes["rhs"])
        write(self.pointer("dst"), l0c(self.m), self.codes["dst"])
        if "bias" in self.args:
            write(self.pointer("bias"), lambda r, c: c, self.codes["bias"])
        if self.scaled:
            write(self.scale_pointer("lhs", "scale_left"), scales_of_rows(self.k // 32), self.codes["ls"])
            write(self.scale_pointer("rhs", "scale_right"), scales_of_columns(self.k // 32), self.codes["rs"])

    def number(self, name: str, r: int, c: int) -> Any:
        dtype = "f8e8m0" if name in ("ls", "rs") else self.pointer(name).dtype
        return decode(dtype, int(self.codes[name][r, c]))

    def expected(self, r: int, c: int) -> int:
        a = [self.number("lhs", r, t) for t in range(self.k)]
        b = [self.number("rhs", t, c) for t in range(self.k)]
        addend = None
        if self.row.name.endswith("acc"):
            addend = self.number("dst", r, c)
        elif "bias" in self.args:
            addend = self.number("bias", 0, c)
        if self.pointer("dst").dtype == "i32":
            return encode("i32", sum(x * y for x, y in zip(a, b, strict=True)) + (addend or 0))
        if mode := self.op.attr("tf32_mode"):
            bits = 11 if self.isa == "a2a3" else 10
            a, b = ([tf32(x, bits, mode == "round_away") for x in v] for v in (a, b))
        if self.scaled:
            groups = range(self.k // 32)
            total = mx_dot(
                a, b, [self.number("ls", r, g) for g in groups], [self.number("rs", g, c) for g in groups]
            )
        else:
            total = dot(a, b)
        return encode("f32", total if addend is None else f32(total + addend))

    def check(self) -> None:
        before = self.snapshot()
        self.execute()
        dst = self.pointer("dst")
        got = read(dst, l0c(self.m), self.m, self.n)
        want = np.array([[self.expected(r, c) for c in range(self.n)] for r in range(self.m)], np.uint32)
        assert_codes(dst.dtype, got, want, shown(self.plan))
        write(dst, l0c(self.m), self.codes["dst"])
        after = self.snapshot()
        assert all((before[name] == after[name]).all() for name in before), "wrote beside dst"


def tf32(x: float, bits: int, away: bool) -> float:
    """A number with `bits` bits behind the point, ties to even or away from zero."""
    if not math.isfinite(x) or x == 0:
        return x
    unit = 2.0 ** (max(math.frexp(x)[1] - 1, -126) - bits)
    whole = math.floor(abs(x) / unit + 0.5) if away else round(abs(x) / unit)
    return f32(math.copysign(whole * unit, x))


def depth(plan: Plan, k: int) -> int:
    """A depth that the row allows."""
    if plan.row.name in MX:
        return -(-k // 64) * 64
    return k + k % 2 if "s4" in shown(plan) else k


@each_plan
def test_every_type(plan: Plan) -> None:
    Product(plan, 2, depth(plan, 37), 4).check()


@each_plan
def test_blocks(plan: Plan) -> None:
    """More than one fractal in every direction."""
    case = Product(plan, 17, depth(plan, c0(element(plan, "lhs")) + 1), 18, seed=1)
    before = case.snapshot()
    case.execute()
    dst = case.pointer("dst")
    got = read(dst, l0c(17), 17, 18)
    for r, c in ((0, 0), (15, 15), (16, 0), (0, 16), (16, 17), (7, 9)):
        assert_codes(
            dst.dtype, got[r : r + 1, c : c + 1], np.array([[case.expected(r, c)]], np.uint32), (r, c)
        )
    assert before["L0A"].tobytes() == case.snapshot()["L0A"].tobytes()


@pytest.mark.parametrize("name", ROWS)
def test_special_values(name: str) -> None:
    for plan in plans_of(name, "a5"):
        Product(plan, 4, depth(plan, 9), 6, seed=2, special=True).check()


@pytest.mark.parametrize("name", ROWS)
def test_a_single_row(name: str) -> None:
    """GEMV order, and fractals with `disable_gemv`."""
    for plan in (plans_of(name, "a5")[0], plans_of(name, "a5")[-1]):
        for made in (plan, *over(plan, disable_gemv=["disable_gemv"])):
            Product(made, 1, depth(made, 70), 3, seed=3).check()


@pytest.mark.parametrize("mode", ["round_even", "round_away"])
def test_tf32(mode: str) -> None:
    for column in ("cpu", "a2a3", "a5"):
        single = [p for p in plans_of("mad", column) if element(p, "lhs") == "f32"]
        for made in over(single[0], tf32_mode=[mode]):
            Product(made, 4, 11, 5, seed=4).check()
            case = Product(made, 2, 2, 2)
            ties = [1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-12, 1 + 2.0**-11 + 2.0**-20]
            case.codes["lhs"] = np.array([encode("f32", v) for v in ties], np.uint32).reshape(2, 2)
            case.place()
            case.check()


def test_hints_change_nothing() -> None:
    plan = next(p for p in plans_of("mad", "a5") if "f16" in shown(p))
    for made in over(plan, n_dir=["n_dir"], unit_flag=["check_only", "check_and_set"]):
        Product(made, 5, 20, 17).check()


# -- saturation ----------------------------------------------------------------------------------------------


def ordinary(x: float, dtype: str) -> float:
    top = DTYPES[dtype].max_finite
    return 0.0 if math.isnan(x) else max(-top, min(top, x))


def saturated(a: list[float], b: list[float]) -> float:
    acc = 0.0
    for x, y in zip(a, b, strict=True):
        acc = max(-F32_MAX, min(F32_MAX, fma(x, y, acc)))
    return acc


@pytest.mark.parametrize("name", ROWS)
def test_sat(name: str) -> None:
    for plan in plans_of(name, "a5"):
        for made in over(plan, sat_mode=["sat"]):
            case = Product(made, 3, depth(made, 8), 4, seed=5, special=True)
            case.execute()
            got = read(case.pointer("dst"), l0c(3), 3, 4)
            for r in range(3):
                for c in range(4):
                    scale = [1.0] * case.k
                    if case.scaled:
                        factors = [
                            (case.number("ls", r, t // 32), case.number("rs", t // 32, c))
                            for t in range(case.k)
                        ]
                        scale = [0.0 if math.isnan(x) or math.isnan(y) else x * y for x, y in factors]
                    a = [ordinary(case.number("lhs", r, t), case.pointer("lhs").dtype) for t in range(case.k)]
                    b = [ordinary(case.number("rhs", t, c), case.pointer("rhs").dtype) for t in range(case.k)]
                    total = saturated([x * s for x, s in zip(a, scale, strict=True)], b)
                    if name.endswith("acc"):
                        total = f32(total + case.number("dst", r, c))
                    elif name.endswith("bias"):
                        total = f32(total + case.number("bias", 0, c))
                    total = max(-F32_MAX, min(F32_MAX, total))
                    want = np.array([[encode("f32", total)]], np.uint32)
                    assert_codes("f32", got[r : r + 1, c : c + 1], want, (shown(made), r, c))


def test_a_scale_that_is_no_number() -> None:
    """It makes the sums NaN; with sat, products with it count as 0."""
    plan = plans_of("mad_mx", "a5")[0]
    for made in (plan, *over(plan, sat_mode=["sat"])):
        case = Product(made, 2, 64, 2)
        case.codes["ls"][:] = [[255, 127], [127, 127]]
        case.codes["rs"][:] = 127
        case.codes["lhs"][:] = case.codes["rhs"][:] = encode(case.pointer("lhs").dtype, 1.0)
        case.place()
        case.execute()
        got = read(case.pointer("dst"), l0c(2), 2, 2).view(np.float32).tolist()
        assert got[1] == [64.0, 64.0]
        assert got[0] == [32.0, 32.0] if made is not plan else all(math.isnan(v) for v in got[0])


def test_nosat_is_the_default() -> None:
    for plan in plans_of("mad", "a5"):
        for made in over(plan, sat_mode=["nosat"]):
            Product(made, 3, 4, 4, seed=6, special=True).check()


@examples(60)
@given(
    st.lists(
        st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 2), min_size=1, max_size=6
    )
)
def test_saturated_chain(pairs: list[tuple[float, float]]) -> None:
    a, b = ([pair[s] for pair in pairs] for s in (0, 1))
    with np.errstate(all="ignore"):
        got = saturated_dot(np.array([a], np.float32), np.array(b, np.float32)[:, None])
    assert float(got[0, 0]) == saturated(a, b)


# -- errors and watching -------------------------------------------------------------------------------------


def refuses(case: Bench, text: str) -> None:
    with pytest.raises(RunError, match=text):
        case.execute()


def test_sizes() -> None:
    plan = plans_of("mad", "a5")[0]
    for name in "mnk":
        for value in (0, -1, 4096):
            case = Product(plan, 1, 1, 1)
            case.args[name] = value
            refuses(case, rf"mad: expects {name} to be 1..4095, got {value}")
    case = Product(plans_of("mad_mx", "a5")[0], 1, 64, 1)
    case.args["k"] = 96
    refuses(case, "expects k to be a multiple of 64, got 96")
    four = next(p for p in plans_of("mad", "cpu") if "s4" in shown(p))
    case = Product(four, 1, 2, 1)
    case.args["k"] = 3
    refuses(case, "expects an even k, got 3")


@pytest.mark.parametrize(("name", "unit"), [("lhs", 512), ("rhs", 512), ("dst", 512), ("bias", 64)])
def test_alignment(name: str, unit: int) -> None:
    for column in ("cpu", "a2a3", "a5"):
        case = Product(plans_of("mad_bias", column)[0], 2, 2, 2)
        case.pointer(name).offset += unit // 2
        if column == "cpu":
            case.execute()
        else:
            refuses(case, rf"expects {name} to be a multiple of {unit} bytes, got address")


def test_bounds() -> None:
    plan = plans_of("mad", "a5")[0]
    for name, loc in (("lhs", "left"), ("rhs", "right"), ("dst", "acc")):
        case = Product(plan, 2, 2, 2)
        case.pointer(name).offset = case.core.buffers[loc].data.size
        refuses(case, r"mad: touches bytes \d+..\d+ of L0")


@pytest.mark.parametrize("name", ROWS)
def test_shadow_run(name: str) -> None:
    """In a float64 shadow run only stores round."""
    for plan in plans_of(name, "a5"):
        case = Product(plan, 3, depth(plan, 6), 4, seed=7)
        case.core.port = Doubles()
        case.execute()
        got = read(case.pointer("dst"), l0c(3), 3, 4)
        plain = Product(plan, 3, depth(plan, 6), 4, seed=7)
        plain.execute()
        want = read(plain.pointer("dst"), l0c(3), 3, 4)
        if element(plan, "dst") == "i32":
            assert (got == want).all()
        else:
            np.testing.assert_allclose(got.view(np.float32), want.view(np.float32), rtol=1e-4, atol=1e-4)
