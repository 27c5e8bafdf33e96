"""Softmax of the rows of a matrix of any height: 32 rows at a time, the last few in a tile that is not full.

python 02_softmax.py
"""

import numpy as np

import pto.language as pl

ROWS = pl.dynamic("ROWS")  # decided by each call: one kernel serves all heights
COLS = 256
TILE = 32


@pl.jit
def softmax(x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    for r in pl.parallel(0, rows, TILE):  # tasks that do not depend on each other
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax_rows"):
            here = pl.min(TILE, rows - r)
            t = pl.load(x, [r, 0], [TILE, COLS], valid_shape=[here, COLS])
            shifted = pl.row_expand_sub(t, pl.row_max(t))
            e = pl.exp(shifted)
            pl.store(pl.row_expand_div(e, pl.row_sum(e)), [r, 0], y)
    return y


def main() -> None:
    rng = np.random.default_rng(0)
    for rows in (64, 100):
        x = rng.standard_normal((rows, COLS), dtype=np.float32)
        y = np.zeros_like(x)
        softmax(x, y)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        print(
            f"{rows} rows, close to NumPy:",
            np.allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7),
        )


if __name__ == "__main__":
    main()
