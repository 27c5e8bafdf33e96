"""Operators that a table of expressions does not fit: by index, of memory, in sorted lists, of other ranks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import float8_e4m3fn
from tests.each import each
from tests.language.batch import compile_together
from tests.sampling import some

import pto.language as pl
from pto.diag import Diagnostic, DiagnosticError

TARGETS = ("a3", "a5", "cpu")


def check(
    kernel: Any, inputs: list[np.ndarray], outputs: list[np.ndarray], want: list[Any], target: str
) -> None:
    """Run on two engines from the same start: the same bits, and those that NumPy has."""
    found = []
    for engine in ("reference", "native"):
        made = [o.copy() for o in outputs]
        kernel.run(*(a.copy() for a in inputs), *made, target=target, engine=engine)
        found.append(made)
    for n, (one, two, w) in enumerate(zip(*found, want, strict=True)):
        assert one.tobytes() == two.tobytes(), f"engines differ in output {n} on {target}"
        one, w = (np.asarray(v).astype(np.float64) for v in (one, w))
        np.testing.assert_allclose(one, w, rtol=1e-5, atol=1e-6, err_msg=f"output {n} on {target}")


#: A kernel, its inputs, outputs before and after, and the target.
Launch = tuple[Any, list[np.ndarray], list[np.ndarray], list[Any], str]
LAUNCHES: list[tuple[Callable[[str], Iterator[Launch]], str]] = []


def launches(*targets: str) -> Callable[[Callable[[str], Iterator[Launch]]], None]:
    return lambda made: LAUNCHES.extend((made, target) for target in targets)


def test_kernels() -> None:
    """The kernels below, compiled together."""
    every = [launch for made, target in some(LAUNCHES, 2, by=itemgetter(0)) for launch in made(target)]
    compile_together((kernel, [*given, *outs], target) for kernel, given, outs, _, target in every)
    each(check, every)


def zeros(shape: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


# ---- lists and counts ----


@pl.jit
def lists(
    f: pl.Tensor, i: pl.Tensor, h: pl.Tensor, offs: pl.Tensor, tri: pl.Tensor, vals: pl.Out[pl.Tensor], idxs: pl.Out[pl.Tensor],
    m2: pl.Out[pl.Tensor], o4: pl.Out[pl.Tensor], o5: pl.Out[pl.Tensor], o6: pl.Out[pl.Tensor], o8: pl.Out[pl.Tensor],
    o9: pl.Out[pl.Tensor], o10: pl.Out[pl.Tensor], o11: pl.Out[pl.Tensor], o12: pl.Out[pl.Tensor], o13: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        n = pl.arange(0, [1, 512], dtype=pl.UINT32)
        s = pl.sort32(f, n)
        s = pl.mrgsort(s, block_len=64)
        s = pl.mrgsort(s, block_len=256)
        top = s[:, 0:64]
        vals = pl.assemble(vals, pl.gather(top, mask_pattern=pl.tile.MaskPattern.P0101), [0, 0])
        idxs = pl.assemble(
            idxs, pl.gather(top, mask_pattern=pl.tile.MaskPattern.P1010, output_dtype=pl.INT32), [0, 0]
        )
        x = pl.load(f, [0, 0], [1, 32])
        y = pl.load(f, [0, 32], [1, 32])
        sx = pl.tile.sort32(x, pl.tile.arange(0, [1, 32], dtype=pl.UINT32))
        sy = pl.tile.sort32(y, pl.tile.arange(32, [1, 32], dtype=pl.INT32))
        merged = pl.mrgsort(sx, sy)
        m2 = pl.assemble(m2, pl.tile.gather_mask(merged, 1), [0, 0])
        found, counts = pl.gather(h, kvalue=0.5, cmp_mode="gt", out_cols=32)
        o4 = pl.assemble(o4, counts, [0, 0])
        o5 = pl.assemble(o5, pl.set_validshape(found, 8, 1), [0, 0])
        same, _ = pl.tile.gather_compare(h, 0.25, cmp_mode="eq", out_cols=32)
        o6 = pl.assemble(o6, pl.tile.gatherb(h, offs), [0, 0])
        o8 = pl.expand_clone(tri, o8)
        o9 = pl.expand_clone(i, o9)
        o10 = pl.assemble(o10, pl.tile.ci(5, [1, 24], pl.INT16, descending=True), [0, 0])
        o11 = pl.assemble(o11, pl.tile.tri(1, [8, 24], dtype=pl.FP32), [0, 0])
        o12 = pl.assemble(o12, pl.tile.tri(-1, [8, 24], [5, 20], pl.INT32, upper=True), [0, 0])
        o13 = pl.assemble(o13, pl.set_validshape(same, 1, 1), [0, 0])
    return vals


@launches(*TARGETS)
def of_lists(target: str) -> Iterator[Launch]:
    rng = np.random.default_rng(1)
    f = rng.permutation(512).reshape(1, 512).astype(np.float32)
    row, column = rng.random((2, 1, 32), np.float32), rng.random((2, 8, 1), np.float32)
    h = rng.random((8, 32), np.float32)
    h[0, 7] = 0.25
    blocks = rng.permutation(np.tile(np.arange(32), 2)).reshape(8, 8).astype(np.uint32)
    order = np.argsort(-f[0])
    outs = [zeros((1, 32)), zeros((1, 32), np.int32), zeros((1, 64)), zeros((1, 8), np.int32), zeros((8, 1), np.int32),
            zeros((8, 64)), zeros((2, 8, 32)), zeros((2, 8, 32)), zeros((1, 24), np.int16), zeros((8, 24)),
            zeros((5, 20), np.int32), zeros((1, 1), np.int32)]  # fmt: skip
    want = [f[:, order[:32]], order[None, :32], -np.sort(-f[:, :64]), (h > 0.5).sum(1)[None],
            (np.argmax(h > 0.5, axis=1) + np.arange(8) * 32)[:, None], h.reshape(-1, 8)[blocks].reshape(8, 64),
            np.broadcast_to(column, (2, 8, 32)), np.broadcast_to(row, (2, 8, 32)), 5 - np.arange(24)[None],
            np.tri(8, 24, 1), np.triu(np.ones((5, 20)), -1), [[7]]]  # fmt: skip
    yield (lists, [f, row, h, blocks * 32, column], outs, want, target)


# ---- memory by index ----


@pl.jit
def by_index(
    f: pl.Tensor, table: pl.Tensor, idx: pl.Tensor, pos: pl.Tensor, out: pl.InOut[pl.Tensor], o1: pl.Out[pl.Tensor],
    o2: pl.Out[pl.Tensor], o3: pl.Out[pl.Tensor], o4: pl.InOut[pl.Tensor], o5: pl.Out[pl.Tensor],
    o6: pl.Out[pl.Tensor], o7: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.scatter_update(out, -2, idx, f)
        x = pl.load(f, [0, 0], [4, 32])
        pl.system.bar_v()
        y = pl.add(x, 1.0)
        pl.system.bar_all()
        o1 = pl.store(y, [0, 0], o1)
        pl.system.fence()
        p = pl.load(idx, [0, 0], [1, 8], valid_shape=[1, 4])
        o2 = pl.store(pl.tile.mgather(table, p), [0, 0], o2)
        q = pl.load(pos, [0, 0], [4, 8])
        o3 = pl.store(pl.tile.mgather(table, q, coalesce="elem"), [0, 0], o3)
        z: pl.Tile[[4, 8], pl.FP32, pl.MemRef(), pl.Mem.Vec] = pl.load(f, [0, 0], [4, 8])
        o4 = pl.mscatter(z, q, o4)
        a = pl.array.create(4, pl.INT32)
        for i in pl.range(4):
            a[i] = pl.read(idx, [0, i])
        a = pl.array.update_element(a, 0, 9)
        s = pl.create_tile([1, 8], pl.INT32)
        for i in pl.range(4):
            pl.write(s, [0, i], a[3 - i])
        for i in pl.range(4, 8):
            pl.write(s, [0, i], pl.array.get_element(a, 2))
        o5 = pl.store(s, [0, 0], o5)
        g = pl.tile.create([8, 32], pl.FP32)
        for i in pl.range(8):
            if i % 2 == 0:
                line: pl.Tile[[1, 32], pl.FP32, pl.MemRef("ub", slots=2)[i % 2]] = pl.load(
                    table, [7 - i, 0], [1, 32]
                )
                g = pl.assemble(g, line, [i, 0])
            else:
                g = pl.gather_row(g, table, [i, 0], [7 - i, 0], [1, 32])
        o6 = pl.store(g, [0, 0], o6)
        rows = pl.paged_gather(table, idx, pos, 4, 32, 4, space=pl.MemorySpace.Vec)
        o7 = pl.assemble(o7, rows, [0, 0])
    return out


@pl.jit
def into_mat(
    table: pl.Tensor, idx: pl.Tensor, pos: pl.Tensor, eye: pl.Tensor, scratch: pl.Tensor,
    o1: pl.Out[pl.Tensor], o2: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        one = pl.load(eye, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        rows = pl.tile.mgather(table, idx, gather_oob="clamp", target_memory=pl.Mem.Mat)
        o1 = pl.store(pl.matmul(one, rows), [0, 0], o1)
        elements = pl.tile.mgather(
            table, pos, "elem", gather_oob="zero", target_memory=pl.Mem.Mat, scratch=scratch
        )
        o2 = pl.store(pl.matmul(one, elements), [0, 0], o2)
    return o1


@launches("a3", "a5")
def of_by_index_into_mat(target: str) -> Iterator[Launch]:
    rng = np.random.default_rng(2)
    table = rng.integers(-9, 9, (20, 32)).astype(np.float32)
    idx, pos = rng.integers(0, 40, (1, 16), np.int32), rng.integers(0, 700, (16, 32), np.int32)
    flat = np.append(table.reshape(-1), np.zeros(60, np.float32))
    given = [table, idx, pos, np.eye(16, dtype=np.float32), zeros((512,))]
    outs = [zeros((16, 32)), zeros((16, 32))]
    yield (into_mat, given, outs, [table[np.minimum(idx[0], 19)], flat[pos]], target)


@launches(*TARGETS)
def of_by_index(target: str) -> Iterator[Launch]:
    rng = np.random.default_rng(1)
    f, table, out = (rng.random((n, 32), np.float32) for n in (4, 16, 16))
    idx = np.array([[5, 2, 11, 7]], np.int32)
    pos = (
        np.concatenate([[3, 1, 2, 0, 4, 5, 6, 7], rng.permutation(np.arange(8, 512))[:24]])
        .reshape(4, 8)
        .astype(np.int32)
    )
    updated, scattered = out.copy(), zeros((16, 32))
    updated[idx[0]] = f
    scattered.reshape(-1)[pos] = f[:, :8]
    pages = np.array([table[pos[0, n // 4] * 4 + n % 4] for n in idx[0]])
    outs = [
        out,
        zeros((4, 32)),
        zeros((4, 32)),
        zeros((4, 8)),
        zeros((16, 32)),
        zeros((1, 8), np.int32),
        zeros((8, 32)),
        zeros((4, 32)),
    ]
    want = [
        updated,
        f + 1,
        table[idx[0]],
        table.reshape(-1)[pos],
        scattered,
        [[7, 11, 2, 9, 11, 11, 11, 11]],
        table[7::-1],
        pages,
    ]
    yield (by_index, [f, table, idx, pos], outs, want, target)


# ---- instructions with several results, or on two targets alone ----


@pl.jit
def pairs(
    x: pl.Tensor, y: pl.Tensor, i: pl.Tensor, j: pl.Tensor, c: pl.Tensor, scale: pl.Tensor, o1: pl.Out[pl.Tensor], o2: pl.Out[pl.Tensor],
    o3: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        v, n = pl.part_argmax(x, y, i, j)
        w, m = pl.part_argmin(x, y, i, j)
        o1 = pl.assemble(o1, pl.add(v, w), [0, 0])
        o2 = pl.assemble(o2, pl.sub(n, m), [0, 0])
        o3 = pl.assemble(o3, pl.dequant(c, scale, scale), [0, 0])
    return o1


@pl.jit
def mixing(x: pl.Tensor, y: pl.Tensor, i: pl.Tensor, bins: pl.Tensor, o1: pl.Out[pl.Tensor], o2: pl.Out[pl.Tensor],
           o3: pl.Out[pl.Tensor], o4: pl.Out[pl.Tensor], o5: pl.Out[pl.Tensor], o6: pl.Out[pl.Tensor],
           o7: pl.Out[pl.Tensor], o8: pl.Out[pl.Tensor]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        p, q = pl.interleave(x, y)
        a, b = pl.deinterleave(p, q)
        o1 = pl.assemble(o1, p, [0, 0])
        o2 = pl.assemble(o2, q, [0, 0])
        o3 = pl.assemble(o3, pl.sub(a, b), [0, 0])
        o4 = pl.assemble(o4, pl.pack(i, pl.INT16), [0, 0])
        o5 = pl.assemble(
            o5, pl.histogram(pl.reinterpret_view(pl.load(i, [0, 0], [8, 32]), pl.UINT32), bins), [0, 0]
        )
        o6 = pl.assemble(o6, pl.random(1, 2, 3, 4, 5, 6, [1, 256], dtype=pl.UINT32, rounds=7), [0, 0])
        small, exponents = pl.quant_mx(x, pl.FP8E4M3FN)
        o7 = pl.assemble(o7, small, [0, 0])
        o8 = pl.assemble(o8, exponents, [0, 0])
    return o1


@launches(*TARGETS)
def of_several_results(target: str) -> Iterator[Launch]:
    rng = np.random.default_rng(3)
    x, y = (rng.random((8, 32), np.float32) for _ in range(2))
    i, j = (rng.integers(0, 1 << 30, (8, 32)).astype(np.int32) for _ in range(2))
    c = rng.integers(-9, 9, (8, 32)).astype(np.int8)
    scale = rng.random((8, 1), np.float32)
    want = [x + y, np.where(x > y, i - j, j - i), (c - scale) * scale]
    yield (
        pairs,
        [x, y, i, j, c, scale],
        [zeros((8, 32)), zeros((8, 32), np.int32), zeros((8, 32))],
        want,
        target,
    )
    if target == "a3":
        return
    stream = np.stack([x, y], 2).reshape(8, 64)
    high = np.sort(i.view(np.uint32) >> 24, axis=1)
    counts = np.array([np.searchsorted(row, np.arange(256), side="right") for row in high])
    bins = np.zeros((4, 32), np.uint8)
    outs = [
        zeros((8, 32)),
        zeros((8, 32)),
        zeros((8, 32)),
        zeros((8, 32), np.int16),
        zeros((8, 256), np.uint32),
        zeros((1, 256), np.uint32),
    ]
    outs += [zeros((8, 32), float8_e4m3fn), zeros((8, 1), np.uint8)]
    exponent = np.frexp(x.max(1, keepdims=True))[1] - 1 - 8
    small = np.minimum(x * np.exp2(-exponent), 448).astype(float8_e4m3fn)
    want = [
        stream[:, :32],
        stream[:, 32:],
        x - y,
        i.astype(np.int16),
        counts,
        _philox(target),
        small,
        exponent + 127,
    ]
    yield (mixing, [x, y, i, bins], outs, want, target)


def _philox(target: str) -> np.ndarray:
    """Philox-4x32 with 7 rounds, key (1, 2), counter (3, 4, 5, 6) and the 63 after it."""
    out = np.zeros((64, 4), np.uint32)
    for lane in range(64):
        c, k = [3 + lane, 4, 5, 6], [1, 2]
        for _ in range(7):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        out[lane] = c
    return (out if target == "a5" else out.T).reshape(1, 256)


# ---- the same memory, seen otherwise ----


@pl.jit
def seen(x: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        bits = pl.reinterpret_view(x, pl.INT32)
        o = pl.store(pl.and_(pl.load(bits, [0, 0], [8, 32]), 255), [0, 0], o)
        halves = pl.reinterpret_view(x, pl.INT16)
        p = pl.store(pl.load(halves, [2, 32], [4, 32]), [0, 0], p)
        flat = pl.tensor.view(x, [4, 64], valid_shape=[3, 40])
        q = pl.assemble(q, pl.mul(flat, 2.0), [0, 0])
    return o


@launches(*TARGETS)
def of_memory_seen_otherwise(target: str) -> Iterator[Launch]:
    x = np.random.default_rng(3).random((8, 32), np.float32)
    part = zeros((4, 64))
    part[:3, :40] = x.reshape(4, 64)[:3, :40] * 2
    want = [x.view(np.int32) & 255, x.view(np.int16)[2:6, 32:], part]
    yield (seen, [x], [np.zeros_like(w) for w in want], want, target)


# ---- ranks ----


@pl.jit
def ranks(
    a: pl.Tensor, v: pl.Tensor, w: pl.Tensor, i: pl.Tensor, j: pl.Tensor, o0: pl.Out[pl.Tensor], o1: pl.Out[pl.Tensor],
    o2: pl.Out[pl.Tensor], o3: pl.Out[pl.Tensor], o4: pl.Out[pl.Tensor], o5: pl.Out[pl.Tensor], o6: pl.Out[pl.Tensor],
    o7: pl.Out[pl.Tensor], o8: pl.Out[pl.Tensor], o9: pl.Out[pl.Tensor], o10: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0, 0], [2, 8, 32])
        o0 = pl.assemble(o0, pl.add(x, a), [0, 0, 0])
        o1 = pl.assemble(o1, pl.col_sum(x), [0, 0, 0])
        o2 = pl.assemble(o2, pl.exp(pl.row_max(x)), [0, 0, 0])
        o3 = pl.assemble(o3, pl.transpose(x, 1, 2), [0, 0, 0])
        o4 = pl.assemble(o4, pl.slice(x, [2, 4, 16], [0, 2, 8]), [0, 0, 0])
        o5 = pl.assemble(o5, pl.col_expand_mul(x, w), [0, 0, 0])
        o6 = pl.assemble(o6, pl.mul(v, 2.0), [0])
        o7 = pl.assemble(o7, pl.transpose(x, 0, 1), [0, 0, 0])
        y = pl.create_tile([2, 8, 32], pl.FP32)
        y = pl.assemble(y, pl.mul(x, 2.0), [0, 0, 0])
        y = pl.assemble(y, pl.slice(x, [2, 2, 32], [0, 1, 0]), [0, 4, 0])
        o8 = pl.store(pl.reshape(y, [4, 4, 32]), [0, 0, 0], o8)
        o9 = pl.assemble(o9, pl.gather(a, dim=1, index=i), [0, 0, 0])
        o10 = pl.assemble(o10, pl.gather(x, dim=-3, index=j), [0, 0, 0])
    return o0


@launches(*TARGETS)
def of_ranks(target: str) -> Iterator[Launch]:
    a = np.random.default_rng(5).random((2, 8, 32), np.float32)
    v, w = a[0, 0].copy(), a[:, :1].copy()
    i = np.random.default_rng(6).integers(0, 8, (2, 3, 32)).astype(np.int32)
    j = np.random.default_rng(7).integers(0, 2, (3, 8, 32)).astype(np.int32)
    twice = a * 2
    twice[:, 4:6] = a[:, 1:3]
    want = [a + a, a.sum(1, keepdims=True), np.exp(a.max(2, keepdims=True)), a.transpose(0, 2, 1), a[:, 2:6, 8:24], a * w, v * 2,
            a.transpose(1, 0, 2), twice.reshape(4, 4, 32), np.take_along_axis(a, i, 1), np.take_along_axis(a, j, 0)]  # fmt: skip
    yield (ranks, [a, v, w, i, j], [zeros(x.shape) for x in want], want, target)


# ---- numbers, identities, order ----


@pl.jit
def numbers(x: pl.Tensor, o: pl.InOut[pl.Tensor], p: pl.Out[pl.Tensor]):
    context = pl.prefetch.make_context()
    event = pl.prefetch.async_prefetch(x, context)
    pl.prefetch.wait(event, pl.prefetch.session(context))
    x = pl.dump_tag(x)
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.min(pl.dim(x, 0), 5)
        cols = pl.max(rows, 16)
        t = pl.create_tensor([8, 24], pl.FP32, init_value=2.0)
        part = pl.slice(x, [8, 24], [0, 0], valid_shape=[rows, cols])
        o = pl.assemble(o, pl.add(pl.mul(part, t), pl.const(3.0, pl.FP32)), [0, 0])
        sum = (
            pl.get_block_idx() * 100
            + pl.get_block_num() * 10
            + pl.get_subblock_idx()
            + pl.system.available_cluster_count()
            + pl.system.available_aiv_count()
        )
        pl.write(p, [0, 0], pl.cast(sum, pl.INT32))
        pl.write(p, [0, 1], pl.const(7, pl.INT32))
    return o


@launches(*TARGETS)
def of_numbers(target: str) -> Iterator[Launch]:
    x = np.random.default_rng(2).random((8, 24), np.float32)
    o, want = zeros((8, 24)), zeros((8, 24))
    want[:5, :16] = x[:5, :16] * 2 + 3
    yield (numbers, [x], [o, zeros((1, 8), np.int32)], [want, [[82, 7, 0, 0, 0, 0, 0, 0]]], target)


@pl.jit
def ordered(x: pl.Tensor, flags: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 24])
        pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        t = pl.add(t, 1.0)
        pl.system.sync_src(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=1)
        pl.system.sync_dst(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=1)
        o = pl.store(t, [0, 0], o)
        pl.system.set_ffts(flags)
        pl.system.cacheinvalid(x)
    return o


def test_order() -> None:
    x = np.random.default_rng(2).random((8, 24), np.float32)
    flags, o = zeros((1, 256), np.int64), zeros((8, 24))
    check(ordered, [x, flags], [o], [x + 1], "a3")
    text = ordered.lower(x, flags, o).as_pto()
    for name in ("set_flag", "wait_flag", "cmo.cacheinvalid"):
        assert f"pto.{name}" in text


@pl.jit
def signals(x: pl.Tensor, counter: pl.InOut[pl.Tensor], o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.store(pl.load(x, [0, 0], [8, 24]), [0, 0], o)
        pl.system.sync_set(3, pipe=pl.PipeType.MTE3, ffts_mode=1)
        pl.system.sync_wait(3, pipe=pl.PipeType.V)
        pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=counter, used_cores=1)
    return o


@pl.jit
def drained(x: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        m = pl.matmul(pl.move(t, pl.Mem.Left), pl.move(t, pl.Mem.Right))
        pl.system.bar_m()
        o = pl.store(m, [0, 0], o)
    return o


def test_signals() -> None:
    text = drained.lower(zeros((16, 16)), zeros((16, 16))).as_pto()
    assert "pto.barrier" in text
    text = signals.lower(zeros((8, 24)), zeros((1, 16), np.int32), zeros((8, 24))).as_pto()
    for name in ("sync.set", "sync.wait", "syncall"):
        assert f"pto.{name}" in text


# ---- columns that loops hand on ----


@pl.jit
def online(x: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        m = pl.full([8, 1], pl.FP32, -1e30)
        s = pl.full([8, 1], pl.FP32, 0.0)
        a = pl.full([8, 1], pl.FP32, 1.0)
        b = pl.full([8, 1], pl.FP32, 2.0)
        f = pl.full([8, 24], pl.FP32, 1.0)
        for i in pl.range(4):
            t = pl.load(x, [0, i * 24], [8, 24])
            f = pl.fillpad(pl.set_validshape(pl.add(f, t), 8, 20))
            n = pl.maximum(m, pl.row_max(t))
            s = pl.add(pl.mul(s, pl.exp(pl.sub(m, n))), pl.row_sum(pl.row_expand_expdif(t, n)))
            m = n
            c = a
            a = b
            b = pl.add(c, 1.0)
        o = pl.assemble(o, pl.add(pl.log(s), m), [0, 0])
        p = pl.assemble(p, pl.add(a, pl.mul(b, 10.0)), [0, 0])
        q = pl.assemble(q, f, [0, 0])
    return o


@launches(*TARGETS)
def of_columns_in_loops(target: str) -> Iterator[Launch]:
    x = np.random.default_rng(0).standard_normal((8, 96), np.float32)
    f = np.ones((8, 24))
    for i in range(4):
        f = f + x[:, i * 24 : i * 24 + 24]
        f[:, 20:] = 0
    want = [np.log(np.exp(x).sum(1, keepdims=True)), np.full((8, 1), 43), f]
    yield (online, [x], [zeros((8, 1)), zeros((8, 1)), zeros((8, 24))], want, target)


# ---- refusals ----


def refused(path: Path, body: str) -> Diagnostic:
    """Return the diagnostic of a line in a kernel of tiles."""
    path = path / "refused.py"
    path.write_text(f"""import pto.language as pl

