"""The kernels of examples/micro: legal, right, free of races, and equal to their twins made of tile instructions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto.diag import render

EXAMPLES = Path(__file__).parents[2] / "examples"
Array = np.ndarray[Any, Any]

sizes = st.integers(1, 300)
seeds = st.integers(0, 2**16)
some = examples(12)


@cache
def kernel(name: str, folder: str = "micro") -> Any:
    return pto.kernel(pto.parse(EXAMPLES / folder / f"{name}.pto"), engine="reference")


def launch(name: str, *args: Any, **options: Any) -> None:
    """One run under all sanitizers, which find nothing."""
    result = kernel(name).run(*args, sanitize="all", **options)
    assert not result.diagnostics, render(result.diagnostics)


def numbers(seed: int, *shape: int, scale: float = 3.0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


# -- against NumPy -----------------------------------------------------------------------------------------


@some
@given(sizes, seeds)
def test_chain(n: int, seed: int) -> None:
    x, a, b = numbers(seed, 3, n)
    y = np.zeros(n, np.float32)
    launch("chain", x, a, b, y, n)
    want = np.maximum(np.exp(-np.abs(x.astype(np.float64))) * a + b, 0)
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)


@some
@given(st.integers(1, 4), sizes, seeds)
def test_row_sum(rows: int, n: int, seed: int) -> None:
    x, s = numbers(seed, rows, n), np.zeros(rows, np.float32)
    launch("row_sum", x, s, rows, n)
    np.testing.assert_allclose(s, x.astype(np.float64).sum(1), rtol=1e-5, atol=1e-4)


@some
@given(st.integers(1, 3), sizes, seeds)
def test_softmax(rows: int, n: int, seed: int) -> None:
    """Also where exp would overflow, and where everything is far below 0."""
    x = numbers(seed, rows, n, scale=60) - np.float32(seed % 3 * 1000)
    y = np.zeros_like(x)
    launch("softmax", x, y, rows, n)
    np.testing.assert_allclose(y, softmax(x.astype(np.float64)), rtol=2e-5, atol=1e-7)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@some
@given(st.integers(1, 3), st.integers(2, 300), seeds)
def test_layer_norm(rows: int, n: int, seed: int) -> None:
    x = numbers(seed, rows, n)
    y = np.zeros_like(x)
    launch("layer_norm", x, y, rows, n, 1e-3)
    np.testing.assert_allclose(y, layer_norm(x.astype(np.float64), 1e-3), rtol=1e-4, atol=1e-5)


def layer_norm(x: Array, eps: float) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)


@some
@given(st.integers(1, 8), seeds)
def test_to_bf16(chunks: int, seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2**32, 128 * chunks, np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    y = np.zeros(x.size, ml_dtypes.bfloat16)
    launch("to_bf16", x, y, x.size)
    with np.errstate(invalid="ignore"):
        want = x.astype(ml_dtypes.bfloat16)
    same = (y.view(np.uint16) == want.view(np.uint16)) | (np.isnan(x) & np.isnan(y.astype(np.float32)))
    assert same.all()


@some
@given(st.integers(0, 100), st.integers(0, 100), sizes, seeds)
def test_unaligned_copy(start: int, to: int, n: int, seed: int) -> None:
    """Everything around the copy stays; the source has a vector more than is copied."""
    size = 512
    x, y = numbers(seed, 2, size)
    want = y.copy()
    want[to : to + n] = x[start : start + n]
    launch("unaligned_copy", x, y, size, start, to, n)
    assert (y == want).all()


@some
@given(st.integers(1, 2), seeds)
def test_topk(rows: int, seed: int) -> None:
    """Many values are equal: the lower column comes first."""
    x = np.random.default_rng(seed).integers(-50, 50, (rows, 512)).astype(np.float32)
    y, at = np.zeros((rows, 64), np.float32), np.zeros((rows, 64), np.int32)
    launch("topk", x, y, at, rows)
    order = np.argsort(-x, axis=1, kind="stable")[:, :64]
    assert (at == order).all() and (y == np.take_along_axis(x, order, 1)).all()


@pytest.mark.parametrize("seed", range(5))
def test_tiles_and_vectors_mixed(seed: int) -> None:
    x = numbers(seed, 16, 64)
    y = np.zeros_like(x)
    launch("mixed", x, y)
    np.testing.assert_allclose(y, np.sqrt(2 * np.exp(x.astype(np.float64))), rtol=1e-6)
    again = np.zeros_like(x)
    assert kernel("mixed").run(x, again, schedule=seed).ok
    assert again.tobytes() == y.tobytes()


@pytest.mark.parametrize("seed", range(5))
def test_any_legal_order_of_the_pipes(seed: int) -> None:
    x = numbers(1, 4, 100)
    y = np.zeros_like(x)
    assert kernel("softmax").run(x, y, 4, 100, schedule=seed).ok
    np.testing.assert_allclose(y, softmax(x.astype(np.float64)), rtol=2e-5, atol=1e-7)


def test_a_missing_barrier_is_found() -> None:
    text = (
        (EXAMPLES / "micro" / "softmax.pto").read_text(encoding="utf-8").replace('pto.mem_bar "VST_VLD"', "")
    )
    x = numbers(1, 1, 100)
    found = (
        pto.kernel(pto.parse(text), engine="reference")
        .run(x, np.zeros_like(x), 1, 100, sanitize="race")
        .diagnostics
    )
    assert [d.code for d in found] == ["PTO-E2206"]


# -- against tiles -----------------------------------------------------------------------------------------

#: A kernel on whole tiles without addresses or flags; both are filled in.
TILES = """
!t = !pto.tile_buf<vec, {shape}x{dtype}>
!o = !pto.tile_buf<vec, {shape}x{result}>
!c = !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
!r = !pto.tile_buf<vec, 1x16xf32>
!w = !pto.partition_tensor_view<{shape}x{dtype}>
!v = !pto.partition_tensor_view<{shape}x{result}>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @twin({inputs}%y: !v{more}) attributes {{pto.entry}} {{
{body}    return
  }}
}}
"""


def twin(body: str, names: str, shape: str, dtype: str = "f32", result: str = "f32", more: str = "") -> Any:
    lines: list[str] = []
    for name in names:
        lines += [f"%{name} = pto.alloc_tile : !t", f"pto.tload ins(%g{name} : !w) outs(%{name} : !t)"]
    lines += [line.strip() for line in body.strip().splitlines()]
    text = TILES.format(
        shape=shape, dtype=dtype, result=result, more=more,
        inputs="".join(f"%g{n}: !w, " for n in names), body="".join(f"    {line}\n" for line in lines),
    )  # fmt: skip
    return pto.kernel(pto.parse(text), engine="reference")


def test_chain_equals_tiles() -> None:
    n = 1024
    x, a, b = numbers(5, 3, 16, 64)
    other = twin(
        """
        pto.tabs ins(%x : !t) outs(%x : !t)
        pto.tneg ins(%x : !t) outs(%x : !t)
        pto.texp ins(%x : !t) outs(%x : !t)
        pto.tmul ins(%x, %a : !t, !t) outs(%x : !t)
        pto.tadd ins(%x, %b : !t, !t) outs(%x : !t)
        pto.trelu ins(%x : !t) outs(%x : !t)
        pto.tstore ins(%x : !t) outs(%y : !v)
        """,
        "xab",
        "16x64",
    )
    mine, tiles = np.zeros((2, 16, 64), np.float32)
    launch("chain", x, a, b, mine, n)
    other(x, a, b, tiles)
    assert mine.tobytes() == tiles.tobytes()


def test_softmax_equals_tiles() -> None:
    x = numbers(6, 20, 512)
    mine, tiles = np.zeros((2, *x.shape), np.float32)
    launch("softmax", x, mine, 20, 512)
    kernel("softmax", "kernels")(x, tiles, 20)
    np.testing.assert_allclose(mine, tiles, rtol=1e-6, atol=1e-9)


def test_layer_norm_equals_tiles() -> None:
    x = numbers(7, 16, 256)
    other = twin(
        """
        %tmp = pto.alloc_tile : !t
        %s = pto.alloc_tile : !c
        %q = pto.alloc_tile : !t
        pto.trowsum ins(%x, %tmp : !t, !t) outs(%s : !c)
        pto.tmuls ins(%s, %share : !c, f32) outs(%s : !c)
        pto.trowexpandsub ins(%x, %s : !t, !c) outs(%x : !t)
        pto.tmul ins(%x, %x : !t, !t) outs(%q : !t)
        pto.trowsum ins(%q, %tmp : !t, !t) outs(%s : !c)
        pto.tmuls ins(%s, %share : !c, f32) outs(%s : !c)
        pto.tadds ins(%s, %eps : !c, f32) outs(%s : !c)
        %row = pto.treshape %s : !c -> !r
        pto.tsqrt ins(%row : !r) outs(%row : !r)
        pto.trowexpanddiv ins(%x, %s : !t, !c) outs(%x : !t)
        pto.tstore ins(%x : !t) outs(%y : !v)
        """,
        "x",
        "16x256",
        more=", %share: f32, %eps: f32",
    )
    mine, tiles = np.zeros((2, *x.shape), np.float32)
    launch("layer_norm", x, mine, 16, 256, 1e-5)
    other(x, tiles, 1 / 256, 1e-5)
    np.testing.assert_allclose(mine, tiles, rtol=1e-6, atol=1e-6)


def test_to_bf16_equals_tiles() -> None:
    x = numbers(8, 16, 64, scale=1e3)
    other = twin(
        """
        %o = pto.alloc_tile : !o
        pto.tcvt ins(%x {rmode = #pto<round_mode RINT>} : !t) outs(%o : !o)
        pto.tstore ins(%o : !o) outs(%y : !v)
        """,
        "x",
        "16x64",
        result="bf16",
    )
    mine, tiles = np.zeros((2, 16, 64), ml_dtypes.bfloat16)
    launch("to_bf16", x, mine, x.size)
    other(x, tiles)
    assert mine.tobytes() == tiles.tobytes()


def test_topk_equals_tiles() -> None:
    """The tile kernel takes rows of 2048: the rest is below everything."""
    x = np.stack([np.random.default_rng(9).permutation(512) for _ in range(2)]).astype(np.float32)
    wide = np.full((2, 2048), -np.inf, np.float32)
    wide[:, :512] = x
    mine, tiles = np.zeros((2, 2, 64), np.float32)
    at, columns = np.zeros((2, 64), np.int32), np.zeros((2, 64), np.uint32)
    launch("topk", x, mine, at, 2)
    kernel("topk", "kernels")(wide, tiles, columns, 2, 2048)
    assert mine.tobytes() == tiles.tobytes() and (at == columns).all()
