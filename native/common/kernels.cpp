// Code that is the same in every kernel and launch, compiled once: see PTO_COMMON in pto/core/macros.hpp.
#define PTO_CPU_LIBRARY
#define PTO_CPU_LEAN
#include "pto/pto-inst.hpp"
//
#include "pto/launch.hpp"
