// tensormap_and_ringbuffer: an orchestrator submits tasks into a ring, edges follow from the tensors that the
// tasks read and write, schedulers complete tasks and advance the watermark.
//
// The life of a task (the lock is the fanout_lock of the producer):
//   submit    the orchestrator takes a slot and output memory, finds the producers, and under the lock of
//             each producer joins its list of consumers, or sees that the producer has already completed;
//   ready     the last producer has completed: the thread that makes fanin_refcount reach fanin_count and
//             changes the state from 0 to 1 hands the task on, so exactly one does (both are sequentially
//             consistent: the orchestrator writes the count and reads the refcount, schedulers vice versa);
//   completed under the lock, the state becomes 2 and the list of consumers is final;
//   consumed  under the lock, when its completion has been handled and its scope and all its consumers
//             have released it;
//   retired   it and all older tasks are consumed: last_task_alive passes it, and its slot, entries and
//             output memory can be reused.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../exec/callers.hpp"
#include "../exec/exec.hpp"
#include "../exec/log.hpp"
#include "clusters.hpp"
#include "demand.hpp"
#include "dep_pool.hpp"
#include "hazards.hpp"
#include "heap_ring.hpp"
#include "shared_memory.hpp"
#include "tensor_map.hpp"

namespace pto2 {

struct TensormapOptions {
  ExecOptions exec;
  uint64_t task_window = 65536;       // PTO2_RING_TASK_WINDOW
  uint64_t heap = uint64_t{1} << 30;  // PTO2_RING_HEAP
  uint64_t dep_pool = 65536;          // PTO2_RING_DEP_POOL
  uint64_t tensormap_pool = 65536;
  uint64_t tensormap_buckets = 65536;
  bool check_hazards = false;
  bool track_war = false;  // order the tasks that check_hazards would report
  bool poison = false;     // fill fresh output memory with 0xFF
};

/// A parameter of a task. An OUTPUT without an address gets one, which submit stores in `tensor`.
struct Arg {
  PTOParamType type = PTOParamType::SCALAR;
  TensorData* tensor = nullptr;
  uint64_t scalar = 0;
  bool no_dep = false;  // makes no edges in either direction
  bool filled = false;  // for an OUTPUT without an address: fill it with `scalar`
};

/// Storage for the parameters of one task: constructing 64 takes longer than submitting a task with few.
class Args {
 public:
  explicit Args(int count)
      : many_(count > kFewParams && count <= kMaxParams ? new Arg[kMaxParams] : nullptr) {}
  Arg* get() { return many_ != nullptr ? many_.get() : few_; }

 private:
  Arg few_[kFewParams];
  std::unique_ptr<Arg[]> many_;
};

/// `tensor[index] op target`: the condition of a task.
struct Predicate {
  const TensorData* tensor = nullptr;
  uint64_t index[RUNTIME_MAX_TENSOR_DIMS] = {};
  int8_t op = Condition::kNone;
  int64_t target = 0;
};

struct Submission {
  int32_t kernel_id = -1;
  int32_t worker_type = 0;
  const Arg* args = nullptr;
  int count = 0;
  int32_t cluster = -1;
  int32_t block_dim = 0;                 // > 0: a block task with that many blocks
  const int32_t* cluster_ids = nullptr;  // one per block, or null
  const int64_t* deps = nullptr;         // further tasks to wait for; negative ids are ignored
  int dep_count = 0;
  const int32_t* kernels = nullptr;  // of a mixed task, for AIC, AIV0, AIV1; -1: none
  bool sync_start = false;           // all blocks must have a core at the same time
  bool no_core = false;              // the task has no kernel
  bool awaits = false;               // the task completes when the predicate holds
  Predicate predicate{};
};

struct Site {
  const char* file = nullptr;
  int line = 0;
};

/// An element that the orchestration has read and that may be unwritten (see TensormapOptions::poison).
struct BlankRead {
  uint64_t address, size;
  Site site;
};

/// Statistics of a run.
struct TensormapStats {
  int64_t tasks = 0, edges = 0;
  uint64_t window_peak = 0, heap_peak = 0, dep_peak = 0, map_peak = 0;
  int64_t blocked[5] = {};  // number of waits of the orchestrator, by Resource
  int max_scope_tasks = 0, max_depth = 0;
};

class TensormapGraph final : public Graph {
 public:
  enum Resource { kTaskRing, kHeapRing, kDepPool, kTensorMap, kClusters };

  TensormapGraph(const TensormapOptions& options, const Kernels& kernels, Log& log);

  /// Run an orchestration inside an outer scope, and all its tasks. The error is in failure().
  void run(const std::function<void()>& orchestrate);
  Failure& failure() { return exec_.failure(); }

