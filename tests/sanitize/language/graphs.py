"""Graphs of tasks with one bug each, as in kernels.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import pto.language as pl

X = (np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 17 - 8) / 4


@pl.jit.incore
def double(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.add(a, a)
    return b


@pl.jit.incore
def rows_from(x: pl.Tensor, row: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [row, 0], [24, 64]), [row, 0], out)


@pl.jit.extern(core_type="aiv", source="extern.cpp")
def racing(x: pl.InOut[pl.Tensor], n: pl.Scalar[pl.INDEX]): ...


@pl.jit.incore
def reads_all(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.mul(a, 2.0)  # FOUND PTO-E2203


@pl.jit.incore
def doubled_rows(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.add(a, a)  # FOUND PTO-E2101


@pl.jit
def never_written(y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    reads_all(t, y)


@pl.jit
def written_in_part(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [64, 32]), [0, 0], t)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.add(pl.load(t, [0, 0], [64, 64]), 1.0), [0, 0], y)  # FOUND PTO-E2203


@pl.jit
def padding_reaches_an_output(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.create_tile([64, 64], dtype=pl.FP32)
        rows[0:8, :] = pl.load(x, [0, 0], [8, 64])
        pl.store(pl.mul(rows, 2.0), [0, 0], t)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.add(pl.load(t, [0, 0], [64, 64]), 1.0), [0, 0], y)  # FOUND PTO-E2203


@pl.jit
def written_too_late(y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mul(pl.load(t, [0, 0], [64, 64]), 0.0), [0, 0], y)  # FOUND PTO-E2203
    t = double(y, t)
    double(t, z)


@pl.jit
def decides_on_nothing(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([8], dtype=pl.INT32)
    pl.write(t, [1], 3)
    if pl.read(t, [0]) == 0 or pl.read(t, [1]) == 3:  # FOUND PTO-E2203
        double(x, y)


@pl.jit
def iterations_overlap(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):  # FOUND PTO-E2611
            t = pl.load(x, [r, 0], [32, 64], valid_shape=[pl.min(32, 64 - r), 64])
            pl.store(t, [r, 0], out)  # FOUND PTO-E3013


@pl.jit
def writer_after_reader(new: pl.Tensor, x: pl.InOut[pl.Tensor], old: pl.Out[pl.Tensor]):
    double(x, old)
    double(new, x)  # FOUND PTO-E2611


@pl.jit
def unordered_by_hand(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.manual_scope():
        out, _ = pl.submit(rows_from, x, 0, out)
        out, _ = pl.submit(rows_from, x, 16, out)  # FOUND PTO-E2611
        out, _ = pl.submit(rows_from, x, 40, out)
    return out


@pl.jit
def window_beyond_rows(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for r in pl.range(0, 64, 24):
        doubled_rows(x[r : r + 24, :], y[r : r + 24, :])


@pl.jit
def race_in_cpp(x: pl.InOut[pl.Tensor]):
    racing(x, 64 * 64)


CALLS: dict[str, Any] = {
    "never_written": lambda: (X * 0,),
    "written_in_part": lambda: (X, X * 0),
    "padding_reaches_an_output": lambda: (X, X * 0),
    "written_too_late": lambda: (X * 0, X * 0),
    "decides_on_nothing": lambda: (X, X * 0),
    "iterations_overlap": lambda: (X, X * 0),
    "writer_after_reader": lambda: (X, X * 1, X * 0),
    "unordered_by_hand": lambda: (X, X * 0),
    "window_beyond_rows": lambda: (X, X * 0),
    "race_in_cpp": lambda: (X * 1,),
}

if __name__ == "__main__":
    for name, values in CALLS.items():
        globals()[name](*values())
