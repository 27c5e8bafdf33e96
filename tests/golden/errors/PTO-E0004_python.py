# RUN: ptoas %s
# EXIT: 1
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x + 1.0


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| error[PTO-E0004]: cannot read 'PTO-E0004_python.py' as a PTO program: it is Python
#|   help: run it with 'python PTO-E0004_python.py'; FUNCTION.lower(ARGUMENTS).as_pto() is the text of its kernels. 'pto python PTO-E0004_python.py' is for programs that import pypto
