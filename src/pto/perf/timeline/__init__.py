"""Time of a kernel on the machine: what was recorded of a launch, simulated pipe by pipe.

`Trace` is what a launch did and in which order it has to be done, without any time. `simulate` gives every
event its time on a `Machine`; `Timeline` is what can be asked of that: total, pipes, stalls, critical path.
"""
