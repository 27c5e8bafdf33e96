# RUN: python %s
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    for i in range(20):
        with rt.scope():
            rt.submit(FILL, out[i], i)


runtime.run(orchestrate, np.zeros((20, 16), np.float32), block_dim=1, task_window=16)
