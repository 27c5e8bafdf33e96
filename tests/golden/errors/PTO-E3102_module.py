# RUN: pto python %s
# EXIT: 1
# VARIES
import pypto.runtimes

print(pypto.runtimes.RunConfig().platform)
