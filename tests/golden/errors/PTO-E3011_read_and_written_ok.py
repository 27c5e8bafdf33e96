# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x[:] = x * 2.0
        out[:] = x + 1.0


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
