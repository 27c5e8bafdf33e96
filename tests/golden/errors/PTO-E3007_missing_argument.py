# RUN: python %s
# EXIT: 1
import numpy as np

import pto.language as pl


@pl.jit.incore
def scale(x: pl.Tensor, factor: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    out[:] = x * factor
    return out


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return scale(x, out)


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3007_missing_argument.py:16:12: error[PTO-E3007]: scale: missing a required argument: 'out'
#|    16 |     return scale(x, out)
#|       |            ^^^^^^^^^^^^^
#|   expected: scale(x, factor, out)
