"""Control flow of the language: each program as compiled, executed, and written with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.diag import DiagnosticError


def _random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape, np.float32)


def agreed(kernel: Any, *args: Any) -> Any:
    """Return the content of the last argument of a kernel: the same on engine native, on the reference
    engine, without findings, and interpreted."""
    outs = [np.zeros_like(args[-1]) for _ in range(3)]
    kernel.run(*args[:-1], outs[0], engine="native")
    reports = kernel.run(*args[:-1], outs[1], engine="reference", sanitize="all")
    assert [str(d) for d in reports.diagnostics if d.severity == "error"] == []
    kernel.interpret(*args[:-1], outs[2])
    for other in outs[1:]:
        np.testing.assert_array_equal(outs[0], other)
    return outs[0]


@pl.jit
def augmented(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc, s, n, i = pl.full([8, 64], pl.FP32, 0.0), 0.0, 1, 0
        for r in pl.range(0, 64, 8):
            acc += a[r : r + 8]
            for k in pl.range(3):
                s -= a[r, k]
            if r % 16 == 0:
                n *= 2
        while i < 4:
            i += 1
            acc *= 0.5
        c[0:8] = acc
        c[8, 0], c[8, 1], c[8, 2] = s, pl.cast(n, pl.FP32), pl.cast(i, pl.FP32)


def test_names_that_are_updated_in_loops() -> None:
    """`acc += x` reads the name: loops carry it."""
    a = _random(64, 64)
    c = agreed(augmented, a, np.zeros((16, 64), np.float32))
    np.testing.assert_allclose(c[:8], a.reshape(8, 8, 64).sum(0) / 16, rtol=1e-5)
    np.testing.assert_allclose(c[8, :3], [-a[::8, :3].sum(), 16, 4], rtol=1e-5)


@pl.jit
def in_both_regions(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    found = pl.create_tensor([64, 1], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(0, 64, 16):
            most = pl.row_max(a[r : r + 16])
            found[r : r + 16, :] = most
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(0, 64, 16):
            most = found[r : r + 16, :]
            c[r : r + 16] = pl.row_expand_sub(a[r : r + 16], most)


def test_a_name_without_a_value_before_its_loop() -> None:
    a = _random(64, 64)
    c = agreed(in_both_regions, a, np.zeros((64, 64), np.float32))
    np.testing.assert_array_equal(c, a - a.max(1, keepdims=True))


@pl.jit
def jumps(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.full([8, 64], pl.FP32, 0.0)
        n = 0
        for i in pl.range(8):
            x = pl.load(a, [i * 8, 0], [8, 64])
            v = pl.read(x, [0, 0])
            if v > 0.9:
                break
            if v > 0.5:
                n = n + 10
                continue
            acc = pl.add(acc, x)
            n = n + 1
        j = 0
        while j < 100:
            j = j + 1
            if j % 2 == 0:
                continue
            if j > 6:
                break
            for k in pl.range(5, -1, -2):
                if k < 2:
                    continue
                acc = pl.add(acc, 1.0)
        acc = pl.add(acc, pl.cast(n + i, pl.FP32))
        pl.store(acc, [0, 0], c)
    return c


def test_jumps() -> None:
    for first in (0.95, 0.6, 0.2):
        a = _random(64, 64)
        a[::8, 0] = [0.3, first, 0.7, 0.1, 0.2, 0.95, 0.0, 0.0]
        wanted, n = np.zeros((8, 64), np.float32), 0
        for i in range(8):
            v = a[i * 8, 0]
            if v > 0.9:
                break
            if v > 0.5:
                n += 10
                continue
            wanted, n = wanted + a[i * 8 : i * 8 + 8], n + 1
        np.testing.assert_allclose(
            agreed(jumps, a, np.zeros((8, 64), np.float32)), wanted + 6 + n + i, rtol=1e-6
        )


@pl.jit
def extents(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    """Arms that leave tiles valid to different extents."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(3):
            if i % 2 == 0:
                t = pl.load(a, [i * 8, 0], [8, 64], valid_shape=[i + 3, 64])
                t = pl.exp(t)
            else:
                t = pl.load(a, [i * 8, 0], [8, 64], valid_shape=[8, 24])
            pl.store(pl.add(t, 1.0), [i * 8, 0], c)
    return c


@pl.jit
def names(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    """Swaps, nested unpacking, names that leave loops, arms and regions, loops that never run."""
    pl.func_attr({"purpose": "test"})
    pl.static_assert(a.shape[0] == 24, "24 rows")
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [8, 64])
        y = pl.load(b, [0, 0], [8, 64])
        m, n = 1, 2
        (p, (q, r)) = (x, (y, 3.0))
        for i in pl.range(5):
            x, y = y, pl.add(x, y)
            m, n = n, m + n
            if i == 3:
                z = pl.mul(x, r)
            else:
                z = pl.mul(y, 2.0)
            w = z
        for _ in pl.range(0):
            x = pl.add(x, 100.0)
        out = pl.add(pl.add(x, w), pl.cast(m, pl.FP32))
        pl.store(pl.sub(q, p), [8, 0], c)
        for _ in pl.range(3):
            x, y = y, x
        pl.store(pl.sub(x, y), [16, 0], c)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(out, [0, 0], [8, 64]), [0, 0], c)
    return c


