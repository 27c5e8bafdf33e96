# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.range(0, 16, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            doubled = x[row : row + 8] * 2.0
            out[row : row + 8] = doubled
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
