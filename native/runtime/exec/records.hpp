// Records of a run: one per task, one per phase of an actor. They are made only on request; without it, their
// cost is close to zero.
#pragma once

#include <time.h>

#include <cstdint>
#include <vector>

namespace pto2 {

inline int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// Times are nanoseconds of the monotonic clock; 0 without a record.
struct TaskRecord {
  int64_t task_id;
  int64_t submit, ready, dispatch, start, end, finish;
  int32_t func_id, scope, cluster, block, site;
  int16_t core, thread, scheduler, core_type;
};

/// AicpuPhaseId of the field's profiles.
enum class Phase : int8_t {
  Complete = 0,
  Dispatch = 1,
  Scan = 2,
  Idle = 3,
  OrchSync = 16,
  OrchAlloc = 17,
  OrchParams = 18,
  OrchLookup = 19,
  OrchHeap = 20,
  OrchInsert = 21,
  OrchFanin = 22,
  OrchFinalize = 23,
  OrchScopeEnd = 24,
};

struct PhaseRecord {
  int64_t start, end;
  int32_t count;
  int16_t thread, actor;  // actor: a scheduler, or -1 for the orchestrator
  Phase phase;
};

struct EdgeRecord {
  int64_t pred, succ;
  int32_t arg;
  int8_t kind;  // 0 RAW, 1 WAW, 2 WAR, 3 explicit
};

enum class Use : int8_t { Read, Write, Add, Max, Min };  // as pto::detail::Use has them

/// An access of a task to global memory, the last byte excluded.
struct UseRecord {
  int64_t task_id;
  uint64_t first, last;
  static constexpr int32_t kWindow = -2;
  int32_t arg;  // the parameter whose memory that is; -1 if that is not known, kWindow: a window of a rank
  Use use;
  bool undeclared;  // it writes data that the task declared as read only
};

/// An access of a core to a window of a rank, or an order between the cores of a task, in the order of all
/// cores: for a wait, when it has ended.
struct WindowRecord {
  static constexpr int8_t kGives = 16, kTakes = 17;
  int64_t at;  // number in the order of all records
  int64_t task_id;
  uint64_t first, last;  // bytes; of an order the object, and its block + 1 if only cores of one block use it
  int32_t kernel, mark;  // the source location, as in a failure
  int32_t block;
  int16_t core;  // 0 AIC, 1 AIV0, 2 AIV1 of the block
  int8_t use;    // a Use, kGives or kTakes
};

enum class Counter : int8_t { TaskRing, Heap, DepPool, TensorMap, ReadyAic, ReadyAiv };

struct CounterRecord {
  int64_t time, value;
  Counter which;
};

/// The records of one thread.
struct Recorder {
  std::vector<TaskRecord> tasks;
  std::vector<PhaseRecord> phases;
  std::vector<CounterRecord> counters;
};

}  // namespace pto2
