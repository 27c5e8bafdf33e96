# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        half = pl.cast(tile, pl.FP16, mode="rint")
        pl.store(pl.cast(half, pl.FP32), [0, 0], out)
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
