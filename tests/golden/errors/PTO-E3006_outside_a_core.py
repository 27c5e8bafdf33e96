# RUN: python %s
# EXIT: 1
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = x + 1.0
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3006_outside_a_core.py:10:14: error[PTO-E3006]: cannot use `+` on arrays in an orchestration: it runs on a core
#|    10 |     out[:] = x + 1.0
#|       |              ^^^^^^^
#|   help: put it into `with pl.at(level=pl.Level.CORE_GROUP):` or a function with @pl.jit.incore
