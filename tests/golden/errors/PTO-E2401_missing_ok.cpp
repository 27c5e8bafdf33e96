// RUN: pto build %s -o k.so -q
#include <pto/pto-inst.hpp>

__global__ AICORE void k(__gm__ float* x) { x[0] = 1.0f; }
