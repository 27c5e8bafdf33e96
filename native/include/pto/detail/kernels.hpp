// Entry points of the compiled element loops, for the best instruction set of this machine. The bindings
// check arguments; the loops do not.
#pragma once

#include <cstddef>

#include "pto/detail/formats.hpp"

namespace pto::detail {

// The loops for one instruction set.
struct ElementKernels {
  void (*decode_f32)(DType src, const void* codes, float* out, std::size_t count);
  void (*decode_f64)(DType src, const void* codes, double* out, std::size_t count);
  void (*encode_f32)(DType dst, const float* values, void* codes, std::size_t count, Mode mode);
  void (*encode_f64)(DType dst, const double* values, void* codes, std::size_t count, Mode mode);
  void (*convert)(DType src, DType dst, const void* in, void* out, std::size_t count, Mode mode);
};

const ElementKernels& baseline_kernels();
#ifdef PTO_HAVE_AVX2
const ElementKernels& avx2_kernels();
#endif

// Return the loops for this machine.
inline const ElementKernels& element_kernels() {
#ifdef PTO_ONLY_AVX2
  return avx2_kernels();
#else
#ifdef PTO_HAVE_AVX2
  if (has_avx2()) return avx2_kernels();
#endif
  return baseline_kernels();
#endif
}

}  // namespace pto::detail
