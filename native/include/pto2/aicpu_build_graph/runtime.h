// Header for the orchestration of a graph that is built while the schedulers run it.
//
//   extern "C" int NAME(Runtime* runtime);
//
// The function runs while tasks may already execute: add a task, add the edges to it, then publish the task.
// Arguments are in `orch_args`: pointers that kernels can use, and scalars.
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
#define RUNTIME_MAX_FUNC_ID 64
#endif
#ifndef RUNTIME_MAX_ORCH_ARGS
#define RUNTIME_MAX_ORCH_ARGS 64
#endif
#ifndef RUNTIME_MAX_AICPU_ORCH_SO_SIZE
#define RUNTIME_MAX_AICPU_ORCH_SO_SIZE (1024 * 1024)
#endif
static_assert(RUNTIME_MAX_FUNC_ID <= 64 && RUNTIME_MAX_ORCH_ARGS <= 64,
              "the runtime is built for 64 functions and 64 arguments: these limits can only be lowered");

class __attribute__((abi_tag("aicpu_build_graph"))) Runtime;

/// A function pointer that also passes the location of the call to the runtime.
struct __attribute__((abi_tag("aicpu_build_graph"))) AddTaskFunction {
  using Pointer = int (*)(Runtime*, uint64_t* args, int num_args, int func_id, CoreType,
                          uint64_t function_bin_addr);
  Pointer function = nullptr;

  int operator()(Runtime* runtime, uint64_t* args, int num_args, int func_id, CoreType core_type,
                 uint64_t function_bin_addr, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) const;
  operator Pointer() const { return function; }
};

/// The functions of the runtime that executes the graph.
struct AicpuBuildApi {
  AddTaskFunction add_task;  // function_bin_addr 0 selects kernel_addrs[func_id]
  void (*add_successor_conditional)(Runtime* runtime, int from_task, int to_task) = nullptr;
  void (*publish_task)(Runtime* runtime, int task_id) = nullptr;
  void* (*device_malloc)(size_t size) = nullptr;
  void (*device_free)(void* ptr) = nullptr;
};

struct DeviceAlloc {
  void* dev_ptr;
};

class __attribute__((abi_tag("aicpu_build_graph"))) Runtime : private pto2_detail::TaskGraph {
 public:
  Handshake workers[72] = {};
  int worker_count = 0;
  int sche_cpu_num = 1;
  bool enable_profiling = false;
  uint64_t perf_data_base = 0;

  int orch_argc = 0;
  uint64_t orch_args[64] = {};
  uint64_t kernel_addrs[64] = {};
  char aicpu_orch_func_name[64] = {};
  int build_mode = 1;  // 1: build while tasks run; 0: build first
  AicpuBuildApi aicpu_build_api;

  Runtime() : TaskGraph(RUNTIME_MAX_FUNC_ID) {}

  using TaskGraph::clear_tensor_pairs;
  using TaskGraph::get_error_count;
  using TaskGraph::get_first_error;
  using TaskGraph::get_initial_ready_tasks;
  using TaskGraph::get_task;
  using TaskGraph::get_task_count;
  using TaskGraph::get_tensor_pair_count;
  using TaskGraph::get_tensor_pairs;
  using TaskGraph::print_runtime;
  using TaskGraph::record_tensor_pair;
  /// For the runtime.
  TaskGraph& graph() { return *this; }

  /// Add a task and return its id; -1 if the task was refused. Schedulers see the task when it is published.
  int add_task(uint64_t* args, int num_args, int func_id, CoreType core_type = CoreType::AIC,
               uint64_t function_bin_addr = 0, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
    const int id = append(args, num_args, func_id, core_type, file, line);
    if (id >= 0)
      tasks[id].function_bin_addr = function_bin_addr != 0 ? function_bin_addr : kernel_addrs[func_id];
    return id;
  }

  /// Add an edge: to_task starts after from_task has ended. An edge from an ended task causes no wait.
  void add_successor_conditional(int from_task, int to_task) {
    const Task* to = get_task(to_task);
    if (build_mode != 0 && to != nullptr && to->published.load() != 0) {
      refuse("[Runtime] Task %d is published: the edge from task %d comes too late", to_task, from_task);
    } else {
      append_edge(from_task, to_task);
    }
  }
  void add_successor(int from_task, int to_task) { add_successor_conditional(from_task, to_task); }

  /// Record memory that outlives the orchestration; the runtime frees recorded memory.
  void record_device_alloc(void* dev_ptr) { allocs_.push({dev_ptr}); }
  DeviceAlloc* get_device_allocs() { return allocs_.data(); }
  int get_device_alloc_count() const { return allocs_.size(); }
  void clear_device_allocs() { allocs_.clear(); }

  uint64_t get_function_bin_addr(int func_id) const {
    return func_id >= 0 && func_id < RUNTIME_MAX_FUNC_ID ? kernel_addrs[func_id] : 0;
  }
  void set_function_bin_addr(int func_id, uint64_t addr) {
    if (func_id >= 0 && func_id < RUNTIME_MAX_FUNC_ID) {
      kernel_addrs[func_id] = addr;
    } else {
      refuse("[Runtime] Invalid func_id %d (max=%d)", func_id, RUNTIME_MAX_FUNC_ID);
    }
  }

  bool try_set_aicpu_orch_so(const void* data, size_t size) {
    if (data == nullptr || size == 0 || size > RUNTIME_MAX_AICPU_ORCH_SO_SIZE) return false;
    orch_so_.clear();
    for (size_t i = 0; i < size; i++) orch_so_.push(static_cast<const uint8_t*>(data)[i]);
    return true;
  }
  void set_aicpu_orch_so(const void* data, size_t size) { (void)try_set_aicpu_orch_so(data, size); }
  const void* get_aicpu_orch_so_data() const { return orch_so_.begin(); }
  size_t get_aicpu_orch_so_size() const { return static_cast<size_t>(orch_so_.size()); }

  /// Set the source location of the next task to add.
  void set_site(const char* file, int line) {
    site_file_ = file;
    site_line_ = line;
  }
  const char* site_file() const { return site_file_; }
  int site_line() const { return site_line_; }

 private:
  pto2_detail::List<DeviceAlloc> allocs_;
  pto2_detail::List<uint8_t> orch_so_;
  const char* site_file_ = "";
  int site_line_ = 0;
};

inline int AddTaskFunction::operator()(Runtime* runtime, uint64_t* args, int num_args, int func_id,
                                       CoreType core_type, uint64_t function_bin_addr, const char* file,
                                       int line) const {
  runtime->set_site(file, line);
  return function(runtime, args, num_args, func_id, core_type, function_bin_addr);
}

// The functions of AicpuBuildApi as C functions.
extern "C" {
inline int aicpu_runtime_add_task(Runtime* runtime, uint64_t* args, int num_args, int func_id,
                                  CoreType core_type, uint64_t function_bin_addr,
                                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return runtime->aicpu_build_api.add_task(runtime, args, num_args, func_id, core_type, function_bin_addr,
                                           file, line);
}
inline void aicpu_runtime_add_successor_conditional(Runtime* runtime, int from_task, int to_task) {
  runtime->aicpu_build_api.add_successor_conditional(runtime, from_task, to_task);
}
inline void aicpu_runtime_publish_task(Runtime* runtime, int task_id) {
  runtime->aicpu_build_api.publish_task(runtime, task_id);
}
}
