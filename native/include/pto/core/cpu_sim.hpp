// Plain threads as cores: a program with its own threads sets here which core each thread is.
#pragma once

#include "pto/core/machine.hpp"

namespace pto::cpu_sim {

using PipeStateHook = void* (*)(uint64_t key, size_t size);
inline PipeStateHook pipe_state_hook = nullptr;

#ifdef __CPU_SIM
/// Set the functions of the program that return the vector core of a thread and the state of a FIFO.
inline void register_hooks(void* subblock, void* pipe_state) {
  subblock_hook = reinterpret_cast<uint32_t (*)()>(subblock);
  pipe_state_hook = reinterpret_cast<PipeStateHook>(pipe_state);
}
#endif

inline void* pipe_state(uint64_t key, size_t size) {
  return pipe_state_hook != nullptr ? pipe_state_hook(key, size) : nullptr;
}

inline void set_execution_context(uint32_t block, uint32_t subblock, uint32_t subblocks = 1) {
  detail::Core& me = detail::core();
  me.block_idx = block;
  me.subblock_idx = subblock;
  me.subblock_num = subblocks == 0 ? 1 : subblocks;
  me.cluster = detail::loose_cluster(block);
}

inline void reset_execution_context() { set_execution_context(0, 0, 1); }

inline void set_task_cookie(uint64_t cookie) { detail::core().task_cookie = cookie; }

/// Make the thread a given core until the end of the scope.
class ScopedExecutionContext {
 public:
  ScopedExecutionContext(uint32_t block, uint32_t subblock, uint32_t subblocks = 1)
      : block_(detail::core().block_idx),
        subblock_(detail::core().subblock_idx),
        subblocks_(detail::core().subblock_num) {
    set_execution_context(block, subblock, subblocks);
  }
  ~ScopedExecutionContext() { set_execution_context(block_, subblock_, subblocks_); }
  ScopedExecutionContext(const ScopedExecutionContext&) = delete;
  ScopedExecutionContext& operator=(const ScopedExecutionContext&) = delete;

 private:
  uint32_t block_, subblock_, subblocks_;
};

}  // namespace pto::cpu_sim

#ifdef __CPU_SIM
namespace pto {

enum class NPUArch { A2A3, A5 };

/// Allocate the on-chip memory of this thread, if necessary, and clear it. The sizes are those of the target
/// of the compilation.
inline void NPU_MEMORY_CLEAR() {
  char* memory = detail::core().space[0];
  madvise(memory, detail::kRooms.all, MADV_DONTNEED);
}
inline void NPU_MEMORY_INIT(NPUArch) { NPU_MEMORY_CLEAR(); }

}  // namespace pto
#endif
