# RUN: python %s
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    first = rt.add_task(FILL, out[0], 1)
    second = rt.add_task(FILL, out[1], 2)
    rt.add_successor(first, second)


runtime.run(orchestrate, np.zeros((2, 16), np.float32), runtime="host_build_graph", block_dim=1)
