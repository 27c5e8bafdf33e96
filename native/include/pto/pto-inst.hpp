// The PTO tile instructions for the CPU: the only header that kernels include.
//
// -DPTO_NPU_ARCH_A2A3 or -DPTO_NPU_ARCH_A5 select the target whose rules and results apply (without either,
// the CPU column), -DPTO_CHECKED adds checks at run time, -D__PTO_AUTO__ is auto mode, -D__CPU_SIM adds the
// host calls of the device runtime. core/ has the types, ops/ the instructions by family.
#pragma once

#include "pto/common/kernel_meta.hpp"
#include "pto/core/access.hpp"
#include "pto/core/assign.hpp"
#include "pto/core/cross_core.hpp"
#include "pto/core/events.hpp"
#include "pto/ops/calls.hpp"
#include "pto/ops/comm.hpp"
#include "pto/ops/compare.hpp"
#include "pto/ops/convert.hpp"
#include "pto/ops/debug.hpp"
#include "pto/ops/elementwise.hpp"
#include "pto/ops/expand.hpp"
#include "pto/ops/fifo.hpp"
#include "pto/ops/fixpipe.hpp"
#include "pto/ops/gather.hpp"
#include "pto/ops/generate.hpp"
#include "pto/ops/img2col.hpp"
#include "pto/ops/load_store.hpp"
#include "pto/ops/matmul.hpp"
#include "pto/ops/micro.hpp"
#include "pto/ops/moves.hpp"
#include "pto/ops/multi_pipe.hpp"
#include "pto/ops/part.hpp"
#include "pto/ops/prefetch_async.hpp"
#include "pto/ops/quantise.hpp"
#include "pto/ops/rearrange.hpp"
#include "pto/ops/reduce.hpp"
#include "pto/ops/regular.hpp"
#include "pto/ops/sort.hpp"

// Calls of the cube unit on pointers, and calls on vector registers: excluded from emitted code without them.
#ifndef PTO_CPU_TILES_ONLY
#include "pto/micro/cube.hpp"
#ifndef PTO_CPU_NO_REGISTERS
#include "pto/micro/micro.hpp"
#endif
#endif

#ifdef PTO_INSTANCE
#include "pto/ops/instances.hpp"
#endif

namespace pto {
// Names of the implementations of instructions, which some kernels call.
template <class Src, class Dst, AtomicType atomicType = AtomicType::AtomicNone>
inline void TSTORE_IMPL(Dst& dst, Src& src) {
  TSTORE<Src, Dst, atomicType>(dst, src);
}
template <class... Arguments>
inline void TCONCAT_IMPL(Arguments&... arguments) {
  TCONCAT(arguments...);
}
template <class... Arguments>
inline void TCOLEXPAND_IMPL(Arguments&... arguments) {
  TCOLEXPAND(arguments...);
}
}  // namespace pto

// PTO_CPU_LEAN excludes the host calls and their headers, most of the text to compile: kernels need none.
#if !defined(PTO_CPU_LEAN) && !defined(PTO_CPU_VERIFIED)
#include <utility>  // user code relies on it, emitted code does not
#endif
#if defined(__CPU_SIM) && !defined(PTO_CPU_LEAN)
#include "pto/common/cpu_stub.hpp"
#endif