  // --- calls of an orchestration; these throw Aborted when the run has failed ---
  int64_t submit(const Submission& submission);
  /// Open a scope. `manual`: only explicit edges order its tasks.
  void scope_begin(bool manual = false);
  void scope_end();
  /// `load`: return the bits of an element after the tasks that write it have completed. `store`: write an
  /// element after the tasks that read or write it have completed.
  uint64_t load(const TensorData& tensor, const uint64_t index[]);
  void store(const TensorData& tensor, const uint64_t index[], uint64_t bits);
  int32_t allocate_cluster();
  void free_cluster(int32_t cluster);
  void set_site(Site site) { site_ = site; }
  void set_callers(Callers callers) { callers_ = std::move(callers); }
  /// End the orchestration with an error.
  [[noreturn]] void give_up(const std::string& text, ErrorCode code = ErrorCode::ExplicitFatal);
  /// Return true if the run is in a deadlock and a survey counts the needs of the orchestration.
  bool surveys() const { return deadlock_ != nullptr; }

  // --- Graph ---
  bool has_unseen() const override;
  int look_for_ready(int scheduler) override;
  bool awaited() const override;
  std::string awaiting() const override;
  void fill(int64_t ticket, DispatchPayload& payload, int scheduler) override;
  int memory(const DispatchPayload& payload, pto_array* out) const override;
  bool judge(const DispatchPayload& payload, UseRecord& use) const override;
  bool completed(int64_t id, int scheduler) override;
  void hand_on(int64_t id, int from) override;
  void settle() override { advance(); }
  void sample(Recorder& recorder, int64_t now) override;
  Progress progress() const override;
  std::string stuck(const std::vector<int64_t>& running) const override;
  std::string site(int64_t id) const override;
  TaskRecord* record(int64_t id) override { return records_ ? &(*records_)[memory_.slot(id)] : nullptr; }

  const TensormapOptions& options() const { return options_; }
  TensormapStats stats() const;
  Exec& exec() { return exec_; }
  const SharedMemory& memory() const { return memory_; }
  const std::vector<EdgeRecord>& edges() const { return edges_; }
  const std::vector<Hazard>& hazards() const { return found_hazards_; }
  /// Return the order of all tasks as edges, if the run looks for hazards.
  std::vector<std::pair<int64_t, int64_t>> order() const { return hazards_.order(); }
  const std::vector<Site>& task_sites() const { return task_sites_; }
  const std::vector<BlankRead>& blank_reads() const { return blank_reads_; }
  const std::vector<CallChain>& task_callers() const { return task_callers_; }  // if the run keeps them

 private:
  struct Scope {
    size_t first;  // index into tasks_in_scopes_
    Site site;
    int number;
    bool manual;
  };
  /// A deadlock. The orchestration continues after it, but no task runs: a *survey* counts its submissions
  /// until it ends, or for a limited time, so that the report can recommend sizes that are large enough.
  struct Deadlock {
    ErrorCode code;
    Resource resource;
    std::string cause, circle;
    uint64_t used[4];             // by Resource, including the refused request
    int64_t id;                   // id of the next task
    int64_t until, latest, left;  // limits of the survey: CPU time of the thread, clock, number of calls
  };

  // submit, step by step (submit.cpp)
  int64_t submit_task(const Submission& submission);
  void check(const Submission& submission);
  void check_kernels(const Submission& submission);
  void check_blocks(const Submission& submission);
  int most_together(const Submission& submission) const;
  bool start_together(const Submission& submission) const;
  [[noreturn]] void refuse(const Submission& submission, const std::string& what,
                           ErrorCode code = ErrorCode::InvalidArgs);
  void describe(const Submission& submission, TaskDescriptor& task);
  void take_dep(int64_t producer, TaskDescriptor& task);
  void take_producer(int64_t producer, int arg, int kind, const TaskDescriptor& task);
  void retain_owner(const TensorData& tensor, const TaskDescriptor& task);
  char* element(const TensorData& tensor, const uint64_t index[], bool writes);
  void wait_for_task(int64_t id);
  int64_t take_slot();
  bool slot_is_free();
  uint64_t take_buffers(const Submission& submission, TaskDescriptor& task);
  TensorData* take_descriptors(int count, TaskDescriptor& task);
  void find_producers(const Submission& submission, TaskDescriptor& task);
  void find_hazards(const Submission& submission, TaskDescriptor& task);
  void hook(TaskDescriptor& task);
  uint64_t make_room(const TaskDescriptor& task);
  void insert(const Submission& submission, TaskDescriptor& task);
  void publish(TaskDescriptor& task);
  void wait_for(Resource resource, const std::function<bool()>& free, const uint64_t& wanted);
  void sync(bool force);
  [[noreturn]] void fatal(ErrorCode code, const std::string& text);
  [[noreturn]] void deadlock(ErrorCode code, Resource resource, uint64_t wanted, int spins);
  int64_t survey(const Submission& submission);
  bool survey_is_over();
  void end_survey(bool all);

