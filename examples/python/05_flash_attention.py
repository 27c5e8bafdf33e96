"""softmax(q @ k.T * scale) @ v without the whole matrix of scores: a task per 32 rows of q goes over k and v
64 rows at a time. Products are work of the cube core and the rest of the vector cores; the compiler splits
the region in two and puts FIFOs between them.

python 05_flash_attention.py
"""

import numpy as np

import pto.language as pl

LENGTH, WIDTH, ROWS, STEP = 256, 64, 32, 64


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor], scale: float):
    for r in pl.parallel(0, LENGTH, ROWS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
            query = q[r : r + ROWS, :]
            top = pl.full([ROWS, 1], pl.FP32, -1e30)  # the largest score of each row so far
            total = pl.full([ROWS, 1], pl.FP32, 0.0)  # the sum of its weights
            acc = pl.full([ROWS, WIDTH], pl.FP32, 0.0)  # the weighted sum of rows of v
            for j in pl.range(0, LENGTH, STEP):
                scores = pl.matmul(query, k[j : j + STEP, :], b_trans=True) * scale
                higher = pl.maximum(top, pl.row_max(scores))
                weights = pl.exp(pl.row_expand_sub(scores, higher))
                fade = pl.exp(top - higher)  # the sum so far had a smaller maximum
                total = total * fade + pl.row_sum(weights)
                part = pl.matmul(pl.cast(weights, pl.FP16), v[j : j + STEP, :])
                acc = pl.row_expand_mul(acc, fade) + part
                top = higher
            out[r : r + ROWS, :] = pl.row_expand_div(acc, total)
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, LENGTH, WIDTH)).astype(np.float16)
    out = np.zeros((LENGTH, WIDTH), np.float32)
    attention(q, k, v, out, WIDTH**-0.5)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * WIDTH**-0.5
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = e / e.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    print("close to NumPy:", np.allclose(out, wanted, atol=1e-3))


if __name__ == "__main__":
    main()
