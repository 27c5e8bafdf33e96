// exp and log of many floats in hand-written vector code, on Arm and (vector_math_avx512.hpp) with AVX-512.
// The results have the same bits as those of math.hpp.
//
// A fused step overwrites its addend. Compilers copy a constant addend to a register, which uses the
// arithmetic units; here a load does that. `exp` of math.hpp evaluates its polynomial in pairs, for a shorter
// chain of dependent steps; eight independent vectors do not need that. Rounded to float, both results are
// the same: all floats were compared.
#pragma once

#include "pto/core/log_table.hpp"
#include "pto/core/math.hpp"

#if defined(__aarch64__)
#define PTO_VECTOR_MATH 1

namespace pto::detail::math {

#define PTO_MATH inline __attribute__((always_inline))

/// Compute exp or log of the leading floats that fill whole steps, and return their number.
PTO_COMMON std::ptrdiff_t exp_many(std::ptrdiff_t n, float* out, const float* in);
PTO_COMMON std::ptrdiff_t log_many(std::ptrdiff_t n, float* out, const float* in);

#ifdef PTO_BODY
namespace by_hand {

typedef float Four __attribute__((vector_size(16)));
typedef std::uint32_t FourBits __attribute__((vector_size(16)));
typedef std::int32_t FourInts __attribute__((vector_size(16)));
typedef double Two __attribute__((vector_size(16)));
typedef std::uint64_t TwoBits __attribute__((vector_size(16)));
typedef float Loose __attribute__((vector_size(16), aligned(4), may_alias));
typedef std::int32_t LooseInts __attribute__((vector_size(16), aligned(4), may_alias));
typedef std::uint32_t LooseBits __attribute__((vector_size(16), aligned(4), may_alias));

#ifdef __clang__
#define PTO_LOOP _Pragma("unroll 16")
#else
#define PTO_LOOP _Pragma("GCC unroll 16")
#endif

PTO_MATH Two both(double x) { return Two{x, x}; }
PTO_MATH TwoBits both(std::uint64_t x) { return TwoBits{x, x}; }
PTO_MATH Two fused(Two a, Two b, Two c) {
  __asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b));
  return c;
}
PTO_MATH void widened(Four x, Two* to) {
  __asm__("fcvtl %0.2d, %1.2s" : "=w"(to[0]) : "w"(x));
  __asm__("fcvtl2 %0.2d, %1.4s" : "=w"(to[1]) : "w"(x));
}
PTO_MATH Four narrowed(const Two* x) {
  Four y;
  __asm__("fcvtn %0.2s, %1.2d" : "=w"(y) : "w"(x[0]));
  __asm__("fcvtn2 %0.4s, %1.2d" : "+w"(y) : "w"(x[1]));
  return y;
}

/// A constant in both lanes; `fresh` loads the constant at each use.
struct Constant {
  double lane[2];
  constexpr Constant(double x) : lane{x, x} {}
};
PTO_MATH Two fresh(const Constant& c) {
  Two x;
  __asm__ volatile("ldr %q0, %1" : "=w"(x) : "m"(c));
  return x;
}

alignas(64) inline constexpr Constant kExp[] = {0x1.8p52,
                                                0x1.72e91ac74b98ap-19,
                                                0x1.a01b7c5170c4fp-16,
                                                0x1.a0198d5886e61p-13,
                                                0x1.6c16c0c830c40p-10,
                                                0x1.11111125b3d76p-7,
                                                0x1.55555555890c2p-5,
                                                0x1.55555555507c6p-3,
                                                0x1.ffffffffffed2p-2,
                                                1.0,
                                                1.0};
alignas(64) inline constexpr Constant kLog[] = {-1.0,        kLogTail[5], kLogTail[4], kLogTail[3],
                                                kLogTail[2], kLogTail[1], kLogTail[0]};

PTO_MATH Two part_at(const LogPart* parts, std::uint32_t bytes) {
  return *reinterpret_cast<const Two*>(reinterpret_cast<const char*>(parts) + bytes);
}
/// Compute a step with a lane that is negative, zero, subnormal, infinite or NaN.
[[gnu::noinline]] inline void log_beyond(std::ptrdiff_t n, float* out, const float* in) {
  for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = log(in[i]);
}

}  // namespace by_hand

