"""exp(a[i] * b[i]) for many i: a cube task and a vector task each, on one cluster, with a FIFO between them.

python cluster_pipe.py
"""

from pathlib import Path

import numpy as np

from pto import runtime

SOURCE = Path(__file__).with_suffix(".pto")  # both halves

product = runtime.kernel(SOURCE, "in in pipe_out", core="aic", name="product")
exponent = runtime.kernel(SOURCE, "pipe_in out", core="aiv", name="exponent")


def orchestrate(rt: runtime.Runtime, a: np.ndarray, b: np.ndarray, y: np.ndarray) -> None:
    for i in range(len(a)):
        with rt.scope(), rt.cluster() as cluster:  # its cube core and its vector cores share FIFOs
            pipe = rt.pipe()  # content of the FIFO: the second task waits for the first
            rt.submit(product, a[i], b[i], pipe, cluster=cluster)
            rt.submit(exponent, pipe, y[i], cluster=cluster)


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 12, 16, 16)) / 4).astype(np.float16)
    y = np.zeros((12, 16, 16), np.float32)
    run = runtime.run(orchestrate, a, b, y, block_dim=3)
    expected = np.exp(a.astype(np.float32) @ b.astype(np.float32))
    print(f"{run.stats['tasks']} tasks, {run.stats['edges']} dependencies")
    print("equal to NumPy:", np.allclose(y, expected, rtol=1e-5))


if __name__ == "__main__":
    main()
