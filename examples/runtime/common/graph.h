// What the orchestrations of the two graph runtimes share: the same lines build a graph on either of them.
//
//   host_build_graph    the arguments are pointers of the host: `input` copies one to the device, `output`
//   has it
//                       copied back after the run
//   aicpu_build_graph   the arguments are in the memory of the device already
#pragma once

#include <cstring>
#include <initializer_list>
#include <stdexcept>

#include "runtime.h"

// Where a task was added shows up in profiles and reports: the line that calls `task`, not one of this file.
#ifdef PTO2_SITES
#define GRAPH_SITE , const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define GRAPH_HERE , file, line
#else
#define GRAPH_SITE
#define GRAPH_HERE
#endif

class Graph {
 public:
  explicit Graph(Runtime* runtime) : runtime_(runtime) {}

#ifndef RUNTIME_MAX_ORCH_ARGS  // host_build_graph: it has no arguments of its own
  uint64_t buffer(uint64_t bytes) { return given(runtime_->host_api.device_malloc(bytes)); }

  uint64_t input(uint64_t host, uint64_t bytes) {
    const uint64_t device = buffer(bytes);
    runtime_->host_api.copy_to_device(reinterpret_cast<void*>(device), reinterpret_cast<void*>(host), bytes);
    return device;
  }

  uint64_t output(uint64_t host, uint64_t bytes) {
    const uint64_t device = input(host, bytes);
    runtime_->record_tensor_pair(reinterpret_cast<void*>(host), reinterpret_cast<void*>(device), bytes);
    return device;
  }

  /// A task that runs after some others; its id.
  int task(
      int function, CoreType core, std::initializer_list<uint64_t> slots,
      std::initializer_list<int> after = {} GRAPH_SITE) {
    uint64_t* args = const_cast<uint64_t*>(slots.begin());
    const int id = runtime_->add_task(args, static_cast<int>(slots.size()), function, core GRAPH_HERE);
    for (int earlier : after) {
      if (earlier >= 0) runtime_->add_successor(earlier, id);
    }
    return id;
  }
#else
  uint64_t buffer(uint64_t bytes) { return given(runtime_->aicpu_build_api.device_malloc(bytes)); }
  uint64_t input(uint64_t device, uint64_t) { return device; }
  uint64_t output(uint64_t device, uint64_t) { return device; }

  /// A task that runs after some others; its id. It may start before this returns.
  int task(
      int function, CoreType core, std::initializer_list<uint64_t> slots,
      std::initializer_list<int> after = {} GRAPH_SITE) {
    const AicpuBuildApi& api = runtime_->aicpu_build_api;
    uint64_t* args = const_cast<uint64_t*>(slots.begin());
    const int id = api.add_task(runtime_, args, static_cast<int>(slots.size()), function, core, 0 GRAPH_HERE);
    for (int earlier : after) {
      if (earlier >= 0) api.add_successor_conditional(runtime_, earlier, id);
    }
    api.publish_task(runtime_, id);
    return id;
  }
#endif

 private:
  static uint64_t given(void* memory) {
    if (memory == nullptr) throw std::runtime_error("no memory on the device");
    return reinterpret_cast<uint64_t>(memory);
  }

  Runtime* runtime_;
};

/// The function that the runner calls: BUILD(graph, arguments).
#ifndef RUNTIME_MAX_ORCH_ARGS
#define GRAPH_ENTRY(NAME, BUILD)                               \
  extern "C" int NAME(Runtime* runtime, uint64_t* args, int) { \
    Graph graph(runtime);                                      \
    BUILD(graph, args);                                        \
    return 0;                                                  \
  }
#else
#define GRAPH_ENTRY(NAME, BUILD)          \
  extern "C" int NAME(Runtime* runtime) { \
    Graph graph(runtime);                 \
    BUILD(graph, runtime->orch_args);     \
    return 0;                             \
  }
#endif
