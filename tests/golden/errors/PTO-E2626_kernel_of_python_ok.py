# RUN: python %s
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    rt.submit(FILL, out, 1)


run = runtime.run(orchestrate, np.zeros(16, np.float32), virtual_time=True, durations={"fill": 2.5})
print(run.stats["tasks"])
# STDOUT:
#| 1
