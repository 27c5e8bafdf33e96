// exp and log of many floats on Arm, and (vector_math_avx512.hpp) with AVX-512: those of math.hpp, bit for bit, with
// the vectors laid out by hand.
//
// Compilers copy a constant into the register that a fused step adds to, and a copy takes the units that compute;
// here a load puts it there. `exp` of math.hpp sums up its polynomial in pairs, for machines that wait for one
// result at a time; eight vectors at once have no need for that. Rounded to floats both are the same: all have been
// compared.
#pragma once

#include "pto/core/math.hpp"

#if defined(__aarch64__)
#define PTO_VECTOR_MATH 1

namespace pto::detail::math {

#define PTO_MATH inline __attribute__((always_inline))

/// exp and log of the first of n floats, as many as fill the vectors of a step: how many.
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

/// A constant in both lanes; `fresh` loads it each time.
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
alignas(64) inline constexpr Constant kLog[] = {0x1p+1, 0x1.999999997ac3ap-2, 0x1.c71c4fe8bd7dap-3,
                                                0x1.39994de1c9a8bp-3};

/// What a step of log needs, in registers: of constants that it knows, a compiler makes some anew each time.
struct LogConstants {
  FourInts root{0x3F3504F4, 0x3F3504F4, 0x3F3504F4, 0x3F3504F4}, mask{0x7FFFFF, 0x7FFFFF, 0x7FFFFF, 0x7FFFFF};
  Two one{both(1.0)}, c0{both(0x1.55555555555aep-1)}, c1{both(0x1.249249453306cp-2)},
      c2{both(0x1.74669de670407p-3)}, c3{both(0x1.2f51d6fc742fcp-3)}, ln2{both(0x1.62e42fefa39efp-1)};
  const Constant* more = kLog;
  __attribute__((always_inline)) LogConstants() {
    __asm__("" : "+w"(root), "+w"(mask), "+w"(one), "+r"(more));
    __asm__("" : "+w"(c0), "+w"(c1), "+w"(c2), "+w"(c3), "+w"(ln2));
  }
};

/// A step of log: four floats, the exponents of both halves and (m - 1) / (m + 1). A normal float comes apart as its
/// double does (parts_of), four at a time: `root` is the first one from sqrt(1/2) on.
struct Begun {
  Four x;
  Two e[2], s[2];
};
PTO_MATH Begun begun(const float* in, const LogConstants& k) {
  Begun b{*reinterpret_cast<const Loose*>(in), {}, {}};
  const FourInts above = std::bit_cast<FourInts>(b.x) - k.root;
  Two m[2];
  widened(__builtin_convertvector(above >> 23, Four), b.e);
  widened(std::bit_cast<Four>((above & k.mask) + k.root), m);
  PTO_LOOP
  for (int q = 0; q < 2; ++q) {
    const Two less = m[q] - k.one, more = m[q] + k.one;
    __asm__ volatile("fdiv %0.2d, %1.2d, %2.2d"
                     : "=w"(b.s[q])
                     : "w"(less), "w"(more));  // now, not when needed
  }
  return b;
}
PTO_MATH void finish(const Begun& b, float* out, const LogConstants& k) {
  Two y[2];
  PTO_LOOP
  for (int q = 0; q < 2; ++q) {
    const Two s = b.s[q], z = s * s, z2 = z * z, z4 = z2 * z2;
    const Two p0 = fused(k.c0, z, fresh(k.more[0])), p1 = fused(k.c1, z, fresh(k.more[1])),
              p2 = fused(k.c2, z, fresh(k.more[2])), p3 = fused(k.c3, z, fresh(k.more[3]));
    const Two tail = fused(fused(p3, z2, p2), z4, fused(p1, z2, p0));
    y[q] = fused(b.e[q], k.ln2, s * tail);
  }
  Four found = narrowed(y);
  FourBits largest = std::bit_cast<FourBits>(b.x) - 0x00800000;
  __asm__("umaxv %s0, %1.4s" : "=w"(largest) : "w"(largest));
  if (largest[0] >= 0x7F000000) [[unlikely]] {  // one is not normal, or negative
    for (int i = 0; i < 4; ++i) found[i] = log(b.x[i]);
  }
  *reinterpret_cast<Loose*>(out) = found;
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
  __asm__ volatile("" : "+r"(c));  // else they are taken for known, and kept in registers
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

// The division of a step is on its way while the step before it is finished.
PTO_BODY std::ptrdiff_t log_many(std::ptrdiff_t n, float* out, const float* in) {
  using namespace by_hand;
  if (n < 4) return 0;
  const LogConstants k;
  std::ptrdiff_t i = 0;
  Begun now = begun(in, k);
  for (; i + 12 <= n; i += 8) {  // two at a time: neither has to become the other
    const Begun next = begun(in + i + 4, k);
    finish(now, out + i, k);
    now = begun(in + i + 8, k);
    finish(next, out + i + 4, k);
  }
  if (i + 8 <= n) {
    const Begun last = begun(in + i + 4, k);
    finish(now, out + i, k);
    now = last;
    i += 4;
  }
  finish(now, out + i, k);
  return i + 4;
}
#undef PTO_LOOP
#endif
#undef PTO_MATH

}  // namespace pto::detail::math
#else
#include "pto/core/vector_math_avx512.hpp"
#endif
