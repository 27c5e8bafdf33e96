// Records of a run: one per task, one per phase of an actor. A run records only on request; otherwise the
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

/// Times are nanoseconds of the monotonic clock, or of virtual time; 0 means not recorded.
struct TaskRecord {
  int64_t task_id;
  int64_t submit, ready, dispatch, start, end, finish;
  int32_t func_id, scope, cluster, block, site;
  int16_t core, thread, scheduler, core_type;
};

/// AicpuPhaseId in the profiles of the vendor stack (simpler).
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
  int16_t thread, actor;  // actor: a scheduler number, or -1 for the orchestrator
  Phase phase;
};

struct EdgeRecord {
  int64_t pred, succ;
  int32_t arg;
  int8_t kind;  // 0 RAW, 1 WAW, 2 WAR, 3 explicit
};

enum class Use : int8_t { Read, Write, Add, Max, Min };  // same order as pto::detail::Use

/// An access of a task to the global memory [first, last).
struct UseRecord {
  int64_t task_id;
  uint64_t first, last;
  static constexpr int32_t kWindow = -2;
  int32_t arg;  // the parameter that points to the memory; -1: unknown; kWindow: the window of a rank
  Use use;
  bool undeclared;  // a write to data that the task declares as read only
};

/// An access of a core to the window of a rank, or a synchronization (give or take) between the cores of a
/// task. `at` orders the records of all cores; a wait is recorded when it has ended.
struct WindowRecord {
  static constexpr int8_t kGives = 16, kTakes = 17;
  int64_t at;  // number in the order of all records
  int64_t task_id;
  uint64_t first, last;  // bytes; for a synchronization: its object, and block + 1 (0: not of one block)
  int32_t kernel, mark;  // the source location, as in Failure
  int32_t block;
  int16_t core;  // 0 AIC, 1 AIV0, 2 AIV1 of the block
  int8_t use;    // a Use, kGives or kTakes
};

enum class Counter : int8_t { TaskRing, Heap, DepPool, TensorMap, ReadyAic, ReadyAiv };

struct CounterRecord {
  int64_t time, value;
  Counter which;
};

/// The records of one host thread.
struct Recorder {
  std::vector<TaskRecord> tasks;
  std::vector<PhaseRecord> phases;
  std::vector<CounterRecord> counters;
};

}  // namespace pto2
