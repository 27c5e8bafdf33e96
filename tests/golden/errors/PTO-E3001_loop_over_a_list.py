# RUN: python %s
# EXIT: 1
import numpy as np

import pto.language as pl


FACTORS = [2.0, 3.0]


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for factor in FACTORS:
            out[:] = x * factor
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3001_loop_over_a_list.py:14:23: error[PTO-E3001]: expected pl.range or another loop of the language
#|    14 |         for factor in FACTORS:
#|       |                       ^^^^^^^
#|   got: list
#|   help: for i in pl.unroll(len(values)), and values[i]
