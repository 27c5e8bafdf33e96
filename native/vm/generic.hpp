// Calls that no pack has. A function of the host performs such a call (src/pto/engine/native/generic.py): it reads the
// operands from the frame, does what the instruction does, and writes the results back.
//
// The function runs on the stack of the core. It returns before the core fails or waits, so nothing of the host is
// left on that stack when the core switches to another one.
#pragma once

#include "pto/launch.hpp"
#include "vm.hpp"

extern "C" {

/// A call as the host sees it; `_CALL` of generic.py reads the words before `text`.
struct pto_generic {
  char* frame;
  const uint32_t* at;  // words of the call's operands: their address identifies the call
  char* spaces[pto::detail::kSpaces];
  const pto_array* arrays;
  uint64_t array_count;
  uint64_t only_arrays;  // whether an address outside all arrays is an error
  uint64_t kind, block, subblock, rank;
  char* vector_memory[2];  // UB of the vector cores of the block, L1 of its cube core
  char* cube_memory;
  uint64_t ctrl;
  int64_t hf32;
  pto::detail::SqueezeRegisters* squeeze;
  uint64_t touched[2];  // out: addresses of an access outside all arrays, as in pto_launch
  char text[1000];      // out: why the call failed
};

/// What the host came to; 0 where an exception left its function, which the host keeps.
enum pto_generic_outcome : int32_t { kLeft, kPerformed, kFailed, kUnbound };

using pto_generic_function = int32_t (*)(pto_generic* call);
}

namespace pto::vm {

inline pto_generic_function perform = nullptr;

/// A signal that reaches the host's own code is not a fault of the core: while the host works, no core runs.
struct OffCore {
  explicit OffCore(const detail::Core& core)
      : fiber(core.host == &detail::kHost || core.host == &detail::kFarHost
                  ? static_cast<detail::Fiber*>(core.fiber)
                  : nullptr) {
    if (fiber != nullptr) fiber->thread->running = nullptr;
  }
  ~OffCore() {
    if (fiber != nullptr) fiber->thread->running = fiber;
  }
  OffCore(const OffCore&) = delete;
  OffCore& operator=(const OffCore&) = delete;
  detail::Fiber* const fiber;
};

inline void generic_call(char* frame, const uint32_t* at) {
  detail::Core& core = detail::core();
  if (core.owed != nullptr && core.owed->count > 0) detail::settle_owed(*core.owed, true);
  pto_generic call;
  call.frame = frame;
  call.at = at;
  std::memcpy(call.spaces, core.space, sizeof call.spaces);
  call.arrays = core.arrays;
  call.array_count = static_cast<uint64_t>(core.array_count);
  call.only_arrays = core.arrays != nullptr && core.only_arrays;
  call.kind = static_cast<uint64_t>(core.kind);
  call.block = core.block_idx;
  call.subblock = core.subblock_idx;
  call.rank = core.grid != nullptr ? core.grid->rank : 0;
  const detail::Cluster* cluster = core.cluster;
  call.vector_memory[0] = cluster != nullptr ? cluster->vector_memory[0] : nullptr;
  call.vector_memory[1] = cluster != nullptr ? cluster->vector_memory[1] : nullptr;
  call.cube_memory = cluster != nullptr ? cluster->cube_memory : nullptr;
  call.ctrl = core.ctrl;
  call.hf32 = core.hf32;
  call.squeeze = &core.squeeze;
  call.touched[0] = call.touched[1] = 0;
  call.text[0] = 0;
  int32_t outcome;
  {
    const OffCore off(core);
    outcome = perform(&call);
  }
  if (outcome == kPerformed) [[likely]] return;
  if (outcome == kUnbound) detail::unbound();
  if (outcome == kLeft) detail::fail("interrupted");
  std::memcpy(core.touched, call.touched, sizeof core.touched);
  detail::fail(call.text);
}

}  // namespace pto::vm

/// The function that performs calls that no pack has, for all programs of the process.
PTO_EXPORT void* pto_vm_generic(pto_generic_function function) {
  pto::vm::perform = function;
  return reinterpret_cast<void*>(pto::vm::generic_call);
}

/// Bytes of a memory on chip.
PTO_EXPORT uint64_t pto_vm_room(int32_t space) { return pto::detail::room(space); }

/// Print what a program prints, while the host performs a call of it.
PTO_EXPORT void pto_vm_print(const char* text) {
  pto::detail::Core& core = pto::detail::core();
  if (core.host != nullptr) {
    core.host->print(core, text);
  } else {
    std::fputs(text, stdout);
  }
}
