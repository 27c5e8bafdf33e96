# RUN: python %s
import numpy as np

import pto.language as pl


FACTORS = [2.0, 3.0]


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.unroll(len(FACTORS)):
            out[:] = x * FACTORS[i]
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
