// Entry points of the compiled loops of the reference engine. The bindings check arguments; the loops do not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pto/detail/formats.hpp"

namespace pto::detail {

// The state of a Philox generator: a counter of 128 bits, low half first, and two keys.
struct PhiloxState {
  std::uint64_t low, high;
  std::uint32_t keys[2];
  int rounds;
};

inline constexpr std::size_t kSortBlock = 32;

// Loops over a function of floats: `single` rounds results to float, `wide` does not. See core/math.hpp.
template <class... In>
struct FloatLoops {
  void (*single)(const In*... in, float* out, std::size_t count);
  void (*wide)(const In*... in, double* out, std::size_t count);
};

// The loops for one instruction set. Matrices are contiguous and row-major.
struct EngineKernels {
  // Set out[i, j] to 0; then for k = 0, 1, ..: out[i, j] = fma(a[i, k], b[k, j], out[i, j]), rounded to float
  // at every step. Each product of two doubles must be exact in a double.
  void (*dot_f32)(const float* a, const float* b, float* out, std::size_t m, std::size_t k, std::size_t n);
  void (*dot_f64)(const double* a, const double* b, float* out, std::size_t m, std::size_t k, std::size_t n);
  // Sums (or products) of columns, from the first row to the last; every step is rounded to f16 or bf16.
  // There must be at least one row.
  void (*fold)(DType t, bool product, const float* x, float* out, std::size_t rows, std::size_t cols);
  // The four output words for each counter, state + ahead[i], as four consecutive arrays.
  void (*philox)(const PhiloxState& state, const std::uint64_t* ahead, std::uint32_t* out, std::size_t count);
  // A stable ascending sort of the records (rank, index) in every block of kSortBlock columns; the last block
  // of a row may be shorter. `order`: sorted positions in the matrix.
  void (*sort_blocks)(const std::uint32_t* rank, const std::uint32_t* index, std::int64_t* order,
                      std::size_t rows, std::size_t cols);
  FloatLoops<float> exp, log;
  FloatLoops<float, float> pow;
};

const EngineKernels& baseline_engine();
#ifdef PTO_HAVE_AVX2
const EngineKernels& avx2_engine();
#endif

// Return the loops for this machine.
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
