# RUN: pto python %s
from simpler.worker import Worker

with Worker(level=3, device_ids=[0, 1]) as worker:
    worker.run(lambda orch, args, config: print("started"))
# STDOUT:
#| started
