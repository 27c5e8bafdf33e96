"""Cube and vector work in one region: two functions and FIFOs; the same values as the program in its order."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.each import together

import pto.language as pl
from pto.diag import DiagnosticError

from .against import array, check

UP_DOWN, LEFT_RIGHT = pl.SplitMode.UP_DOWN, pl.SplitMode.LEFT_RIGHT


def _layer(*said: Any) -> Any:
    @pl.jit
    def layer(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=list(said), name_hint="layer"):
            out[:] = pl.exp(pl.add(pl.mul(pl.matmul(a, b), 0.1), bias))
        return out

    return layer


def _text(function: Any, *shapes: tuple[int, ...], dtype: Any = np.float32) -> str:
    given = [np.zeros(s, dtype) for s in shapes]
    return function.lower(*given[:-1], given[-1].astype(np.float32)).as_python()


@pytest.mark.parametrize(
    "said", [(), (pl.split(UP_DOWN),), (pl.split(LEFT_RIGHT), pl.cross_core_slot(slot_num=4))], ids=str
)
def test_from_cube_to_vector(said):
    given = [array((32, 48)), array((48, 64)), array((32, 64))]
    layer = _layer(*said)
    check(layer, given, (32, 64), np.float32, lambda a, b, c: np.exp(0.1 * (a @ b) + c))
    text = _text(layer, (32, 48), (48, 64), (32, 64), (32, 64))
    mode = {UP_DOWN: "[16, 64]", LEFT_RIGHT: "[32, 32]"}.get(said[0].mode if said else None, "[32, 64]")
    assert re.search(rf"tpop_from_aic\(\s*(shape=)?{re.escape(mode)}", text)
    assert f"slot_num={4 if len(said) > 1 else 2}" in text
    assert ("if v" in text) == (not said)  # without a split, one vector core stores


@pl.jit
def to_cube(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(UP_DOWN)]):
        out[:] = pl.matmul(pl.add(a, c), b)
    return out


@pl.jit
def blocks(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.spmd(2):
        for j in pl.range(1):
            r = i * 16 + j * 16
            out[r : r + 16, :] = pl.add(pl.matmul(a[r : r + 16, :], b), c[r : r + 16, :])
    return out


@pl.jit
def both_take(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(c, [0, 0], [32, 32])  # for both kinds of core
        y = pl.matmul(x, b)
        out[:] = pl.add(pl.add(y, x), pl.matmul(a, b))
    return out


@pl.jit
def through_memory(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        between[:] = pl.matmul(a, b)
        x = pl.mul(pl.load(between, [0, 0], [32, 32]), 2.0)
        between = pl.store(x, [0, 0], between)
        out[:] = pl.matmul(pl.load(between, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat), c)
    return out


@pl.jit
def handed_on(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.full([32, 32], pl.FP32, 0.0)
        last = pl.matmul(a, b)
        for i in pl.range(3):
            total = pl.add(total, last)
            if i == 0:
                last = pl.matmul(a, b)
            else:
                last = pl.mul(total, 0.5)
        out[:] = pl.matmul(total, c)
    return out


@pl.jit
def added_by_vector(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.load(c, [0, 0], [32, 32])
        for _ in pl.range(2):
            total = pl.matmul_acc(total, a, b)
        out[:] = total
    return out


@pl.jit
def one_after_the_other(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.load(c, [0, 0], [32, 32])
        for _ in pl.unroll(12):
            total = pl.add(total, pl.matmul(a, b))
        out[:] = total
    return out


@pl.jit
def stacked(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.reshape(a, [2, 16, 32])
        y = pl.reshape(b, [2, 16, 32])
        p = pl.matmul(x, y, b_trans=True)  # [2, 16, 16]
        out[0:16, 0:16] = pl.reshape(pl.exp(pl.mul(p, 0.1)), [32, 16])[0:16, :]
        out[16:32, 0:16] = pl.reshape(pl.exp(pl.mul(p, 0.1)), [32, 16])[16:32, :]
        out[:, 16:32] = pl.load(c, [0, 16], [32, 16])
    return out


@pl.jit
def into_part(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        whole = pl.load(c, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        part = pl.matmul(a, pl.slice(b, [32, 16], [0, 0]))
        whole = pl.tile.assemble(whole, part, [0, 16])
        pl.store(pl.move(whole, target_memory=pl.MemorySpace.Vec), [0, 0], out)
    return out


@pl.jit
def into_operand(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        whole = pl.load(a, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        whole = pl.tile.assemble(whole, pl.exp(pl.load(c, [0, 0], [16, 32])), [16, 0])
        other = pl.load(b, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        other = pl.tile.assemble(other, pl.matmul(a[0:16, :], b), [16, 0])
        out[:] = pl.matmul(whole, other)
    return out


@pl.jit
def row_by_row(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        sum = pl.create_tensor([32, 32], dtype=pl.FP32)
        for k in pl.pipeline(0, 2, stage=2):
            if k == 0:
                sum = pl.matmul(a[:, 0:16], b[0:16, :])
            else:
                sum = pl.matmul_acc(sum, a[:, 16:32], b[16:32, :])
        for r in pl.range(0, 32, 16):
            out[r : r + 16, :] = pl.add(sum[r : r + 16, :], c[r : r + 16, :])
    return out


@pl.jit
def stack_of_one(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    x, y, z = pl.reshape(a, [1, 32, 32]), pl.reshape(b, [1, 32, 32]), pl.reshape(out, [1, 32, 32])
    with pl.at(level=pl.Level.CORE_GROUP):
        sum = pl.matmul(x[:, :, 0:16], y[:, 0:16, :])
        for _ in pl.range(2):
            sum = pl.matmul_acc(sum, x[:, :, 16:32], y[:, 16:32, :])
        z[:, :, :] = sum
    return out


def _stacked(a, b, c):
    p = np.exp(0.1 * (a.reshape(2, 16, 32) @ b.reshape(2, 16, 32).swapaxes(1, 2)))
    return np.concatenate([p.reshape(32, 16), c[:, 16:]], 1)


EXPECTED = {
    to_cube: lambda a, b, c: (a + c) @ b,
    blocks: lambda a, b, c: a @ b + c,
    both_take: lambda a, b, c: c @ b + c + a @ b,
    through_memory: lambda a, b, c: 2 * (a @ b) @ c,
    handed_on: lambda a, b, c: 3 * (a @ b) @ c,
    added_by_vector: lambda a, b, c: 2 * (a @ b) + c,
    one_after_the_other: lambda a, b, c: 12 * (a @ b) + c,
    stacked: _stacked,
    row_by_row: lambda a, b, c: a @ b + c,
    stack_of_one: lambda a, b, c: a @ b + a[:, 16:] @ b[16:],
    into_operand: lambda a, b, c: (
        np.concatenate([a[:16], np.exp(c[:16])]) @ np.concatenate([b[:16], a[:16] @ b])
    ),
    into_part: lambda a, b, c: np.concatenate([c[:, :16], a @ b[:, :16]], 1),
}


@together("function", EXPECTED)
def test_values_are_those_of_the_program(function):
    given = [array((32, 32), seed=seed) for seed in range(3)]
    check(function, given, (32, 32), np.float32, EXPECTED[function], slack=20)


def test_what_each_core_does():
    sizes = [(32, 32)] * 4
    assert (
        len(re.findall(r"pl.load\(\s*c\b", _text(both_take, *sizes))) == 2
    )  # one load for each kind of core
    assert (
        _text(one_after_the_other, *sizes).count("pl.aic_initialize_pipe") == 1
    )  # twelve tiles share a FIFO
    assert "aiv" not in _text(stack_of_one, *sizes)  # dimensions of 1 need no vector core
    rows = _text(row_by_row, *sizes)  # the sum is the cube's, and crosses once
    assert rows.count("pl.add(") == 1 and len(re.findall(r"\n {8}pl.tpush_to_aiv", rows)) == 1
    cube = _text(through_memory, *sizes).partition("_aic(self")[2].partition("_aiv(self")[0]
    assert "between" not in cube.partition("\n")[2]  # what both touch, vector cores touch


def _attention(*said: Any) -> Any:
    @pl.jit
    def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=list(said)):
            highest = pl.full([1, 32], pl.FP32, -1e30)
            weight = pl.full([1, 32], pl.FP32, 0.0)
            o = pl.full([32, 16], pl.FP32, 0.0)
            for j in pl.range(0, 96, 32):
                s = pl.mul(pl.matmul(q, k[j : j + 32, :], b_trans=True), 0.25)
                new = pl.maximum(highest, pl.reshape(pl.row_max(s), [1, 32]))
                p = pl.exp(pl.row_expand_sub(s, pl.reshape(new, [32, 1])))
                old = pl.exp(pl.sub(highest, new))
                weight = pl.add(pl.mul(weight, old), pl.reshape(pl.row_sum(p), [1, 32]))
                u = pl.matmul(pl.cast(p, pl.FP16), v[j : j + 32, :])
                o = pl.add(pl.row_expand_mul(o, pl.reshape(old, [32, 1])), u)
                highest = new
            out[:] = pl.row_expand_div(o, pl.reshape(weight, [32, 1]))
        return out

    return attention


def _softmax(q, k, v):
    s = q @ k.T * 0.25
    p = np.exp(s - s.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ v


@pytest.mark.parametrize("said", [(), (pl.split(UP_DOWN),), (pl.split(LEFT_RIGHT),)], ids=str)
def test_attention(said):
    """Both directions in one loop, with state; a sum across columns is not halved by columns."""
    given = [array((32, 16), np.float16), array((96, 16), np.float16), array((96, 16), np.float16, seed=1)]
    attention = _attention(*said)
    check(attention, given, (32, 16), np.float32, _softmax, slack=500)
    text = _text(attention, (32, 16), (96, 16), (96, 16), (32, 16), dtype=np.float16)
    halved = bool(said) and said[0].mode is UP_DOWN
    assert ("shape=[16, 32]" in text) == halved


@pl.jit
def lanes(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        p = pl.matmul(a, b)
        for lane in pl.split_aiv(2, mode=UP_DOWN):
            half = pl.mul(pl.aiv_shard(p), 2.0)
            rows = pl.load(c, [lane * 16, 0], [16, 32])
            out = pl.store(pl.add(half, rows), [lane * 16, 0], out)
    return out


@pl.jit
def gathered(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        p = pl.matmul(a, b)
        for _ in pl.split_aiv(2, mode=LEFT_RIGHT):
            full = pl.aic_gather(pl.mul(pl.aiv_shard(p), 2.0))
        out[:] = pl.matmul(full, c)
    return out


def test_lanes_that_are_written():
    given = [array((32, 32), seed=seed) for seed in range(3)]
    check(lanes, given, (32, 32), np.float32, lambda a, b, c: 2 * (a @ b) + c, slack=20)
    check(gathered, given, (32, 32), np.float32, lambda a, b, c: 2 * (a @ b) @ c, slack=20)


@pl.jit
def lanes_of_a_tail(a: pl.Tensor, b: pl.Tensor, rows: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        p = pl.matmul(pl.slice(a, [32, 32], [0, 0], valid_shape=[rows, 32]), b)
        for lane in pl.split_aiv(2, mode=UP_DOWN):
            half = pl.exp(pl.aiv_shard(p))
            out[lane * 16 : lane * 16 + 16, :] = half
    return out


@pl.jit
def a_tail_joined(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        p = pl.matmul(pl.slice(a, [32, 32], [0, 0], valid_shape=[21, 32]), b)
        for _ in pl.split_aiv(2, mode=UP_DOWN):
            full = pl.aic_gather(pl.mul(pl.aiv_shard(p), 2.0))
        out[0:32, :] = pl.matmul(full, c)
    return out


@together("rows", [5, 6, 16, 21, 32])
def test_lanes_of_what_holds_data_in_part(rows: int):
    a, b = (array((32, 32), seed=seed) for seed in range(2))
    for sanitize in ("", "all"):
        out = np.full((32, 32), 7, np.float32)
        found = lanes_of_a_tail.run(a, b, rows, out, sanitize=sanitize)
        np.testing.assert_allclose(out[:rows], np.exp(a[:rows] @ b), rtol=1e-4)
        assert (out[rows:] == 7).all() or sanitize == "all"
        assert {d.code for d in found.diagnostics} <= {"PTO-E3014"}  # the rest of `out`


def test_lanes_that_are_joined_again():
    a, b, c = (array((32, 32), seed=seed) for seed in range(3))
    out = np.zeros((32, 32), np.float32)
    a_tail_joined(a, b, c, out)
    np.testing.assert_allclose(out[:21], 2 * (a[:21] @ b) @ c, rtol=1e-3, atol=1e-3)


@pl.jit
def a_tail_that_is_padding(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(2):
            cols = pl.min(40 - i * 32, 32)
            p = pl.matmul(a, pl.slice(b, [32, 32], [0, i * 32], valid_shape=[32, cols]))
            p = pl.set_validshape(p, 32, 32)
            for lane in pl.split_aiv(2, mode=UP_DOWN):
                out[lane * 16 : lane * 16 + 16, i * 32 : i * 32 + 32] = pl.aiv_shard(p)
    return out


def test_an_accumulator_crosses_as_a_whole():
    a, b = array((32, 32)), array((32, 40), seed=1)
    out = np.zeros((32, 64), np.float32)
    a_tail_that_is_padding(a, b, out)
    np.testing.assert_allclose(out[:, :40], a @ b, rtol=1e-3, atol=1e-3)


def test_problems():
    @pl.jit
    def columns(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            p = pl.matmul(a, pl.slice(b, [32, 32], [0, 0], valid_shape=[32, 24]))
            for lane in pl.split_aiv(2, mode=LEFT_RIGHT):
                out[:, lane * 16 : lane * 16 + 16] = pl.aiv_shard(p)

    @pl.jit
    def apart(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for lane in pl.split_aiv(2, mode=UP_DOWN):
                full = pl.aic_gather(pl.slice(a, [16, 32], [lane * 16, 0], valid_shape=[5, 32]))
            out[:] = pl.matmul(full, b)

    @pl.jit
    def asks(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [0, 0], [32, 32])
            n = pl.cast(pl.read(pl.cast(pl.exp(x), pl.INT32), [0, 0]), pl.INDEX)
            for _ in pl.range(n):
                out[:] = pl.matmul(a, b)

    @pl.jit
    def outside(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.aiv_shard(pl.matmul(a, b))

    @pl.jit
    def odd(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for _ in pl.split_aiv(2, mode=UP_DOWN):
                out[:] = pl.aiv_shard(pl.matmul(pl.slice(a, [31, 32], [0, 0]), b))

    @pl.jit
    def unsplit(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for _ in pl.split_aiv(2, mode=pl.SplitMode.NONE):
                out[:] = pl.aiv_shard(pl.matmul(a, b))

    @pl.jit
    def prime(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for _ in pl.split_aiv(2, mode=pl.SplitMode.NONE):
                out[0:31, 0:31] = pl.aiv_shard(pl.matmul(pl.slice(a, [31, 32], [0, 0]), b[:, 0:31]))

    x = np.zeros((32, 32), np.float32)
    with pytest.raises(DiagnosticError, match="cannot give an unsplit tile to both vector cores on A5"):
        unsplit.run(x, x, x, target="a5")
    for function, said in (
        (prime, "cannot give a tile with odd rows and columns to both vector cores"),
        (asks, "cannot use a number from the vector core on the cube core"),
        (outside, "cannot use pl.aiv_shard outside of `for lane in pl.split_aiv"),
        (odd, "cannot halve 31 rows"),
        (columns, "cannot halve partly valid columns"),
        (apart, "cannot join halves with invalid rows between them"),
    ):
        with pytest.raises(DiagnosticError, match=said):
            function.lower(x, x, x)


@pl.jit
def whole_in_each_lane(
    a: pl.Tensor[[96, 32], pl.FP32],
    b: pl.Tensor[[32, 24], pl.FP32],
    out: pl.Out[pl.Tensor[[96, 24], pl.FP32]],
    more: pl.Out[pl.Tensor[[96, 24], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(3):
            p = pl.matmul(a[i * 32 : i * 32 + 32, :], b)
            for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
                x = pl.exp(pl.aiv_shard(p))
                if lane == 0:
                    out[i * 32 : i * 32 + 32, :] = x
                else:
                    more[i * 32 : i * 32 + 32, :] = pl.mul(x, 2.0)
    return out


def test_a_tile_that_is_not_split_is_whole_in_each_lane() -> None:
    text = whole_in_each_lane.as_python()
    assert "pl.aiv_shard(" in text
    assert pl.parse_program(text).as_python() == text
    a, b = array((96, 32)) / 8, array((32, 24), seed=1) / 8
    for target, engine in (
        ("a3", "reference"),
        ("a3", "native"),
        ("cpu", "reference"),
        ("cpu", "native"),
        ("", ""),
    ):
        out, more = np.zeros((96, 24), np.float32), np.zeros((96, 24), np.float32)
        if target:
            watched = {"sanitize": "all"} if engine == "reference" else {}
            whole_in_each_lane.run(a, b, out, more, target=target, engine=engine, **watched)
        else:
            whole_in_each_lane.interpret(a, b, out, more)
        np.testing.assert_allclose(out, np.exp(a @ b), rtol=1e-4)
        np.testing.assert_allclose(more, 2 * np.exp(a @ b), rtol=1e-4)


@pl.jit
def in_turns(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        between[:] = pl.matmul(a, b)
        pl.store(pl.load(c, [0, 0], [8, 32]), [24, 0], between)  # not of a lane: once
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            for r in pl.range(lane * 8, 24, 16):
                rows = pl.load(c, [r, 0], [8, 32])
                out = pl.store(pl.exp(rows), [r, 0], out)
        x = pl.load(between, [24, 0], [8, 32])
        out = pl.store(x, [24, 0], out)
    return out


@pl.jit
def by_signals(
    a: pl.Tensor, b: pl.Tensor, between: pl.InOut[pl.Tensor], flags: pl.Tensor, out: pl.InOut[pl.Tensor]
):
    """Lanes make 5 and 11 rows of 31 columns, the cube takes them after the signals of both."""
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.system.set_ffts(flags)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            if lane == 0:
                between = pl.store(pl.load(a, [0, 0], [5, 32]) * 2.0, [0, 0], between)
            else:
                between = pl.store(pl.load(a, [5, 0], [11, 32]) * 3.0, [5, 0], between)
            pl.system.sync_set(4, pipe=pl.PipeType.MTE3, ffts_mode=2, core_type="aiv")
        pl.system.sync_wait(4, pipe=pl.PipeType.MTE2, core_type="aic")
        x = pl.load(between, [0, 0], [16, 32], valid_shape=[16, 31], target_memory=pl.MemorySpace.Mat)
        y = pl.load(b, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        x, y = pl.move(x, pl.MemorySpace.Left), pl.move(y, pl.MemorySpace.Right)
        out = pl.store(pl.matmul(x, y), [0, 0], out)  # 31 terms
    return out


def test_signals_that_are_written():
    a, b = array((16, 32)), array((32, 32), seed=1)
    wide = a.astype(np.float64) * np.where(np.arange(16) < 5, 2.0, 3.0)[:, None]
    for engine in ("native", "reference"):
        out = np.zeros((16, 32), np.float32)
        by_signals.run(
            a, b, np.ones((16, 32), np.float32), np.zeros(256, np.int64), out, target="a3", engine=engine
        )
        np.testing.assert_allclose(out, wide[:, :31] @ b[:31].astype(np.float64), atol=1e-4)


def test_what_is_not_of_a_lane_is_done_once():
    given = [array((32, 32), seed=seed) for seed in range(3)]
    check(in_turns, given, (32, 32), np.float32, lambda a, b, c: np.concatenate([np.exp(c[:24]), c[:8]]))


@pl.jit.incore
def called(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = pl.add(pl.matmul(a, b), c)


@pl.jit
def ragged(a: pl.Tensor, b: pl.Tensor, n: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        some = pl.cast(pl.read(n, [0]), pl.INDEX)
        x = pl.load(a, [0, 0], [32, 32], valid_shape=[some, 32])
        y = pl.matmul(pl.mul(x, 2.0), b)  # some rows
        z = pl.load(a, [0, 0], [32, 32], valid_shape=[32, some])
        w = pl.load(b, [0, 0], [32, 32], valid_shape=[some, 32])
        u = pl.matmul(z, pl.mul(w, 2.0))  # some terms
        out[0:32, :] = pl.neg(u)
        out[0:32, :] = pl.exp(pl.mul(y, 0.1))
    return out


def test_parts_that_hold_data():
    def expected(a, b, n):
        k = int(n[0])
        return np.concatenate([np.exp(0.2 * (a[:k] @ b)), -2 * (a[:, :k] @ b[:k])[k:]])

    for n in (20, 32):
        given = [array((32, 32)), array((32, 32), seed=1), np.array([n], np.int32)]
        check(ragged, given, (32, 32), np.float32, expected, slack=20)


def test_a_function_of_a_core_that_is_called():
    given = [array((32, 32), seed=seed) for seed in range(3)]
    check(called, given, (32, 32), np.float32, lambda a, b, c: a @ b + c)
    out = np.zeros((32, 32), np.float32)
    called(*given, out)
    np.testing.assert_allclose(out, given[0] @ given[1] + given[2], atol=1e-4)


@pl.program
class Written:
    """out = exp((a + b) @ c): two FIFOs from vector to cube, one back, as an author writes them."""

    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, c: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
        here = pl.reserve_buffer(name="sums", size=4096, base=pl.AUTO)
        there = pl.import_peer_buffer(name="products", peer_func="vector")
        pl.aic_initialize_pipe(pl.const(0, pl.INT32), here, dir_mask=2, slot_size=1024, slot_num=4, id=0)
        pl.aic_initialize_pipe(c2v_consumer_buf=there, dir_mask=1, slot_size=1024, slot_num=2, id=1)
        right = pl.move(pl.load(c, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for _ in pl.range(2):
            x: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
            y = pl.matmul(pl.move(x, target_memory=pl.Mem.Left), right)
            pl.tfree_to_aiv(x)
            pl.tpush_to_aiv(y, split=0, id=1)

    @pl.function(type=pl.FunctionType.AIV)
    def vector(
        self, a: pl.Tensor[[32, 16], pl.FP32], b: pl.Tensor[[32, 16], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 16], pl.FP32]],
    ):  # fmt: skip
        here = pl.reserve_buffer(name="products", size=2048)
        there = pl.import_peer_buffer(name="sums", peer_func="cube")
        pl.aiv_initialize_pipe(v2c_consumer_buf=there, dir_mask=2, slot_size=1024, slot_num=4, id=0)
        pl.aiv_initialize_pipe(c2v_consumer_buf=here, dir_mask=1, slot_size=1024, slot_num=2, id=1)
        for r in pl.range(0, 32, 16):
            pl.tpush_to_aic(pl.add(pl.load(a, [r, 0], [16, 16]), pl.load(b, [r, 0], [16, 16])), split=0)
            y = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32, split=0, id=1)
            e = pl.exp(y)
            pl.tfree_to_aic(y, id=1)
            out = pl.store(e, [r, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Group)
    def both(
        self, a: pl.Tensor[[32, 16], pl.FP32], b: pl.Tensor[[32, 16], pl.FP32], c: pl.Tensor[[16, 16], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 16], pl.FP32]],
    ):  # fmt: skip
        self.cube(c, out)  # members share a signature, independent of the writes
        out = self.vector(a, b, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 16], pl.FP32], b: pl.Tensor[[32, 16], pl.FP32], c: pl.Tensor[[16, 16], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 16], pl.FP32]],
    ):  # fmt: skip
        out = self.both(a, b, out=out, c=c)
        return out


@pytest.mark.filterwarnings("error")
def test_a_group_that_is_written():
    given = [array((32, 16)), array((32, 16), seed=1), array((16, 16)) / np.float32(4)]
    check(Written, given, (32, 16), np.float32, lambda a, b, c: np.exp((a + b) @ c), slack=20)
