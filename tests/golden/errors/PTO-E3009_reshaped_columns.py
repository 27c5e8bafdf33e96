# RUN: python %s
# EXIT: 1
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.reshape(x[:, 0:32], [8, 64])  # not contiguous in memory
        pl.store(pl.load(left, [0, 0], [8, 64]), [0, 0], out)
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3009_reshaped_columns.py:12:18: error[PTO-E3009]: cannot take the address of a reshaped window of a tensor
#|    12 |         pl.store(pl.load(left, [0, 0], [8, 64]), [0, 0], out)
#|       |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   help: use it as it is, without pl.load, or reshape the whole tensor
