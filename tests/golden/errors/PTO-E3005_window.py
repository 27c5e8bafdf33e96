# RUN: python %s
# EXIT: 1
# TWIN: PTO-E3002_operator_ok.py
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [8, 0], [16, 64])
        pl.store(tile, [0, 0], out)
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3005_window.py:12:35: error[PTO-E3005]: window exceeds dimension 0 of 'x'
#|    12 |         tile = pl.load(x, [8, 0], [16, 64])
#|       |                                   ^^^^^^^^
#|   expected: within 16
#|   got: 8 to 8 + 16
