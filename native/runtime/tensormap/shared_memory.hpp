// The memory that the orchestrator and the schedulers share: header, task descriptors, list entries.
//
//   header | TaskDescriptor[window] | DepListEntry[pool + 1]       each part aligned to 64 bytes
//
// The memory is zeroed and mapped on first access, so an unused large window has no cost.
#pragma once

#include <atomic>
#include <cstdint>

#include "../exec/mpmc_queue.hpp"
#include "../exec/pause.hpp"
#include "../exec/platform.hpp"

namespace pto2 {

inline constexpr uint64_t kAlign = 64;                // PTO2_ALIGN_SIZE
inline constexpr uint64_t kPackedOutputAlign = 1024;  // PTO2_PACKED_OUTPUT_ALIGN
inline constexpr int kMaxParams = 64;                 // parameters of one task
inline constexpr int kFewParams = 16;                 // PTO2_MAX_INPUTS; longer lists are separate
inline constexpr int kMaxScopeDepth = 64;             // PTO2_MAX_SCOPE_DEPTH

inline constexpr uint64_t align_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/// States of a task.
enum State : int32_t {
  kInitial = 0,    // not yet ready, or the slot is free
  kReady = 1,      // all producers have completed; until the end of the execution
  kCompleted = 2,  // has run
  kConsumed = 3,   // every consumer and the scope have released the task
};

struct alignas(64) SharedMemoryHeader {
  // Written by the orchestrator.
  std::atomic<int64_t> current_task_index;  // next task id; all earlier tasks are published
  std::atomic<uint64_t> heap_top;           // bytes ever allocated, gaps at the wrap included
  std::atomic<int32_t> orchestrator_done;
  // Written by schedulers, and by the orchestrator at the end of a scope or to skip the end of the heap.
  alignas(64) std::atomic<int64_t> last_task_alive;  // oldest task whose slot is in use
  std::atomic<uint64_t> heap_tail;                   // bytes ever released; never decreases
  // Written once.
  alignas(64) uint64_t task_window_size;
  uint64_t heap_size;
  uint64_t dep_list_pool_size;
  uint64_t task_descriptors_offset;
  uint64_t dep_list_pool_offset;
  uint64_t total_size;
};

/// An edge of the graph. Each entry is in two lists: the consumers of its producer and the producers of its
/// consumer. Entry 0 ends a list.
struct DepListEntry {
  int64_t task_id;   // the consumer
  int64_t producer;  // -1 in entry 0
  int32_t next_fanout;
  int32_t next_fanin;
};

/// A comparison that decides, when all producers have completed, whether a task runs.
struct Condition {
  enum Op : int8_t { kNone, kEq, kNe, kGt, kLt, kGe, kLe };  // PredicateOp
  uint64_t address;                                          // address of the element
  int64_t target;
  uint8_t bytes;
  bool is_signed;
  int8_t op;

  bool holds() const;
  int64_t value() const;  // current value of the element; a large unsigned 64-bit value becomes negative

 private:
  uint64_t bits() const;
};

struct alignas(64) TaskDescriptor {
  int64_t task_id;
  int32_t kernel_id;
  int32_t worker_type;
  std::atomic<int32_t> fanin_count;  // number of producers; kNotYet until the submission has counted them
  int32_t fanin_head;
  SpinLock fanout_lock;  // guards fanout_*, `handled` and the changes of `state` to 2 and 3
  int32_t fanout_head;
  int32_t fanout_count;     // 1 for the scope, 1 for each consumer
  int32_t fanout_released;  // how many of these have released the task
  bool handled;             // its completion no longer needs this descriptor or its entries
  std::atomic<int32_t> state;
  std::atomic<int32_t> fanin_refcount;      // producers that have completed
  uint64_t packed_buffer_base;              // a position of the heap (see HeapRing)
  std::atomic<uint64_t> packed_buffer_end;  // 0: no outputs in the heap
  int32_t cluster_id;                       // -1: any
  int32_t group_id;                         // -1: none
  int32_t block_dim;                        // 0: not a block task
  std::atomic<int32_t> next_block, done_blocks;
  int32_t scope, site_line;
  const char* site_file;
  int32_t arg_count;
  uint64_t tensors, inputs;         // bits of the arguments that are tensors; of those that are only read
  uint64_t dep_end;                 // entries of the pool ever taken, at the end of the submission
  uint64_t tensor_end;              // the same for tensor descriptors
  int64_t* args;                    // arguments of the kernel: a TensorData*, or the scalar
  const int32_t* cluster_ids;       // of a block task with pinned blocks
  Team* team;                       // of blocks that start together
  int32_t kernels[kCoresPerBlock];  // of a mixed task
  bool no_core;                     // the task has no kernel
  bool awaits;                      // the task waits until its condition holds
  Condition condition;
  int64_t few_args[kFewParams];  // the arguments, if there are at most kFewParams
};

inline constexpr int32_t kNotYet = INT32_MAX;

class SharedMemory {
 public:
  SharedMemory(uint64_t window, uint64_t heap, uint64_t dep_pool)
      : memory_(size(window, dep_pool)), header_(reinterpret_cast<SharedMemoryHeader*>(memory_.data())) {
    header_->task_window_size = window;
    header_->heap_size = heap;
    header_->dep_list_pool_size = dep_pool;
    header_->task_descriptors_offset = align_up(sizeof(SharedMemoryHeader), kAlign);
    header_->dep_list_pool_offset =
        header_->task_descriptors_offset + align_up(window * sizeof(TaskDescriptor), kAlign);
    header_->total_size = size(window, dep_pool);
    mask_ = window - 1;
    tasks_ = reinterpret_cast<TaskDescriptor*>(memory_.data() + header_->task_descriptors_offset);
    entries_ = reinterpret_cast<DepListEntry*>(memory_.data() + header_->dep_list_pool_offset);
    entries_[0].task_id = entries_[0].producer = -1;
  }

  static uint64_t size(uint64_t window, uint64_t dep_pool) {
    return align_up(sizeof(SharedMemoryHeader), kAlign) + align_up(window * sizeof(TaskDescriptor), kAlign) +
           align_up((dep_pool + 1) * sizeof(DepListEntry), kAlign);
  }

  SharedMemoryHeader& header() const { return *header_; }
  uint64_t window() const { return mask_ + 1; }
  size_t slot(int64_t id) const { return static_cast<uint64_t>(id) & mask_; }
  TaskDescriptor& task(int64_t id) const { return tasks_[slot(id)]; }
  DepListEntry& entry(int32_t offset) const { return entries_[offset]; }

 private:
  ZeroedArray<char> memory_;
  SharedMemoryHeader* header_;
  uint64_t mask_ = 0;
  TaskDescriptor* tasks_ = nullptr;
  DepListEntry* entries_ = nullptr;
};

}  // namespace pto2
