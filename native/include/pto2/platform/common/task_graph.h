// The task table of host_build_graph and aicpu_build_graph: growing storage, edges, and errors.
//
// The documented runtimes have fixed arrays (290 MB). Here tasks and edges grow on demand; a task never
// moves, so pointers and references to it stay valid. The limits are the documented ones. An excess gives a
// log line and a return value as documented, and is counted: a graph that lost a task or edge does not run.
//
// Concurrency. One thread, the builder, adds tasks and edges; other threads may use a task after its id was
// passed to them with memory ordering. `pending` of a task is the number of unsatisfied edges to it, plus one
// until it is released. The thread that sets `pending` to zero starts the task, so exactly one thread does.
// The lock of the earlier task protects its edges when they are added and when they are walked at completion:
// an edge is either seen by that walk, or finds `completed` set and is not counted.
#pragma once

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <new>

#include "core_type.h"
#include "unified_log.h"

#ifndef RUNTIME_MAX_TASKS
#define RUNTIME_MAX_TASKS 131072
#endif
#ifndef RUNTIME_MAX_ARGS
#define RUNTIME_MAX_ARGS 16
#endif
#ifndef RUNTIME_MAX_FANOUT
#define RUNTIME_MAX_FANOUT 512
#endif
#ifndef RUNTIME_MAX_WORKER
#define RUNTIME_MAX_WORKER 72
#endif
#ifndef RUNTIME_MAX_TENSOR_PAIRS
#define RUNTIME_MAX_TENSOR_PAIRS 64
#endif

static_assert(RUNTIME_MAX_ARGS <= 16 && RUNTIME_MAX_WORKER <= 72,
              "the runtime is built for 16 arguments and 72 workers: these limits can only be lowered");

/// The handshake between a scheduler and a core.
struct alignas(64) Handshake {
  volatile uint32_t aicpu_ready;
  volatile uint32_t aicore_done;  // core id + 1
  volatile uint64_t task;
  volatile int32_t task_status;
  volatile int32_t control;  // 1: quit
  volatile CoreType core_type;
  volatile uint64_t perf_records_addr;
  volatile uint32_t perf_buffer_status;
  volatile uint32_t physical_core_id;
};

/// Memory to copy back to the host and to free after a run.
struct TensorPair {
  void* host_ptr;
  void* dev_ptr;
  size_t size;
};

namespace pto2_detail {

/// A growing array of plain values. It is no standard container, because the shared object that appends may
/// have another standard library than the runtime that frees.
template <class T>
class List {
 public:
  List() = default;
  ~List() { free(values_); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  void push(const T& value) {
    if (count_ == capacity_) {
      capacity_ = capacity_ == 0 ? 4 : 2 * capacity_;
      void* grown = realloc(static_cast<void*>(values_), sizeof(T) * static_cast<size_t>(capacity_));
      if (grown == nullptr) throw std::bad_alloc();
      values_ = static_cast<T*>(grown);
    }
    values_[count_++] = value;
  }
  void clear() { count_ = 0; }
  int size() const { return count_; }
  T* data() { return values_; }
  operator T*() { return values_; }  // for sources that expect an array
  T& operator[](int i) { return values_[i]; }
  const T& operator[](int i) const { return values_[i]; }
  T* begin() const { return values_; }
  T* end() const { return values_ + count_; }

 private:
  T* values_ = nullptr;
  int count_ = 0;
  int capacity_ = 0;
};

/// An array that grows without moving its elements: chunks of 256, 512, 1024, ...
template <class T>
class StableTable {
 public:
  StableTable() = default;
  ~StableTable() {
    for (T* chunk : chunks_) delete[] chunk;
  }
  StableTable(const StableTable&) = delete;
  StableTable& operator=(const StableTable&) = delete;

