"""Programs as they are written, printed and read back as the same text. Texts do not contain the number of
ranks: a parsed program runs like the original, with any number of them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.language import fixed_points, test_ranks

import pto.language as pl
import pto.language.distributed as pld
from pto.diag import DiagnosticError


def _printed(program: Any) -> str:
    """The concise text of a program; it and the full one are read and printed again."""
    text = program.as_python()
    again = pl.parse_program(text)
    fixed_points._same(text, again.as_python())
    short = again.as_python(concise=True)
    fixed_points._same(short, pl.parse_program(short).as_python(concise=True))
    fixed_points._same(short, program.as_python(concise=True))
    return short


DATA = pld.DistributedTensor[[2, 64], pl.FP32]
SIGNAL = pld.DistributedTensor[[4, 1], pl.INT32]


@pl.program
class Ranks:
    @pl.function(type=pl.FunctionType.InCore)
    def moved(self, x: pl.Tensor[[2, 64], pl.FP32], data: pl.InOut[DATA], signal: SIGNAL, ctx: pld.CommCtx):
        peer = (pld.system.rank(ctx) + 1) % pld.system.nranks(pld.system.get_comm_ctx(data))
        tile = pld.remote_load(data, peer, [0, 0], [2, 64], valid_shape=[1, 64])
        stage = pl.create_tile([2, 64], dtype=pl.FP32)
        pld.remote_store(tile, data, peer, offsets=[0, 0], atomic=pld.AtomicType.Add)
        pld.remote_store(x, data, peer, (0, 0))
        pld.tensor.put(data, peer, x, [0, 0], [1, 0], [1, 64], chunk_rows=1)
        pld.tile.put(data, peer, x, stage)
        pld.tensor.get(x, peer, data)
        pld.tile.get(x, peer, data, stage, stage, src_offsets=[0, 0], dst_offsets=[0, 0], shape=[2, 64])
        pld.system.notify(signal, peer, [0, 0], 2, op=pld.NotifyOp.Set)
        pld.system.wait(signal, [0, 0], 2, cmp=pld.WaitCmp.Eq)
        pld.system.defer_wait(signal, [0, 0], peer, cmp=pld.WaitCmp.Ge)
        return data

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[2, 64], pl.FP32], data: pl.InOut[DATA], signal: SIGNAL):
        data = pld.tensor.broadcast(data, signal, root=1)
        moved = self.moved(x, data[0:2, :], signal, pld.get_comm_ctx(data))
        counts = pl.create_tensor([4], dtype=pl.INT32)
        pld.tensor.all_to_all_v(x, moved, signal, counts, counts)
        return moved

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[4, 2, 64], pl.FP32]):
        count = pld.world_size()
        buffer: pl.Ptr = pld.tensor.alloc_window_buffer(2 * 64 * 4)
        signals = pld.alloc_window_buffer([count, 1], dtype=pl.INT32)
        data = pld.tensor.window(buffer, [2, 64], dtype=pl.FP32)
        signal = pld.window(signals, [count, 1], dtype=pl.INT32)
        for r, (now,) in pl.range(pld.system.world_size(), init_values=(data,)):
            new = self.chip(x[r], now, signal, device=r)
            data = pl.yield_(new)
        data = pld.tensor.allreduce(data, op=pld.ReduceOp.Max)
        for r in pl.range(count):
            self.chip(x[r], data, signal, device=(r + 1) % count)
        return data


CONCISE = """\
import pto.language as pl
import pto.language.distributed as pld


