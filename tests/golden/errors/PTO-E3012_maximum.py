# RUN: python %s
import numpy as np

import pto.language as pl


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64], valid_shape=[16, 50])
        padded = pl.fillpad(tile, pl.PadValue.zero)  # wrong if all numbers of a row are negative
        out[:] = pl.row_expand_sub(padded, pl.row_max(padded))


x = np.ones((16, 64), np.float32)
k(x, np.zeros_like(x))
# STDERR:
#| PTO-E3012_maximum.py:12:44: warning[PTO-E3012]: row_max counts the padding, which is zero
#|    12 |         out[:] = pl.row_expand_sub(padded, pl.row_max(padded))
#|       |                                            ^^^^^^^^^^^^^^^^^^
#|   PTO-E3012_maximum.py:11:18: note: padded here
#|    11 |         padded = pl.fillpad(tile, pl.PadValue.zero)  # wrong if all numbers of a row are negative
#|       |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   help: pad with pl.PadValue.min, or reduce before padding
