// Records of the documented profiler, for sources that name its types. This runtime has its own records and
// exports them in the same form; it writes none of these while a graph runs.
#pragma once

#include <stdint.h>

#include "core_type.h"
#include "platform_config.h"

#ifndef RUNTIME_MAX_FANOUT
#define RUNTIME_MAX_FANOUT 512
#endif

/// The record of one executed task; times in ticks of PLATFORM_PROF_SYS_CNT_FREQ.
struct alignas(64) PerfRecord {
  uint64_t start_time;
  uint64_t end_time;
  uint64_t duration;
  uint64_t kernel_ready_time;
  uint64_t dispatch_time;
  uint64_t finish_time;
  uint32_t task_id;
  uint32_t func_id;
  CoreType core_type;
  int32_t fanout[RUNTIME_MAX_FANOUT];
  int32_t fanout_count;
};

enum class BufferStatus : uint32_t { IDLE = 0, WRITING = 1, READY = 2 };

enum class AicpuPhaseId : uint32_t {
  SCHED_COMPLETE = 0,
  SCHED_DISPATCH = 1,
  SCHED_SCAN = 2,
  SCHED_IDLE_WAIT = 3,
  ORCH_SYNC = 16,
  ORCH_ALLOC = 17,
  ORCH_PARAMS = 18,
  ORCH_LOOKUP = 19,
  ORCH_HEAP = 20,
  ORCH_INSERT = 21,
  ORCH_FANIN = 22,
  ORCH_FINALIZE = 23,
  ORCH_SCOPE_END = 24,
};

struct AicpuPhaseRecord {
  uint64_t start_time;
  uint64_t end_time;
  uint32_t loop_iter;
  AicpuPhaseId phase_id;
  uint64_t tasks_processed;
};
static_assert(sizeof(AicpuPhaseRecord) == 32, "four words");

constexpr uint32_t AICPU_PHASE_MAGIC = 0x41435048;
