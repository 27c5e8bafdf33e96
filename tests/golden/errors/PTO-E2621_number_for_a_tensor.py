# RUN: python %s
# EXIT: 1
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    rt.submit(FILL, 3, out)


runtime.run(orchestrate, np.zeros(16, np.float32), block_dim=1)
# STDERR:
#| error[PTO-E2621]: expected a tensor for parameter 0 of kernel fill, got a number
