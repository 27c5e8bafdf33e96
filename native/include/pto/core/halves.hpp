// Arithmetic of f16 with f16 instructions, eight elements at a time, on Arm processors that have them.
//
// PTO defines these computations in float, with the results rounded to f16. Direct f16 sums, differences,
// products and quotients have the same bits: float has 24 = 2 * 11 + 2 significant bits, so the second
// rounding is harmless. Both ways return the canonical NaN.
#pragma once

#include "pto/core/dtypes.hpp"

#if defined(__aarch64__)
#define PTO_COMPUTES_HALVES 1
#if defined(__linux__)
#include <sys/auxv.h>
#endif

namespace pto::detail::halves {

typedef unsigned short Vec __attribute__((vector_size(16)));
typedef unsigned short LooseVec __attribute__((vector_size(16), aligned(2), may_alias));
inline constexpr ptrdiff_t kLanes = 8;

inline bool are_computed() {
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) || !defined(__linux__)
  return true;
#else
  static const bool found = (getauxval(AT_HWCAP) >> 10 & 1) != 0;  // HWCAP_ASIMDHP
  return found;
#endif
}

inline Vec load(const half* from) { return *reinterpret_cast<const LooseVec*>(from); }
inline void save(half* to, Vec v) { *reinterpret_cast<LooseVec*>(to) = v; }
inline Vec all(unsigned short code) { return Vec{} + code; }

// Kernels must also run on processors without these instructions, so only the assembler gets the option.
#define PTO_HALVES(name, text)                                                                  \
  PTO_INLINE Vec name(Vec a, Vec b) {                                                           \
    Vec c;                                                                                      \
    __asm__(".arch_extension fp16\n\t" text " %0.8h, %1.8h, %2.8h" : "=w"(c) : "w"(a), "w"(b)); \
    return c;                                                                                   \
  }
PTO_HALVES(add, "fadd")
PTO_HALVES(sub, "fsub")
PTO_HALVES(mul, "fmul")
PTO_HALVES(div, "fdiv")
PTO_HALVES(greater, "fcmgt")
PTO_HALVES(equal, "fcmeq")
#undef PTO_HALVES

PTO_INLINE Vec select(Vec mask, Vec a, Vec b) { return ((a ^ b) & mask) ^ b; }
PTO_INLINE Vec max(Vec a, Vec b) { return select(greater(b, a), b, a); }
PTO_INLINE Vec min(Vec a, Vec b) { return select(greater(a, b), b, a); }
/// Replace NaN by the canonical NaN, as conversions do.
PTO_INLINE Vec canonical(Vec v) { return select(equal(v, v), v, all(0x7E00)); }

}  // namespace pto::detail::halves
#endif
