# RUN: pto python %s
# EXIT: 1
from simpler.worker import Worker

with Worker(level=4, device_ids=[0, 1]) as worker:
    worker.run(lambda orch, args, config: print("started"))
# STDERR:
#| error[PTO-E3106]: expected Worker(level=2) for a chip or level=3 for a node, got 4
#|   help: for several nodes, start several processes: mpiexec with pto ranks
