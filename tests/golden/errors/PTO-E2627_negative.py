# RUN: python %s
# EXIT: 1
# TWIN: PTO-E2626_kernel_of_python_ok.py
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    rt.submit(FILL, out, 1)


run = runtime.run(orchestrate, np.zeros(16, np.float32), virtual_time=True, durations={"fill": -1})
print(run.stats["tasks"])
# STDERR:
#| error[PTO-E2627]: durations of 'fill': expected microseconds, got -1