PTO_BODY std::ptrdiff_t exp_many(std::ptrdiff_t n, float* out, const float* in) {
  using namespace by_hand;
  constexpr int vectors = 4;
  const FourBits low = FourBits{} + std::bit_cast<std::uint32_t>(-110.0f);
  const FourInts high = FourInts{} + std::bit_cast<std::int32_t>(90.0f);
  const Two log2e = both(0x1.71547652b82fep+0), ln2 = both(-0x1.62e42fefa39efp-1),
            rest = both(-0x1.abc9e3b39803fp-56), whole = both(0x1.8p52);
  const Constant* c = kExp;
  __asm__ volatile("" : "+r"(c));  // hide the constants, else compilers keep them in registers
  std::ptrdiff_t i = 0;
  for (; i + 4 * vectors <= n; i += 4 * vectors) {
    Two shifted[2 * vectors], r[2 * vectors], p[2 * vectors];
    PTO_LOOP
    for (int v = 0; v < vectors; ++v) {
      FourBits bits = std::bit_cast<FourBits>(*reinterpret_cast<const Loose*>(in + i + 4 * v));
      __asm__("umin %0.4s, %1.4s, %2.4s" : "=w"(bits) : "w"(bits), "w"(low));
      __asm__("smin %0.4s, %1.4s, %2.4s" : "=w"(bits) : "w"(bits), "w"(high));
      widened(std::bit_cast<Four>(bits), r + 2 * v);
    }
    PTO_LOOP
    for (int q = 0; q < 2 * vectors; ++q) {
      shifted[q] = fused(r[q], log2e, fresh(c[0]));
      const Two power = shifted[q] - whole;
      r[q] = fused(power, rest, fused(power, ln2, r[q]));
      p[q] = fused(both(0x1.2707a3d398594p-22), r[q], fresh(c[1]));
    }
    PTO_LOOP
    for (int k = 2; k < 11; ++k) {
      PTO_LOOP
      for (int q = 0; q < 2 * vectors; ++q) p[q] = fused(p[q], r[q], fresh(c[k]));
    }
    PTO_LOOP
    for (int q = 0; q < 2 * vectors; ++q)
      p[q] = std::bit_cast<Two>((std::bit_cast<TwoBits>(shifted[q]) << 52) + std::bit_cast<TwoBits>(p[q]));
    PTO_LOOP
    for (int v = 0; v < vectors; ++v) {
      const Four x = *reinterpret_cast<const Loose*>(in + i + 4 * v), y = narrowed(p + 2 * v);
      *reinterpret_cast<Loose*>(out + i + 4 * v) = x == x ? y : x;
    }
  }
  return i;
}

// The table indices go through memory, which does not use the arithmetic units.
PTO_BODY std::ptrdiff_t log_many(std::ptrdiff_t n, float* out, const float* in) {
  using namespace by_hand;
  constexpr int vectors = 4;
  FourInts first = FourInts{} + static_cast<std::int32_t>(kLogFirst), mask = FourInts{} + 0x7FFFFF,
           part = FourInts{} + 0xF0;
  Two ln2 = both(kLogOfTwo), last = both(kLogTail[6]);
  const Constant* c = kLog;
  const LogPart* parts = kLogParts;
  __asm__ volatile("" : "+w"(first), "+w"(mask), "+w"(part), "+w"(ln2), "+w"(last), "+r"(c), "+r"(parts));
  std::ptrdiff_t i = 0;
  for (; i + 4 * vectors <= n; i += 4 * vectors) {
    alignas(16) std::uint32_t at[vectors][4];
    Two e[2 * vectors], r[2 * vectors], p[2 * vectors];
    PTO_LOOP
    for (int v = 0; v < vectors; ++v) {
      const FourInts above = *reinterpret_cast<const LooseInts*>(in + i + 4 * v) - first;
      __asm__ volatile("str %q1, %0" : "=m"(at[v]) : "w"(above >> 15 & part));
      widened(__builtin_convertvector(above >> 23, Four), e + 2 * v);
      widened(std::bit_cast<Four>((above & mask) + first), r + 2 * v);
    }
    PTO_LOOP
    for (int q = 0; q < 2 * vectors; ++q) {
      const std::uint32_t* const here = at[q / 2] + q % 2 * 2;
      const Two one = part_at(parts, here[0]), other = part_at(parts, here[1]);
      r[q] = fused(r[q], __builtin_shufflevector(one, other, 0, 2), fresh(c[0]));
      e[q] = fused(e[q], ln2, __builtin_shufflevector(one, other, 1, 3)) + r[q];
      p[q] = fused(last, r[q], fresh(c[1]));
    }
    PTO_LOOP
    for (int k = 2; k < 7; ++k) {
      PTO_LOOP
      for (int q = 0; q < 2 * vectors; ++q) p[q] = fused(p[q], r[q], fresh(c[k]));
    }
    PTO_LOOP
    for (int q = 0; q < 2 * vectors; ++q) p[q] = fused(r[q] * r[q], p[q], e[q]);
    FourBits largest{};
    PTO_LOOP
    for (int v = 0; v < vectors; ++v) {
      const FourBits above = *reinterpret_cast<const LooseBits*>(in + i + 4 * v) - 0x00800000;
      largest = above > largest ? above : largest;
    }
    __asm__("umaxv %s0, %1.4s" : "=w"(largest) : "w"(largest));
    if (largest[0] >= 0x7F000000) [[unlikely]] {
      log_beyond(4 * vectors, out + i, in + i);
      continue;
    }
    PTO_LOOP
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<Loose*>(out + i + 4 * v) = narrowed(p + 2 * v);
  }
  return i;
}
#undef PTO_LOOP
#endif
#undef PTO_MATH

}  // namespace pto::detail::math
#else
#include "pto/core/vector_math_avx512.hpp"
#endif
