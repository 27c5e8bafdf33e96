"""`k.interpret(...)`: the body executed as ordinary Python has the numbers of compiled runs, bit for bit."""

from __future__ import annotations

import linecache
import math
import sys
from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.diag import DiagnosticError

M = pl.dynamic("M")


@pl.jit.inline
def shifted(x, by):
    return by - (0.0 - x)


@pl.jit.incore
def scale(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]], s: pl.Scalar[pl.FP32]):
    for r in pl.range(0, M, 16):
        n = pl.min(16, M - r)
        t = pl.load(x, [r, 0], [16, 64], valid_shape=[n, 64])
        pl.store(pl.mul(t, s), [r, 0], y)
    return y


@pl.jit
def ragged(a: pl.Tensor[[M, 64], pl.FP32], c: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    """Dynamic extents, a helper of a core, a carried float, a reduction over the valid region."""
    tmp = pl.create_tensor([M, 64], pl.FP32)
    scale(a, tmp, 2.5)
    with pl.at(level=pl.Level.CORE_GROUP):
        s = 0.1
        for _ in pl.range(5):
            s = s * 1.1
        for r in pl.range(0, M, 16):
            n = pl.min(16, M - r)
            t = pl.load(tmp, [r, 0], [16, 64], valid_shape=[n, 64])
            t = pl.row_expand_add(shifted(t, 0.25), pl.row_sum(t))
            pl.store(pl.mul(t, s), [r, 0], c)
    return c


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    """Tensor level: windows, an accumulator that the first iteration makes."""
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([16, 32], pl.FP32)
        for i in pl.range(3):
            x = a[:, i * 32 : i * 32 + 32]
            y = b[i * 32 : i * 32 + 32, :]
            if i == 0:
                acc = pl.matmul(x, y)
            else:
                acc = pl.matmul_acc(acc, x, y)
        c[:] = acc
    return c


@pl.jit
def loops(a: pl.Tensor, c: pl.Out[pl.Tensor], n: int):
    """Explicit carries, of no iteration too, and a while loop."""
    with pl.at(level=pl.Level.CORE_GROUP):
        z = pl.load(a, [0, 0], [16, 64])
        for _, (x, s) in pl.range(n, init_values=(z, 1.0)):
            x2 = pl.add(x, s)
            s2 = s * 0.3
            y, t = pl.yield_(x2, s2)
        for q, j in pl.while_(init_values=(y, 0)):
            pl.cond(j < 3)
            q2 = pl.mul(q, t)
            q3, _ = pl.yield_(q2, j + 1)
        pl.store(q3, [0, 0], c)
    return c


@pl.jit
def blocks(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    """Blocks as a region and as a loop; the results of a region are memory after it."""
    with pl.spmd(2):
        r = pl.get_block_idx() * 8
        c[r : r + 8, :] = pl.exp(a[r : r + 8, :])
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.add(c[:], 1.0)
    for b in pl.spmd(2):
        u = pl.load(t, [b * 8, 0], [8, 64])
        pl.store(pl.sub(u, pl.load(a, [b * 8, 0], [8, 64])), [b * 8, 0], c)
    return c


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def twice(
        self,
        x: pl.Tensor[[16, 64], pl.INT32],
        y: pl.Out[pl.Tensor[[16, 64], pl.INT32]],
        k: pl.Scalar[pl.INT32],
    ):
        t = pl.load(x, [0, 0], [16, 64])
        big: pl.Scalar[pl.INT32] = 2000000000
        pl.store(pl.add(pl.mul(t, big + big), k), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[16, 64], pl.INT32], c: pl.Out[pl.Tensor[[16, 64], pl.INT32]]):
        tmp = pl.create_tensor([16, 64], pl.INT32)
        tmp = self.twice(a, tmp, 7)
        c = self.twice(tmp, c, 9)
        return c


def _random(*shape: int) -> Any:
    return np.random.default_rng(1).random(shape, np.float32)


def _same_bits(kernel: Any, out: Any, *args: Any) -> Any:
    compiled, executed = np.zeros_like(out), np.zeros_like(out)
    at = next(i for i, x in enumerate(args) if x is out)
    kernel.run(*args[:at], compiled, *args[at + 1 :], engine="native")
    found = kernel.interpret(*args[:at], executed, *args[at + 1 :])
    assert found is executed
    np.testing.assert_array_equal(compiled.view(np.uint8), executed.view(np.uint8))
    return executed


def test_the_numbers_are_those_of_compiled_runs() -> None:
    a, out = _random(40, 64), np.zeros((40, 64), np.float32)
    x = 2.5 * a
    wanted = (x + 0.25 + x.sum(1, keepdims=True)) * 0.1 * 1.1**5
    np.testing.assert_allclose(_same_bits(ragged, out, a, out), wanted, rtol=1e-5)
    a, b, out = _random(16, 96), _random(96, 32), np.zeros((16, 32), np.float32)
    np.testing.assert_allclose(_same_bits(product, out, a, b, out), a @ b, rtol=1e-5)
    a, out = _random(16, 64), np.zeros((16, 64), np.float32)
    for n in (0, 4):
        wanted = (a + sum(0.3**i for i in range(n))) * (0.3**n) ** 3
        np.testing.assert_allclose(_same_bits(loops, out, a, out, n), wanted, rtol=1e-5)
    np.testing.assert_allclose(_same_bits(blocks, out, a, out), np.exp(a) + 1 - a, rtol=1e-5)
    a = np.arange(1024, dtype=np.int32).reshape(16, 64)
    wrapped = np.int32(4000000000 - 2**32)
    with np.errstate(over="ignore"):
        out = np.zeros_like(a)
        np.testing.assert_array_equal(_same_bits(Program, out, a, out), (a * wrapped + 7) * wrapped + 9)


@pl.jit
def looked_at(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [16, 64], valid_shape=[3, 5])
        for i in pl.range(2):
            x = pl.mul(x, 2.0)
            print(f"{i}: {x.shape} {x.valid_shape} {x[0, 1]}")
            breakpoint()
        pl.store(x, [0, 0], c)


def test_a_body_can_be_looked_at(capsys: Any, monkeypatch: Any) -> None:
    """`print`, f-strings and breakpoints see the arrays; the invalid region is NaN. A compiled run ignores
    them."""
    seen: list[Any] = []

    def hook() -> None:
        frame = sys._getframe(1)
        seen.append(
            (linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip(), frame.f_locals["x"].numpy())
        )

    monkeypatch.setattr(sys, "breakpointhook", hook)
    a, c = _random(16, 64), np.zeros((16, 64), np.float32)
    looked_at.interpret(a, c)
    assert capsys.readouterr().out.splitlines() == [
        f"{i}: (16, 64) (3, 5) {a[0, 1] * 2.0 ** (i + 1)}" for i in range(2)
    ]
    assert [line for line, _ in seen] == ["breakpoint()"] * 2
    assert np.isnan(seen[1][1][3:]).all() and (seen[1][1][:3, :5] == a[:3, :5] * 4).all()
    assert (c[:3, :5] == a[:3, :5] * 4).all() and not c[3:].any() and not c[:, 5:].any()
    looked_at(a, c)
    assert capsys.readouterr().out == "" and len(seen) == 2


@pl.jit
def updated(a: pl.Tensor, c: pl.InOut[pl.Tensor], n: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[2:4, :] += a[2:4, :]
        c[0, 1] -= a[0, 1] ** 3
        c[0, 2] = pl.cast(n**5, pl.FP32)


def test_windows_are_updated_and_numbers_have_powers() -> None:
    a, wanted = _random(16, 64), np.zeros((16, 64), np.float32)
    wanted[2:4] += a[2:4]
    wanted[0, 1], wanted[0, 2] = -(a[0, 1] * a[0, 1] * a[0, 1]), 243
    for execute in (updated, updated.interpret):
        c = np.zeros_like(a)
        execute(a, c, 3)
        assert (c == wanted).all()


@pl.jit
def as_numpy(x: pl.Tensor, n: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
    with pl.at():
        positive = x > 0
        y[0:4] = pl.where(positive & ~(x > 1), pl.gelu(x), pl.row_max(x) - x)[0:4] + (x[0:4] > 0) * 2
        y[4:8] = x[0, 0] / x[4:8] ** 3 + n[4:8] / 2
        y[8:10] = pl.row_max(x[8:10])
        y[10:12] = pl.col_max(x)
        y[12:14] = 0.5
        y[14:16] = 1 != n[14:16]
        z[:] = pl.row_sum(x)


def test_operators_of_python_are_those_of_numpy() -> None:
    """In runs, and in bodies that are executed."""
    a, n = _random(16, 64) * 2 - 1, np.arange(1024, dtype=np.int32).reshape(16, 64) % 3
    gelu = a / 2 * (1 + np.vectorize(math.erf)(a.astype(np.float64) / np.sqrt(2)))
    wanted = (np.where((a > 0) & ~(a > 1), gelu, a.max(1, keepdims=True) - a) + (a > 0) * 2).astype(
        np.float32
    )
    wanted[4:8] = a[0, 0] / a[4:8] ** 3 + n[4:8] / 2
    wanted[8:10], wanted[10:12] = a[8:10].max(1, keepdims=True), a.max(0)
    wanted[12:14], wanted[14:16] = 0.5, n[14:16] != 1
    for execute in (as_numpy, as_numpy.interpret):
        c, z = np.zeros_like(a), np.zeros(16, np.float32)
        execute(a, n, c, z)
        np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(z, a.sum(1), rtol=1e-5, atol=1e-5)


HALF = np.float32(0.5)


@pl.jit
def dense(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, shift: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at():
        y[...] = pl.gelu(x[...] @ w + bias[None, :]) * HALF + np.sqrt(4.0) * shift[:, None]


def test_products_and_arrays_of_one_dimension() -> None:
    a, w, bias = _random(16, 64), _random(64, 32) / 8, _random(1, 32)[0]
    h = a.astype(np.float64) @ w + bias
    for execute in (dense, dense.interpret):
        c = np.zeros((16, 32), np.float32)
        execute(a, w, bias, a[:, 0].copy(), c)
        gelu = h / 2 * (1 + np.vectorize(math.erf)(h / np.sqrt(2)))
        np.testing.assert_allclose(c, gelu / 2 + 2 * a[:, :1], rtol=1e-4)


@pl.jit
def beyond(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        z = pl.load(a, [0, 0], [16, 64])
        pl.store(pl.add(z, pl.load(a, [8, 0], [16, 64])), [0, 0], c)


@pl.jit
def misplaced(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    pl.add(a, 1.0)


@pl.jit
def mixed(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.add(pl.cast(a[:], pl.INT32), a[0, 0])


WEIGHTS = np.ones((16, 64), np.float32)


@pl.jit
def surroundings(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at():
        y[:] = x + WEIGHTS


@pl.jit
def other_rows(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at():
        y[:] = x[0:8] / x


@pl.jit
def arithmetic(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    y[:] = x < 2


@pl.jit
def conditions(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at():
        y[:] = (x > 1) + (x > 2)


@pl.jit
def chosen(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at():
        if x > 0:
            y[:] = x


def test_problems_are_those_of_reading() -> None:
    a = _random(16, 64)
    for kernel in (beyond, misplaced, mixed, surroundings, other_rows, arithmetic, conditions, chosen):
        with pytest.raises(DiagnosticError) as read:
            kernel.lower(a, a.copy())
        with pytest.raises(DiagnosticError) as executed:
            kernel.interpret(a, a.copy())
        told = [[(d.code, d.message, d.help) for d in e.value.diagnostics] for e in (read, executed)]
        assert told[0] == told[1]
        if hasattr(kernel.declared.function.__code__, "co_positions"):  # else lines are all that is known
            assert str(read.value) == str(executed.value)
    with pytest.raises(TypeError, match=r"decorate the function with @pl\.jit"):
        pl.add(a, a)
