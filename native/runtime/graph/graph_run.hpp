// Running a graph with explicit edges: host_build_graph and aicpu_build_graph.
//
// User code fills the table of tasks (pto2/platform/common/task_graph.h). GraphRun passes its tasks to the
// execution layer as they become ready. Either the whole graph is built, checked for cycles and missing
// kernels, and then released; or tasks run as soon as they are published, while others are added.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "../exec/callers.hpp"
#include "../exec/exec.hpp"
#include "../exec/log.hpp"
#include "device_memory.hpp"

// Do not include the user's headers here: they define another CoreType.
struct Task;
namespace pto2_detail {
class TaskGraph;
}

namespace pto2 {

using TaskTable = pto2_detail::TaskGraph;

struct GraphOptions {
  ExecOptions exec;
  bool concurrent = false;  // aicpu_build_graph, build_mode 1: run while building
  bool poison = false;      // fresh device memory is filled with 0xFF
};

class GraphRun final : public Graph {
 public:
  GraphRun(const GraphOptions& options, const Kernels& kernels, Log& log);

  /// Replace the table by one that user code brings, before anything is added.
  void adopt(std::shared_ptr<TaskTable> table) { table_ = std::move(table); }
  TaskTable& table() { return *table_; }
  /// Record the callers of each task that is added to the table.
  void set_callers(Callers callers);
  DeviceMemory& memory() { return memory_; }

  /// Call `build` as the orchestrator, run the graph, copy the results back. Errors are in failure().
  void run(const std::function<void()>& build);
  Failure& failure() { return exec_.failure(); }

  // --- while building; these throw Aborted when the run has failed ---
  /// Register an address of the caller that tasks may get, perhaps with an offset, and the memory around it,
  /// which kernels must not leave.
  void add_array(uint64_t address, uint64_t begin, uint64_t bytes);
  int add_task(const uint64_t* args, int count, int func_id, CoreType type, const char* file, int line);
  void add_edge(int from, int to);
  /// Publish a task that has all its edges. In a concurrent run, it can start at once.
  void publish(int id);

  // --- Graph ---
  bool has_unseen() const override { return false; }
  int look_for_ready(int) override { return 0; }
  void fill(int64_t ticket, DispatchPayload& payload, int scheduler) override;
  bool completed(int64_t id, int scheduler) override;
  void hand_on(int64_t id, int from) override;
  TaskRecord* record(int64_t id) override;
  Progress progress() const override { return {completed_tasks(), tasks()}; }
  int memory(const DispatchPayload& payload, pto_array* out) const override;
  bool judge(const DispatchPayload& payload, UseRecord& use) const override;

  // --- after the run ---
  const GraphOptions& options() const { return options_; }
  Exec& exec() { return exec_; }
  const Kernels& kernels() const { return kernels_; }
  Log& log() { return log_; }
  int tasks() const;
  int64_t edge_count() const;
  int completed_tasks() const { return completed_.load(std::memory_order_relaxed); }
  const std::vector<EdgeRecord>& edges() const { return edges_; }         // if the run records
  const std::vector<std::string>& task_sites() const { return sites_; }   // "file:line", by task
  const std::vector<CallChain>& task_callers() const { return chains_; }  // if the run records callers

 private:
  void release_all();
  int kernel_of(const Task& task);
  void make_ready(int id, int from);
  void check_all_ran();
  void check_publishing();
  void copy_back();
  void keep_records();
  std::string task_text(int id) const;
  std::string cycle_text(const std::vector<int>& cycle) const;
  std::vector<int> circle() const;

  const GraphOptions options_;
  const Kernels& kernels_;
  Log& log_;
  std::shared_ptr<TaskTable> table_;
  DeviceMemory memory_;
  std::map<uint64_t, pto_array> arrays_;  // by the address that tasks get
  mutable std::shared_mutex adding_;      // guards arrays_, which tasks of a concurrent run read
  Exec exec_;
  std::atomic<int> completed_{0};
  std::unique_ptr<ZeroedArray<TaskRecord>> records_;  // by task, if the run records
  std::vector<EdgeRecord> edges_;
  std::vector<std::string> sites_;
  std::vector<CallChain> chains_;
  Callers callers_;
};

/// The run of the graph that is built on this thread, for functions without a runtime argument.
class BuildScope {
 public:
  explicit BuildScope(GraphRun& run);
  ~BuildScope();
  BuildScope(const BuildScope&) = delete;
  BuildScope& operator=(const BuildScope&) = delete;

  static GraphRun* current();
  static void log_line(int level, const char* function, const char* text);  // a PTO2LogSink
  static void* device_malloc(size_t size);
  static void device_free(void* pointer);
  static int copy_to_device(void* device, const void* host, size_t size);
  static int copy_from_device(void* host, const void* device, size_t size);

 private:
  GraphRun* previous_;
};

}  // namespace pto2
