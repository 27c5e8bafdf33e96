"""C = A @ B on cube cores: a task per 64 x 64 tile of C, which adds up products along K.

python 03_gemm.py
"""

import numpy as np

import pto.language as pl

M, N, K, TILE = 256, 192, 320, 64


@pl.jit
def gemm(a: pl.Tensor[[M, K], pl.FP16], b: pl.Tensor[[K, N], pl.FP16], c: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for i in pl.parallel(0, M, TILE):
        for j in pl.parallel(0, N, TILE):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                acc = pl.matmul(a[i : i + TILE, 0:TILE], b[0:TILE, j : j + TILE])
                for k in pl.range(TILE, K, TILE):
                    acc = pl.matmul_acc(acc, a[i : i + TILE, k : k + TILE], b[k : k + TILE, j : j + TILE])
                c[i : i + TILE, j : j + TILE] = acc
    return c


def main() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    c = np.zeros((M, N), np.float32)
    gemm(a, b, c)
    print("close to NumPy:", np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3))


if __name__ == "__main__":
    main()
