// RUN: PTO_CXX=no-such-compiler pto build %s -o k.so -q
// EXIT: 1
// VARIES
#include <pto/pto-inst.hpp>

__global__ AICORE void k(__gm__ float* x) { x[0] = 1.0f; }
