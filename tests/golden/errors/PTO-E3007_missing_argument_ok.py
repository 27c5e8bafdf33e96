# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit.incore
def scale(x: pl.Tensor, factor: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    out[:] = x * factor
    return out


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return scale(x, 2.0, out)


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
