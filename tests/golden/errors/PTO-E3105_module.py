# RUN: pto python %s
# EXIT: 1
# VARIES
from simpler.remote_l3_session import RemoteSession

with RemoteSession() as worker:
    worker.run(lambda orch, args, config: print("started"))
