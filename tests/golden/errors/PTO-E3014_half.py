# RUN: PTO_SANITIZE=undef python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [8, 64])
        pl.store(tile, [0, 0], out)


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3014_half.py:8:21: warning[PTO-E3014]: 512 of 1024 elements of output 'out' are never written, the first is out[8, 0]
#|     8 | def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
#|       |                     ^^^^^^^^^^^^^^^^^^^^^^
#|   help: write all elements, or pass pl.InOut: other elements are undefined after the run