@pl.jit
def unsigned(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    """Numbers without a sign are divided, shifted and compared as such."""
    with pl.at(level=pl.Level.CORE_GROUP):
        w: pl.Scalar[pl.UINT32] = 3000000000
        n = 0
        if w > 5:
            n = 1
        if w // 7 > 400000000:
            n = n + 2
        if w >> 1 < 2000000000:
            n = n + 4
        if w % 7 == 4 and pl.max(w, pl.const(5, pl.UINT32)) == w:
            n = n + 8
        if pl.cast(w, pl.INDEX) > 5:
            n = n + 16
        m: pl.Scalar[pl.INT8] = 100
        if m + 300 == -112:  # 300 is 44 in 8 bits, and the sum wraps
            n = n + 32
        c[:] = pl.add(a[:], pl.cast(n, pl.FP32))
    return c


def test_names_and_extents() -> None:
    a, b = _random(24, 64), _random(24, 64, seed=1)
    out = np.zeros_like(a)
    wanted = np.zeros_like(a)
    wanted[:3], wanted[16:21], wanted[8:16, :24] = np.exp(a[:3]) + 1, np.exp(a[16:21]) + 1, a[8:16, :24] + 1
    np.testing.assert_allclose(agreed(extents, a, out), wanted, rtol=1e-6)
    x, y, m, n = a[:8], b[:8], 1, 2
    for _ in range(5):
        x, y, m, n = y, x + y, n, m + n
    wanted = np.concatenate([x + y * 2 + m, b[:8] - a[:8], y - x])
    np.testing.assert_allclose(agreed(names, a, b, out), wanted, rtol=1e-6)
    np.testing.assert_array_equal(agreed(unsigned, a, out), a + np.float32(63))


@pl.jit
def everything_wrong(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    pl.static_assert(a.shape[0] == 3, "three rows")
    pl.static_print("rows", a.shape[0], a)
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.unroll(3):
            if i == 1:
                break
        for _ in pl.parallel(3):
            continue
        x = pl.load(a, [0, 0], [8, 64])
        for i in pl.range(3):
            if i == 1:
                z = pl.exp(x)
        pl.store(z, [0, 0], c)


def test_what_is_refused(capsys: Any) -> None:
    with pytest.raises(DiagnosticError) as e:
        everything_wrong.lower(_random(24, 64), _random(24, 64))
    found = [(d.code, d.message) for d in e.value.diagnostics]
    assert found == [
        ("PTO-E3003", "three rows"),
        ("PTO-E3001", "unsupported jump in pl.unroll"),
        ("PTO-E3001", "unsupported jump in pl.parallel"),
        ("PTO-E3002", "cannot read 'z': it is set only in one branch"),
    ]
    assert capsys.readouterr().out.rpartition(": rows")[2] == " 24 a: Tensor[[24, 64], FP32]\n"


@pl.jit
def skipped(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            if i == 2:
                continue
            out = pl.store(
                pl.load(a, [i * 8, 0], [8, 64]), [i * 8, 0], c
            )  # memory, whichever way it is reached
    return out


def test_memory_that_one_way_names() -> None:
    a = _random(32, 64)
    expected = a.copy()
    expected[16:24] = 0
    np.testing.assert_array_equal(agreed(skipped, a, np.zeros_like(a)), expected)


@pl.jit
def windows_as_values(x: pl.Tensor, n: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        top = x[0:1, :]  # a window before the loop, and a value after an iteration
        for i in pl.range(1, 4):
            row = pl.full([1, 64], dtype=pl.FP32, value=-1000.0)
            if pl.read(n, [i]) > 0:
                row = x[i : i + 1, :]  # a window in one arm, and a value in the other
            top = pl.maximum(top, row)
        out[0:1, :] = top


def test_a_window_becomes_a_value() -> None:
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
    n = np.array([1, 0, 1, 1], np.int32)
    out = np.zeros((1, 64), np.float32)
    windows_as_values(x, n, out)
    np.testing.assert_array_equal(out[0], x[[0, 2, 3]].max(axis=0))


@pl.program
class Explicit:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        last: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        t = pl.load(x, [0, 0], [16, 64])
        for i, (a,) in pl.range(8, init_values=(t,)):
            if i != 2:
                b = pl.add(a, t)
            else:
                continue
            if i == last:
                break
            c = pl.yield_(b)
        for k, d in pl.while_(init_values=(0, c)):
            pl.cond(k < 10)
            if k == 3:
                break
            e = pl.add(d, t)
            turns, f = pl.yield_(k + 1, e)
        if turns > last:
            return pl.store(t, [0, 0], out)
        return pl.store(f, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[2, 16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        """A window may have fewer dimensions than its tensor."""
        return self.kernel(pl.slice(x, [16, 64], [1, 0, 0]), 5, out)


def test_jumps_and_returns_where_names_are_explicit() -> None:
    """A jump passes on the names as they are at the jump: iterations 0, 1, 3 and 4 of the first loop add, and
    3 of the second."""
    assert (agreed(Explicit, np.ones((2, 16, 64), np.float32), np.zeros((16, 64), np.float32)) == 8).all()