@pl.program
class Ranks:
    @pl.function(type=pl.FunctionType.InCore)
    def moved(
        self, x: pl.Tensor[[2, 64], pl.FP32],
        data: pl.InOut[pld.DistributedTensor[[2, 64], pl.FP32]],
        signal: pld.DistributedTensor[[4, 1], pl.INT32], ctx: pld.CommCtx
    ):
        v = pld.rank(ctx)
        v_0 = v + 1
        v_1 = pld.get_comm_ctx(data)
        v_2 = pld.nranks(v_1)
        peer = v_0 % v_2
        tile = pld.tile.remote_load(data, peer, [0, 0], [2, 64], valid_shape=[1, 64])
        stage = pl.create_tile([2, 64], pl.FP32)
        pld.tile.remote_store(tile, data, peer, [0, 0], atomic=pl.AtomicType.Add)
        pld.tensor.remote_store(x, data, peer, [0, 0])
        pld.tensor.put(
            data, peer, x, dst_offsets=[0, 0], src_offsets=[1, 0], shape=[1, 64], chunk_rows=1
        )
        pld.tile.put(data, peer, x, stage)
        pld.tensor.get(x, peer, data)
        pld.tile.get(
            x, peer, data, stage, stage2=stage, dst_offsets=[0, 0], src_offsets=[0, 0],
            shape=[2, 64]
        )
        pld.system.notify(signal, peer, [0, 0], value=2, op=pld.NotifyOp.Set)
        pld.system.wait(signal, [0, 0], 2, cmp=pld.WaitCmp.Eq)
        pld.system.defer_wait(signal, [0, 0], peer)
        return data

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[2, 64], pl.FP32],
        data: pl.InOut[pld.DistributedTensor[[2, 64], pl.FP32]],
        signal: pld.DistributedTensor[[4, 1], pl.INT32]
    ):
        pld.tensor.broadcast(data, signal=signal, root=1)
        moved = pl.slice(data, [2, 64], [0, 0])
        v = pld.get_comm_ctx(data)
        self.moved(x, moved, signal, v)
        counts = pl.create_tensor([4], pl.INT32)
        pld.tensor.all_to_all_v(x, moved, signal, counts, counts)
        return moved

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[4, 2, 64], pl.FP32]):
        count = pld.world_size()
        buffer = pld.alloc_window_buffer(512)
        signals = pld.alloc_window_buffer([count, 1], dtype=pl.INT32)
        data = pld.window(buffer, [2, 64], dtype=pl.FP32)
        signal = pld.window(signals, [count, 1], dtype=pl.INT32)
        v = pld.world_size()
        for r, (now,) in pl.range(v, init_values=(data,)):
            v_0 = pl.slice(x, [1, 2, 64], [r, 0, 0], drop_dims=[0])
            new = self.chip(v_0, now, signal, device=r)
            now_0 = pl.yield_(new)
        pld.tensor.allreduce(now_0, op=pld.ReduceOp.Max)
        for r_0 in pl.range(count):
            v_1 = pl.slice(x, [1, 2, 64], [r_0, 0, 0], drop_dims=[0])
            v_2 = r_0 + 1
            v_3 = v_2 % count
            v_4 = self.chip(v_1, now_0, signal, device=v_3)
        return now_0
