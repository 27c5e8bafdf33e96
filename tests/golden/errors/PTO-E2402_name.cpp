// RUN: pto build %s -o k.so -q
// EXIT: 1
// VARIES
# TWIN: PTO-E2401_missing_ok.cpp
#include <pto/pto-inst.hpp>

__global__ AICORE void k(__gm__ float* x) { x[0] = oen; }
