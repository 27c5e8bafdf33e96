# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit.incore
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = x * 2.0
    return out


@pl.jit
def k(x: pl.Tensor, first: pl.Out[pl.Tensor], second: pl.Out[pl.Tensor]):
    shared = pl.create_tensor([16, 64], dtype=pl.FP32)
    shared = double(x, shared)
    first = double(shared, first)
    other = pl.create_tensor([16, 64], dtype=pl.FP32)
    other = double(x, other)
    second = double(other, second)
    return first, second


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x), np.zeros_like(x))
