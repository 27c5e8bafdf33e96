// The simulated device: its number of cores, their clusters, and the registers between a scheduler and a
// core.
#pragma once

#include <cstdint>

namespace pto2 {

inline constexpr int kMaxBlockDim = 24;  // PLATFORM_MAX_BLOCKDIM
inline constexpr int kAivPerBlock = 2;   // a block is one AIC and two AIVs: a cluster
inline constexpr int kCoresPerBlock = 1 + kAivPerBlock;
inline constexpr int kMaxCores = kMaxBlockDim * kCoresPerBlock;

/// PTO2_WORKER_CUBE runs on AIC, PTO2_WORKER_VECTOR on AIV.
enum class CoreType : int32_t { Aic = 0, Aiv = 1, Mixed = 2 };  // Mixed: a shape of tasks, not of cores
inline constexpr int kCoreTypes = 2;
inline constexpr int kShapes = 3;  // of tasks: for one AIC, for one AIV, for several cores of a cluster

inline constexpr int cores_of(CoreType type, int block_dim) {
  return type == CoreType::Aic ? block_dim : block_dim * kAivPerBlock;
}
inline constexpr int cluster_of(CoreType type, int index) {
  return type == CoreType::Aic ? index : index / kAivPerBlock;
}
/// Workers 0..block_dim-1 are the AICs, the other workers are the AIVs.
inline constexpr int worker_of(CoreType type, int index, int block_dim) {
  return type == CoreType::Aic ? index : block_dim + index;
}

// --- registers ---------------------------------------------------------------------------------------------
// DATA_MAIN_BASE, from scheduler to core: 0 idle, task id + 1 dispatch, kExitSignal exit.
// COND, from core to scheduler: bit 31 is 1 for finished and 0 for acknowledged; bits 0..30 are the task id.
// Task ids are cut to 31 bits here; the payload has the whole id.

inline constexpr uint32_t kExitSignal = 0x7FFFFFF0u;
inline constexpr uint32_t kTaskIdMask = 0x7FFFFFFFu;
inline constexpr uint32_t kFinBit = 0x80000000u;
inline constexpr uint32_t kIdleValue = kFinBit | kTaskIdMask;

inline constexpr uint32_t dispatch_value(int64_t id) {
  const auto value = static_cast<uint32_t>(id + 1) & kTaskIdMask;
  return value == 0 || value == kExitSignal ? value ^ 0x40000000u : value;  // neither idle nor exit
}
inline constexpr uint32_t ack_value(int64_t id) { return static_cast<uint32_t>(id) & kTaskIdMask; }
inline constexpr uint32_t fin_value(int64_t id) { return ack_value(id) | kFinBit; }

// --- arguments of a core -----------------------------------------------------------------------------------

inline constexpr int kMaxArgs = 66;  // 64 parameters, the number of blocks and the block index

/// The shared state of the blocks of one task that start together (machine.cpp).
struct Team;

/// Task of a core, filled in by the scheduler. Each core has one payload and reuses it for all its tasks.
struct DispatchPayload {
  int64_t task_id = -1;
  int32_t kernel_id = -1;
  CoreType core_type = CoreType::Aic;
  uint64_t function_bin_addr = 0;
  int32_t num_args = 0;
  int32_t block_idx = 0, block_num = 1;
  bool one_of_blocks = false;  // the task is a block task, possibly with only one block
  bool on_own_cluster =
      false;  // on a cluster that the orchestration has allocated: it may wait for other tasks there
  // One bit per argument: `tensors` for tensors, `inputs` for tensors that are only read. Both are 0 if the
  // graph has no such information.
  uint64_t tensors = 0, inputs = 0;
  // Kernels of a mixed task: for the AIC and the two AIVs of its cluster (-1: none). `lane` is the number of
  // this AIV.
  bool mixed = false;
  int32_t kernels[kCoresPerBlock] = {-1, -1, -1};
  int32_t lane = 0, lanes = 1;
  Team* team = nullptr;
  // The state that the core uses instead of the state of its cluster (Machine::join), or null.
  void *grid = nullptr, *shared = nullptr;
  int64_t args[kMaxArgs] = {};
};

}  // namespace pto2
