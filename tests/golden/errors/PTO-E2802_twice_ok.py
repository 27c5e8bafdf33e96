# RUN: python %s
from pto.diag import DiagnosticError
from pto.perf.records import Records
from pto.perf.tables import table

tasks = table("tasks", {"task_id": [4, 4], "block": [0, 1], "start": [0, 10], "end": [10, 20]})
if problems := Records(tasks).check():
    raise DiagnosticError(problems)
