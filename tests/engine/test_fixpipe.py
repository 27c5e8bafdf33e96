"""Quantised moves and stores out of the accumulator: against a scalar reading of the quantisation word."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine import elements
from pto.isa import encoding
from pto.isa.dtypes import DTYPES

from .moving import attribute, chosen_plans, known_plans, run, same_codes, scramble
from .rows import Case, Doubles, mixed_codes

ROWS = ("tstore_fp", "tmov.fp", "textract_fp", "tinsert_fp")
SCALAR = ("tstore", "tmov", "textract", "tinsert")

Word = int


def f32(value: float) -> float:
    """Rounded to a float of 32 bits."""
    return float(encoding.decode(DTYPES["f32"], encoding.encode(DTYPES["f32"], value)))


def scale_of(word: Word, vector: bool) -> float:
    if not vector:
        return float(encoding.decode(DTYPES["f32"], word & 0xFFFFFFFF))
    short = word >> 13 & 0x7FFFF
    sign, exponent, mantissa = short >> 18, short >> 10 & 0xFF, short & 0x3FF
    size = 0.0 if exponent == mantissa == 0 else f32(2.0 ** (exponent - 127) * (1 + mantissa / 1024))
    return -size if sign and size else size  # there is one zero


def times(a: float, b: float) -> float:
    return f32(a * b)  # a product of two floats of 24 bits is exact in a double, but for its range


def quantised(
    x: float | int, word: Word, vector: bool, src: str, dst: str, relu: bool, ctrl: bool = False
) -> int:
    """The code of one element."""
    y: float
    if dst == "i16":
        y = (int(x) >> (word >> 32 & 15) + 1) & 0xFFFF
        y = y - 0x10000 if y >= 0x8000 else y
        return (int(y) if y > 0 or not relu else 0) & 0xFFFF
    y = times(f32(x), scale_of(word, vector))
    if dst in ("i8", "u8"):
        low, high = (-128, 127) if word >> 46 & 1 else (0, 255)
        y = f32(y + (word >> 37 & 0x1FF))
        y = 0 if math.isnan(y) else low if y <= low else high if y >= high else round(y)
        return (int(y) if y > 0 or not relu else 0) & 0xFF
    limit = float(DTYPES[dst].max_finite)
    if dst in ("f16", "bf16") and ctrl and math.isnan(y):
        y = 0.0
    clamps = math.isfinite(y) or (ctrl and dst in ("f16", "bf16")) or (src == "i32" and dst == "f16")
    if dst != "f32" and clamps and not math.isnan(y):
        y = max(-limit, min(limit, y))
    if relu and not y > 0:
        y = 0.0
    return encoding.encode(DTYPES[dst], y)


def word(rng: np.random.Generator) -> Word:
    """Scales around one, zero, negative, huge or any bits, with random offset, sign and shift."""
    scale = rng.choice(np.array([1.0, 0.5, -0.37, 3.0e-3, 1.5e5, 0.0, 3.4e38, 1e-38], np.float32))
    bits = int(scale.view(np.uint32)) if rng.random() < 0.8 else int(rng.integers(0, 1 << 32))
    offset = int(rng.choice([0, 3, 128, 511]))
    return bits | int(rng.integers(0, 16)) << 32 | offset << 37 | int(rng.integers(0, 2)) << 46


def numbers_of(dtype: str, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    codes = mixed_codes(rng, dtype, shape)
    modest = elements.encode(
        dtype, rng.integers(-400, 400, shape).astype(np.float64) / (2 if dtype == "f32" else 1)
    )
    return np.where(rng.random(shape) < 0.5, modest, codes)


def check(case: Case, seed: int, relu: bool, ctrl: bool, start: tuple[int, int] = (0, 0)) -> None:
    """Run a quantised case on random data in a small valid region and compare every element."""
    name, src, dst = case.row.name, case.args["src"], case.args["dst"]
    rows, cols = (7, 11)
    extract, insert = name.startswith(("textract", "tmov")), name.startswith("tinsert")
    whole = (rows + start[0], cols + start[1])
    src.v_row, src.v_col = whole if extract else (rows, cols)
    if not name.startswith("tstore"):
        dst.v_row, dst.v_col = whole if insert else (rows, cols)
    codes = numbers_of(src.dtype, case.rng, src.shape)
    case.set("src", codes)
    scramble(case, "dst")
    words = [word(case.rng) for _ in range(src.cols)]
    vector = "fp" in case.args
    if vector:
        table = np.array([words[: case.args["fp"].cols]], np.uint64)
        case.set("fp", table)
    else:
        case.args["preQuantScalar"] = words[0] - (1 << 64) if seed % 3 == 0 else words[0]
    if relu:
        attribute(case, "reluPreMode", "normal_relu")
    if "indexRow" in case.args:
        case.args["indexRow"], case.args["indexCol"] = start
    if ctrl:
        case.core.registers["CTRL"] = 1 << 48
    shape = dst.dims if name.startswith("tstore") else dst.shape
    want = case.get("dst", shape)
    run(case, "dst")
    for r in range(rows):
        for c in range(cols):
            at = (r + start[0], c + start[1])
            if extract:
                from_, to, column = at, (r, c), at[1]
            else:
                from_, to, column = (r, c), at if insert else (r, c), c
            if name == "tstore_fp" and src.layout == "DN":
                column = r
            x = encoding.decode(DTYPES[src.dtype], int(codes[from_]))
            chosen = words[column] if vector else words[0]
            want[to] = quantised(x, chosen, vector, src.dtype, dst.dtype, relu, ctrl)
    got = case.get("dst", shape)
    assert same_codes(got, want, dst.dtype), (case.isa, name, src, dst.dtype, relu, ctrl)


@pytest.mark.parametrize("name", ROWS)
def test_vector_words(name: str) -> None:
    for n, plan in enumerate(chosen_plans(name)):
        if plan.row.attr_index.get("reluPreMode") is None:
            check(Case(plan, n), n, False, n % 4 == 0)
            continue
        start = (0, 0) if name in ("tstore_fp", "tmov.fp") else ((0, 0), (16, 16), (3, 2))[n % 3]
        check(Case(plan, n), n, n % 2 == 0, n % 4 == 0, start)


@pytest.mark.parametrize("name", SCALAR)
def test_scalar_words(name: str) -> None:
    plans = [p for p in chosen_plans(name) if p.operands["src"][0].loc == "acc" and quantising(p)]
    plans = [p for p in plans if not {"fp", "dst1"} & set(p.operands) and fits(p)]
    assert plans
    for n, plan in enumerate(plans):
        start = (0, 0) if name in ("tstore", "tmov") else ((0, 0), (16, 16), (3, 2))[n % 3]
        check(Case(plan, n), n, n % 2 == 0, n % 4 == 0, start)


def test_tmov_with_words_or_a_word() -> None:
    plans = [p for p in chosen_plans("tmov") if "fp" in p.operands and quantising(p)]
    assert plans
    for n, plan in enumerate(plans):
        check(Case(plan, n), n, n % 2 == 0, False)


@pytest.mark.parametrize("name", ["tmov", "tinsert"])
def test_words_without_a_quantisation(name: str) -> None:
    """There is no quantisation from i32 to i32, i8 to i8 and the like: a copy, which may be rectified."""
    plans = [
        p for p in chosen_plans(name) if "preQuantScalar" in p.operands and not quantising(p) and fits(p)
    ]
    assert {"i32", "i16", "u8", "f16", "i64"} <= {str(p.operands["dst"][0].dtype) for p in plans}
    for n, plan in enumerate(plans):
        case = Case(plan, n)
        src, dst = case.args["src"], case.args["dst"]
        shape = min(src.rows, dst.rows), min(src.cols, dst.cols)
        for tile in (src, dst):
            tile.v_row, tile.v_col = shape
        case.args["preQuantScalar"] = word(case.rng) | 1
        codes = mixed_codes(case.rng, src.dtype, src.shape)
        case.set("src", codes)
        if n % 2 and DTYPES[src.dtype].is_int:
            attribute(case, "reluPreMode", "normal_relu")
            codes = np.where(elements.decode(src.dtype, codes) > 0, codes, codes.dtype.type(0))
        run(case, "dst")
        assert (case.get("dst", shape) == codes[: shape[0], : shape[1]]).all(), (plan.isa, src, dst)


def fits(plan: Any) -> bool:
    """Room for a window of 7x11 at (16, 16)."""
    return all(
        min(t.shape) >= 16 for name in ("src", "dst") for t in plan.operands[name] if hasattr(t, "shape")
    )


def quantising(plan: Any) -> bool:
    """Return True if the element types of a plan are those of a quantisation word."""
    src, dst = str(plan.operands["src"][0].dtype), str(plan.operands["dst"][0].dtype)
    return (src == "f32" and dst in ("i8", "u8", "f16", "bf16", "f32", "hif8", "f8e4m3", "f8e5m2")) or (
        src == "i32" and dst in ("i8", "u8", "i16", "f16", "bf16")
    )


@examples(60)
@example([0, 1 << 31], 1 << 31, False, True, "f16", "f32")
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=24), st.integers(0, 2**64 - 1), st.booleans(),
       st.booleans(), st.sampled_from(["i8", "u8", "f16", "bf16"]), st.sampled_from(["f32", "i32"]))  # fmt: skip
def test_any_word_and_any_number(
    codes: list[int], word: int, relu: bool, vector: bool, dst: str, src: str
) -> None:
    name = "tstore_fp" if vector else "tstore"
    for plan in known_plans(name):
        types = str(plan.operands["src"][0].dtype), str(plan.operands["dst"][0].dtype)
        if plan.isa == "cpu" and types == (src, dst) and (vector or "preQuantScalar" in plan.operands):
            break
    else:
        raise AssertionError((src, dst))
    case = Case(plan)
    data = np.zeros((1, len(codes)), np.uint32)
    data[0] = codes
    case.set("src", data, data.shape)
    if vector:
        case.set("fp", np.full((1, 32), word, np.uint64))
    else:
        case.args["preQuantScalar"] = word
    if relu:
        attribute(case, "reluPreMode", "normal_relu")
    run(case, "dst")
    got = case.get("dst", (1, len(codes)))
    want = [quantised(encoding.decode(DTYPES[src], c), word, vector, src, dst, relu) for c in codes]
    assert same_codes(got, np.array([want], got.dtype), dst)


def test_missing_words_scale_by_zero() -> None:
    plan = next(
        p for p in known_plans("tstore_fp") if p.isa == "a2a3" and str(p.operands["src"][0].dtype) == "f32"
    )
    case = Case(plan)
    case.set("src", np.full((16, 32), encoding.encode(DTYPES["f32"], 5.0)))
    case.set("fp", np.full((1, 32), encoding.encode(DTYPES["f32"], 1.0) | 1 << 46, np.uint64))
    case.args["fp"].cols = 20
    case.run()
    assert case.get("dst", (16, 32)).tolist() == [[5] * 20 + [0] * 12] * 16


def test_a_shadow_run_does_not_round() -> None:
    plan = next(p for p in known_plans("tstore") if "preQuantScalar" in p.operands and quantising(p)
                and str(p.operands["dst"][0].dtype) == "f16" and str(p.operands["src"][0].dtype) == "f32")  # fmt: skip
    case = Case(plan)
    case.set("src", np.full((16, 64), encoding.encode(DTYPES["f32"], 1.0)))
    case.args["preQuantScalar"] = encoding.encode(DTYPES["f32"], 0.1)
    seen: list[Any] = []

    class Watch(Doubles):
        def store(self, i: Any, place: Any, region: Any, codes: Any) -> None:
            seen.append(codes.copy())
            super().store(i, place, region, codes)

    case.core.port = Watch()
    case.run()
    assert seen[0].dtype == np.float64
    assert (seen[0] == float(np.float32(0.1))).all()
