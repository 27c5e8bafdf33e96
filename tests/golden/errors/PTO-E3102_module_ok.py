# RUN: pto python %s
import pypto.runtime

print(pypto.runtime.RunConfig().platform)
# STDOUT:
#| a2a3sim
