# RUN: pto ranks -n 1 sh -- %s
# EXIT: 1
echo started
kill -KILL $$  # as the system does when memory is short
# STDOUT:
#| started
# STDERR:
#| error[PTO-E2422]: rank 0 was killed by SIGKILL
