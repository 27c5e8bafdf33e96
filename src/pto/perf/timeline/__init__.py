"""Time of a kernel on the machine: a recorded launch, simulated pipe by pipe.

`Trace` has the events of a launch and their order, without times. `simulate` computes the times of all events
on a `Machine`. `Timeline` has the results: total, pipes, stalls, critical path.
"""
