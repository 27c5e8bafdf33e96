# RUN: python %s
# EXIT: 1
import numpy as np

from pto import runtime


def fill(out, value):
    out[:] = value


FILL = runtime.kernel(fill, "out scalar")


def orchestrate(rt, out):
    with rt.scope():
        for i in range(20):
            rt.submit(FILL, out[i], i)


runtime.run(orchestrate, np.zeros((20, 16), np.float32), block_dim=1, task_window=16)
# STDERR:
#| [WARN] submit: deadlock at PTO-E2620_large_scope.py:18: no task runs any more, the rest of the orchestration is counted
#| error[PTO-E2620]: ========================================
#| FATAL: Flow Control Deadlock Detected!
#| ========================================
#| Task Ring is FULL and no progress after 0 spins.
#| Proven, not timed out: no ready or running task can release any.
#| Flow Control Status:
#|   - Current task index:  15
#|   - Last task alive:     0
#|   - Active tasks:        15
#|   - Window size:         16
#|   - Window utilization:  93.8%
#| Root Cause:
#|   Tasks cannot transition to CONSUMED state because fanout_count includes 1 for the
#|   owning scope, and scope_end() requires the orchestrator to continue, which waits for
#|   task ring space: a circular dependency.
#| Solution:
#|   Recommended: 32 (at least 2x current active tasks): PTO2_RING_TASK_WINDOW=32,
#|   or end scopes earlier: open ones hold 20 tasks at one time, at most 15 fit
#| Who waits for whom:
#|   the orchestrator, at PTO-E2620_large_scope.py:18, waits for a task slot
#|   which waits for the oldest, task 0 (fill, submitted at PTO-E2620_large_scope.py:18): ready, released by 0 of 1 holders
#|   which is held by its scope, opened at PTO-E2620_large_scope.py:16, which the orchestrator has to end
#| Open scopes, outermost first:
#|   depth 1, 0 tasks, opened at the start of the orchestration
#|   depth 2, 15 tasks, opened at PTO-E2620_large_scope.py:16
#| Rings and pools:
#|   task ring    used 15 of 15 tasks (free 0, peak 15)
#|   heap ring    used 0 of 1073741824 bytes (free 1073741824, peak 0)
#|   dep pool     used 0 of 65536 entries (free 65536, peak 0)
#|   tensormap    used 15 of 65536 entries (free 65521, peak 15)
#|   clusters     used 0 of 1 blocks (free 1, peak 0)
#| ========================================
#|   help: runtime.run(..., task_window=32)
