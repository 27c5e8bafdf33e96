"""Orchestrations: their results on the task runtime, in any order that it allows, and one task after the
other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.diag import DiagnosticError
from pto.language.graphs.serial import Serial, SerialTensor

RNG = np.random.default_rng(0)


@pl.jit.incore
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    m, n = a.shape
    pl.store(pl.add(pl.load(a, [0, 0], [m, n]), pl.load(b, [0, 0], [m, n])), [0, 0], out)
    return out


@pl.jit.incore
def scale(a: pl.Tensor, by: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    m, n = a.shape
    pl.store(pl.mul(pl.load(a, [0, 0], [m, n]), by), [0, 0], out)
    return out


@pl.jit
def dag(a: pl.Tensor, b: pl.Tensor, f: pl.Out[pl.Tensor]):
    """(a + b) * 3 + (a + b) * 0.5, by rows of 16."""
    for r in pl.parallel(0, 64, 16):
        c = pl.create_tensor([16, 64], dtype=pl.FP32)
        c = add(a[r : r + 16, :], b[r : r + 16, :], c)
        d = pl.create_tensor([16, 64], dtype=pl.FP32)
        d = scale(c, 3.0, d)
        e = pl.create_tensor([16, 64], dtype=pl.FP32)
        e = scale(c, 0.5, e)
        add(d, e, f[r : r + 16, :])
    return f


@pl.jit
def chain(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Each step adds the one before to itself; every other step is another tensor."""
    now = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
        now[:] = pl.add(x, 0.0)
    for _ in pl.range(4):
        after = pl.create_tensor([64, 64], dtype=pl.FP32)
        after = add(now, now, after)
        now = after
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="end"):
        out[:] = pl.add(now, 1.0)
    return out


@pl.jit
def decided(x: pl.Tensor, flags: pl.Tensor, out: pl.Out[pl.Tensor]):
    """The number of tasks depends on data that the orchestrator reads."""
    for i in pl.range(4):
        flag = pl.read(flags, [i])
        rows = x[i * 16 : i * 16 + 16, :]
        if flag > 0:
            scale(rows, 2.0, out[i * 16 : i * 16 + 16, :])
        else:
            scale(rows, -1.0, out[i * 16 : i * 16 + 16, :])
    return out


def arrays(count: int) -> list[Any]:
    return [RNG.standard_normal((64, 64)).astype(np.float32) for _ in range(count)]


def cases() -> list[tuple[Any, list[Any], Any]]:
    a, b, x = arrays(3)
    flags = np.array([1, 0, 0, 1], np.int32)
    signs = np.repeat(np.where(flags > 0, 2, -1), 16)[:, None]
    return [
        (dag, [a, b], (a + b) * np.float32(3) + (a + b) * np.float32(0.5)),
        (chain, [x], x * 16 + 1),
        (decided, [x, flags], (x * signs).astype(np.float32)),
    ]


@pytest.mark.parametrize("number", range(3))
def test_every_way_of_running(number: int) -> None:
    function, given, expected = cases()[number]
    out = np.full((64, 64), np.nan, np.float32)
    function(*given, out)  # on the runtime
    np.testing.assert_array_equal(out, expected)
    compiled = function.compile(*given, out)
    for seed in range(3):
        out[:] = np.nan
        run = compiled.execute([*given, out], seed=seed, check_hazards=True, block_dim=2)
        np.testing.assert_array_equal(out, expected)
        assert not run.hazards
    out[:] = np.nan
    result = function.run(*given, out, sanitize="all")
    assert not result.diagnostics, str(result)
    np.testing.assert_array_equal(out, expected)


