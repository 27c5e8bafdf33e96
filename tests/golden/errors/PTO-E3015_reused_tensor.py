# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit.incore
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = x * 2.0
    return out


@pl.jit
def k(x: pl.Tensor, first: pl.Out[pl.Tensor], second: pl.Out[pl.Tensor]):
    shared = pl.create_tensor([16, 64], dtype=pl.FP32)
    shared = double(x, shared)
    first = double(shared, first)  # may still read `shared`
    shared = double(x, shared)
    second = double(shared, second)
    return first, second


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x), np.zeros_like(x))
# STDERR:
#| PTO-E3015_reused_tensor.py:18:14: warning[PTO-E3015]: double overwrites 'shared', which an earlier task may still use
#|    18 |     shared = double(x, shared)
#|       |              ^^^^^^^^^^^^^^^^^
#|   PTO-E3015_reused_tensor.py:17:13: note: double uses it
#|    17 |     first = double(shared, first)  # may still read `shared`
#|       |             ^^^^^^^^^^^^^^^^^^^^^
#|   help: write to a new pl.create_tensor(..): a task waits only for the writers of its inputs
