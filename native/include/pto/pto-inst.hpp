// The PTO tile instructions for the CPU: the one header that kernels include.
#pragma once

#include "pto/core/access.hpp"
#include "pto/core/assign.hpp"
#include "pto/core/events.hpp"
#include "pto/core/cross_core.hpp"
#if __has_include("pto/ops/elementwise.hpp")
#include "pto/ops/elementwise.hpp"
#endif
#if __has_include("pto/ops/compare.hpp")
#include "pto/ops/compare.hpp"
#endif
#if __has_include("pto/ops/convert.hpp")
#include "pto/ops/convert.hpp"
#endif
#if __has_include("pto/ops/reduce.hpp")
#include "pto/ops/reduce.hpp"
#endif
#if __has_include("pto/ops/expand.hpp")
#include "pto/ops/expand.hpp"
#endif
#if __has_include("pto/ops/part.hpp")
#include "pto/ops/part.hpp"
#endif
#if __has_include("pto/ops/generate.hpp")
#include "pto/ops/generate.hpp"
#endif
#if __has_include("pto/ops/load_store.hpp")
#include "pto/ops/load_store.hpp"
#endif
#if __has_include("pto/ops/moves.hpp")
#include "pto/ops/moves.hpp"
#endif
#if __has_include("pto/ops/windows.hpp")
#include "pto/ops/windows.hpp"
#endif
#if __has_include("pto/ops/rearrange.hpp")
#include "pto/ops/rearrange.hpp"
#endif
#if __has_include("pto/ops/fixpipe.hpp")
#include "pto/ops/fixpipe.hpp"
#endif
#if __has_include("pto/ops/matmul.hpp")
#include "pto/ops/matmul.hpp"
#endif
#if __has_include("pto/ops/gather.hpp")
#include "pto/ops/gather.hpp"
#endif
#if __has_include("pto/ops/sort.hpp")
#include "pto/ops/sort.hpp"
#endif
#if __has_include("pto/ops/quantise.hpp")
#include "pto/ops/quantise.hpp"
#endif
#if __has_include("pto/ops/img2col.hpp")
#include "pto/ops/img2col.hpp"
#endif
#if __has_include("pto/ops/debug.hpp")
#include "pto/ops/debug.hpp"
#endif
#if __has_include("pto/ops/fifo.hpp")
#include "pto/ops/fifo.hpp"
#endif
#if __has_include("pto/ops/comm.hpp")
#include "pto/ops/comm.hpp"
#include "pto/ops/prefetch_async.hpp"
#endif
#if __has_include("pto/ops/micro.hpp")
#include "pto/ops/micro.hpp"
#endif

#ifdef __CPU_SIM
#include "pto/common/cpu_stub.hpp"
#endif
