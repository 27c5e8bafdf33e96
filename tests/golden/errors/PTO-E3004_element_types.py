# RUN: python %s
# EXIT: 1
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        half = pl.cast(tile, pl.FP16)
        pl.store(pl.add(tile, half), [0, 0], out)
    return out


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3004_element_types.py:13:31: error[PTO-E3004]: element types do not match in add: FP32 and FP16
#|    13 |         pl.store(pl.add(tile, half), [0, 0], out)
#|       |                               ^^^^
#|   expected: FP32
#|   got: FP16
#|   help: pl.cast(x, pl.FP32)
