# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        pl.store(tile, [0, 0], out)
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
