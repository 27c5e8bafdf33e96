# RUN: python %s
# EXIT: 1
from pto.diag import DiagnosticError
from pto.perf.records import Records
from pto.perf.tables import table

tasks = table("tasks", {"task_id": [4, 4], "block": [0, 0], "start": [0, 10], "end": [10, 20]})
if problems := Records(tasks).check():
    raise DiagnosticError(problems)
# STDERR:
#| error[PTO-E2802]: task 4, block 0, is recorded 2 times
