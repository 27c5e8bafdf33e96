// The C interface of a kernel of the task runtime: the engine calls it on one of its cores.
//
// The runner compiles a kernel as one translation unit: the source of the user, then this header and
//
//   PTO2_KERNEL(kernel_entry)
//
// The macro defines `pto2_kernel`, which is called on a fiber of the core with the slots of the task, and
// `pto2_kernel_abi`. The virtual machine decodes slots of programs itself, and calls `open_slot` for tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pto/core/launch_abi.hpp"
#include "pto/core/machine.hpp"
#ifdef PTO2_TENSOR_SLOTS
#include "tensor.h"
#endif

namespace pto2 {

/// Return a hash of the layout that the engine and a kernel share: the state of a core and the hooks of its
/// host. The engine refuses a library with another hash.
inline constexpr uint64_t kernel_abi() {
  using pto::detail::Core;
  const uint64_t facts[] = {1,  // version of this interface
                            sizeof(Core),
                            sizeof(pto::detail::Host),
                            sizeof(pto::detail::Cluster),
                            sizeof(pto::detail::Grid),
                            static_cast<uint64_t>(pto::detail::kSpaces),
                            offsetof(Core, block_idx),
                            offsetof(Core, cluster),
                            offsetof(Core, host),
                            offsetof(Core, fiber),
                            offsetof(Core, ctrl)};
  uint64_t hash = 14695981039346656037ull;  // FNV-1a by words
  for (const uint64_t fact : facts) hash = (hash ^ fact) * 1099511628211ull;
  return hash;
}

/// Return the bytes of on-chip memory that a kernel was compiled for: cores need at least that.
inline constexpr uint64_t kernel_room(int space) {
  return space >= 0 && space < pto::detail::kSpaces ? pto::detail::room(space) : 0;
}

#ifdef PTO2_TENSOR_SLOTS
/// A tensor slot as a kernel sees it: its address and its layout in memory.
struct Slot {
  uint64_t address;
  uint64_t first = 0, bytes = 0;  // the memory from its first element to its last
  int64_t shape[5] = {1, 1, 1, 1, 1}, stride[5] = {};
};

inline Slot open_slot(uint64_t word) {
  const auto& tensor = *reinterpret_cast<const TensorData*>(word);
  Slot slot{tensor.buffer.addr + tensor.start_offset * get_element_size(tensor.dtype)};
  uint64_t strides[RUNTIME_MAX_TENSOR_DIMS];
  tensor.strides(strides);
  const uint64_t first = 5 - tensor.ndims;
  for (uint64_t i = 0; i < tensor.ndims; ++i) {
    slot.shape[first + i] = static_cast<int64_t>(tensor.shapes[i]);
    slot.stride[first + i] = static_cast<int64_t>(strides[i]);
  }
  for (uint64_t i = first; i > 0; --i) slot.stride[i - 1] = slot.stride[i] * slot.shape[i];
  const Segment all = tensor_bytes(tensor);
  slot.first = tensor.buffer.addr + all.begin;
  slot.bytes = all.end - all.begin;
  return slot;
}
#endif

}  // namespace pto2

#define PTO2_EXPORT extern "C" __attribute__((visibility("default")))

#define PTO2_KERNEL_ABI                                                 \
  PTO2_EXPORT uint64_t pto2_kernel_abi() { return pto2::kernel_abi(); } \
  PTO2_EXPORT uint64_t pto2_kernel_room(int space) { return pto2::kernel_room(space); }

#ifdef PTO_TRACED
namespace pto2 {

/// Receiver of the records of tasks (core/trace.hpp): the task; its block and the number of blocks; the core
/// (its kind, with its sub-block from bit 8 on); `over` (1: these are the last records, 2: the last call has
/// failed); and the memory of the task. It is called without records when a task begins.
using Told = void (*)(int64_t task, uint32_t block, uint32_t blocks, uint32_t core, int32_t over,
                      const pto_array* arrays, int32_t array_count, const uint64_t* words, uint64_t count);
inline Told told = nullptr;

inline void tell(const pto::detail::Core& core, int32_t over) {
  const auto which = static_cast<uint32_t>(core.kind) | core.subblock_idx << 8;
  told(core.task, core.block_idx, core.block_num, which, over, core.arrays, core.array_count,
       core.trace->words, core.trace->count);
  core.trace->count = 0;
}

/// Traces a task during its lifetime. Kernels are called directly, because some must be inlined.
class TracedTask {
 public:
  explicit TracedTask(pto::detail::Core& core) : core_(core), host_{*core.host, core.host} {
    if (told == nullptr) return;
    core.trace = new pto::detail::Trace;
    core.trace->flush = [](pto::detail::Core& me) { tell(me, 0); };
    host_.fail = [](pto::detail::Core& me, const char* message) {
      me.host = static_cast<const Host*>(me.host)->own;
      if (me.trace != nullptr && me.trace->depth > 0) tell(me, 2);
      me.host->fail(me, message);
    };
    core.host = &host_;
    tell(core, 0);
  }
  ~TracedTask() {
    if (core_.trace == nullptr) return;
    core_.host = host_.own;
    tell(core_, 1);
    delete core_.trace;
    core_.trace = nullptr;
  }
  TracedTask(const TracedTask&) = delete;
  TracedTask& operator=(const TracedTask&) = delete;

 private:
  /// The hooks of the core, extended: they trace a failure before it ends the task.
  struct Host : pto::detail::Host {
    const pto::detail::Host* own;
  };
  pto::detail::Core& core_;
  Host host_;
};

}  // namespace pto2

#define PTO2_CALL_(function)           \
  const pto2::TracedTask task_(*core); \
  function(args)
#define PTO2_TRACER_ \
  PTO2_EXPORT void pto2_tell(pto2::Told told) { pto2::told = told; }
#else
#define PTO2_CALL_(function) function(args)
#define PTO2_TRACER_
#endif

// Each library has its own pointer to the core, which is set when a task starts and after each wait.
#define PTO2_KERNEL(function)                                            \
  PTO2_EXPORT void pto2_kernel(int64_t* args, pto::detail::Core* core) { \
    pto::detail::current = core;                                         \
    PTO2_CALL_(function);                                                \
  }                                                                      \
  PTO2_TRACER_                                                           \
  PTO2_KERNEL_ABI