M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def doubled(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    for r in pl.parallel(0, M, 16):
        with pl.at():
            t = pl.load(x, [r, 0], [16, 64], valid_shape=[pl.min(16, M - r), 64])
            pl.store(t * 2.0, [r, 0], y)
    return y


@pl.jit.host
def doubled_twice(x: pl.Tensor[[N, 64], pl.FP32], y: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    between = pl.create_tensor([N, 64], dtype=pl.FP32)
    between = doubled(x, between)
    return doubled(between, y)


def test_an_orchestration_calls_another() -> None:
    """Its body takes the place of the call; its dynamic extents are those of its arguments."""
    x = RNG.standard_normal((40, 64)).astype(np.float32)
    for how in (doubled_twice, doubled_twice.run, doubled_twice.interpret):
        out = np.full_like(x, np.nan)
        how(x, out)
        np.testing.assert_array_equal(out, x * 4)


@pl.jit.incore
def first_rows(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0], out)


@pl.jit
def of_extents(
    x: pl.Tensor[[M * 2, 16], pl.FP32],
    k: pl.Tensor[[M + 1], pl.FP32],
    y: pl.Out[pl.Tensor[[M * 2, 16], pl.FP32]],
):
    for r in pl.range(M):
        with pl.at():
            pl.store(pl.load(x, [2 * r, 0], [2, 16]) * pl.read(k, [M]), [2 * r, 0], y)
    return y


@pl.jit
def halves(x: pl.Tensor[[M, 16], pl.FP32], y: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
    with pl.at():
        pl.store(pl.load(x, [0, 0], [4, 16]), [0, 0], y)


def test_extents_that_a_call_decides() -> None:
    x, k = RNG.standard_normal((8, 16)).astype(np.float32), np.array([0, 0, 0, 0, 3], np.float32)
    for how in (of_extents, of_extents.run, of_extents.interpret):
        out = np.full_like(x, np.nan)
        how(x, k, out)
        np.testing.assert_array_equal(out, x * 3)
    for rows, said in (
        (7, "cannot solve M_times_2 for the extent of 'x'"),
        (6, "M of of_extents has two different extents"),
    ):
        with pytest.raises(DiagnosticError, match=said):
            of_extents(x[:rows], k, x[:rows].copy())
    out = np.zeros((4, 16), np.float32)
    halves(x, out)  # it does not name M: two extents
    np.testing.assert_array_equal(out, x[:4])


@pl.jit.incore
def by_a_column(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    first = pl.read(x, [0, 0])
    pl.store(pl.row_expand_mul(pl.full([16, 8], pl.FP32, first), pl.load(x, [0, 0], [16, 1])), [0, 0], out)
    return out


@pl.jit
def columns(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(4):
        by_a_column(x[:, i : i + 1], out[:, i * 8 : i * 8 + 8])
    return out


def test_columns_of_matrices() -> None:
    x = RNG.standard_normal((16, 4)).astype(np.float32)
    for how in (columns, columns.run, columns.interpret):
        out = np.zeros((16, 32), np.float32)
        how(x, out)
        np.testing.assert_array_equal(out, (x * x[0]).repeat(8, 1))


@pl.jit
def of_a_window(big: pl.Tensor, sizes: pl.Tensor, out: pl.Out[pl.Tensor], more: pl.Out[pl.Tensor]):
    some = pl.slice(big, [16, pl.read(sizes, [0])], [0, 0])
    scale(some, 2.0, out)
    with pl.at():
        rows, cols = some.shape
        more = pl.store(pl.load(some, [0, 0], [rows, cols]) * 3.0, [0, 0], more)
    return out


def test_all_of_a_window_that_a_run_decides() -> None:
    """A tile has room for the largest window, and holds the actual one."""
    x, sizes = RNG.standard_normal((16, 128)).astype(np.float32), np.array([40], np.int64)
    for how in (of_a_window, of_a_window.run, of_a_window.interpret):
        out, more = np.zeros_like(x), np.zeros_like(x)
        how(x, sizes, out, more)
        for found, times in ((out, 2), (more, 3)):
            np.testing.assert_array_equal(found[:, :40], x[:, :40] * np.float32(times))
            assert not found[:, 40:].any()


@pl.jit
def assembled(
    x: pl.Tensor[[M, 150], pl.FP32], y: pl.Out[pl.Tensor[[2, M, 150], pl.FP32]], z: pl.InOut[pl.Tensor]
):
    for b in pl.range(2):
        chunk = pl.create_tensor([M, 150], dtype=pl.FP32)
        for r in pl.range(0, M, 16):
            with pl.at(name_hint="work"):
                rows = pl.load(x, [r, 0], [16, 150], valid_shape=[pl.min(16, M - r), 150])
                chunk = pl.store(rows * 2.0, [r, 0], chunk)
        y[b, :, :] = chunk
    z = pl.assemble(z, x, [1, 2])
    some = pl.create_tensor([2, 32], dtype=pl.FP32)
    with pl.at(name_hint="work"):
        some[:] = pl.full([2, 32], pl.FP32, 5.0)
    z = pl.assemble(z, some, [0, 8], atomic=pl.AtomicType.Add)
    return y


def test_an_orchestration_assembles() -> None:
    """Into a window that tasks write, or by a task that copies, in blocks."""
    x, z = RNG.standard_normal((70, 150)).astype(np.float32), np.ones((72, 160), np.float32)
    want = z.copy()
    want[1:71, 2:152] = x
    want[0:2, 8:40] += 5
    for how in (assembled, assembled.run, assembled.interpret):
        y, out = np.full((2, 70, 150), np.nan, np.float32), z.copy()
        how(x, y, out)
        np.testing.assert_array_equal(y, np.stack([x * 2, x * 2]))
        np.testing.assert_array_equal(out, want)
    text = assembled.lower(x, y, out).as_python()
    assert "def copy" in text and text.count("self.copy") == 2 and "drop_dims=[0]" in text


@pl.jit
def rows_beyond(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for r in pl.range(0, 64, 24):
        scale(x[r : r + 24, :], 1.0, y[r : r + 24, :])


@pl.jit
def columns_beyond(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for c in pl.range(0, 64, 24):
        scale(x[:, c : c + 24], 1.0, y[:, c : c + 24])


@pl.jit
def rows_unused(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for r in pl.range(0, 64, 24):
        first_rows(x[r : r + 24, :], y[r : r + 24, :])


def test_windows_beyond_their_tensor() -> None:
    """Columns beyond a tensor are those of the next row; rows are not there, which matters where one is used."""
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    for how in (columns_beyond, columns_beyond.run):
        with pytest.raises(DiagnosticError, match="PTO-E3005") as caught:
            how(x, x.copy())
        (found,) = caught.value.diagnostics
        assert found.span is not None and found.got == "48 to 72"
        assert found.span.line == columns_beyond.declared.function.__code__.co_firstlineno + 3
    with pytest.raises(DiagnosticError, match="PTO-E2101"):
        rows_beyond(x, x.copy())
    assert not rows_beyond.run(x, x.copy()).ok
    for how in (rows_unused, rows_unused.run):
        y = np.zeros_like(x)
        how(x, y)
        np.testing.assert_array_equal(y[48:64], x[48:64])


@pl.jit
def by_windows(x: pl.Tensor, y: pl.InOut[pl.Tensor], z: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    """Each region uses some rows, columns or a part of a window, and so do blocks together: no other tasks are in its way."""
    lower = y[32:64, :]
    for _ in pl.range(2):
        for i in pl.parallel(4):
            with pl.at(name_hint="rows"):
                first = (i // 2) * 16
                for k in pl.range(first, first + 16, 8):
                    part = pl.load(y, [k, i % 2 * 32], [8, 32])
                    y = pl.store(part * 2.0, [k, i % 2 * 32], y)
        for i in pl.parallel(2):
            with pl.spmd(2, name_hint="lower"):
                r = i * 16 + pl.tile.get_block_idx() * 8
                lower[r : r + 8, :] = lower[r : r + 8, :] + x[r - i * 16 : r - i * 16 + 8, :]
    for r in pl.parallel(0, M, 16):
        with pl.at(name_hint="tail"):
            rows = pl.load(y, [r, 0], [16, 64], valid_shape=[pl.min(16, M - r), 64])
            z = pl.store(rows, [r, 0], z)
    return z


def test_tasks_get_windows() -> None:
    x, y = arrays(2)
    want = y.copy()
    want[:32] *= 4
    want[32:] = (want[32:] + np.tile(x[:16], (2, 1))) + np.tile(x[:16], (2, 1))
    for how in (by_windows, by_windows.run, by_windows.interpret):
        out, z = y.copy(), np.zeros((40, 64), np.float32)
        how(x, out, z)
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(z, want[:40])
    turn = [((i // 2 * 16, i % 2 * 32), (16, 32)) for i in range(4)] + [
        ((32, 0), (16, 64)),
        ((48, 0), (16, 64)),
    ]
    tail = [((r, 0), (16, 64)) for r in range(0, 40, 16)]
    assert boxes(by_windows, [x, y.copy(), z], 1) == turn * 2 + tail


def boxes(function: Any, values: list[Any], which: int) -> list[Any]:
    """The windows of an array that tasks get, in the order of their submission: what edges are made from."""

    class BlockTrace(Serial):
        def submit(self, kernel: Any, *args: Any, at: int = 0, **options: Any) -> int:
            found.extend(a.box for a in args if isinstance(a, SerialTensor) and a.root is values[which])
            return 0

    found: list[Any] = []
    made = function.compile(*values)
    made._begin(BlockTrace(lambda *_: None, made.places), made.kernels("reference"), values)
    return found


def test_tasks_wait_for_what_they_read() -> None:
    a, b = arrays(2)
    out = np.zeros_like(a)
    run = dag.compile(a, b, out).execute([a, b, out], record=True, block_dim=4)
    assert run.stats["tasks"] == 16
    assert run.stats["edges"] == 16  # two of c, one each of d and e, four times
    named = {t.kernel for t in run.tasks} if hasattr(run, "tasks") else {"add", "scale"}
    assert {n.split("_")[0] for n in named} == {"add", "scale"}


@pl.jit.incore
def one_of_many(x: pl.Tensor[[2, 1, 2, 4, 32], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 2, 4, 32], pl.FP32]]):
    y[:, :, :, :, :] = pl.add(x, 1.0)


@pl.jit
def six_dimensions(
    x: pl.Tensor[[3, 2, 1, 2, 4, 32], pl.FP32], y: pl.Out[pl.Tensor[[3, 2, 1, 2, 4, 32], pl.FP32]]
):
    for i in pl.parallel(3):
        one_of_many(x[i], y[i])
    return y


def test_tensors_of_six_dimensions():
    """Tasks get parts of them; the runtime itself has five."""
    x = np.arange(3 * 2 * 2 * 4 * 32, dtype=np.float32).reshape(3, 2, 1, 2, 4, 32)
    y = np.zeros_like(x)
    six_dimensions.compile(x, y).execute([x, y])
    np.testing.assert_array_equal(y, x + 1)


@pl.jit.incore
def twice_by_rows(x: pl.Tensor[[3, 6, 4096], pl.FP32], y: pl.Out[pl.Tensor[[3, 6, 4096], pl.FP32]]):
    for i in pl.range(3):
        for j in pl.range(6):
            y[i : i + 1, j : j + 1, :] = pl.add(x[i : i + 1, j : j + 1, :], x[i : i + 1, j : j + 1, :])


@pl.jit
def pages_assembled(x: pl.Tensor[[3, 6, 4096], pl.FP32], y: pl.Out[pl.Tensor[[5, 6, 4096], pl.FP32]]):
    made = pl.create_tensor([3, 6, 4096], dtype=pl.FP32, init_value=0.0)
    twice_by_rows(x, made)
    y[1:4, 0:6, 0:4096] = made
    return y


def test_pages_larger_than_a_block():
    """A task copies them, in blocks that are runs of rows."""
    x = np.arange(3 * 6 * 4096, dtype=np.float32).reshape(3, 6, 4096)
    y = np.zeros((5, 6, 4096), np.float32)
    pages_assembled(x, y)
    np.testing.assert_array_equal(y[1:4], 2 * x)
