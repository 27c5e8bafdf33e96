# RUN: python %s
# EXIT: 1
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.range(0, 16, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            doubled = x[row : row + 8] * 2.0
            out = doubled
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3008_rebound.py:13:13: error[PTO-E3008]: type of 'out' changes in the loop
#|    13 |             out = doubled
#|       |             ^^^
#|   expected: Tensor[[16, 64], FP32]
#|   got: Tensor[[8, 64], FP32]
#|   help: out[..] = .. writes into it; out = .. only rebinds the name