"""


def test_words_of_ranks() -> None:
    assert _printed(Ranks) == CONCISE


def test_texts_run() -> None:
    """A text without ranks is the program for any number of them; every stage with ranks is a text, too."""
    x = np.round(test_ranks._given(test_ranks.RANKS, 2, test_ranks.COLS) * 64)
    wanted = np.stack([np.roll(x[:, 0], 1, axis=0), np.roll(x[:, 1], -1, axis=0)], axis=1)
    for program in (test_ranks.ring, test_ranks.by_regions):
        assert "for r in pl.range(v):" in _printed(program)
        host = SimpleNamespace(
            lower=lambda *a, dump, f=program: f.lower(*a, dump=dump, config=test_ranks._config())
        )
        fixed_points.check(host, x, x)
    y = np.zeros_like(x)
    pl.parse_program(test_ranks.ring.as_python(concise=True))(x, y, config=test_ranks._config())
    np.testing.assert_array_equal(y, wanted)
    for program in (test_ranks.wide, test_ranks.collect, test_ranks.copies):
        _printed(program)


ROWS = pl.Tensor[[16, 64], pl.FP32]


@pl.program
class Odd:
    """Legal text that cannot run: functions that call themselves, work of Python, results within results,
    columns, a mask of bytes, tasks of hosts."""

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def verify(f: ROWS) -> pl.Tuple[ROWS, pl.Scalar[pl.INT32]]:  # noqa: N805
        """Nobody here looks into it."""
        import torch

        with torch.no_grad():
            return torch.relu(f), 3

    @pl.function(type=pl.FunctionType.Inline)
    def again(self, x: ROWS) -> ROWS:
        return self.again(x)

    @pl.function(type=pl.FunctionType.Group)
    def first(self, x: ROWS, y: ROWS) -> ROWS:
        return self.second(x, y)

    @pl.function(type=pl.FunctionType.Group)
    def second(self, x: ROWS, y: ROWS) -> ROWS:
        r: ROWS = self.first(x, y)
        return r

    @pl.function(type=pl.FunctionType.InCore)
    def nested(self, x: ROWS):
        t = pl.load(x, [0, 0], [16, 64])
        mask: pl.Tile[[16, 32], pl.UINT8, pl.Mem.Vec] = pl.cmp(t, t, cmp_type=0)
        return 1, (pl.sel(mask, t, t),), pl.tensor.view(x, layout=pl.TensorLayout.DN)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: ROWS):
        y, n = self.verify(x)
        _, (tile,), turned = self.nested(self.first(self.again(y), x))
        with pl.at(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator) as before:
            self.nested(x, attrs={"sync_start": True})
        with pl.at(level=pl.Level.HOST, deps=[before]):
            self.nested(y)
        return tile, turned, n


def test_what_only_texts_have() -> None:
    text = _printed(Odd)
    for line in (
        "def verify(self, f: pl.Tensor[[16, 64], pl.FP32]) -> pl.Tuple[",
        "            return (torch.relu(f), 3)",
        "        v_0 = self.first(v, x)",
        "        _, (tile,), turned = self.nested(v_0)",
        "with pl.at(level=pl.Level.GLOBAL, role=pl.Role.Orchestrator) as before:",
        "self.nested(x, attrs={'sync_start': True})",
        "with pl.at(level=pl.Level.HOST, deps=[before]):",
        "v_0 = pl.tensor.view(x, layout=pl.TensorLayout.DN)",
    ):
        assert line in text, text


def test_the_text_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "import pto.language as pl\n@pl.jit\ndef f(x: pl.Tensor[[8], pl.FP32]):\n    return x\n"
    names: dict[str, Any] = {}
    exec(compile(command, "<string>", "exec"), names)
    monkeypatch.setattr("sys.orig_argv", ["python", "-c", command, "-v"])
    assert "def f(self, x: pl.Tensor[[8], pl.FP32]):" in _printed(names["f"])
    monkeypatch.setattr("sys.orig_argv", ["python", "-c", "pass"])
    with pytest.raises(DiagnosticError, match="cannot read the source of f"):
        names["f"].as_python()


WRONG = {
    "pld.rank(x)": "expected a pld.CommCtx for 'ctx'",
    "pld.get_comm_ctx(x)": "expected a window of several ranks for 'dist_tensor'",
    "pld.system.wait(data, [0], 1)": "wrong number of entries in 'offsets'",
    "pld.system.wait(data, [0, 0], 0.5)": "expected a whole number for 'expected'",
    "pld.window(x, [2], dtype=pl.INT8)": "expected a pl.Ptr for 'buf'",
    "pld.alloc_window_buffer([2])": "missing dtype for a shape",
    "pld.alloc_window_buffer([2, 0], dtype=pl.INT8)": "expected positive extents",
    "pld.alloc_window_buffer(2, dtype=pl.INT8)": "unexpected dtype for a number of bytes",
    "pld.alloc_window_buffer(0.5)": "expected integers in",
}


def test_what_needs_no_ranks_is_checked() -> None:
    for call, words in WRONG.items():
        text = f"""\
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def f(self, x: pl.Tensor[[2, 64], pl.FP32], data: pld.DistributedTensor[[2, 64], pl.FP32]):
        {call}
"""
        with pytest.raises(DiagnosticError, match=words):
            pl.parse_program(text).as_python()
