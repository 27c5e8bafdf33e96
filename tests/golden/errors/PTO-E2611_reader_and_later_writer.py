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
    rt.submit(FILL, shared, 2)  # may run before the copy
    rt.submit(COPY, shared, out[1])


runtime.run(orchestrate, np.zeros((2, 16), np.float32), block_dim=1)
# STDERR:
#| error[PTO-E2611]: WAW: task 2 (fill) at PTO-E2611_reader_and_later_writer.py:23 writes, as parameter 0, memory that task 0 (fill) at PTO-E2611_reader_and_later_writer.py:21 writes, and no dependency orders them
#|   help: give the later task a fresh tensor, or make the earlier parameter INOUT
#| error[PTO-E2611]: WAR: task 2 (fill) at PTO-E2611_reader_and_later_writer.py:23 writes, as parameter 0, memory that task 1 (copy) at PTO-E2611_reader_and_later_writer.py:22 reads, and no dependency orders them
#|   help: give the later task a fresh tensor, or make the earlier parameter INOUT
