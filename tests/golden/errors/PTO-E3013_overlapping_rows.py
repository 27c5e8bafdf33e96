# RUN: PTO_SANITIZE=race python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, 16, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [pl.min(row, 8), 0], [8, 64])
            pl.store(tile, [pl.min(row, 8), 0], out)


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3013_overlapping_rows.py:12:13: error[PTO-E3013]: iteration 4 writes out[4, 0], which iteration 0 writes
#|    12 |             pl.store(tile, [pl.min(row, 8), 0], out)
#|       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   PTO-E3013_overlapping_rows.py:9:16: note: declared independent here
#|     9 |     for row in pl.parallel(0, 16, 4):
#|       |                ^^^^^^^^^^^^^^^^^^^^^
#|   help: independent iterations and blocks run in any order, or at the same time
