"""Products: element types, transposes, stacks, blocks, what shares accumulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.diag import DiagnosticError

from .against import BF16, array, check


@pl.jit
def plain(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.matmul(a, b)


@pl.jit
def one_by_one(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0, 0], [2, 16, 32], target_memory=pl.MemorySpace.Mat)
        y = pl.load(b, [0, 0, 0], [2, 16, 32], target_memory=pl.MemorySpace.Mat)
        c = pl.store(pl.batch_matmul(x, pl.tile.transpose_view(y)), [0, 0, 0], c)


@pl.jit
def left_turned(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.matmul(a, b, a_trans=True)


@pl.jit
def right_turned(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.matmul(a, b, b_trans=True)


def _turned(x: Any) -> Any:
    return x.swapaxes(-1, -2)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (np.float32, np.float32),
        (np.float16, np.float16),
        (BF16, BF16),
        (BF16, np.float32),
        (np.int8, np.int32),
    ],
)
def test_elements_and_transposes(given, stored):
    a, b = array((48, 32), given), array((32, 40), given)
    check(plain, [a, b], (48, 40), stored, lambda a, b: a @ b)
    check(left_turned, [a.T.copy(), b], (48, 40), stored, lambda a, b: a.T @ b)
    check(right_turned, [a, b.T.copy()], (48, 40), stored, lambda a, b: a @ b.T)


def test_stacks_rows_and_columns():
    check(plain, [array((3, 16, 32)), array((3, 32, 16))], (3, 16, 16), np.float32, lambda a, b: a @ b)
    check(plain, [array((2, 3, 16, 32)), array((3, 32, 16))], (2, 3, 16, 16), np.float32, lambda a, b: a @ b)
    a, b = array((2, 16, 32)), array((2, 16, 32), seed=1)
    check(one_by_one, [a, b], (2, 16, 16), np.float32, lambda a, b: a @ _turned(b))
    a, b = array((2, 16, 32), BF16), array((1, 16, 32), BF16)
    check(right_turned, [a, b], (2, 16, 16), np.float32, lambda a, b: a @ _turned(b))
    check(plain, [array((32,)), array((32, 48))], (48,), np.float32, lambda a, b: a @ b)
    check(plain, [array((48, 32)), array((32,))], (48,), np.float32, lambda a, b: a @ b)


def test_blocks():
    """Larger than the memories of the cube: the same bits as sums in the order of k."""
    a, b = array((256, 512)), array((512, 256))
    check(plain, [a, b], (256, 256), np.float32, lambda a, b: a @ b, slack=20)
    check(
        right_turned, [a, b.T.copy()], (256, 256), np.float32, lambda a, b: a @ b.T, targets=["a3"], slack=20
    )
    check(plain, [array((16, 1100), np.float16), array((1100, 64), np.float16)], (16, 64), np.float32,
          lambda a, b: a @ b, slack=20)  # fmt: skip
    text = plain.lower(a, b, np.zeros((256, 256), np.float32)).as_python()
    assert "[128, 64]" in text and text.count("pl.store") == 2


@pl.jit
def ragged(a: pl.Tensor, b: pl.Tensor, n: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.cast(pl.read(n, [0]), pl.INDEX)
        terms = pl.cast(pl.read(n, [1]), pl.INDEX)
        x = pl.load(a, [0, 0], [300, 640], valid_shape=[rows, terms], target_memory=pl.MemorySpace.Mat)
        y = pl.load(b, [0, 0], [640, 150], valid_shape=[terms, 150], target_memory=pl.MemorySpace.Mat)
        c = pl.store(pl.matmul(x, y), [0, 0], c)


def test_ragged_blocks():
    a, b = array((300, 640)), array((640, 150))
    for rows, terms in ((300, 640), (17, 100), (200, 3)):

        def expected(a, b, n, rows=rows, terms=terms):
            out = np.full((300, 150), 7.0)
            out[:rows] = a[:rows, :terms] @ b[:terms]
            return out

        check(
            ragged,
            [a, b, np.array([rows, terms], np.int32)],
            (300, 150),
            np.float32,
            expected,
            ["a3"],
            slack=20,
        )


@pl.jit
def by_arms(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    for m in pl.parallel(0, 64, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.create_tensor([32, 32], dtype=pl.FP32)
            for kb in pl.range(4):
                k = kb * 16
                if kb == 0:
                    acc = pl.matmul(a[m : m + 32, k : k + 16], b[k : k + 16, :])
                else:
                    acc = pl.matmul_acc(acc, a[m : m + 32, k : k + 16], b[k : k + 16, :])
            c[m : m + 32, :] = acc
    return c


@pl.jit
def by_condition(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([64, 32], dtype=pl.FP32)
        for k in pl.range(0, 64, 16):
            acc = pl.matmul_acc(acc, a[:, k : k + 16], b[k : k + 16, :], init_cond=(k == 0))
        c[:] = acc


@pl.jit
def by_atomics(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.assemble(c, pl.full([64, 32], dtype=pl.FP32, value=0.0), [0, 0])
    for k in pl.parallel(0, 64, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.matmul(a[:, k : k + 32], b[k : k + 32, :], out_dtype=pl.FP32)
            c = pl.assemble(c, part, [0, 0], atomic=pl.AtomicType.Add)
    return c


@pl.jit
def wide_arms(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.matmul(a[:, 0:1100], b[0:1100, :])
        if pl.read(a, [0, 0]) > -100.0:
            acc = pl.matmul_acc(acc, a[:, 1100:2200], b[1100:2200, :])
        twice = pl.create_tensor([16, 64], dtype=pl.FP32)
        for k in pl.range(0, 2200, 1100):
            if k == 0:
                twice = pl.matmul(a[:, k : k + 1100], b[k : k + 1100, :])
            else:
                twice = pl.matmul_acc(twice, a[:, k : k + 1100], b[k : k + 1100, :])
        c[0:16, :] = acc
        c[16:32, :] = twice


def test_sums_of_blocks_in_arms():
    """Each arm is a chain of sums, in the place of what it replaces."""
    given = [array((16, 2200)), array((2200, 64), seed=1)]
    check(wide_arms, given, (32, 64), np.float32, lambda a, b: np.tile(a @ b, (2, 1)), ["a3"], slack=50)


@pl.jit
def still_read(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        one = pl.matmul(a, b)
        two = pl.matmul_acc(one, a, b)
        c[0:32, :] = one
        c[32:64, :] = two
        for _ in pl.range(2):
            three = pl.matmul_acc(two, a, b)
        c[64:96, :] = three


@pl.jit
def by_windows(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tile([64, 32], pl.FP32, target_memory=pl.MemorySpace.Acc)
        for n in pl.range(0, 32, 16):
            for k in pl.range(0, 64, 32):
                x = pl.load(a, [0, k], [64, 32], target_memory=pl.MemorySpace.Mat)
                y = pl.load(b, [k, n], [32, 16], target_memory=pl.MemorySpace.Mat)
                window = pl.slice(acc, [64, 16], [0, n])
                window = pl.matmul_acc(window, x, y, init_cond=(k == 0))
        c = pl.store(acc, [0, 0], c)


def test_what_is_added_to_may_be_read_later():
    given = [array((32, 32)), array((32, 32), seed=1)]
    check(
        still_read,
        given,
        (96, 32),
        np.float32,
        lambda a, b: np.concatenate([a @ b, 2 * (a @ b), 3 * (a @ b)]),
    )


@pytest.mark.parametrize(
    "function", [by_arms, by_condition, by_atomics, by_windows], ids=lambda f: f.__name__
)
def test_sums(function):
    check(function, [array((64, 64)), array((64, 32))], (64, 32), np.float32, lambda a, b: a @ b)


@pl.jit
def biased(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        w = pl.load(b, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        v = pl.load(bias, [0, 0], [1, 32], target_memory=pl.MemorySpace.Mat)
        c = pl.store(pl.tile.matmul_bias(x, w, v), [0, 0], c)


@pl.jit
def of_a_row(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [1, 32], target_memory=pl.MemorySpace.Mat)
        w = pl.load(b, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        v = pl.load(bias, [0, 0], [1, 32], target_memory=pl.MemorySpace.Mat)
        y = pl.tile.gemv_bias(x, w, v)
        c = pl.store(pl.tile.gemv_acc(y, x, w), [0, 0], c)
        c = pl.store(pl.gemv(x, w), [1, 0], c)


def test_bias_and_rows():
    bias = array((1, 32), seed=1)
    check(
        biased,
        [array((32, 32)), array((32, 32), seed=2), bias],
        (32, 32),
        np.float32,
        lambda a, b, v: a @ b + v,
    )
    check(
        of_a_row,
        [array((1, 32)), array((32, 32)), bias],
        (2, 32),
        np.float32,
        lambda a, b, v: np.concatenate([2 * (a @ b) + v, a @ b]),
    )


@pl.jit
def windows(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [64, 64], target_memory=pl.MemorySpace.Mat)
        y = pl.load(b, [0, 0], [64, 64], target_memory=pl.MemorySpace.Mat)
        left = pl.tile.extract(x, 16, 32, [32, 32], target_memory=pl.MemorySpace.Left)
        right = pl.tile.extract(
            pl.tile.transpose_view(y), 32, 16, [32, 32], target_memory=pl.MemorySpace.Right
        )
        c = pl.store(pl.matmul(left, right), [0, 0], c)


@pl.jit
def chained(a: pl.Tensor, b: pl.Tensor, w: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.cast(pl.matmul(a, b), pl.FP16, mode="rint")
        c[:] = pl.matmul(s, w)


def test_windows_and_chains():
    a, b = array((64, 64)), array((64, 64), seed=1)
    check(windows, [a, b], (32, 32), np.float32, lambda a, b: a[16:48, 32:] @ b[16:48, 32:].T)
    given = [array((32, 32), np.float16, seed) for seed in range(3)]
    check(
        chained,
        given,
        (32, 32),
        np.float32,
        lambda a, b, w: (a @ b).astype(np.float16).astype(float) @ w,
        slack=1000,
    )
    kinds = {f.kind for f in chained.lower(*given, np.zeros((32, 32), np.float32)).functions.values()}
    assert "mixed" not in kinds  # the narrowing is a move from Acc to Mat


@pl.jit
def leaves(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.matmul(a, b)
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.matmul(a[:, 0:16], b[0:16, :], out_dtype=pl.FP32)
        for _ in pl.range(1):
            y = pl.matmul_acc(y, a[:, 16:32], b[16:32, :])
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.sub(pl.cast(x, pl.FP32), y)
    return c


def test_what_leaves_a_region_has_the_elements_of_its_operands():
    a, b = array((32, 32), BF16), array((32, 32), BF16, seed=1)

    def expected(a, b):
        exact = (a @ b).astype(np.float32)
        return exact.astype(BF16).astype(np.float64) - exact

    check(leaves, [a, b], (32, 32), np.float32, expected, slack=20)


def test_problems():
    @pl.jit
    def wrong(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:] = pl.matmul(a, b)

    for a, b, said in (
        (array((16, 32)), array((16, 32)), "32 columns times 16 rows"),
        (array((16, 32)), array((32, 16), np.float16), "matmul of FP32 and FP16"),
        (array((2, 16, 32)), array((3, 32, 16)), "stacks of 2 and of 3 matrices"),
        (array((32,)), array((32,)), "two rows have no product"),
    ):
        with pytest.raises(DiagnosticError, match=said):
            wrong.lower(a, b, np.zeros((16, 16), np.float32))


@pl.jit
def first_rows(a: pl.Tensor, b: pl.Tensor, c: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([16, 16], dtype=pl.INT32)
        for k in pl.pipeline(0, 64, 32, stage=2):
            x = pl.slice(a, [16, 32], [0, k], valid_shape=[8, 32])
            if k == 0:
                acc = pl.matmul(x, b[k : k + 32, :], out_dtype=pl.INT32)
            else:
                acc = pl.matmul_acc(acc, x, b[k : k + 32, :])
        c[:, :] = acc


def test_an_accumulator_is_as_valid_as_what_it_gets():
    """It begins with nothing in it, so nothing of it says how much is valid."""
    a, b = array((16, 64), np.int8), array((64, 16), np.int8)
    want = a.astype(np.int32) @ b.astype(np.int32)
    want[8:] = -1
    c = np.full((16, 16), -1, np.int32)
    first_rows(a, b, c)
    np.testing.assert_array_equal(c, want)


_ROWS = pl.dynamic("ROWS")


@pl.jit
def ragged_rows(a: pl.Tensor[[_ROWS, 64], pl.FP32], b: pl.Tensor, c: pl.InOut[pl.Tensor]):
    n = pl.tensor.dim(a, 0)
    for block in pl.spmd(2):
        r = block * 16
        acc = pl.create_tensor([16, 16], dtype=pl.FP32)
        for k in pl.pipeline(0, 64, 32, stage=2):
            valid = pl.min(16, n - r)  # the same in every iteration
            x = pl.slice(a, [16, 32], [r, k], valid_shape=[valid, 32])
            if k == 0:
                acc = pl.matmul(x, b[k : k + 32, :], out_dtype=pl.FP32)
            else:
                acc = pl.matmul_acc(acc, x, b[k : k + 32, :])
        c[r : r + 16, :] = acc


@pl.jit
def in_two_regions(a: pl.Tensor, b: pl.Tensor, c: pl.InOut[pl.Tensor]):
    for i in pl.range(2):
        at = i * 16
        with pl.at(level=pl.Level.CORE_GROUP):
            product = pl.matmul(
                a, b[:, at : at + 16], out_dtype=pl.FP32
            )  # leaves, beside a number that comes
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:, at : at + 16] = pl.add(product, c[:, at : at + 16])


def test_products_with_numbers_of_a_region():
    a, b = array((24, 64), np.float32), array((64, 16), np.float32)
    c = np.full((32, 16), -1, np.float32)
    ragged_rows(a, b, c)
    np.testing.assert_allclose(
        c, np.concatenate([a @ b, np.full((8, 16), -1, np.float32)]), rtol=1e-4, atol=1e-4
    )
    a, b, c = array((16, 32), np.float32), array((32, 32), np.float32), array((16, 32), np.float32)
    want = a @ b + c
    in_two_regions(a, b, c)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)
