"""The compiled loops of the reference engine against their NumPy equivalents: the same bits, any NaN being
equal to any other. Shapes are odd, empty and larger than the blocks of the loops; numbers of all kinds.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import EVERY, examples

from pto import _native
from pto.engine import elements
from pto.engine.reference.generate import philox
from pto.engine.reference.matmul import fused_dot, integer_dot
from pto.engine.reference.reduce import fold_columns
from pto.engine.reference.sort import block_order

from ..engine import numpy_twins

Array = np.ndarray[Any, Any]
SPECIAL = np.array(
    [0, -0.0, 1, -1, 2**-126, 2**-149, -(2**-149), 65504, 65520, 3e38, np.inf, -np.inf, np.nan]
)


def floats(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    """f32 numbers: `near` 1, `spread` over all sizes, any `bits`, or many of them `special`."""
    if kind == "bits":
        return rng.integers(0, 2**32, shape, np.uint64).astype(np.uint32).view(np.float32)
    found = rng.standard_normal(shape)
    if kind == "spread":
        found *= 2.0 ** rng.integers(-140, 120, shape)
    if kind == "special":
        found = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), found)
    return found.astype(np.float32)


def assert_same(got: Array, want: Array) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    bits = [np.ascontiguousarray(x).view(f"u{x.itemsize}") for x in (got, want)]
    assert ((bits[0] == bits[1]) | (np.isnan(got) & np.isnan(want))).all()


kinds = st.sampled_from(["near", "spread", "bits", "special"])
sizes = st.one_of(st.integers(0, 9), st.sampled_from([15, 16, 17, 31, 32, 33, 50]))


@examples(200)
@given(sizes, sizes, sizes, kinds, kinds, st.integers(0, 2**32))
def test_products(m: int, k: int, n: int, left: str, right: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = floats(rng, (m, k), left), floats(rng, (n, k), right).T
    with np.errstate(all="ignore"):
        want = np.ascontiguousarray(numpy_twins.fused_dot(a, b))
        assert_same(fused_dot(a, b), want)
        assert_same(_native.dot_f64(a.astype(np.float64), np.ascontiguousarray(b, np.float64)), want)


@examples(100)
@given(sizes, sizes, sizes, st.integers(0, 250), st.integers(0, 2**32))
def test_products_beyond_the_range_of_f32(m: int, k: int, n: int, size: int, seed: int) -> None:
    """Numbers of few bits under scales of any power of two, as the block-scaled forms make them."""
    rng = np.random.default_rng(seed)
    a, b = (
        rng.integers(-7, 8, shape) * 2.0 ** (rng.integers(-size, size + 1, shape) // 2)
        for shape in ((m, k), (k, n))
    )
    with np.errstate(all="ignore"):
        assert_same(fused_dot(a, b), np.ascontiguousarray(numpy_twins.fused_dot(a, b)))


@pytest.mark.parametrize("depth", [0, 1, 258, 259, 600])
@pytest.mark.parametrize(("left", "right"), [("i1", "i1"), ("u1", "u1"), ("u1", "i1"), ("i1", "u1")])
def test_integer_products_are_exact(left: str, right: str, depth: int) -> None:
    for extreme in ("min", "max"):
        a = np.full((3, depth), getattr(np.iinfo(left), extreme), left)
        b = np.full((depth, 5), getattr(np.iinfo(right), "min" if left == "i1" else "max"), right)
        assert (integer_dot(a, b) == a.astype(np.int64) @ b.astype(np.int64)).all()


@pytest.mark.parametrize("step", [np.add, np.multiply])
@pytest.mark.parametrize("name", ["f16", "bf16"])
@examples(60)
@given(st.integers(1, 40), sizes, st.sampled_from(["near", "bits", "special"]), st.integers(0, 2**32))
def test_folds(name: str, step: np.ufunc, rows: int, cols: int, kind: str, seed: int) -> None:
    codes = elements.encode(name, floats(np.random.default_rng(seed), (rows, cols), kind))
    if kind == "bits":
        codes = np.random.default_rng(seed).integers(0, 2**16, (rows, cols)).astype(np.uint16)
    x = elements.decode(name, codes)
    steps = np.dtype(np.float16 if name == "f16" else ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        want = numpy_twins.fold_columns(x, step, steps).astype(np.float32)
        assert_same(fold_columns(x, step, steps), want)
        assert_same(fold_columns(np.asfortranarray(x), step, steps), want)


@examples(60)
@given(st.integers(0, 2**128 - 1), st.integers(0, 200), st.sampled_from([7, 10, 0, 1]), st.integers(0, 2**32))
def test_random_words(start: int, count: int, rounds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ahead = rng.integers(0, 2**63, count, np.uint64)
    keys = (int(rng.integers(-(2**31), 2**32)), int(rng.integers(0, 2**32)))
    want = numpy_twins.philox(start, ahead, keys, rounds)
    np.testing.assert_array_equal(philox(start, ahead, keys, rounds), want)


@examples(100)
@given(st.integers(1, 5), st.integers(1, 100), st.integers(1, 40), st.integers(0, 2**32))
def test_block_orders(rows: int, cols: int, ranks: int, seed: int) -> None:
    """Many equal ranks, some equal indices, and the largest numbers there are."""
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 2**32, ranks, np.uint64).astype(np.uint32)
    few[0] = 2**32 - 1
    rank, index = rng.choice(few, (rows, cols)), rng.choice(few, (rows, cols))
    if seed % 2:
        rank = rng.integers(0, 2**32, (rows, cols), np.uint64).astype(np.uint32)
    want = numpy_twins.block_order(rank, index)
    np.testing.assert_array_equal(block_order(rank, index), want)
    row = np.broadcast_to(index[:1], index.shape)
    np.testing.assert_array_equal(block_order(rank, row), numpy_twins.block_order(rank, row))


@pytest.mark.parametrize("mode", ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"])
@pytest.mark.parametrize("dst", ["f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2"])
def test_doubles_round_once(dst: str, mode: str) -> None:
    """Return doubles beside numbers and midpoints of the type, closer than f32 can resolve; and beyond
    f32."""
    codes = np.arange(2 ** elements.DTYPES[dst].bits).astype(elements.code_dtype(dst))
    exact = elements.decode(dst, codes, np.float64)
    exact = np.sort(exact[np.isfinite(exact)])
    points = np.concatenate([exact, (exact[1:] + exact[:-1]) / 2, exact * 2, exact * 2.0**-20])
    points = points[:: 1 if EVERY or points.size < 4000 else 7]
    extreme = [1e300, 1e-300, 5e-324, 2.0**128, 2.0**-150, 3.5e38, np.inf, np.nan, 0.0]
    points = np.concatenate([points, extreme, np.negative(extreme)])
    values = np.concatenate([points, *(np.nextafter(points, to) for to in (np.inf, -np.inf))])
    for saturate in (False, True):
        for nan in ("max", "zero"):
            got = elements.encode(dst, values, mode, saturate, nan)
            np.testing.assert_array_equal(got, numpy_twins.encode(dst, values, mode, saturate, nan))
