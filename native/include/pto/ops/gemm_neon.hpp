// The block of a product on Arm: eight lines of a, eight columns of b, all 32 registers. It is assembly
// because compilers order its steps so that sums wait for one another, and spend instructions on addresses.
#pragma once

#ifdef __aarch64__
#include <cstddef>

#include "pto/core/macros.hpp"

namespace pto::detail::gemm {

// v0..v7: four steps of each line of a; v8..v15: four rows of the panel of b; v16..v31: sums, two per line.
// clang-format off
#define PTO_FMA_(sum, b, a, lane) "fmla v" #sum ".4s, v" #b ".4s, v" #a ".s[" #lane "]\n\t"
#define PTO_LINE_(low, high, a, lane, b0, b1) PTO_FMA_(low, b0, a, lane) PTO_FMA_(high, b1, a, lane)
#define PTO_LINES_(X)                                                                             \
  X(16, 17, 0) X(18, 19, 1) X(20, 21, 2) X(22, 23, 3) X(24, 25, 4) X(26, 27, 5) X(28, 29, 6) X(30, 31, 7)
#define PTO_NEXT_(line) "ldr q" #line ", [%[a" #line "]], #16\n\t"
#define PTO_BEGIN_(low, high, line) "movi v" #low ".2d, #0\n\tmovi v" #high ".2d, #0\n\t" PTO_NEXT_(line)
// The last step with a line of a, then the load of its next four steps.
#define PTO_TURN_(low, high, line) PTO_LINE_(low, high, line, 3, 14, 15) PTO_NEXT_(line)
// The last four steps of a line. Lines end one after another, so that stores overlap with other sums.
#define PTO_LAST_(low, high, line)                                                                \
  PTO_LINE_(low, high, line, 0, 8, 9) PTO_LINE_(low, high, line, 1, 10, 11)                       \
  PTO_LINE_(low, high, line, 2, 12, 13) PTO_LINE_(low, high, line, 3, 14, 15)
#define PTO_JOIN_(low, high, line)                                                                \
  "ldr q" #line ", [%[in]]\n\tfadd v" #low ".4s, v" #line ".4s, v" #low ".4s\n\t"                 \
  "ldr q" #line ", [%[in], #16]\n\tfadd v" #high ".4s, v" #line ".4s, v" #high ".4s\n\t"          \
  "add %[in], %[in], %[in_row]\n\t"
#define PTO_KEEP_(low, high) "stp q" #low ", q" #high ", [%[out]]\n\tadd %[out], %[out], %[out_row]\n\t"
#define PTO_END_(low, high, line) PTO_LAST_(low, high, line) PTO_KEEP_(low, high)
#define PTO_END_JOINED_(low, high, line) PTO_LAST_(low, high, line) PTO_JOIN_(low, high, line) PTO_KEEP_(low, high)
#define PTO_STEP_(lane, b0, b1)                                                                   \
  PTO_LINE_(16, 17, 0, lane, b0, b1) PTO_LINE_(18, 19, 1, lane, b0, b1)                           \
  PTO_LINE_(20, 21, 2, lane, b0, b1) PTO_LINE_(22, 23, 3, lane, b0, b1)                           \
  PTO_LINE_(24, 25, 4, lane, b0, b1) PTO_LINE_(26, 27, 5, lane, b0, b1)                           \
  PTO_LINE_(28, 29, 6, lane, b0, b1) PTO_LINE_(30, 31, 7, lane, b0, b1)
#define PTO_BLOCK_(END)                                                                           \
  PTO_LINES_(PTO_BEGIN_)                                                                          \
  "ldp q8, q9, [%[b]]\n\tldp q10, q11, [%[b], #32]\n\t"                                           \
  "subs %w[k], %w[k], #4\n\tb.eq 2f\n\t"                                                          \
  ".p2align 4\n1:\n\tldp q12, q13, [%[b], #64]\n\t" PTO_STEP_(0, 8, 9)                            \
  "ldp q14, q15, [%[b], #96]\n\tadd %[b], %[b], #128\n\t" PTO_STEP_(1, 10, 11)                    \
  "ldp q8, q9, [%[b]]\n\t" PTO_STEP_(2, 12, 13)                                                   \
  "ldp q10, q11, [%[b], #32]\n\tsubs %w[k], %w[k], #4\n\t" PTO_LINES_(PTO_TURN_)                  \
  "b.ne 1b\n2:\n\tldp q12, q13, [%[b], #64]\n\tldp q14, q15, [%[b], #96]\n\t" PTO_LINES_(END)
#define PTO_OPERANDS_                                                                             \
  [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [a4] "+r"(a4), [a5] "+r"(a5),       \
  [a6] "+r"(a6), [a7] "+r"(a7), [b] "+r"(b), [k] "+r"(k), [out] "+r"(out)
#define PTO_CHANGED_                                                                              \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",  \
  "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",      \
  "v28", "v29", "v30", "v31", "cc", "memory"
// clang-format on

/// Store sums of k steps (a multiple of 4, above 0) in lines of eight, `out_row` floats apart, plus `in`.
template <bool Joins>
PTO_INLINE void neon_block(const float* a0, std::ptrdiff_t pitch, const float* b, int k, float* out,
                           std::ptrdiff_t out_row, const float* in, std::ptrdiff_t in_row) {
  const float *a1 = a0 + pitch, *a2 = a1 + pitch, *a3 = a2 + pitch, *a4 = a3 + pitch, *a5 = a4 + pitch,
              *a6 = a5 + pitch, *a7 = a6 + pitch;
  out_row *= static_cast<std::ptrdiff_t>(sizeof(float));
  in_row *= static_cast<std::ptrdiff_t>(sizeof(float));
  if constexpr (Joins) {
    __asm__ volatile(PTO_BLOCK_(PTO_END_JOINED_)
                     : PTO_OPERANDS_, [in] "+r"(in)
                     : [out_row] "r"(out_row), [in_row] "r"(in_row)
                     : PTO_CHANGED_);
  } else {
    __asm__ volatile(PTO_BLOCK_(PTO_END_) : PTO_OPERANDS_ : [out_row] "r"(out_row) : PTO_CHANGED_);
  }
}

#undef PTO_FMA_
#undef PTO_LINE_
#undef PTO_LINES_
#undef PTO_NEXT_
#undef PTO_BEGIN_
#undef PTO_TURN_
#undef PTO_LAST_
#undef PTO_JOIN_
#undef PTO_KEEP_
#undef PTO_END_
#undef PTO_END_JOINED_
#undef PTO_STEP_
#undef PTO_BLOCK_
#undef PTO_OPERANDS_
#undef PTO_CHANGED_

}  // namespace pto::detail::gemm
#endif
