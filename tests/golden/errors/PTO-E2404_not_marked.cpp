// RUN: pto build %s -o k.so -q
// EXIT: 1
# TWIN: PTO-E2401_missing_ok.cpp
#include <pto/pto-inst.hpp>

AICORE void k(__gm__ float* x) { x[0] = 1.0f; }
// STDERR:
//| error[PTO-E2404]: no kernel in 'PTO-E2404_not_marked.cpp'
//|   help: mark the function __global__ AICORE void; call a template from such a function
