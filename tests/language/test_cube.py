"""Products: element types, transposes, stacks, blocks, what shares accumulators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.each import together

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
        one = pl.batch_matmul(x, pl.tile.transpose_view(y))
        c = pl.store(pl.batch_matmul_acc(one, x, pl.tile.transpose_view(y)), [0, 0, 0], c)


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


@together(
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
    check(one_by_one, [a, b], (2, 16, 16), np.float32, lambda a, b: 2 * (a @ _turned(b)))
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
    """Each branch is a chain of sums, which replaces the branch."""
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
def beyond_acc(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([272, 144], dtype=pl.FP32)
        for k in pl.range(0, 64, 32):
            x, y = a[:, k : k + 32], b[k : k + 32, :]
            if k == 0:
                acc = pl.matmul(x, y)
            else:
                acc = pl.matmul_acc(acc, x, y)
            d[k : k + 32, :] = pl.matmul(x[0:32, :], y)
        acc = pl.matmul_acc(acc, a[:, 0:32], b[0:32, :])
        c[:] = acc


@pl.jit
def stacks(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([2, 16, 32], dtype=pl.FP32)
        other = pl.full([2, 16, 32], pl.FP32, 1.0)
        for k in pl.range(0, 64, 32):
            acc = pl.matmul_acc(acc, a[:, :, k : k + 32], b[:, k : k + 32, :], init_cond=(k == 0))
            other = pl.matmul_acc(other, a[:, :, k : k + 32], b[:, k : k + 32, :])
            other = pl.matmul_acc(other, a[:, :, 0:32], b[:, 0:32, :], init_cond=(k == 99))
        c[0:2] = pl.mul(acc, 2.0)
        c[2:4] = other


def test_sums_beyond_acc_and_of_stacks():
    a, b, out = array((272, 64)), array((64, 144), seed=1), np.zeros((64, 144), np.float32)
    wide = [x.astype(np.float64) for x in (a, b)]
    for engine in ("native", "reference"):
        c = np.zeros((272, 144), np.float32)
        beyond_acc.run(a, b, c, out, target="a3", engine=engine)
        twice = wide[0] @ wide[1] + wide[0][:, :32] @ wide[1][:32]
        np.testing.assert_allclose(c, twice, atol=1e-4)
        np.testing.assert_allclose(out[32:], wide[0][:32, 32:] @ wide[1][32:], atol=1e-4)
    text = beyond_acc.lower(a, b, c, out).as_python()
    assert text.count("pl.Tile[[144, 144], pl.FP32, pl.Mem.Acc]") >= 2

    def expected(a, b):
        first = a[:, :, :32] @ b[:, :32]
        return np.concatenate([2 * (a @ b), a @ b + 1 + 2 * first])

    check(
        stacks, [array((2, 16, 64)), array((2, 64, 32), seed=1)], (4, 16, 32), np.float32, expected, slack=20
    )


@pl.jit
def begins(a: pl.Tensor, b: pl.Tensor, n: pl.Tensor, out: pl.InOut[pl.Tensor]):
    """Sums without a start value, windows that a loop or a branch replaces by its results."""
    some = pl.cast(pl.read(n, [0]), pl.INDEX)
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([32, 32], dtype=pl.FP32)
        for k in pl.range(0, 64, 32):
            rows = pl.min(32, some - 2)
            part = pl.slice(a, [32, 32], [0, k], valid_shape=[rows, 32])
            if k == 0:
                acc = pl.matmul(part, b[k : k + 32, :])
            else:
                acc = pl.matmul_acc(acc, part, b[k : k + 32, :])
        out = pl.assemble(out, acc, [0, 0])
        best = a[0:8, 0:32]
        for r in pl.range(8, 32, 8):
            new = pl.maximum(best, a[r : r + 8, 0:32])
            best = new
        other = pl.full([8, 32], pl.FP32, 1.0)
        if pl.read(n, [1]) > 3:
            other = a[0:8, 32:64]
        out = pl.assemble(out, pl.add(best, other), [32, 0])
    return out


def test_what_loops_begin_with():
    for rows, more in ((25, 0), (34, 5)):

        def expected(a, b, n, rows=rows, more=more):
            out = np.full((40, 32), 7.0)
            out[: rows - 2] = a[: rows - 2] @ b
            out[32:] = a[:, :32].reshape(4, 8, 32).max(0) + (a[:8, 32:] if more else 1.0)
            return out

        given = [array((32, 64)), array((64, 32), seed=1), np.array([rows, more], np.int32)]
        check(begins, given, (40, 32), np.float32, expected, slack=20)
        out = np.full((40, 32), 7, np.float32)
        begins.interpret(*given, out)
        np.testing.assert_allclose(out, expected(*(x.astype(np.float64) for x in given)), atol=1e-4)


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
def gathered(a: pl.Tensor, pool: pl.Tensor, n: pl.Tensor, idx: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.cast(pl.read(n, [0]), pl.INDEX)
        kv = pl.create_l1([32, 32], pl.FP16)
        kv = pl.gather_row(kv, pool, [0, 0], [0, 0], [32, 32], valid_shape=[rows, 32])
        kv = pl.gather_row(kv, pool, [rows, 0], [40, 0], [32, 32], valid_shape=[32 - rows, 32])
        c = pl.assemble(c, pl.matmul(a, kv, out_dtype=pl.FP32), [0, 0])
        columns = pl.create_l1([32, 32], pl.FP16, transpose=True)
        columns = pl.gather_row(columns, pool, [0, 0], [8, 0], [16, 32], transpose=True)
        for i in pl.range(16):
            columns = pl.gather_row(columns, pool, [0, 16 + i], [2 * i, 0], [1, 32], True)
        c = pl.assemble(c, pl.matmul(a, columns, out_dtype=pl.FP32), [32, 0])
        pages = pl.paged_gather(pool, idx, n, 8, 32, 32, is_b_matrix=True)
        c = pl.assemble(c, pl.matmul(a, pages, out_dtype=pl.FP32), [64, 0])


def test_rows_that_are_gathered_for_products():
    a, pool = np.eye(32).astype(np.float16), array((72, 32), np.float16)
    n, idx = np.array([5, 0, 8, 3], np.int32), np.random.default_rng(0).integers(0, 32, 32).astype(np.int32)

    def expected(a, pool, n, idx):
        rows = np.concatenate([pool[:5], pool[40:67]])
        columns = np.concatenate([pool[8:24], pool[0:32:2]]).T
        return np.concatenate([rows, columns, pool[n[idx // 8] * 8 + idx % 8]])

    check(gathered, [a, pool, n, idx], (96, 32), np.float32, expected)

    @pl.jit
    def row_by_row(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.store(
                pl.gather_row(pl.create_tile([32, 32], pl.FP16), a, [0, 0], [0, 0], [1, 32], True), [0, 0], c
            )

    with pytest.raises(DiagnosticError, match="cannot gather a row into a column of a row-major tile"):
        row_by_row.lower(a, a).verify()


@pl.jit
def scaled(
    a: pl.Tensor, sa: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ], b: pl.Tensor,
    sb: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN], bias: pl.Tensor, out: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        lhs = pl.load(a, [0, 0], [32, 128], target_memory=pl.Mem.Mat)
        rhs = pl.load(b, [0, 0], [128, 32], target_memory=pl.Mem.Mat)
        left = pl.move(pl.load(sa, [0, 0], [32, 4], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
        right = pl.load(sb, [0, 0], [4, 32], target_memory=pl.Mem.Mat)
        row = pl.load(bias, [0, 0], [1, 32], target_memory=pl.Mem.Mat)
        base = pl.matmul_mx(lhs, left, rhs, right)
        out = pl.store(base, [0, 0], out)
        out = pl.store(pl.matmul_mx_acc(base, lhs, left, rhs, right), [32, 0], out)
        out = pl.store(pl.matmul_mx_bias(lhs, left, rhs, right, row), [64, 0], out)
        part = pl.create_tile([32, 32], pl.FP32)
        for k in pl.range(0, 128, 64):
            x, y = (
                pl.load(a, [0, k], [32, 64], target_memory=pl.Mem.Mat),
                pl.load(b, [k, 0], [64, 32], target_memory=pl.Mem.Mat),
            )
            sx = pl.load(sa, [0, k // 32], [32, 2], target_memory=pl.Mem.Mat)
            sy = pl.load(sb, [k // 32, 0], [2, 32], target_memory=pl.Mem.Mat)
            if k == 0:
                part = pl.matmul_mx(x, sx, y, sy)
            else:
                part = pl.matmul_mx_acc(part, x, sx, y, sy)
        out = pl.store(part, [96, 0], out)
    return out


@pl.program
class ScaledTasks:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self, a: pl.Tensor[[16, 64], pl.FP4], sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):  # fmt: skip
        lhs = pl.move(pl.cast(pl.load(a, [0, 0], [16, 64]), pl.FP8E4M3FN), target_memory=pl.Mem.Mat)
        rhs = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        left = pl.move(pl.load(sa, [0, 0], [16, 2], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
        right = pl.move(pl.load(sb, [0, 0], [2, 32], target_memory=pl.Mem.Mat), pl.Mem.RightScale)
        return pl.store(pl.matmul_mx(lhs, left, rhs, right), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[16, 64], pl.FP4], sa: pl.Tensor[[16, 2], pl.FP8E8M0],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):  # fmt: skip
        out = self.product(a, sa, b, sb, out)
        return out


class Pairs:
    """Result of torch for elements of four bits: two in each of its own."""

    def __init__(self, codes: np.ndarray) -> None:
        self.codes, self.dtype, self.shape = codes, "float4_e2m1fn_x2", codes.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.codes


def test_products_with_scales():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, s).astype(ml_dtypes.float8_e4m3fn) for s in ((32, 128), (128, 32)))
    powers = [rng.integers(-2, 3, s) for s in ((32, 4), (4, 32))]
    codes = [(p + 127).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu) for p in powers]
    sa = codes[0].reshape(2, 16, 2, 2).transpose(0, 2, 1, 3).reshape(32, 4).copy()
    sb = codes[1].reshape(2, 2, 2, 16).transpose(2, 0, 3, 1).reshape(4, 32).copy()
    bias = array((1, 32))
    x = a.astype(np.float64) * 2.0 ** powers[0].repeat(32, 1)
    y = b.astype(np.float64) * 2.0 ** powers[1].repeat(32, 0)
    want = np.concatenate([x @ y, 2 * (x @ y), x @ y + bias, x @ y]).astype(np.float32)
    for how in ("native", "reference", "interpret"):
        out = np.zeros((128, 32), np.float32)
        if how == "interpret":
            scaled.interpret(a, sa, b, sb, bias, out, config=pl.RunConfig(platform="a5sim"))
        else:
            scaled.run(a, sa, b, sb, bias, out, target="a5", engine=how)
        np.testing.assert_allclose(out, want, rtol=1e-6)
    with pytest.raises(DiagnosticError, match="unsupported on a2a3: matmul_mx"):
        scaled.lower(a, sa, b, sb, bias, out)


def test_tasks_with_scales_and_elements_of_four_bits():
    """A layout is a declaration of a function about its own parameters, for all callers; arrays of pairs are
    recognized by dtype."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (16, 64)).astype(np.uint8)
    packed = Pairs(codes[:, 0::2] | codes[:, 1::2] << 4)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    b = rng.integers(-2, 3, (64, 32)).astype(ml_dtypes.float8_e4m3fn)
    powers = [rng.integers(-2, 3, s) for s in ((16, 2), (2, 32))]
    sa, sb = ((p + 127).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu) for p in powers)
    sb = sb.reshape(1, 2, 2, 16).transpose(2, 0, 3, 1).reshape(2, 32).copy()
    want = (values[codes] * 2.0 ** powers[0].repeat(32, 1)) @ (
        b.astype(float) * 2.0 ** powers[1].repeat(32, 0)
    )
    made = ScaledTasks.compile(config=pl.RunConfig(platform="a5sim"))
    out = np.zeros((16, 32), np.float32)
    made(packed, sa, b, sb, out)
    np.testing.assert_allclose(out, want.astype(np.float32), rtol=1e-6)
    with pytest.raises(DiagnosticError, match="shape of 'a' of main does not match"):
        made(Pairs(packed.codes[:, :16]), sa, b, sb, out)


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
        (array((16, 32)), array((16, 32)), "cannot multiply 32 columns by 16 rows"),
        (array((16, 32)), array((32, 16), np.float16), "cannot multiply FP32 by FP16 with matmul"),
        (array((2, 16, 32)), array((3, 32, 16)), "cannot multiply stacks of 2 and 3 matrices"),
        (array((32,)), array((32,)), "cannot multiply two rows"),
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
    """It begins empty: its valid region is that of the first product."""
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
