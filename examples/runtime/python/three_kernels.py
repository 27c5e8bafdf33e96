"""A graph of three kernels, orchestrated in Python: a `.pto` program, a C++ source and a Python function.

python three_kernels.py [FOLDER]     writes trace.json and run.html to the folder, if one is given
"""

import sys
from pathlib import Path

import numpy as np

from pto import runtime

HERE = Path(__file__).parent


def row_sums(x: np.ndarray, out: np.ndarray) -> None:
    out[:] = x.sum(axis=1)


# What each parameter is, in order: memory that is read, written or both, or a number.
add = runtime.kernel(HERE.parents[1] / "01_vec_add.pto", "in in out", name="add")
scale = runtime.kernel(HERE / "scale.cpp", "in float out")
sums = runtime.kernel(row_sums, "in out")


def orchestrate(rt: runtime.Runtime, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out[i] = sums of the rows of (a[i] + b[i]) / 2, each i on its own."""
    for i in range(len(a)):
        with rt.scope():
            c, d = rt.tensor((64, 128)), rt.tensor((64, 128))  # memory comes from the heap ring
            rt.submit(add, a[i], b[i], c)
            rt.submit(scale, c, 0.5, d)  # waits for the task that writes c
            rt.submit(sums, d, out[i])


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 8, 64, 128), dtype=np.float32)
    out = np.zeros((8, 64), np.float32)
    run = runtime.run(orchestrate, a, b, out, block_dim=4, record=True)
    expected = ((a.astype(np.float64) + b) / 2).sum(axis=2)
    print(f"{run.stats['tasks']} tasks, {run.stats['edges']} dependencies")
    print("equal to NumPy:", np.allclose(out, expected, atol=1e-4))
    if len(sys.argv) > 1:
        print(run.summary())
        run.save_trace(f"{sys.argv[1]}/trace.json")
        run.save_swimlane(f"{sys.argv[1]}/run.html", "three kernels")


if __name__ == "__main__":
    main()