  /// Return element i; allocate its chunk if necessary.
  T& at(int i) {
    const int k = chunk_of(i);
    if (chunks_[k] == nullptr) chunks_[k] = new T[static_cast<size_t>(kFirst) << k];
    return (*this)[i];
  }
  T& operator[](int i) { return chunks_[chunk_of(i)][i - start_of(chunk_of(i))]; }
  const T& operator[](int i) const { return chunks_[chunk_of(i)][i - start_of(chunk_of(i))]; }

 private:
  static constexpr int kFirst = 256;
  static int chunk_of(int i) { return 31 - __builtin_clz(static_cast<unsigned>(i / kFirst + 1)); }
  static int start_of(int k) { return kFirst * ((1 << k) - 1); }

  T* chunks_[23] = {};
};

}  // namespace pto2_detail

struct Task {
  int task_id = -1;
  int func_id = -1;
  uint64_t args[16] = {};
  int num_args = 0;
  uint64_t function_bin_addr = 0;
  CoreType core_type = CoreType::AIC;
  std::atomic<int> fanin{0};      // counted edges to this task; an edge that was added twice counts twice
  pto2_detail::List<int> fanout;  // the successors of this task
  int fanout_count = 0;
  uint64_t start_time = 0;
  uint64_t end_time = 0;
  std::atomic<int> published{0};
  std::atomic<int> completed{0};

  // Not part of the documented task.
  std::atomic<int> pending{1};
  std::atomic<bool> edges_locked{false};
  const char* site_file = "";
  int site_line = 0;
};

namespace pto2_detail {

/// The common parts of the two runtimes.
class TaskGraph {
 public:
  explicit TaskGraph(int max_functions) : max_functions_(max_functions) {}
  TaskGraph(const TaskGraph&) = delete;
  TaskGraph& operator=(const TaskGraph&) = delete;

  /// Return a task; null for an unknown id.
  Task* get_task(int task_id) { return known(task_id) ? &tasks[task_id] : nullptr; }
  const Task* get_task(int task_id) const { return known(task_id) ? &tasks[task_id] : nullptr; }
  int get_task_count() const { return count_.load(std::memory_order_acquire); }

  /// Write the ids of the tasks without producers to `ready`, if it is not null; return their number.
  int get_initial_ready_tasks(int* ready) const {
    int found = 0;
    for (int id = 0; id < get_task_count(); id++) {
      if (tasks[id].fanin.load() != 0) continue;
      if (ready != nullptr) ready[found] = id;
      found++;
    }
    return found;
  }

  /// Log the graph at level DEBUG.
  void print_runtime() const {
    unified_log_debug(__FUNCTION__, "%s", "===== task runtime =====");
    unified_log_debug(__FUNCTION__, "Total tasks: %d", get_task_count());
    for (int id = 0; id < get_task_count(); id++) {
      if (tasks[id].fanin.load() == 0) unified_log_debug(__FUNCTION__, "  ready: %d", id);
    }
    for (int id = 0; id < get_task_count(); id++) {
      const Task& task = tasks[id];
      char text[900] = "";
      size_t used = 0;
      for (int i = 0; i < task.fanout_count && used + 16 < sizeof text; i++) {
        used += static_cast<size_t>(
            snprintf(text + used, sizeof text - used, i == 0 ? "%d" : ",%d", task.fanout[i]));
      }
      unified_log_debug(__FUNCTION__, "  Task %d: func_id=%d, fanin=%d, fanout=%d, args=%d [%s]", id,
                        task.func_id, task.fanin.load(), task.fanout_count, task.num_args, text);
    }
  }

  void record_tensor_pair(void* host_ptr, void* dev_ptr, size_t size) {
    if (pairs_.size() < RUNTIME_MAX_TENSOR_PAIRS) {
      pairs_.push({host_ptr, dev_ptr, size});
    } else {
      refuse("[Runtime] Tensor pairs full (max=%d)", RUNTIME_MAX_TENSOR_PAIRS);
    }
  }
  TensorPair* get_tensor_pairs() { return pairs_.data(); }
  int get_tensor_pair_count() const { return pairs_.size(); }
  void clear_tensor_pairs() { pairs_.clear(); }

  // --- for the runtime ---

