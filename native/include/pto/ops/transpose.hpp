// A square of lines transposed in registers.
#pragma once

#include <cstddef>

#include "pto/core/indices.hpp"

// Loops over the registers of a block: they have to be unrolled for the blocks to stay there.
#ifdef __clang__
#define PTO_UNROLL _Pragma("unroll 16")
#else
#define PTO_UNROLL _Pragma("GCC unroll 16")
#endif

namespace pto::detail {

/// Halves of a and b laced together: a0 b0 a1 b1 ..
template <int N, int From, class Vec, std::size_t... I>
inline __attribute__((always_inline)) Vec laced(Vec a, Vec b, Indices<I...>) {
  return __builtin_shufflevector(a, b, (From + static_cast<int>(I) / 2 + static_cast<int>(I) % 2 * N)...);
}

/// N lines of N codes transposed: every round laces line i with line i + N / 2.
template <int N, class Vec>
inline __attribute__((always_inline)) void transpose(Vec (&v)[N]) {
  constexpr auto lanes = IndicesTo<N>{};
  PTO_UNROLL
  for (int round = 1; round < N; round *= 2) {
    Vec next[N];
    PTO_UNROLL
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = laced<N, 0>(v[i], v[i + N / 2], lanes);
      next[2 * i + 1] = laced<N, N / 2>(v[i], v[i + N / 2], lanes);
    }
    PTO_UNROLL
    for (int i = 0; i < N; ++i) v[i] = next[i];
  }
}

}  // namespace pto::detail
