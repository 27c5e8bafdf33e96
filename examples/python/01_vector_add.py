"""c = a + b: one kernel, on one core.

python 01_vector_add.py
"""

import numpy as np

import pto.language as pl


@pl.jit
def vector_add(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):  # work of a core
        x = pl.load(a, [0, 0], [64, 128])  # a tile of 64 rows and 128 columns, from the first element on
        y = pl.load(b, [0, 0], [64, 128])
        pl.store(pl.add(x, y), [0, 0], c)
    return c


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 128), dtype=np.float32)
    c = np.zeros_like(a)
    vector_add(a, b, c)
    print("equal to NumPy:", np.array_equal(c, a + b))


if __name__ == "__main__":
    main()