  /// Return the number of refused calls, and the first error.
  int get_error_count() const { return error_count_; }
  const char* get_first_error() const { return first_error_; }

  int append(const uint64_t* args, int num_args, int func_id, CoreType core_type, const char* file,
             int line) {
    const int id = count_.load(std::memory_order_relaxed);
    if (id >= RUNTIME_MAX_TASKS) return refuse("[Runtime] Task table full (max=%d)", RUNTIME_MAX_TASKS);
    if (num_args > RUNTIME_MAX_ARGS) {
      return refuse("[Runtime] Too many args (%d > %d)", num_args, RUNTIME_MAX_ARGS);
    }
    if (num_args < 0 || (num_args > 0 && args == nullptr)) {
      return refuse("[Runtime] Invalid args (%d at %p)", num_args, static_cast<const void*>(args));
    }
    if (func_id < 0 || func_id >= max_functions_) {
      return refuse("[Runtime] Invalid func_id %d (max=%d)", func_id, max_functions_);
    }
    Task& task = tasks.at(id);
    task.task_id = id;
    task.func_id = func_id;
    task.num_args = num_args;
    if (num_args > 0) memcpy(task.args, args, sizeof(uint64_t) * static_cast<size_t>(num_args));
    task.core_type = core_type;
    task.site_file = file;
    task.site_line = line;
    count_.store(id + 1, std::memory_order_release);
    if (added != nullptr) added(listener);
    return id;
  }

  /// Add an edge: to_task waits for from_task. If from_task has completed, the edge is only stored.
  void append_edge(int from_task, int to_task) {
    if (!known(from_task)) {
      refuse("[Runtime] Invalid from_task ID %d", from_task);
    } else if (!known(to_task)) {
      refuse("[Runtime] Invalid to_task ID %d", to_task);
    } else if (tasks[from_task].fanout_count >= RUNTIME_MAX_FANOUT) {
      refuse("[Runtime] Fanout overflow for task %d (max=%d)", from_task, RUNTIME_MAX_FANOUT);
    } else {
      Task& from = tasks[from_task];
      lock(from);
      if (from.completed.load(std::memory_order_relaxed) == 0) {
        tasks[to_task].fanin++;
        tasks[to_task].pending++;
      }
      from.fanout.push(to_task);
      from.fanout_count++;
      unlock(from);
    }
  }

  /// Return true if this call was the first to publish the task.
  bool mark_published(int task_id) {
    if (!known(task_id)) return refuse("[Runtime] Invalid task ID %d to publish", task_id) == 0;
    return tasks[task_id].published.exchange(1) == 0;
  }

  /// Satisfy one edge into the task; true if it was the last.
  bool satisfied(int task_id) { return tasks[task_id].pending.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  /// Complete a task. `ready(id)` is called, under the lock of the task, for each task that becomes ready.
  template <class Ready>
  void complete(int task_id, Ready ready) {
    Task& task = tasks[task_id];
    lock(task);
    task.completed.store(1, std::memory_order_release);
    for (int successor : task.fanout) {
      if (satisfied(successor)) ready(successor);
    }
    unlock(task);
  }

  __attribute__((format(printf, 2, 3))) int refuse(const char* format, ...) {
    char text[sizeof first_error_];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    unified_log_error("Runtime", "%s", text);
    if (error_count_++ == 0) memcpy(first_error_, text, sizeof text);
    return -1;
  }

  StableTable<Task> tasks;
  /// Called with `listener` when a task is added.
  void (*added)(void* listener) = nullptr;
  void* listener = nullptr;

 private:
  bool known(int task_id) const { return task_id >= 0 && task_id < get_task_count(); }
  static void lock(Task& task) {
    while (task.edges_locked.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  static void unlock(Task& task) { task.edges_locked.store(false, std::memory_order_release); }

  const int max_functions_;
  std::atomic<int> count_{0};
  int error_count_ = 0;
  char first_error_[160] = {};
  List<TensorPair> pairs_;
};

}  // namespace pto2_detail
