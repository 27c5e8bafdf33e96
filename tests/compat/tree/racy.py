"""A program with a race that no comparison sees: nothing orders its two tasks."""

import pypto.language as pl
import torch


@pl.jit.incore
def twice(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    x = pl.load(a, [0, 0], [16, 64])
    pl.store(pl.add(x, x), [0, 0], c)
    return c


@pl.jit
def racy(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    t = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.manual_scope():
        t, _ = pl.submit(twice, a, t)
        c, _ = pl.submit(twice, t, c)
    return c


if __name__ == "__main__":
    racy(torch.ones((16, 64)), torch.zeros((16, 64)))
