"""Programs of one task with one bug each. A comment FOUND names the report that points at its line; CALLS has arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import pto.language as pl

M = pl.dynamic("M")
X = (np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 17 - 8) / 4


@pl.jit
def tile_never_written(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.create_tile([64, 64], dtype=pl.FP32)
        out[:, :] = t  # FOUND PTO-E2203


@pl.jit
def outside_valid_columns(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        u = pl.load(x, [0, 0], [64, 64], valid_shape=[64, 60])
        v = pl.load(x, [0, 0], [64, 64], valid_shape=[64, 50])
        pl.store(u + v, [0, 0], out)  # FOUND PTO-E2203


@pl.jit
def last_rows_are_missing(x: pl.Tensor[[M, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(0, M, 16):
            out[r : r + 16] = x[r : r + 16] * 2.0  # FOUND PTO-E2204 PTO-E2101


@pl.jit
def index_outside(x: pl.Tensor, at: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i = pl.load(at, [0, 0], [64, 64])
        pl.store(pl.gather(pl.load(x, [0, 0], [64, 64]), 1, i), [0, 0], out)  # FOUND PTO-E2211


@pl.jit
def output_half_written(x: pl.Tensor, out: pl.Out[pl.Tensor]):  # FOUND PTO-E3014
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], out)


@pl.jit
def division_by_zero(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [64, 64])
        pl.store(pl.div(t, pl.sub(t, t)), [0, 0], out)  # FOUND PTO-E2302


@pl.jit
def logarithm_of_negatives(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.log(pl.load(x, [0, 0], [64, 64]))  # FOUND PTO-E2302
        pl.store(t, [0, 0], out)


@pl.jit
def blocks_overlap(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.spmd(4):
        pl.store(pl.load(x, [i * 16, 0], [16, 64]), [i * 8, 0], out)  # FOUND PTO-E2202 PTO-E3013


@pl.jit
def registers_of_nothing(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.create_tile([16, 64], pl.FP32)
        for i in pl.range(15):
            pl.micro.vsts(pl.micro.vdup(1.0, pl.FP32), t, i * 64)
        pl.store(t, [0, 0], out)  # FOUND PTO-E2203


CALLS: dict[str, Any] = {
    "tile_never_written": lambda: (X, X * 0),
    "outside_valid_columns": lambda: (X, X * 0),
    "last_rows_are_missing": lambda: (X[:40].copy(), X[:40] * 0),
    "index_outside": lambda: (X, np.full((64, 64), 70, np.int32), X * 0),
    "output_half_written": lambda: (X, X * 0),
    "division_by_zero": lambda: (X, X * 0),
    "logarithm_of_negatives": lambda: (X, X * 0),
    "blocks_overlap": lambda: (X, X * 0),
    "registers_of_nothing": lambda: (X, X[:16] * 0),
}

if __name__ == "__main__":
    for name, values in CALLS.items():
        globals()[name](*values())