@pl.jit
def kernel(a_: pl.Tensor, i_: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        f = pl.load(a_, [0, 0], [8, 24])
        i = pl.load(i_, [0, 0], [8, 24])
        o = pl.assemble(o, {body}, [0, 0])
    return o
""")
    spec = importlib.util.spec_from_file_location("refused", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(DiagnosticError) as found:
        module.kernel.lower(zeros((8, 24)), zeros((8, 24), np.int32), zeros((8, 24)))
    return found.value.diagnostics[0]


@pytest.mark.parametrize(
    ("body", "code", "place", "expected"),
    [
        ("pl.add(f, i)", "PTO-E3004", "i", "FP32"),
        ("pl.add(f, pl.full([8, 8], pl.FP32, 0.0))", "PTO-E3005", "pl.full([8, 8], pl.FP32, 0.0)", "a column"),
        ("pl.row_expand_add(f, f)", "PTO-E3005", "f", "[8, 1]"),
        ("pl.exp(i)", "PTO-E3004", "i", "FP32"),
        ("pl.and_(f, f)", "PTO-E3004", "f", "INT16"),
        ("pl.add(i, 1.5)", "PTO-E3004", "1.5", ""),
        ("pl.cmp(f, f, 7)", "PTO-E3003", "7", "0 to 5"),
        ("pl.cast(f, pl.INT32, mode='up')", "PTO-E3003", "'up'", "floor"),
        ("pl.cast(f, 3)", "PTO-E3004", "", ""),
        ("pl.fillpad(f, 3)", "PTO-E3003", "3", "PadValue"),
        ("pl.fillpad_expand(f, [4, 24])", "PTO-E3005", "[4, 24]", "[8, 24]"),
        ("pl.set_validshape(f, 9, 24)", "PTO-E3005", "9", "0 to 8"),
        ("pl.gather(f, dim=2, index=i)", "PTO-E3003", "2", "-2 to 1"),
        ("pl.gather(f, dim=-1, index=f)", "PTO-E3004", "f", "INT32"),
        ("pl.tensor.view(a_, layout=pl.DN)", "PTO-E3009", "pl.DN", "pl.ND"),
        ("pl.gather(f, mask_pattern=9)", "PTO-E3003", "9", "P0101"),
        ("pl.scatter(f, dim=-1, index=i, src=i)", "PTO-E3005", "i", "FP32"),
        ("pl.arange(0, [8, 24])", "PTO-E3005", "[8, 24]", "[1, n]"),
        ("pl.sin(i)", "PTO-E3004", "i", "FP32"),
        ("pl.transpose(f, 0, 2)", "PTO-E3003", "", "0 to 1"),
        ("pl.interleave(f, f)", "PTO-E3003", "pl.interleave(f, f)", "a5"),
        ("pl.random(1, 2, 3, 4, 5, 6, [1, 8], rounds=8)", "PTO-E3003", "8", "7, 10"),
        ("pl.full([8, 24], 3, 0.0)", "PTO-E3004", "", ""),
        ("pl.sel(f, f, f, 4, 5)", "PTO-E3003", "", "pl.sel("),
        ("pl.maximum(f)", "PTO-E3003", "", "pl.maximum("),
    ],
)  # fmt: skip
def test_refusals(body: str, code: str, place: str, expected: str, tmp_path: Path) -> None:
    found = refused(tmp_path, body)
    assert found.code == code, found
    assert expected in found.expected, found
    assert found.span is not None
    if place:
        assert found.span.source.text[found.span.start : found.span.end] == place


def test_clamped_windows_end_with_their_tensor() -> None:
    @pl.jit
    def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for r in pl.range(0, pl.tensor.dim(x, 0), 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.add(pl.load(x, [r, 0], [16, 64], clamp=True), 1.0), [r, 0], out)

    x = np.arange(37 * 50, dtype=np.float32).reshape(37, 50)
    for target in TARGETS:
        check(k, [x], [zeros(x.shape)], [x + 1], target)
    assert k.run(x, zeros(x.shape), sanitize="all").ok
