"""Several ranks in one graph of tasks: windows, remote loads and stores, signals, collectives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto.language as pl
import pto.language.distributed as pld
from pto import knobs
from pto.diag import DiagnosticError
from pto.engine import journal

F32 = np.float32
COLS = 64
RANKS = 3


def _config(count: int = RANKS) -> pl.RunConfig:
    return pl.RunConfig(distributed_config=pld.DistributedConfig(device_ids=list(range(count))))


def _line(span: Any) -> str:
    assert span is not None
    return Path(__file__).read_text().splitlines()[span.line - 1].strip()


def _given(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(F32)


@pl.jit.incore
def shift(
    x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]],
    data: pld.DistributedTensor[[2, COLS], pl.FP32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
):  # fmt: skip
    """To the right by a store, and to the left by a load and a get; data loaded before a wait is old after
    it."""
    ctx: pld.CommCtx = pld.get_comm_ctx(data)
    right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tile.remote_store(pl.load(x, [0, 0], [1, COLS]), data, peer=right, offsets=[0, 0])
    pl.store(pl.load(x, [1, 0], [1, COLS]), [1, 0], data)
    before = pl.add(data[1:2, :], 0.0)
    pld.tensor.barrier(signal)
    after = pl.mul(data[0:1, :], 1.0)
    theirs = pld.tile.remote_load(data, right, [1, 0], [1, COLS])
    pl.store(pl.add(after, 0.0), [0, 0], y)
    pl.store(pl.sub(pl.add(theirs, before), before), [1, 0], y)
    return y


@pl.jit
def on_a_rank(
    x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]],
    data: pld.DistributedTensor[[2, COLS], pl.FP32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
):  # fmt: skip
    return shift(x, y, data, signal)


@pl.jit.host
def ring(x: pl.Tensor[[RANKS, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 2, COLS], pl.FP32]]):
    places = pld.alloc_window_buffer(2 * COLS * 4)
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [2, COLS], dtype=pl.FP32)
        on_a_rank(x[r], y[r], data, pld.window(signals, [RANKS, 1], dtype=pl.INT32), device=r)


def test_a_ring() -> None:
    x = np.round(_given(RANKS, 2, COLS) * 64)
    compiled = ring.compile(x, np.zeros_like(x), config=_config())
    for seed in (None, 0, 1, 2):
        y = np.zeros_like(x)
        compiled.execute([x, y], seed=seed)
        for r in range(RANKS):
            np.testing.assert_array_equal(y[r, 0], x[(r - 1) % RANKS, 0])
            np.testing.assert_array_equal(y[r, 1], x[(r + 1) % RANKS, 1])
    for schedule in (None, 3):
        y = np.zeros_like(x)
        assert not compiled.run([x, y], sanitize="all", schedule=schedule).diagnostics
        np.testing.assert_array_equal(y[:, 0], np.roll(x[:, 0], 1, axis=0))


@pl.jit.incore
def tell(
    x: pl.Tensor[[1, COLS], pl.INT32], data: pld.DistributedTensor[[1, COLS], pl.INT32],
    signal: pld.DistributedTensor[[RANKS, 1], pl.INT32], told: pl.Out[pl.Tensor[[1, COLS], pl.INT32]],
):  # fmt: skip
    ctx: pld.CommCtx = pld.get_comm_ctx(data)
    right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tile.remote_store(pl.load(x, [0, 0], [1, COLS]), data, peer=right, offsets=[0, 0])
    pld.tensor.barrier(signal)
    pl.store(pl.add(data[0:1, :], 0), [0, 0], told)
    return told


@pl.jit.incore
def fill(n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[1, COLS], pl.INT32]]):
    pl.store(pl.full([1, COLS], pl.INT32, 1) * n, [0, 0], y)
    return y


@pl.jit
def by_what_it_was_told(
    x: pl.Tensor[[1, COLS], pl.INT32], y: pl.Out[pl.Tensor[[1, COLS], pl.INT32]],
    data: pld.DistributedTensor[[1, COLS], pl.INT32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
):  # fmt: skip
    told = pl.create_tensor([1, COLS], dtype=pl.INT32)
    told = tell(x, data, signal, told)
    n = pl.read(told, [0, 0])
    if n > 0:
        y = fill(n + pl.read(told, [0, 1]), y)
    return y


@pl.jit.host
def asked(x: pl.Tensor[[RANKS, 1, COLS], pl.INT32], y: pl.Out[pl.Tensor[[RANKS, 1, COLS], pl.INT32]]):
    places = pld.alloc_window_buffer(COLS * 4)
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [1, COLS], dtype=pl.INT32)
        signal = pld.window(signals, [RANKS, 1], dtype=pl.INT32)
        by_what_it_was_told(x[r], y[r], data, signal, device=r)


def test_orchestrators_that_wait_for_other_ranks() -> None:
    """Each reads data of a task of another rank, whose orchestrator goes on meanwhile."""
    x = np.arange(1, RANKS + 1, dtype=np.int32).repeat(COLS).reshape(RANKS, 1, COLS) * 10
    compiled = asked.compile(x, np.zeros_like(x), config=_config())
    want = 2 * np.roll(x, 1, axis=0)
    for seed in (None, 0, 1):
        y = np.zeros_like(x)
        compiled.execute([x, y], seed=seed)
        np.testing.assert_array_equal(y, want)
    y = np.zeros_like(x)
    assert not compiled.run([x, y], sanitize="all").diagnostics
    np.testing.assert_array_equal(y, want)


@pl.jit
def by_parts_it_was_told(
    x: pl.Tensor[[1, COLS], pl.INT32], y: pl.Out[pl.Tensor[[2, COLS], pl.INT32]],
    data: pld.DistributedTensor[[1, COLS], pl.INT32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
):  # fmt: skip
    told = pl.create_tensor([1, COLS], dtype=pl.INT32)
    told = tell(x, data, signal, told)
    for i in pl.parallel(2):
        n = pl.read(told, [0, i])
        row = y[i : i + 1, :]
        row = fill(n + i, row)
    return y


@pl.jit.host
def asked_in_parallel(
    x: pl.Tensor[[RANKS, 1, COLS], pl.INT32], y: pl.Out[pl.Tensor[[RANKS, 2, COLS], pl.INT32]]
):
    places = pld.alloc_window_buffer(COLS * 4)
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [1, COLS], dtype=pl.INT32)
        signal = pld.window(signals, [RANKS, 1], dtype=pl.INT32)
        by_parts_it_was_told(x[r], y[r], data, signal, device=r)


def test_orchestrators_that_wait_in_a_parallel_loop() -> None:
    """The claim of a parallel loop holds for the tasks of its own rank only."""
    x = np.arange(1, RANKS + 1, dtype=np.int32).repeat(COLS).reshape(RANKS, 1, COLS) * 10
    want = np.roll(x, 1, axis=0) + np.arange(2, dtype=np.int32)[:, None]
    y = np.zeros_like(want)
    compiled = asked_in_parallel.compile(x, y, config=_config())
    compiled.execute([x, y], seed=0)
    np.testing.assert_array_equal(y, want)
    y = np.zeros_like(want)
    assert not compiled.run([x, y], sanitize="all").diagnostics
    np.testing.assert_array_equal(y, want)


@pl.jit
def hand_on(x: pl.Tensor[[1, COLS], pl.INT32], y: pl.Out[pl.Tensor[[1, COLS], pl.INT32]]):
    n = pl.read(x, [0, 0])
    y = fill(n + 1, y)
    return y


@pl.jit.host
def handed_on(y: pl.InOut[pl.Tensor[[RANKS + 1, 1, COLS], pl.INT32]]):
    for r in pl.range(pld.world_size()):
        hand_on(y[r], y[r + 1], device=r)


def test_ranks_in_the_order_of_what_they_share() -> None:
    y = np.zeros((RANKS + 1, 1, COLS), np.int32)
    handed_on.compile(y, config=_config()).execute([y])
    np.testing.assert_array_equal(y[:, 0, 0], range(RANKS + 1))


MANY, WIDE = 37, 1024


@pl.jit.incore
def in_pieces(
    x: pl.Tensor[[MANY, WIDE], pl.FP32], y: pl.Out[pl.Tensor[[MANY, WIDE], pl.FP32]],
    data: pld.DistributedTensor[[MANY, WIDE], pl.FP32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
    rows: pl.Scalar[pl.INT32],
):  # fmt: skip
    """More than a core holds, and a number of rows by argument."""
    right = (pld.rank(pld.get_comm_ctx(data)) + 1) % pld.world_size()
    pld.tensor.put(
        data,
        right,
        x,
        dst_offsets=[0, 0],
        src_offsets=[0, 0],
        shape=[rows, WIDE],
        chunk_rows=4,
        chunk_cols=256,
    )
    pld.tensor.barrier(signal)
    pld.tensor.get(y, right, data)


@pl.jit
def of_a_rank(
    x: pl.Tensor[[MANY, WIDE], pl.FP32], y: pl.Out[pl.Tensor[[MANY, WIDE], pl.FP32]],
    data: pld.DistributedTensor[[MANY, WIDE], pl.FP32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
    rows: pl.Scalar[pl.INT32],
):  # fmt: skip
    in_pieces(x, y, data, signal, rows)


@pl.jit.host
def pieces(
    x: pl.Tensor[[RANKS, MANY, WIDE], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, MANY, WIDE], pl.FP32]],
    rows: pl.Scalar[pl.INT32],
):  # fmt: skip
    places = pld.alloc_window_buffer(MANY * WIDE * 4)
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [MANY, WIDE], dtype=pl.FP32)
        of_a_rank(x[r], y[r], data, pld.window(signals, [RANKS, 1], dtype=pl.INT32), rows, device=r)


def test_put_and_get_in_pieces() -> None:
    x = np.round(_given(RANKS, MANY, WIDE) * 64)
    for rows in (MANY, 30):
        y = np.full_like(x, 7)
        pieces(x, y, rows, config=_config())
        np.testing.assert_array_equal(y[:, :rows], x[:, :rows])
        np.testing.assert_array_equal(y[:, rows:], 0)  # windows begin with zeros


@pl.jit
def product_of_a_rank(
    a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    told: pl.Out[pl.Tensor[[1, 8], pl.INT32]], data: pld.DistributedTensor[[32, 32], pl.FP32],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
):  # fmt: skip
    """Cube and vector cores: a signal is raised once, by each lane that raises it or by the first."""
    me = pld.rank(pld.get_comm_ctx(data))
    with pl.at(level=pl.Level.CORE_GROUP):
        p = pl.matmul(a, a)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            pld.tensor.remote_store(pl.exp(pl.aiv_shard(p)), data, 1 - me, [lane * 16, 0])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            pld.system.notify(signal, 1 - me, [lane, 0], 1)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, [0, 0], 1)
        pld.system.wait(signal, [1, 0], 1)
        out[:, :] = data[:, :]
        q = pl.matmul(a, a)
        out[0:16, :] = pl.mul(pl.slice(q, [16, 32], [0, 0]), 0.5)
        pld.system.notify(signal, 1 - me, [0, 0], 10)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, [0, 0], 11)
        row = pl.full([1, 8], dtype=pl.INT32, value=0)
        told[:, :] = row
        for i in pl.range(2):
            pl.write(told, [0, i], pl.read(signal, [i, 0]))


@pl.jit.host
def products(
    a: pl.Tensor[[2, 32, 32], pl.FP32], out: pl.Out[pl.Tensor[[2, 32, 32], pl.FP32]],
    told: pl.Out[pl.Tensor[[2, 1, 8], pl.INT32]],
):  # fmt: skip
    places = pld.alloc_window_buffer(32 * 32 * 4)
    signals = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [32, 32], dtype=pl.FP32)
        product_of_a_rank(a[r], out[r], told[r], data, pld.window(signals, [2, 1], dtype=pl.INT32), device=r)


def test_mixed_kernels_tell_once() -> None:
    a = _given(2, 32, 32) / 8
    out, told = np.zeros_like(a), np.zeros((2, 1, 8), np.int32)
    products(a, out, told, config=_config(2))
    want = a @ a
    np.testing.assert_allclose(out[:, 16:], np.exp(want[::-1, 16:]), rtol=1e-4)
    np.testing.assert_allclose(out[:, :16], want[:, :16] / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(told[:, 0, :2], [[11, 1]] * 2)


@pl.jit
def by_a_region(
    x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]],
    data: pld.DistributedTensor[[2, COLS], pl.FP32], signal: pld.DistributedTensor[[RANKS, 1], pl.INT32],
):  # fmt: skip
    """Others write the read-only arguments of the region while it waits."""
    right = (pld.rank(pld.get_comm_ctx(data)) + 1) % pld.world_size()
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.put(data, right, x)
    with pl.at(level=pl.Level.CORE_GROUP):
        before = pl.mul(data, 0.0)
        pld.tensor.barrier(signal)
        y[:, :] = pl.add(data, before)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Min)  # a task of this rank
    with pl.at(level=pl.Level.CORE_GROUP):
        y[1:2, :] = data[0:1, :]


@pl.jit.host
def by_regions(x: pl.Tensor[[RANKS, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 2, COLS], pl.FP32]]):
    places = pld.alloc_window_buffer(2 * COLS * 4)
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [2, COLS], dtype=pl.FP32)
        by_a_region(x[r], y[r], data, pld.window(signals, [RANKS, 1], dtype=pl.INT32), device=r)


def test_regions() -> None:
    x = np.round(_given(RANKS, 2, COLS) * 64)
    compiled = by_regions.compile(x, np.zeros_like(x), config=_config())
    for seed in (None, *range(20)):
        y = np.zeros_like(x)
        compiled.execute([x, y], seed=seed)
        np.testing.assert_array_equal(y[:, 0], np.roll(x, 1, axis=0)[:, 0])
        np.testing.assert_array_equal(y[:, 1], [x.min(0)[0]] * RANKS)


def test_e3016_races_between_ranks() -> None:
    """A read of a rank before the barrier, and the put of another: one report, at the read in both orders."""
    x = np.round(_given(RANKS, 2, COLS) * 64)
    y = np.zeros_like(x)
    (found,) = by_regions.run(x, y, config=_config(), sanitize="all").diagnostics
    assert found.span is not None
    line = Path(__file__).read_text().splitlines()[found.span.line - 1].strip()
    assert (found.code, line) == ("PTO-E3016", "before = pl.mul(data, 0.0)")
    assert (
        "'by_regions_incore_5' of rank 1 reads data[0, 0] on rank 1, which 'by_regions_incore_0' of rank 0 writes"
        in str(found)
    )
    np.testing.assert_array_equal(y[:, 1], [x.min(0)[0]] * RANKS)


@pl.jit.incore
def half(x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]], signal: pld.DistributedTensor[[2, 1], pl.INT32]):  # fmt: skip
    if pld.rank(pld.get_comm_ctx(signal)) == 1:
        pld.system.notify(signal, 0, [0, 0], 1)
    else:
        pld.system.wait(signal, [0, 0], 2)
    y[:, :] = pl.add(x, 0.0)


@pl.jit.host
def halves(x: pl.Tensor[[2, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, COLS], pl.FP32]]):
    signals = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(2):
        half(x[r], y[r], pld.window(signals, [2, 1], dtype=pl.INT32), device=r)


def test_who_waits_for_ever_is_told() -> None:
    x = _given(2, 2, COLS)
    y = np.zeros_like(x)
    (found,) = halves.run(x, y, config=_config(2), sanitize="race").diagnostics
    assert found.code == "PTO-E2104" and "waits for signal" in found.message
    np.testing.assert_array_equal(y[1], x[1])  # the other rank is through


@pl.jit.incore
def swap(x: pl.Tensor[[1, COLS], pl.FP32], y: pl.Out[pl.Tensor[[1, COLS], pl.FP32]], data: pld.DistributedTensor[[1, COLS], pl.FP32], signal: pld.DistributedTensor[[1, 1], pl.INT32], peer: pl.Scalar[pl.INT32]):  # fmt: skip
    pl.store(pl.load(x, [0, 0], [1, COLS]), [0, 0], data)
    pld.system.fence()
    pld.system.notify(signal, peer, [0, 0], 1)
    pld.system.wait(signal, [0, 0], 1)
    count = pld.nranks(pld.get_comm_ctx(data))
    pl.store(pl.mul(pld.tile.remote_load(data, peer, [0, 0], [1, COLS]), pl.cast(count, pl.FP32)), [0, 0], y)


@pl.jit.host
def two_groups(x: pl.Tensor[[3, 1, COLS], pl.FP32], y: pl.InOut[pl.Tensor[[3, 1, COLS], pl.FP32]], z: pl.InOut[pl.Tensor[[3, 1, COLS], pl.FP32]]):  # fmt: skip
    a, b = pld.alloc_window_buffer(COLS * 4), pld.alloc_window_buffer(COLS * 4)
    s, t = pld.alloc_window_buffer(4), pld.alloc_window_buffer(4)
    for r in pl.range(2):
        data, signal = pld.window(a, [1, COLS], dtype=pl.FP32), pld.window(s, [1, 1], dtype=pl.INT32)
        swap(x[r], y[r], data, signal, 1 - r, device=r)
    for r in pl.range(1, 3):
        data, signal = pld.window(b, [COLS], dtype=pl.FP32), pld.window(t, [1], dtype=pl.INT32)
        swap(x[r], z[r], data, signal, 2 - r, device=r)


def test_windows_of_some_devices_are_a_group() -> None:
    """Device 1 is rank 1 of devices 0 and 1, and rank 0 of devices 1 and 2. Windows may have another shape than
    the parameters that take them."""
    x = _given(3, 1, COLS)
    y, z = np.zeros_like(x), np.zeros_like(x)
    compiled = two_groups.compile(x, y, z, config=_config(3))
    compiled.execute([x, y, z])
    np.testing.assert_array_equal(y, 2 * x[[1, 0, 2]] * np.array([1, 1, 0], F32)[:, None, None])
    np.testing.assert_array_equal(z, 2 * x[[0, 2, 1]] * np.array([0, 1, 1], F32)[:, None, None])
    assert not compiled.run([x, y, z], sanitize="all").diagnostics


@pl.jit.incore
def crossed(x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]], signal: pld.DistributedTensor[[2, 1], pl.INT32]):  # fmt: skip
    if pld.rank(pld.get_comm_ctx(signal)) == 1:
        pld.system.wait(signal, [0, 0], 2)
    else:
        pld.system.wait(signal, [1, 0], 3)
    y[:, :] = pl.add(x, 0.0)


@pl.jit.host
def both_wait(x: pl.Tensor[[2, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, COLS], pl.FP32]]):
    buffer = pld.alloc_window_buffer(2 * 4)
    for r in pl.range(2):
        crossed(x[r], y[r], pld.window(buffer, [2, 1], dtype=pl.INT32), device=r)


def test_every_wait_of_a_deadlock_has_its_line() -> None:
    """The message names the windows, and the notes have the lines of the other ranks."""
    x = _given(2, 2, COLS)
    with pytest.raises(DiagnosticError) as e:
        both_wait.compile(x, x, config=_config(2)).execute([x, x.copy()])
    (found,) = e.value.diagnostics
    assert found.code == "PTO-E2624"
    waits = re.findall(r"waits for (.*)", found.message)
    assert sorted(waits) == [
        "a signal of %signal at byte 4 ge 3 (holds 0)",
        "a signal of %signal ge 2 (holds 0)",
    ]
    lines = {_line(span) for _, span in [("", found.span), *found.notes] if span is not None}
    assert lines == {"pld.system.wait(signal, [0, 0], 2)", "pld.system.wait(signal, [1, 0], 3)"}


@pl.jit
def in_two_halves(
    a: pl.Tensor[[COLS, COLS], pl.FP32], b: pl.Tensor[[COLS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[COLS, COLS], pl.FP32]],
    data: pld.DistributedTensor[[COLS, COLS], pl.FP32], done: pld.DistributedTensor[[2, 1], pl.INT32],
    rank: pl.Scalar[pl.INT32], each: pl.Scalar[pl.INT32],
):  # fmt: skip
    """Each vector core stores half of a product in the other rank; one of them notifies, or `each`."""
    with pl.spmd(2, name_hint="push") as pushed:
        part = pl.tile.get_block_idx()
        rows = a[part * 32 : part * 32 + 32, :]
        acc = pl.matmul(rows, b)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            pld.tensor.remote_store(pl.aiv_shard(acc), data, 1 - rank, [part * 32 + lane * 16, 0])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            if lane * (1 - each) == rank * (1 - each):
                pld.system.notify(done, peer=1 - rank, offsets=[rank, 0], value=1)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[pushed]) as met:
        pld.system.wait(done, offsets=[1 - rank, 0], expected=2 * each + 2)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[met]):
        y[:, :] = pl.add(data[:, :], 0.0)
    return y


@pl.jit.host
def halves_of_products(a: pl.Tensor[[2, COLS, COLS], pl.FP32], b: pl.Tensor[[2, COLS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS, COLS], pl.FP32]], each: pl.Scalar[pl.INT32]):  # fmt: skip
    places, signals = pld.alloc_window_buffer(COLS * COLS * 4), pld.alloc_window_buffer(2 * 4)
    for r in pl.range(2):
        data = pld.window(places, [COLS, COLS], dtype=pl.FP32)
        in_two_halves(a[r], b[r], y[r], data, pld.window(signals, [2, 1], dtype=pl.INT32), r, each, device=r)


@pytest.mark.parametrize("each", [0, 1])
def test_one_core_of_a_block_notifies_for_both(each: int) -> None:
    """The level `warn` reports the store of the other core, in every schedule."""
    a, b = (np.round(_given(2, COLS, COLS) * 4) for _ in range(2))
    compiled = halves_of_products.compile(a, b, np.zeros_like(a), each, config=_config(2))
    for _ in range(3):
        y, events = np.zeros_like(a), list[journal.JournalEvent]()
        with journal.listening(events.append), knobs.override(PTO_SANITIZE="warn"):
            compiled(a, b, y, each)
        found = [d for event in events for d in event.diagnostics]
        if each:
            assert not found
            np.testing.assert_array_equal(y, (a @ b)[::-1])
            continue
        (race,) = found
        assert (race.code, race.severity) == ("PTO-E3016", "warning")
        assert _line(race.span) == "y[:, :] = pl.add(data[:, :], 0.0)"
        told = [(text, _line(span)) for text, span in race.notes]
        assert "writes it here" in told[0][0] and told[0][1].startswith("pld.tensor.remote_store(")
        assert "notifies here; the access of" in told[1][0]
        assert told[1][1].startswith("pld.system.notify(done")
        cores = [re.findall(r"AIV(\d) of block (\d)", text)[0] for text, _ in told[:2]]
        assert cores[0][0] != cores[1][0] and cores[0][1] == cores[1][1]  # two cores of one block


BLOCKS = 6


@pl.jit
def by_blocks(
    x: pl.Tensor[[BLOCKS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[BLOCKS, COLS], pl.FP32]],
    data: pld.DistributedTensor[[BLOCKS, COLS], pl.FP32], done: pld.DistributedTensor[[2, 1], pl.INT32],
    rank: pl.Scalar[pl.INT32],
):  # fmt: skip
    """Each block stores a row in the other rank, and notifies; a task waits for all of them."""
    with pl.spmd(BLOCKS, name_hint="push") as pushed:
        block = pl.tile.get_block_idx()
        pld.tensor.remote_store(x[block : block + 1, :], data, 1 - rank, [block, 0])
        pld.system.notify(done, peer=1 - rank, offsets=[rank, 0], value=1)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[pushed]) as met:
        pld.system.wait(done, offsets=[1 - rank, 0], expected=BLOCKS, cmp=pld.WaitCmp.Eq)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[met]):
        y[:, :] = pl.add(data[:, :], 0.0)
    return y


@pl.jit.host
def blocks_of_two(x: pl.Tensor[[2, BLOCKS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, BLOCKS, COLS], pl.FP32]]):
    places, signals = pld.alloc_window_buffer(BLOCKS * COLS * 4), pld.alloc_window_buffer(2 * 4)
    for r in pl.range(2):
        data = pld.window(places, [BLOCKS, COLS], dtype=pl.FP32)
        by_blocks(x[r], y[r], data, pld.window(signals, [2, 1], dtype=pl.INT32), r, device=r)


def test_a_sample_of_the_blocks_of_ranks() -> None:
    """Blocks that only notify are sampled; each of them notifies once."""
    x = np.round(_given(2, BLOCKS, COLS) * 64)
    for sample, left in ((2, 2), ("all", 0)):
        y = np.zeros_like(x)
        result = blocks_of_two.run(x, y, config=_config(2), sanitize="all", sample=sample)
        assert result.ok and not result.diagnostics
        np.testing.assert_array_equal(y, x[::-1])
        told = dict.fromkeys(("push", "push_0"), f"{left} of {BLOCKS} blocks, beyond the sample of {sample}")
        assert result.unchecked == (told if left else {})


ROWS = pld.DistributedTensor[[RANKS, COLS], pl.FP32]
GIVEN = pl.Tensor[[RANKS, COLS], pl.FP32]
FOUND = pl.Out[pl.Tensor[[RANKS, COLS], pl.FP32]]
SIGNAL = pld.DistributedTensor[[RANKS, 1], pl.INT32]


@pl.jit.incore
def collect(x: GIVEN, most: FOUND, sums: FOUND, turned: FOUND, firsts: FOUND, a: ROWS, b: ROWS, c: ROWS, d: ROWS, signal: SIGNAL):  # fmt: skip
    whole = pl.load(x, [0, 0], [RANKS, COLS])
    pl.store(whole, [0, 0], a)
    pl.store(whole, [0, 0], b)
    a = pld.tensor.allreduce(a, signal, op=pld.ReduceOp.Max)
    b = pld.tensor.reduce_scatter(b, signal)
    c = pld.tensor.all_to_all(x, c, signal)
    d = pld.tensor.allgather(x[0:1, :], d, signal)
    pl.store(pl.load(a, [0, 0], [RANKS, COLS]), [0, 0], most)
    pl.store(pl.load(b, [0, 0], [RANKS, COLS]), [0, 0], sums)
    pl.store(pl.load(c, [0, 0], [RANKS, COLS]), [0, 0], turned)
    d = pld.tensor.broadcast(d, signal, root=1)
    pl.store(pl.load(d, [0, 0], [RANKS, COLS]), [0, 0], firsts)


@pl.jit.host
def collectives(x: pl.Tensor, most: pl.Out[pl.Tensor], sums: pl.Out[pl.Tensor], turned: pl.Out[pl.Tensor], firsts: pl.Out[pl.Tensor]):  # fmt: skip
    a, b, c, d = (
        pld.alloc_window_buffer([RANKS, COLS], dtype=pl.FP32), pld.alloc_window_buffer([RANKS, COLS], dtype=pl.FP32),
        pld.alloc_window_buffer([RANKS, COLS], dtype=pl.FP32), pld.alloc_window_buffer([RANKS, COLS], dtype=pl.FP32),
    )  # fmt: skip
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        collect(
            x[r], most[r], sums[r], turned[r], firsts[r], pld.window(a, [RANKS, COLS], dtype=pl.FP32),
            pld.window(b, [RANKS, COLS], dtype=pl.FP32), pld.window(c, [RANKS, COLS], dtype=pl.FP32),
            pld.window(d, [RANKS, COLS], dtype=pl.FP32), pld.window(signals, [RANKS, 1], dtype=pl.INT32), device=r,
        )  # fmt: skip


def test_collectives() -> None:
    x = np.round(_given(RANKS, RANKS, COLS) * 64)
    most, sums, turned, firsts = (np.zeros_like(x) for _ in range(4))
    compiled = collectives.compile(x, most, sums, turned, firsts, config=_config())
    for seed in (None, 5):
        compiled.execute([x, most, sums, turned, firsts], seed=seed)
        for r in range(RANKS):
            np.testing.assert_array_equal(most[r], x.max(0))
            np.testing.assert_array_equal(sums[r, r], x[:, r].sum(0))
            np.testing.assert_array_equal(turned[r], x[:, r])
            np.testing.assert_array_equal(firsts[r], x[:, 0])


@pl.jit.host
def wide(x: pl.Tensor[[2, 2, 9000], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, 9000], pl.FP32]]):
    """A collective of the host: a task of every rank, in parts that fit a core."""
    data = pld.alloc_window_buffer([2, 9000], dtype=pl.FP32)
    signals = pld.alloc_window_buffer([2], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        staged(x[r], pld.window(data, [2, 9000], dtype=pl.FP32), device=r)
    whole = pld.window(data, [2, 9000], dtype=pl.FP32)
    whole = pld.tensor.allreduce(whole, pld.window(signals, [2], dtype=pl.INT32))
    for r in pl.range(pld.world_size()):
        fetched(whole, y[r], device=r)


@pl.jit.incore
def staged(x: pl.Tensor[[2, 9000], pl.FP32], data: pl.Out[pld.DistributedTensor[[2, 9000], pl.FP32]]):
    data[:, :] = x[:, :]


@pl.jit.incore
def fetched(data: pld.DistributedTensor[[2, 9000], pl.FP32], y: pl.Out[pl.Tensor[[2, 9000], pl.FP32]]):
    y[:, :] = data[:, :]


def test_a_collective_of_the_host(tmp_path: Path) -> None:
    x = np.round(_given(2, 2, 9000) * 64)
    y = np.zeros_like(x)
    wide(x, y, config=_config(2))
    for r in range(2):
        np.testing.assert_array_equal(y[r], x.sum(0))
    wide.compile(x, y, config=_config(2)).save(tmp_path, dumps=False)
    folder = tmp_path / "next_levels" / "builtin.tensor.allreduce__sum__fp32"  # as the field calls it
    assert {p.name for p in folder.rglob("*.pto")} == {"allreduce.pto", "allreduce_0.pto"}
    assert '_HERE / "kernels/aiv/allreduce_0.pto"' in (folder / "kernel_config.py").read_text()


@pl.jit.incore
def taken(data: pld.DistributedTensor[[2, 9000], pl.FP32], y: pl.Out[pl.Tensor[[2, 9000], pl.FP32]]):
    other = 1 - pld.rank(pld.get_comm_ctx(data))
    for n in pl.range(2):
        pl.store(pld.tile.remote_load(data, other, [n, 0], [1, 9000]), [n, 0], y)


@pl.jit.host
def met(x: pl.Tensor[[2, 2, 9000], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, 9000], pl.FP32]]):
    """A barrier uses no window but its signal, and still orders the accesses of a rank before and after
    it."""
    places, signals = pld.alloc_window_buffer([2, 9000], dtype=pl.FP32), pld.alloc_window_buffer(8)
    for r in pl.range(pld.world_size()):
        staged(x[r], pld.window(places, [2, 9000], dtype=pl.FP32), device=r)
    pld.tensor.barrier(pld.window(signals, [2, 1], dtype=pl.INT32))
    for r in pl.range(pld.world_size()):
        taken(pld.window(places, [2, 9000], dtype=pl.FP32), y[r], device=r)


def test_a_barrier_of_the_host(tmp_path: Path) -> None:
    x = np.round(_given(2, 2, 9000) * 64)
    compiled = met.compile(x, x, config=_config(2))
    y = np.zeros_like(x)
    assert not compiled.run([x, y], sanitize="all").diagnostics
    np.testing.assert_array_equal(y, x[::-1])
    compiled.save(tmp_path, dumps=False)
    compiled(x, y, config=pl.RunConfig(enable_chip_swimlane=1))
    for rank in range(2):
        names = [
            task["name"]
            for call in range(3)
            for task in json.loads((tmp_path / f"dfx_outputs/rank{rank}/d{call}/deps.json").read_text())[
                "tasks"
            ]
        ]
        assert [n.rstrip("_0") for n in names] == ["staged", "barrier", "taken"]


NR = pl.dynamic("NR")
MOST = 2  # rows for a rank


@pl.jit.incore
def exchange(
    x: pl.Tensor[[NR, COLS], pl.FP32], counts: pl.Tensor[[2, 1], pl.INT32], y: pl.InOut[pl.Tensor[[NR, COLS], pl.FP32]],
    data: pld.DistributedTensor[[NR, COLS], pl.FP32], signal: pld.DistributedTensor[[2, 1], pl.INT32],
    got: pld.DistributedTensor[[2, 1], pl.INT32],
):  # fmt: skip
    """Rows that count, and in all others the old content."""
    data = pld.tensor.all_to_all_v(x, data, signal, counts, got)
    for p in pl.range(2):
        for i in pl.range(pl.cast(pl.read(got, [p, 0]), pl.INDEX)):
            pl.store(pl.load(data, [p * MOST + i, 0], [1, COLS]), [p * MOST + i, 0], y)


@pl.jit.host
def exchanged(x: pl.Tensor[[2, NR, COLS], pl.FP32], counts: pl.Tensor[[2, 2, 1], pl.INT32], y: pl.InOut[pl.Tensor[[2, NR, COLS], pl.FP32]]):  # fmt: skip
    """Memory by an extent that calls give: the program is for that one."""
    data, signals, got = (
        pld.alloc_window_buffer(NR * COLS * 4),
        pld.alloc_window_buffer(8),
        pld.alloc_window_buffer(8),
    )
    for r in pl.range(pld.world_size()):
        exchange(
            x[r], counts[r], y[r], pld.window(data, [NR, COLS], dtype=pl.FP32), pld.window(signals, [2, 1], dtype=pl.INT32),
            pld.window(got, [2, 1], dtype=pl.INT32), device=r,
        )  # fmt: skip


def test_some_rows_of_each_and_extents_of_a_call() -> None:
    x, counts = _given(2, 2 * MOST, COLS), np.array([[[1], [2]], [[0], [5]]], np.int32)
    expected = np.zeros_like(x)
    for r in range(2):
        for p in range(2):
            n = min(int(counts[p, r, 0]), MOST)
            expected[r, p * MOST : p * MOST + n] = x[p, r * MOST : r * MOST + n]
    y = np.zeros_like(x)
    exchanged(x, counts, y, config=_config(2))
    np.testing.assert_array_equal(y, expected)
    compiled = exchanged.compile(config=_config(2))  # for as many rows as ranks, until a call has others
    assert compiled.params[0].shape == (2, 2, COLS)
    y = np.zeros_like(x)
    compiled(x, counts, y)
    np.testing.assert_array_equal(y, expected)
    assert not exchanged.run(x, counts, y, config=_config(2), sanitize="all").diagnostics


@pl.program
class InPython:
    @pl.function(type=pl.FunctionType.InCore)
    def double(self, x: pl.Tensor[[4, COLS], pl.FP32], y: pl.Out[pl.Tensor[[4, COLS], pl.FP32]]):
        y[:, :] = pl.mul(x, 2.0)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def more(k: pl.Scalar[pl.INT32], y: pl.Tensor[[2, COLS], pl.FP32], z: pl.Out[pl.Tensor[[2, COLS], pl.FP32]]) -> pl.Tensor[[2, COLS], pl.FP32]:  # fmt: skip  # noqa: N805
        assert not y.flags.writeable
        z[...] = sorted(y.ravel())[0] + k  # whatever Python can
        return z

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[4, COLS], pl.FP32], z: pl.Out[pl.Tensor[[4, COLS], pl.FP32]]):
        y = pl.create_tensor([4, COLS], dtype=pl.FP32)
        self.double(x, y)
        w = self.more(3, y[0:2, :], y[2:4, :])
        self.more(-1, w, y[0:2, :])
        self.double(y, z)


def test_tasks_in_python() -> None:
    x = _given(4, COLS)
    least = (x[:2] * 2).min()
    for run in (InPython, lambda *a: InPython.run(*a, sanitize="all")):
        z = np.zeros_like(x)
        assert not (found := run(x, z)) or found.ok
        np.testing.assert_array_equal(z[2:], np.full((2, COLS), (least + 3) * 2))
        np.testing.assert_array_equal(z[:2], np.full((2, COLS), (least + 3 - 1) * 2))
    bound = InPython.compile().prepared({"more": lambda args: args[2].fill(args[0])})
    bound(x, z)
    np.testing.assert_array_equal(z, np.repeat(np.float32([-2, 6]), 2)[:, None] * np.ones((1, COLS), F32))


@pl.jit.incore
def copies(x: pl.Tensor[[4, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]], data: pld.DistributedTensor[[4, COLS], pl.FP32], total: pld.DistributedTensor[[1, COLS], pl.FP32], signal: SIGNAL):  # fmt: skip
    me = pld.rank(pld.get_comm_ctx(data))
    count = pld.nranks(pld.get_comm_ctx(data))
    pld.tensor.put(data, (me + 1) % count, x, dst_offsets=[1, 0], src_offsets=[2, 0], shape=[2, COLS])
    stage = pl.create_tile([1, COLS], dtype=pl.FP32)
    pld.tile.put(total, 0, x[0:1, :], stage, atomic=pl.AtomicType.Add)
    for p in pl.range(count):
        pld.system.notify(signal, p, [me, 0], 2, op=pld.NotifyOp.AtomicAdd)
    for p in pl.range(count):
        pld.system.wait(signal, [p, 0], 2, cmp=pld.WaitCmp.Eq)
    pl.store(pl.load(data, [1, 0], [1, COLS]), [0, 0], y)
    pld.tile.get(y, 0, total, stage, dst_offsets=[1, 0], shape=[1, COLS])


@pl.jit.host
def copied(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    data, total = (
        pld.alloc_window_buffer([4, COLS], dtype=pl.FP32),
        pld.alloc_window_buffer([1, COLS], dtype=pl.FP32),
    )
    signals = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        copies(x[r], y[r], pld.window(data, [4, COLS], dtype=pl.FP32), pld.window(total, [1, COLS], dtype=pl.FP32), pld.window(signals, [RANKS, 1], dtype=pl.INT32), device=r)  # fmt: skip


def test_puts_and_gets_and_signals() -> None:
    x = np.round(_given(RANKS, 4, COLS) * 64)
    y = np.zeros((RANKS, 2, COLS), F32)
    copied(x, y, config=_config())
    for r in range(RANKS):
        np.testing.assert_array_equal(y[r, 0], x[(r - 1) % RANKS, 2])
        np.testing.assert_array_equal(y[r, 1], x[:, 0].sum(0))


@pl.jit.host
def wrong(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    data = pld.alloc_window_buffer(COLS)
    for r in pl.range(2):
        shift(x[r], y[r], pld.window(data, [2, COLS], dtype=pl.FP32), x, device=r)


@pl.jit.host
def unknown(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    data = pld.alloc_window_buffer([2, COLS], dtype=pl.FP32)
    on_a_rank(x[0], y[0], pld.window(data, [2, COLS], dtype=pl.FP32), x[0], device=7)


@pl.jit.incore
def beyond(x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]], data: pld.DistributedTensor[[2, COLS], pl.FP32]):  # fmt: skip
    pl.store(pld.tile.remote_load(data, 0, [1, 0], [2, COLS]), [0, 0], y)


@pl.jit.incore
def with_ctx(x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]], ctx: pld.CommCtx):
    pl.store(pl.load(x, [pld.rank(ctx), 0], [1, COLS]), [0, 0], y)


@pl.jit
def hands_on(x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]], data: pld.DistributedTensor[[2, COLS], pl.FP32]):  # fmt: skip
    with_ctx(x, y, pld.get_comm_ctx(data))
    with_ctx(x, y, pld.rank(data))


@pl.jit.host
def only_texts(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    data = pld.alloc_window_buffer([2, COLS], dtype=pl.FP32)
    hands_on(x[0], y[0], pld.window(data, [2, COLS], dtype=pl.FP32), device=0)


@pl.jit.host
def outside(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    data = pld.alloc_window_buffer([2, COLS], dtype=pl.FP32)
    beyond(x[0], y[0], pld.window(data, [2, COLS], dtype=pl.FP32), device=0)


@pl.jit.incore
def no_window(x: pl.Tensor[[2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, COLS], pl.FP32]]):
    pl.store(pld.tile.remote_load(x, 1, [0, 0], [1, COLS]), [0, 0], y)


def test_what_is_wrong_is_told_where_it_is() -> None:
    x = np.zeros((2, 2, COLS), F32)
    for program, words in (
        (wrong, "window exceeds its buffer"),
        (unknown, "expected a constant rank of the program"),
        (outside, "window exceeds dimension 0"),
        (only_texts, "expected a tensor or a number for 'ctx' of with_ctx"),
        (only_texts, "expected a pld.CommCtx for 'ctx'"),
    ):
        with pytest.raises(DiagnosticError, match=words) as caught:
            program(x, x.copy(), config=_config(2))
        assert "test_ranks.py" in str(caught.value)
    with pytest.raises(DiagnosticError, match="expected a window of several ranks for 'target'"):
        no_window(x[0], x[1].copy())
