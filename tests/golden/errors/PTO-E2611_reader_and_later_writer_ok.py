# RUN: PTO_SANITIZE=tasks python %s
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


def copy(x, out):
    out[:] = x


FILL = runtime.kernel(fill, "out scalar")
COPY = runtime.kernel(copy, "in out")


def orchestrate(rt, out):
    shared = rt.tensor(16)
    rt.submit(FILL, shared, 1)
    rt.submit(COPY, shared, out[0])
    other = rt.tensor(16)
    rt.submit(FILL, other, 2)
    rt.submit(COPY, other, out[1])


runtime.run(orchestrate, np.zeros((2, 16), np.float32), block_dim=1)
