// Header for the orchestration of a graph that the host builds: a table of tasks and edges between them.
//
//   extern "C" int NAME(Runtime* runtime, uint64_t* args, int arg_count);
//
// The function runs on the host before the launch; args are host pointers and scalars. It allocates kernel
// memory (`host_api`), copies data to it, adds tasks and edges, and records which memory is copied back.
#pragma once

#define PTO2_SITES 1  // add_task takes file and line of its caller

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "../platform/common/core_type.h"
#include "../platform/common/perf_profiling.h"
#include "../platform/common/platform_config.h"
#include "../platform/common/task_graph.h"
#include "../platform/common/unified_log.h"

#ifndef RUNTIME_MAX_FUNC_ID
#define RUNTIME_MAX_FUNC_ID 32
#endif
static_assert(RUNTIME_MAX_FUNC_ID <= 32,
              "the runtime is built for 32 functions: the limit can only be lowered");

/// Functions for memory that kernels can use. The end of the run frees all memory that is still allocated.
struct HostApi {
  void* (*device_malloc)(size_t size);
  void (*device_free)(void* dev_ptr);
  int (*copy_to_device)(void* dev_ptr, const void* host_ptr, size_t size);
  int (*copy_from_device)(void* host_ptr, const void* dev_ptr, size_t size);
  uint64_t (*upload_kernel_binary)(int func_id, const uint8_t* binary, size_t size);
};

// The other runtimes have a class of the same name: the tag distinguishes the classes when all are linked.
class __attribute__((abi_tag("host_build_graph"))) Runtime : public pto2_detail::TaskGraph {
 public:
  Handshake workers[72] = {};
  int worker_count = 0;
  int sche_cpu_num = 1;
  bool enable_profiling = false;
  uint64_t perf_data_base = 0;
  HostApi host_api = {};

  Runtime() : TaskGraph(RUNTIME_MAX_FUNC_ID) {}

  /// Add a task and return its id; -1 if the task was refused. The arguments are copied: raw pointers and
  /// scalars, as the kernel gets them.
  int add_task(uint64_t* args, int num_args, int func_id, CoreType core_type = CoreType::AIC,
               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return append(args, num_args, func_id, core_type, file, line);
  }

  /// Add an edge: to_task starts after from_task has ended.
  void add_successor(int from_task, int to_task) { append_edge(from_task, to_task); }

  uint64_t get_function_bin_addr(int func_id) const {
    return func_id >= 0 && func_id < RUNTIME_MAX_FUNC_ID ? func_id_to_addr_[func_id] : 0;
  }
  void set_function_bin_addr(int func_id, uint64_t addr) {
    if (func_id >= 0 && func_id < RUNTIME_MAX_FUNC_ID) {
      func_id_to_addr_[func_id] = addr;
    } else {
      refuse("[Runtime] Invalid func_id %d (max=%d)", func_id, RUNTIME_MAX_FUNC_ID);
    }
  }

 private:
  uint64_t func_id_to_addr_[32] = {};
};
