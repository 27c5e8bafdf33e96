// Entry points of the compiled loops of the reference engine. Arguments are trusted: the bindings check them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pto/detail/formats.hpp"

namespace pto::detail {

// 128 bits of counter, lowest word first, and the two keys of a Philox generator.
struct PhiloxState {
  std::uint64_t low, high;
  std::uint32_t keys[2];
  int rounds;
};

inline constexpr std::size_t kSortBlock = 32;

// A function of floats in a loop, rounded to float or not yet: see core/math.hpp.
template <class... In>
struct FloatLoops {
  void (*single)(const In*... in, float* out, std::size_t count);
  void (*wide)(const In*... in, double* out, std::size_t count);
};

// Loops of one instruction set. Matrices are contiguous, row by row.
struct EngineKernels {
  // out[i, j] = fma(a[i, k], b[k, j], out[i, j]) for k = 0, 1, .. from 0, rounded to float at every step. The
  // products of two doubles must be exact in a double.
  void (*dot_f32)(const float* a, const float* b, float* out, std::size_t m, std::size_t k, std::size_t n);
  void (*dot_f64)(const double* a, const double* b, float* out, std::size_t m, std::size_t k, std::size_t n);
  // Sums (or products) of columns, from the first row (there is one) to the last; every step is rounded to
  // f16 or bf16.
  void (*fold)(DType t, bool product, const float* x, float* out, std::size_t rows, std::size_t cols);
  // The four words of each counter state + ahead[i], as four arrays one after the other.
  void (*philox)(const PhiloxState& state, const std::uint64_t* ahead, std::uint32_t* out, std::size_t count);
  // Ascending order of the records (rank, index) in every block of kSortBlock columns, the last one of a row
  // may be shorter: positions in the matrix. Equal records stay in order.
  void (*sort_blocks)(const std::uint32_t* rank, const std::uint32_t* index, std::int64_t* order,
                      std::size_t rows, std::size_t cols);
  FloatLoops<float> exp, log;
  FloatLoops<float, float> pow;
};

const EngineKernels& baseline_engine();
#ifdef PTO_HAVE_AVX2
const EngineKernels& avx2_engine();
#endif

// The loops to use on this machine.
inline const EngineKernels& engine_kernels() {
#ifdef PTO_ONLY_AVX2
  return avx2_engine();
#else
#ifdef PTO_HAVE_AVX2
  if (has_avx2()) return avx2_engine();
#endif
  return baseline_engine();
#endif
}

}  // namespace pto::detail
