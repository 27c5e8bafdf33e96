# RUN: python %s
# EXIT: 1
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


def copy(x, out):
    out[:] = x


FILL = runtime.kernel(fill, "out scalar")
COPY = runtime.kernel(copy, "in out")


def orchestrate(rt, out):
    shared = rt.tensor(8)
    rt.submit(FILL, shared, 1)
    rt.submit(COPY, shared, out)


runtime.run(orchestrate, np.zeros(16, np.float32), block_dim=1)
# STDERR:
#| error[PTO-E2622]: task 1 (copy, AIV 0): ValueError: could not broadcast input array from shape (8,) into shape (16,)
#|   note: raised at PTO-E2622_wrong_shape.py:13
#|   note: the task was submitted at PTO-E2622_wrong_shape.py:23
