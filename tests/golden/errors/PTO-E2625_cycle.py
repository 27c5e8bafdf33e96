# RUN: python %s
# EXIT: 1
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    first = rt.add_task(FILL, out[0], 1)
    second = rt.add_task(FILL, out[1], 2)
    rt.add_successor(first, second)
    rt.add_successor(second, first)


runtime.run(orchestrate, np.zeros((2, 16), np.float32), runtime="host_build_graph", block_dim=1)
# STDERR:
#| error[PTO-E2625]: the graph has a cycle of 2 tasks:
#|   task 1 (fill, added at PTO-E2625_cycle.py:17) comes before
#|   task 0 (fill, added at PTO-E2625_cycle.py:16) comes before
#|   task 1 (fill, added at PTO-E2625_cycle.py:17)
