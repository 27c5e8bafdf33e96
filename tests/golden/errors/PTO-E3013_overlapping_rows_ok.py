# RUN: PTO_SANITIZE=race python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, 16, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [row, 0], [8, 64])
            pl.store(tile, [row, 0], out)


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
