"""Reductions against loops over single elements, with the exact scalar arithmetic of `pto.isa.encoding`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples

from pto.isa.dtypes import DTYPES
from pto.isa.encoding import convert, decode, encode

from .rows import Array, Case, Doubles, element_type, outcome, random_codes, same, some_plans, sprinkled_codes

SUMS = ("trowsum", "tcolsum", "trowprod", "tcolprod")
EXTREMES = ("trowmax", "trowmin", "tcolmax", "tcolmin")
ARGS = ("trowargmax", "trowargmin", "tcolargmax", "tcolargmin")
ROWS = (*SUMS, *EXTREMES, *ARGS, "tpairreducesum")

VALID = [(16, 64), (7, 13), (1, 64), (16, 1), (1, 1), (0, 5), (3, 0), (0, 0)]


def fit(dtype: str, value: float) -> float | int:
    return decode(dtype, encode(dtype, value))


def folded(name: str, line: list[int], src: str, dst: str) -> int:
    """A sum or product of codes, one rounded step after the other."""
    steps = "f32" if name == "trowsum" and dst in ("f16", "bf16") else dst
    product = name.endswith("prod")
    total: float | int = int(product) if not DTYPES[dst].is_float else float(product)
    for code in line:
        value = decode(src, code)
        total = fit(steps, total * value if product else total + value)
    return encode(dst, total)


def best(name: str, line: list[int], src: str) -> int:
    """Index of the element that stays."""
    at = 0
    for k, code in enumerate(line):
        x, y = decode(src, line[at]), decode(src, code)
        if y > x if name.endswith("max") else y < x:
            at = k
    return at


def expected(name: str, codes: Array, src: str, dst: str, value: str = "") -> tuple[list[int], list[int]]:
    """Results of all rows or columns, and the values beside them in an arg-reduction."""
    lines = codes.tolist() if name.startswith("trow") else codes.T.tolist()
    if name in SUMS:
        return [folded(name, line, src, dst) for line in lines], []
    at = [best(name, line, src) for line in lines]
    found = [line[k] for line, k in zip(lines, at, strict=True)]
    if name in EXTREMES:
        return [convert(c, src, dst) for c in found], []
    return [encode(dst, k) for k in at], found


def check(case: Case, codes: Array, valid: tuple[int, int]) -> None:
    name = case.row.name
    rows, cols = valid
    outs = [n for n in ("dst", "dstVal") if n in case.args]
    case.set("src", codes, valid)
    for n in outs:
        case.random(n, codes=True)
        case.tile(n).v_row, case.tile(n).v_col = (rows, 1) if name.startswith("trow") else (1, cols)
    wanted = [case.get(n) for n in outs]
    if (rows and cols) or name in ("trowsum", "trowprod"):
        results = expected(name, codes[:rows, :cols], case.tile("src").dtype, case.tile("dst").dtype)
        for want, result in zip(wanted, results, strict=False):
            part = want[:rows, 0] if name.startswith("trow") else want[0, :cols]
            part[...] = result
    for n, got, want in zip(outs, outcome(case, *outs), wanted, strict=True):
        assert same(case.tile(n).dtype, got, want), (name, case.plan.isa, valid, n)


@pytest.mark.parametrize("name", (*SUMS, *EXTREMES, *ARGS))
def test_every_plan(name: str) -> None:
    rng = np.random.default_rng(1)
    for k, plan in enumerate(some_plans(name)):
        case = Case(plan)
        src = case.tile("src")
        for valid in (VALID[k % len(VALID)], VALID[(3 * k + 1) % len(VALID)], (5, 11)):
            check(case, sprinkled_codes(rng, src.dtype, src.shape), valid)


@together("name", (*SUMS, *EXTREMES, *ARGS))
@together("valid", VALID)
def test_every_valid_region(name: str, valid: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    seen: set[str] = set()
    for plan in some_plans(name):
        dtype = element_type(plan, "src")
        if dtype in ("f32", "f16", "bf16", "i16") and dtype not in seen:
            seen.add(dtype)
            case = Case(plan)
            check(case, sprinkled_codes(rng, dtype, case.tile("src").shape, 0.02), valid)


@pytest.mark.parametrize("name", (*SUMS, *EXTREMES, *ARGS))
@examples(25)
@given(st.data())
def test_any_codes(name: str, data: st.DataObject) -> None:
    plans = [p for p in some_plans(name) if p.isa == "cpu"]
    case = Case(data.draw(st.sampled_from(plans)))
    src = case.tile("src")
    valid = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 9)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    check(case, random_codes(rng, src.dtype, src.shape, data.draw(st.booleans())), valid)


def f32(*values: float) -> Array:
    return np.array([values], np.float32).view(np.uint32)


@pytest.mark.parametrize(
    ("name", "line", "want"),
    [
        ("trowsum", (2.0**24, 1.0, 1.0, -(2.0**24)), 0.0),  # each 1 is lost on its own
        ("trowsum", (1.0, 1.0, 2.0**24), 2.0**24 + 2),
        ("trowsum", (-0.0, -0.0), 0.0),
        ("trowprod", (1e30, 1e30, 1e-30), np.inf),
        ("trowmax", (-0.0, 0.0), -0.0),
        ("trowmax", (0.0, -0.0, np.nan), 0.0),
        ("trowmax", (np.nan, 3.0), np.nan),
        ("trowmax", (-np.inf, np.nan), -np.inf),
        ("trowmin", (0.0, -0.0), 0.0),
        ("trowmin", (np.nan, 3.0), np.nan),
        ("trowmin", (np.inf, np.nan, np.inf), np.inf),
    ],
)
def test_by_hand(name: str, line: tuple[float, ...], want: float) -> None:
    case = Case(next(p for p in some_plans(name) if element_type(p, "src") == "f32"))
    case.set("src", f32(*line), (1, len(line)))
    (got,) = outcome(case, "dst")
    assert same("f32", got[:1, :1], f32(want))


def test_f16_sums_differ_by_axis() -> None:
    """1024 ones after 2048 in f16: a row sum keeps them in f32, a column sum loses each one."""
    line = np.array([2048.0] + [1.0] * 15, np.float16).view(np.uint16)
    got: dict[str, float] = {}
    for name in ("trowsum", "tcolsum"):
        plan = next(p for p in some_plans(name) if element_type(p, "dst") == "f16")
        case = Case(plan)
        case.set(
            "src",
            line[None, :] if name == "trowsum" else line[:, None],
            (1, 16) if name == "trowsum" else (16, 1),
        )
        got[name] = float(decode("f16", int(outcome(case, "dst")[0][0, 0])))
    assert got == {"trowsum": 2064.0, "tcolsum": 2048.0}  # 2063 rounds to 2064


@pytest.mark.parametrize("valid", [(16, 64), (7, 13), (1, 1), (16, 1), (3, 2), (0, 4), (4, 0)])
def test_pairs(valid: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for plan in some_plans("tpairreducesum"):
        case = Case(plan)
        dtype, shape = case.tile("dst").dtype, case.tile("dst").shape
        codes = sprinkled_codes(rng, dtype, shape)
        case.set("src0", codes, valid)
        case.random("dst", codes=True)
        case.tile("dst").v_row, case.tile("dst").v_col = valid
        want = np.zeros(shape, codes.dtype)  # the whole tile, not only its valid region
        for r in range(valid[0]):
            for k in range(-(-valid[1] // 2)):
                right = decode(dtype, int(codes[r, 2 * k + 1])) if 2 * k + 1 < valid[1] else 0.0
                want[r, k] = encode(dtype, decode(dtype, int(codes[r, 2 * k])) + right)
        (got,) = outcome(case, "dst")
        assert same(dtype, got, want), (plan.isa, dtype)


@pytest.mark.parametrize("name", (*SUMS, *EXTREMES))
def test_a_shadow_run_does_not_round(name: str) -> None:
    case = Case(next(p for p in some_plans(name) if element_type(p, "dst") == "f16"))
    case.core.port = Doubles()
    values = np.linspace(0.5, 1.5, 12).reshape(3, 4).astype(np.float16)
    case.set("src", values.view(np.uint16), (3, 4))
    axis = 1 if name.startswith("trow") else 0
    fold = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[name[4:]]
    want = fold(values.astype(np.float64), axis=axis).astype(np.float16).view(np.uint16)
    (got,) = outcome(case, "dst")
    assert (got[:3, 0] if axis == 1 else got[0, :4]).tolist() == want.tolist()
