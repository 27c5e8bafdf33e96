# RUN: python %s
# EXIT: 1
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    rt.submit(FILL, out, 1)


run = runtime.run(orchestrate, np.zeros(16, np.float32), virtual_time=True, durations={"copy": 2.5})
print(run.stats["tasks"])
# STDERR:
#| error[PTO-E2626]: missing duration of kernel fill: a table does not have it
#|   help: durations={'fill': microseconds}, --durations FILE.csv, or --measure for times of this host