  // completion (complete.cpp)
  static int units(const TaskDescriptor& task) { return task.block_dim > 0 ? task.block_dim : 1; }
  void count(const TaskDescriptor& task) { exec_.count(units(task)); }
  void make_ready(TaskDescriptor& task, int from);
  void to_cores(TaskDescriptor& task, int from);
  void team_waits(TaskDescriptor& task, int from);
  void team_goes_on(int scheduler);
  void finish(TaskDescriptor& task, int scheduler);
  bool release(TaskDescriptor& task);
  void advance();

  // texts of reports (report.cpp)
  std::string cause(Resource resource, uint64_t wanted, int spins) const;
  std::string solution(const Deadlock& found, bool all) const;
  std::string circle(Resource resource) const;
  void say_blocked(Resource resource, uint64_t wanted, int spins);
  void say_unblocked(Resource resource, int spins);
  std::string task_line(int64_t id) const;
  std::string site_text(Site site) const;
  std::string rings() const;
  int64_t alive() const { return memory_.header().last_task_alive.load(std::memory_order_seq_cst); }

  const TensormapOptions options_;
  const Kernels& kernels_;
  Log& log_;
  SharedMemory memory_;
  HeapRing heap_;
  DepPool deps_;
  TensorMap map_;
  ZeroedArray<TensorData> tensors_;                                 // ring: descriptors of live tasks
  std::map<int64_t, std::unique_ptr<TensorData[]>> extra_tensors_;  // of tasks that found the ring full
  std::map<int64_t, std::vector<int32_t>> block_clusters_;          // of live block tasks with pinned blocks
  std::map<int64_t, std::unique_ptr<int64_t[]>> extra_args_;        // of live tasks with more than kFewParams
  std::map<int64_t, std::shared_ptr<Team>> teams_;  // of live tasks whose blocks start together
  uint64_t tensors_taken_ = 0, tensors_released_ = 0;
  MpmcQueue orch_ready_;
  MpmcQueue no_core_;  // ready tasks without a kernel, or whose condition does not hold
  // Tasks with `awaits` whose condition does not hold yet. Every search for work tests them.
  mutable std::mutex await_lock_;
  std::vector<int64_t> awaiting_;
  int64_t next_that_holds();  // remove and return one whose condition holds; -1: none
  std::unique_ptr<ZeroedArray<TaskRecord>> records_;
  Exec exec_;
  Clusters clusters_;
  alignas(64) std::atomic<int64_t> next_scan_{0};  // changed only by the holder of scan_lock_
  SpinLock scan_lock_;
  // One team at a time gets cores, until all its blocks have one: two teams that both have some cores would
  // wait forever. The lock guards the next two.
  SpinLock team_lock_;
  int team_left_ = 0;                  // blocks without a core of the team that gets cores now
  std::deque<int64_t> teams_waiting_;  // ready tasks
  std::atomic<int64_t> watched_{-1};   // the task that the orchestrator waits for

  // Used only by the orchestrator.
  alignas(64) int64_t next_id_ = 0;
  int64_t seen_alive_ = 0, seen_scan_ = 0;
  std::vector<int64_t> tasks_in_scopes_;
  std::vector<Scope> scopes_;
  DemandMeter demand_;
  std::unique_ptr<Deadlock> deadlock_;  // set during a survey
  int scope_count_ = 0;
  std::vector<int64_t> producers_;      // of the task being submitted
  std::vector<int32_t> producer_args_;  // the parameter that each producer came from; -1: none
  std::vector<int8_t> producer_kinds_;
  uint64_t tracked_ = 0;                // bits of the parameters of the current task that make edges
  std::vector<int64_t> settled_;        // explicit producers of the current task that have been retired
  int64_t completed_before_ = 0;        // all tasks with smaller ids have completed
  ZeroedArray<int64_t> last_consumer_;  // by slot of the producer: id + 1; to take each producer once
  Site site_;
  Hazards hazards_;
  std::vector<Hazard> found_hazards_;
  std::vector<EdgeRecord> edges_;
  std::vector<Site> task_sites_;
  std::vector<CallChain> task_callers_;
  std::vector<BlankRead> blank_reads_;
  Callers callers_;
  TensormapStats stats_;
};

inline constexpr int kBlockShift = 48;  // a ticket is a task id; from this bit on, block index + 1, or 0
inline constexpr int8_t kExplicit = 3;  // kind of an edge: see EdgeRecord
inline constexpr int8_t kRetain = -1;   // not an edge: the producer is kept alive, not waited for

}  // namespace pto2
