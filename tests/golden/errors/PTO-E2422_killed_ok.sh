# RUN: pto ranks -n 1 sh -- %s
echo started
# STDOUT:
#| started
