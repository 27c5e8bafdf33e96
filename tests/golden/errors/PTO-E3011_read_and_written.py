# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x[:] = x * 2.0
        out[:] = x + 1.0


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3011_read_and_written.py:10:9: warning[PTO-E3011]: parameter 'x' of k is written, but declared as only read
#|    10 |         x[:] = x * 2.0
#|       |         ^^^^
#|   help: x: pl.InOut[pl.Tensor]
