# RUN: python %s
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    rt.submit(FILL, out, 3)


runtime.run(orchestrate, np.zeros(16, np.float32), block_dim=1)
