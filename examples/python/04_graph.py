"""relu(x @ w + bias) as a graph: a cube task and a vector task per 64 rows, and a tensor between them.

python 04_graph.py [FOLDER]     writes a swimlane and a trace of the run to the folder, if one is given
"""

import sys

import numpy as np

import pto.language as pl

ROWS, WIDTH, TILE = 256, 128, 64


@pl.jit.incore
def product(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = pl.matmul(x, w)
    return out


@pl.jit.incore
def bias_relu(x: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = pl.maximum(pl.add(x, bias), 0.0)  # bias is one row, added to every row of x
    return out


@pl.jit
def linear(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, y: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, ROWS, TILE):
        between = pl.create_tensor([TILE, WIDTH], dtype=pl.FP32)
        between = product(x[r : r + TILE, :], w, between)
        bias_relu(between, bias, y[r : r + TILE, :])  # waits for the task that writes `between`
    return y


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, WIDTH), dtype=np.float32)
    w = rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / 8
    bias = rng.standard_normal((1, WIDTH), dtype=np.float32)
    y = np.zeros_like(x)
    run = linear.compile(x, w, bias, y).execute([x, w, bias, y], block_dim=4, record=True)
    print(f"{run.stats['tasks']} tasks, {run.stats['edges']} dependencies")
    print("close to NumPy:", np.allclose(y, np.maximum(x.astype(np.float64) @ w + bias, 0), atol=1e-3))
    if len(sys.argv) > 1:
        run.save_trace(f"{sys.argv[1]}/trace.json")
        run.save_swimlane(f"{sys.argv[1]}/run.html", "relu(x @ w + bias)")


if __name__ == "__main__":
    main()
