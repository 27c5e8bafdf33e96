// Transposition of a square of lines in registers.
#pragma once

#include <cstddef>

#include "pto/core/indices.hpp"

// PTO_UNROLL is for loops over the registers of a block: unrolled, they keep the block in registers.
// PTO_TWICE is for other loops: two steps at a time.
#ifdef __clang__
#define PTO_UNROLL _Pragma("unroll 16")
#define PTO_TWICE _Pragma("unroll 2")
#else
#define PTO_UNROLL _Pragma("GCC unroll 16")
#define PTO_TWICE _Pragma("GCC unroll 2")
#endif

namespace pto::detail {

/// Interleave halves of a and b: a0 b0 a1 b1 .., in groups of N codes.
template <int N, int From, class Vec, std::size_t... I>
inline __attribute__((always_inline)) Vec laced(Vec a, Vec b, Indices<I...>) {
  constexpr int size = sizeof...(I);
#define PTO_LACED \
  (From + static_cast<int>(I) / N * N + static_cast<int>(I) % N / 2 + static_cast<int>(I) % 2 * size)
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, PTO_LACED...);
#else
  return __builtin_shuffle(a, b, decltype(a == b){PTO_LACED...});
#endif
#undef PTO_LACED
}

/// Transpose N lines of N codes: each round interleaves lines i and i + N / 2. Long lines hold more squares.
template <int N, class Vec>
inline __attribute__((always_inline)) void transpose(Vec (&v)[N]) {
  constexpr auto lanes = IndicesTo<sizeof(Vec) / sizeof(v[0][0])>{};
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

template <class Code, int N>
struct Lane {
  typedef Code Vec __attribute__((vector_size(N * sizeof(Code))));
};

/// Load N codes: a line of 16 bytes, or this line and the one `down` codes after it.
template <int N, class Code>
inline __attribute__((always_inline)) auto pair_of(const Code* from, std::ptrdiff_t down) {
  typename Lane<Code, N>::Vec v;
  static_assert(sizeof v == 16 || sizeof v == 32);
  if constexpr (sizeof v == 16) {
    __builtin_memcpy(&v, from, sizeof v);
  } else {
    struct Part {
      char bytes[16];
    };
    const Part &low = *reinterpret_cast<const Part*>(from),
               &high = *reinterpret_cast<const Part*>(from + down);
#ifdef __AVX2__
    // A load from memory needs no shuffle; compilers would emit one.
    __asm__("vmovdqu %1, %x0\n\tvinserti128 $1, %2, %t0, %t0" : "=&x"(v) : "m"(low), "m"(high));
#else
    __builtin_memcpy(&v, &low, sizeof low);
    __builtin_memcpy(reinterpret_cast<char*>(&v) + sizeof low, &high, sizeof high);
#endif
  }
  return v;
}
/// Load as many columns of a square of side N as 16 bytes hold. A vector of 32 bytes holds two lines of the
/// square: x86 shuffles within 16 bytes cheaply.
template <int N, int Count, class Code, class Vec>
inline __attribute__((always_inline)) void take_columns(const Code* from, std::ptrdiff_t step,
                                                        Vec (&v)[Count]) {
  PTO_UNROLL
  for (int i = 0; i < Count; ++i) v[i] = pair_of<N>(from + i * step, Count * step);
  transpose<Count>(v);
}

}  // namespace pto::detail
