// Host calls of the device runtime, for programs that use them and run on the CPU. Device memory is host
// memory, streams and devices have no effect, and a launch uses one thread per core. pto-inst.hpp includes
// this header if __CPU_SIM is defined. Such programs expect the standard headers below from this header.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iomanip>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pto/core/cpu_sim.hpp"
#include "pto/core/dtypes.hpp"
#include "pto/core/enums.hpp"

using aclrtStream = void*;
using aclError = int;
using aclStatus = int;

enum {
  ACL_SUCCESS = 0,
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 0,
  ACL_MEMCPY_DEVICE_TO_HOST = 1,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 2,
};
#define F16_MAX 65504.0f
#define aclFloat16ToFloat(x) (static_cast<float>(x))

inline aclError aclInit(const char*) { return ACL_SUCCESS; }
inline aclError aclFinalize() { return ACL_SUCCESS; }
inline aclError aclrtSetDevice(int) { return ACL_SUCCESS; }
inline aclError aclrtResetDevice(int) { return ACL_SUCCESS; }
inline aclError aclrtCreateStream(aclrtStream* stream) {
  static int name;
  *stream = &name;
  return ACL_SUCCESS;
}
inline aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }

/// Allocate zeroed memory.
inline aclError aclrtMallocHost(void** memory, size_t size) {
  *memory = std::calloc(1, size == 0 ? 1 : size);
  return *memory == nullptr;
}
inline aclError aclrtMalloc(void** memory, size_t size, int) { return aclrtMallocHost(memory, size); }
inline aclError aclrtFree(void* memory) {
  std::free(memory);
  return ACL_SUCCESS;
}
inline aclError aclrtFreeHost(void* memory) { return aclrtFree(memory); }
inline aclError aclrtMemcpy(void* dst, size_t dst_size, const void* src, size_t src_size, int) {
  std::memcpy(dst, src, dst_size < src_size ? dst_size : src_size);
  return ACL_SUCCESS;
}
inline aclError aclrtMemset(void* dst, size_t dst_size, int value, size_t count) {
  if (count == 0) return ACL_SUCCESS;
  if (dst == nullptr || count > dst_size) return 145000;
  std::memset(dst, value, count);
  return ACL_SUCCESS;
}

// Stubs for programs with one rank.
#define HcclHostBarrier(...) ((void)0)
#define CommMpiInit(...) (true)
#define CommMpiFinalize() ((void)0)
#define SKIP_IF_RANKS_LT(n)
inline constexpr uint32_t HCCL_MAX_RANK_NUM = 64;
struct HcclRootInfo {};
struct CommDeviceContext {
  uint64_t workSpace, workSpaceSize;
  uint32_t rankId, rankNum;
  uint64_t winSize, windowsIn[HCCL_MAX_RANK_NUM], windowsOut[HCCL_MAX_RANK_NUM];
};

namespace pto::detail {
/// Make kernels print to std::cout, as such programs do, since a program may redirect that stream.
inline const bool kPrintsToStream = [] {
  plain_print = [](const char* text) { std::cout << text; };
  return true;
}();
}  // namespace pto::detail

namespace pto {

/// On-chip memory of the core of this thread, for programs that read it.
class NPUMemoryModel {
 public:
  static NPUMemoryModel& Instance() {
    static NPUMemoryModel model;
    return model;
  }
  void Initialize(NPUArch) {}
  char* GetUBBase() { return base(TileType::Vec); }
  char* GetL1Base() { return base(TileType::Mat); }
  char* GetL0ABase() { return base(TileType::Left); }
  char* GetL0BBase() { return base(TileType::Right); }
  char* GetL0CBase() { return base(TileType::Acc); }

 private:
  static char* base(TileType space) { return detail::on_chip(space, 0); }
};

// `_IMPL` names of intrinsics.
template <class... Args>
inline void TLOAD_IMPL(Args&... args) {
  TLOAD(args...);
}
template <class... Args>
inline void TPRINT_IMPL(Args&... args) {
  TPRINT(args...);
}

}  // namespace pto

namespace pto::cpu_sim {

/// Instructions are not recorded: these declarations are stubs.
inline constexpr bool kInstructionTraceEnabled = false;
struct TileOperandTrace {
  uintptr_t address = 0;
  std::vector<int64_t> shape;
  std::string layout, dtype;
};
struct ScalarOperandTrace {
  std::string dtype, value;
};
struct InstructionTraceRecord {
  uint32_t block_idx = 0;
  uint64_t sequence_id = 0;
  std::string opcode;
  std::vector<TileOperandTrace> input_tiles;
  std::vector<ScalarOperandTrace> scalar_inputs;
  std::vector<TileOperandTrace> output_tiles;
};
inline void ResetInstructionTrace() {}
inline std::vector<InstructionTraceRecord> CopyInstructionTraceRecords() { return {}; }
template <class Stream>
inline void DumpInstructionTraceJson(Stream&) {}

struct KernelLaunchOptions {
  std::string kernel_name;
  uint32_t requested_cores = 0, total_work_items = 0, work_quantum = 1, subblocks_per_block = 1,
           explicit_block_count = 0;
  bool write_trace_files = true;
};

inline uint32_t configured_cores() {
  const char* text = std::getenv("PTO_CPU_SIM_NUM_CORES");
  const long cores = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return cores > 0 ? static_cast<uint32_t>(cores) : 4;
}

/// Return the number of cores that take part: at most one per work item, each with whole quanta of work.
inline uint32_t ResolveActiveCoreCount(uint32_t requested, uint32_t items = 0, uint32_t quantum = 1) {
  uint32_t active = requested == 0 ? configured_cores() : requested;
  if (items == 0) return active;
  active = active < items ? active : items;
  if (quantum == 0) quantum = 1;
  while (active > 1 && (items + active - 1) / active % quantum != 0) --active;
  return active;
}

/// Run a kernel once per core, each core in its own thread; rethrow the first exception.
template <class Kernel>
inline void LaunchKernelMultiCore(const KernelLaunchOptions& options, aclrtStream, Kernel&& kernel) {
  const uint32_t subblocks = options.subblocks_per_block == 0 ? 1 : options.subblocks_per_block;
  const uint32_t blocks =
      options.explicit_block_count != 0
          ? options.explicit_block_count
          : ResolveActiveCoreCount(options.requested_cores, options.total_work_items, options.work_quantum);
  std::vector<std::thread> threads;
  std::exception_ptr first;
  std::mutex guard;
  for (uint32_t core = 0; core < blocks * subblocks; ++core) {
    threads.emplace_back([&, core] {
      try {
        set_execution_context(core / subblocks, core % subblocks, subblocks);
        detail::core().block_num = blocks;
        kernel();
      } catch (...) {
        const std::scoped_lock lock(guard);
        if (first == nullptr) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace pto::cpu_sim
