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
inline float powf(float x, float y) { return math::pow(x, y); }
inline double pow(double x, double y) { return math::pow(x, y); }
inline float ptoas_rsqrtf(float x) { return math::rsqrt(x); }
inline double ptoas_rsqrt(double x) { return 1.0 / math::sqrt(x); }

}  // namespace pto::detail::functions

#define PTO_OWN_FUNCTIONS                                                                        \
  using pto::detail::functions::exp, pto::detail::functions::expf, pto::detail::functions::exp2, \
      pto::detail::functions::exp2f, pto::detail::functions::log, pto::detail::functions::logf,  \
      pto::detail::functions::log2, pto::detail::functions::log2f, pto::detail::functions::tanh, \
      pto::detail::functions::tanhf, pto::detail::functions::sin, pto::detail::functions::sinf,  \
      pto::detail::functions::cos, pto::detail::functions::cosf, pto::detail::functions::erf,    \
      pto::detail::functions::erff, pto::detail::functions::pow, pto::detail::functions::powf,   \
      pto::detail::functions::ptoas_rsqrt, pto::detail::functions::ptoas_rsqrtf;
