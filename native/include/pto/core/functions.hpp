// Functions that emitted C++ calls by the names of the C library, with the same bits as in the reference
// engine. Inside a namespace, PTO_OWN_FUNCTIONS hides the functions of the C library.
#pragma once

#include "pto/core/math.hpp"

namespace pto::detail::functions {

#define PTO_ONE(name)                                     \
  inline float name##f(float x) { return math::name(x); } \
  inline double name(double x) { return math::name(x); }
PTO_ONE(exp)
PTO_ONE(exp2)
PTO_ONE(log)
PTO_ONE(log2)
PTO_ONE(tanh)
PTO_ONE(sin)
PTO_ONE(cos)
PTO_ONE(erf)
#undef PTO_ONE
#define PTO_ONE(name)                                              \
  inline float name##f(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }
PTO_ONE(sqrt)
PTO_ONE(fabs)
PTO_ONE(floor)
PTO_ONE(ceil)
PTO_ONE(round)
PTO_ONE(rint)
PTO_ONE(trunc)
#undef PTO_ONE
#define PTO_TWO(name)                                                          \
  inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  inline double name(double x, double y) { return __builtin_##name(x, y); }
PTO_TWO(fmod)
PTO_TWO(copysign)
#undef PTO_TWO
inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float powf(float x, float y) { return math::pow(x, y); }
inline double pow(double x, double y) { return math::pow(x, y); }
inline float ptoas_rsqrtf(float x) { return math::rsqrt(x); }
inline double ptoas_rsqrt(double x) { return 1.0 / math::sqrt(x); }

}  // namespace pto::detail::functions

#define PTO_OWN(name) using pto::detail::functions::name, pto::detail::functions::name##f;
// clang-format off: it moves one name at a time
#define PTO_OWN_FUNCTIONS                                                                       \
  PTO_OWN(exp) PTO_OWN(exp2) PTO_OWN(log) PTO_OWN(log2) PTO_OWN(tanh) PTO_OWN(sin) PTO_OWN(cos) \
  PTO_OWN(erf) PTO_OWN(sqrt) PTO_OWN(fabs) PTO_OWN(floor) PTO_OWN(ceil) PTO_OWN(round)          \
  PTO_OWN(rint) PTO_OWN(trunc) PTO_OWN(fmod) PTO_OWN(copysign) PTO_OWN(fma) PTO_OWN(pow)        \
  PTO_OWN(ptoas_rsqrt)
// clang-format on
