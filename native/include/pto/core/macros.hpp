// Keywords of kernels: qualifiers for address spaces and functions. The target, pipes and event ids come from
// machine_facts.hpp.
//
// -DPTO_NPU_ARCH_A2A3, -DPTO_NPU_ARCH_A5 and so on, or -D__NPU_ARCH__=<number>, select the target; without
// them it is the CPU. Qualifiers have no effect on a CPU. All other headers include this header first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pto/core/machine_facts.hpp"

#define __global__
#define __aicore__
#define AICORE
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__
#define __in__
#define __out__
#define __tf__
#define __simd_vf__
#define __simd_callee__
#define __cce_get_tile_ptr(x) x
#define OP_NAME(name)
#define OP_TYPE(name)

#define PTO_INLINE inline __attribute__((always_inline))
// A function that kernels call. If call locations are observed, each such function has a stack frame.
#if defined(PTO_TRACED) || defined(PTO_CHECKED)
#define PTO_INST [[gnu::noinline]] inline
#else
#define PTO_INST inline
#endif
#define PTO_INTERNAL inline

namespace pto::detail {

#ifdef PTO_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

}  // namespace pto::detail

// Without a selected kind of core, a kernel contains both halves.
#if !defined(__DAV_CUBE__) && !defined(__DAV_VEC__)
#define __DAV_CUBE__
#define __DAV_VEC__
#endif

// --- code that is the same in every kernel -----------------------------------------------------------------

// Functions that do not depend on the target or on checks are declared with PTO_COMMON and defined with
// PTO_BODY, between `#ifdef PTO_BODY` and `#endif`. By default they are inline functions. The engine links
// kernels with a library that contains them (native/common), to compile less: with -DPTO_CPU_LINKED they are
// only declared, as are instances of templates (PTO_INSTANCE). PTO_CPU_LIBRARY is defined in that library.
// Libraries with calls of the virtual machine (PTO_CPU_OPEN) use these functions from the library of the
// virtual machine.
#ifdef PTO_CPU_OPEN
#define PTO_VISIBLE_ [[gnu::visibility("default")]]
#define PTO_INSTANCE_ template __attribute__((visibility("default")))
#else
#define PTO_VISIBLE_ [[gnu::visibility("hidden")]]
#define PTO_INSTANCE_ template
#endif
#if defined(PTO_CPU_LINKED)
#define PTO_COMMON PTO_VISIBLE_
#define PTO_INSTANCE extern PTO_INSTANCE_
#elif defined(PTO_CPU_LIBRARY)
#define PTO_COMMON PTO_VISIBLE_
#define PTO_BODY [[gnu::noinline]]
#define PTO_INSTANCE PTO_INSTANCE_
#else
#define PTO_COMMON
#define PTO_BODY [[gnu::noinline]] inline
#endif

// --- loops -------------------------------------------------------------------------------------------------

// The iterations of the following loop do not depend on each other, although they may work in place. MANY is
// for short bodies: GCC also unrolls the loop.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // for loops that clang does not vectorise
#define PTO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define PTO_INDEPENDENT_MANY PTO_INDEPENDENT
#elif defined(__GNUC__)
#define PTO_INDEPENDENT _Pragma("GCC ivdep")
#define PTO_INDEPENDENT_MANY _Pragma("GCC ivdep") _Pragma("GCC unroll 8")
#else
#define PTO_INDEPENDENT
#define PTO_INDEPENDENT_MANY
#endif

// A function whose loops compute exactly as written: a product and a sum are not fused into one rounding. All
// its calls are inlined. (clang needs no option: it fuses only inside one expression; see `mul` in
// numbers.hpp.)
#if defined(__GNUC__) && !defined(__clang__)
#define PTO_EXACT_LOOP __attribute__((noinline, flatten, optimize("fp-contract=off")))
#elif defined(__GNUC__)
#define PTO_EXACT_LOOP __attribute__((noinline, flatten))
#else
#define PTO_EXACT_LOOP
#endif

// --- vector masks: no-ops, since every instruction works on the valid region -------------------------------

inline void set_mask_norm() {}
inline void set_mask_count() {}
template <class... Words>
inline void set_vector_mask(Words...) {}

// --- caches and memory order: a core always sees its own writes --------------------------------------------

using mem_dsb_t = int;
inline constexpr mem_dsb_t DSB_ALL = 0, DSB_DDR = 1, DSB_UB = 2, DSB_SEQ = 3;
struct cache_line_t {
  static constexpr int SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1, CACHELINE_OUT = 2, CACHELINE_ALL = 0;
};
struct dcci_dst_t {
  static constexpr int CACHELINE_ALL = 0, CACHELINE_UB = 1, CACHELINE_OUT = 2, CACHELINE_ATOMIC = 3;
};
inline constexpr int SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1, CACHELINE_OUT = 2;
inline void dsb(mem_dsb_t) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
