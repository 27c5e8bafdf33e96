"""Programs of several ranks with one bug each, as in kernels.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import pto.language as pl
import pto.language.distributed as pld

COLS = 64
X = np.arange(2 * 2 * COLS, dtype=np.float32).reshape(2, 2, COLS) % 17
CONFIG = {"config": pl.RunConfig(distributed_config=pld.DistributedConfig(device_ids=[0, 1]))}
ROWS = pl.Tensor[[2, COLS], pl.FP32]
FOUND = pl.Out[pl.Tensor[[2, COLS], pl.FP32]]
DATA = pld.DistributedTensor[[2, COLS], pl.FP32]
SIGNAL = pld.DistributedTensor[[2, 1], pl.INT32]


@pl.jit
def reads_before_the_barrier(x: ROWS, y: FOUND, data: DATA, signal: SIGNAL):
    other = (pld.rank(pld.get_comm_ctx(data)) + 1) % pld.world_size()
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.put(data, other, x)
    with pl.at(level=pl.Level.CORE_GROUP):
        before = pl.mul(data, 0.0)  # FOUND PTO-E3016
        pld.tensor.barrier(signal)
        y[:, :] = pl.add(data, before)


@pl.jit.host
def race(x: pl.Tensor[[2, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, COLS], pl.FP32]]):
    places = pld.alloc_window_buffer(2 * COLS * 4)
    signals = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(places, [2, COLS], dtype=pl.FP32)
        reads_before_the_barrier(x[r], y[r], data, pld.window(signals, [2, 1], dtype=pl.INT32), device=r)


@pl.jit.incore
def waits_for_two(x: ROWS, y: FOUND, signal: SIGNAL):
    if pld.rank(pld.get_comm_ctx(signal)) == 1:
        pld.system.notify(signal, 0, [0, 0], 1)
    else:
        pld.system.wait(signal, [0, 0], 2)  # FOUND PTO-E2104
    y[:, :] = pl.add(x, 0.0)


@pl.jit.host
def stuck(x: pl.Tensor[[2, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, COLS], pl.FP32]]):
    signals = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(2):
        waits_for_two(x[r], y[r], pld.window(signals, [2, 1], dtype=pl.INT32), device=r)


@pl.jit.incore
def stores_nothing(x: ROWS, y: FOUND, data: DATA):
    t = pl.create_tile([2, COLS], dtype=pl.FP32)
    pl.store(pl.add(t, pl.load(x, [0, 0], [2, COLS])), [0, 0], y)  # FOUND PTO-E2203


@pl.jit.host
def undefined(x: pl.Tensor[[2, 2, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, 2, COLS], pl.FP32]]):
    places = pld.alloc_window_buffer(2 * COLS * 4)
    for r in pl.range(2):
        stores_nothing(x[r], y[r], pld.window(places, [2, COLS], dtype=pl.FP32), device=r)


CALLS: dict[str, Any] = {
    "race": lambda: (X, X * 0),
    "stuck": lambda: (X, X * 0),
    "undefined": lambda: (X, X * 0),
}

if __name__ == "__main__":
    for name, values in CALLS.items():
        globals()[name](*values(), **CONFIG)
