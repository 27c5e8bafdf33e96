# RUN: python %s
# TWIN: PTO-E0004_python_ok.py
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = x + 1.0


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3010_rebound.py:11:9: warning[PTO-E3010]: output 'out' of k is never written
#|    11 |         out = x + 1.0
#|       |         ^^^
#|   help: out[:] = .. writes into it; out = .. only rebinds the name
