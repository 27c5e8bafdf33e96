// Execution: schedulers that complete and dispatch tasks, virtual cores that execute them, host threads that
// do both.
//
// A scheduler owns a range of clusters. The thread with its baton runs one round: take the finished tasks of
// its cores, give idle cores ready tasks, look for new ready tasks. A core with a task can be claimed by any
// host thread. So the simulated machine has any number of cores, and the host runs as many at a time as it
// has threads; a thread without work sleeps.
//
// `outstanding` counts tasks (or the blocks of a task with several) from ready on until they complete. A task
// is counted before it can run and discounted after all tasks that its completion makes ready have been
// counted. Hence: outstanding == 0 and no unseen tasks means that only the orchestrator can bring new work.
// Deadlock reports and the end of a run rest on that proof.
//
// An idle thread keeps away from working ones (`needed`): tasks that a busy thread has just made ready are in
// its cache, and two threads that alternate on a chain of tasks are slower than one. The idle thread comes
// back when more is outstanding than threads are busy. No work is lost: a thread counts as busy until it has
// searched everything in vain, and the last one to stop being busy sees that no other is and searches once
// more.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core.hpp"
#include "error.hpp"
#include "graph.hpp"
#include "kernel.hpp"
#include "machine.hpp"
#include "mpmc_queue.hpp"
#include "pause.hpp"
#include "records.hpp"
#include "run_groups.hpp"
#include "virtual_time.hpp"

namespace pto2 {

struct ExecOptions {
  int block_dim = kMaxBlockDim;
  int schedulers = 3;
  int shards = 3;        // PTO2_READY_QUEUE_SHARDS
  int host_threads = 1;  // the caller's is one of them
  size_t queue = 65536;  // tasks that may be ready at one time
  bool deterministic = false;
  uint64_t seed = 0;
  std::shared_ptr<const VirtualOptions> virtual_time;  // null: the time of the host
  bool record = false;
  bool note_uses = false;   // keep accesses of tasks to global memory: Machine::uses
  bool callers = false;     // keep which calls of an orchestration submitted each task
  bool interrupts = false;  // Ctrl-C is meant for this run
  /// Called on the orchestrator's thread: when it stops orchestrating to help, when it goes on, and now and
  /// then while it waits (may call Exec::fail).
  std::function<void()> leave, enter, poll;
  /// Called, on any thread, after some seconds without progress.
  std::function<void(const std::string&)> stalled;
  int stall_seconds = 5;
  /// Others that kernels may wait for, and which of them this is.
  std::shared_ptr<RunGroup> group;
  int member = -1;
  /// Windows of all ranks, which tasks may reach besides their arguments; none if the owner is below 0.
  pto_array windows{};
};

/// The idle time of a thread, and whether it counts as busy.
struct Attention {
  int idle = 0;      // polls since it last found work
  int suspects = 0;  // polls in a row that found one task more than there are busy threads
  bool busy = false;
};

struct Scheduler {
  int number = 0;
  uint64_t mine[kCoreTypes] = {};  // its cores, as bits
  SpinLock baton;
  alignas(64) std::atomic<uint64_t> idle[kCoreTypes];  // changed by the holder of the baton only
  /// The cluster that gets no tasks for one core, so that all its cores are free for one that needs several;
  /// -1: none. Changed by the holder.
  std::atomic<int> kept_free{-1};
  alignas(64)
      std::atomic<uint64_t> finished[kCoreTypes];  // set by the thread that ran the core, taken by the holder
  alignas(64) std::atomic<
      uint64_t> runnable[kCoreTypes];  // set by the holder, taken by the thread that claims the core
  uint64_t rounds = 0, completed = 0, hits = 0, misses = 0;  // of the holder
  std::vector<TaskRecord> without_core;                      // tasks that needed none; of the holder
};

/// The last search of a thread for work, while cores wait in the middle of kernels.
struct alignas(64) Look {
  static constexpr uint64_t kBusy = 0, kAsleep = UINT64_MAX;
  std::atomic<uint64_t> found_nothing{kBusy};  // activity + 1 when it began to search, if it found no work
  std::atomic<uint64_t> count{0};              // how often that was so
  // Its suspicion that all is stuck: since which activity, and the round of the group and the counts of all
  // threads then.
  uint64_t since = 0, round = 0;
  std::vector<uint64_t> counts;
};

class Exec {
 public:
  Exec(const ExecOptions& options, Graph& graph, const Kernels& kernels);
  ~Exec();

  /// Start the threads, call `orchestrate` on this one, and return when every task has completed or the run
  /// has failed. `orchestrate` may throw Aborted; another exception becomes the failure.
  void run(const std::function<void()>& orchestrate);

  // --- for graphs ---
  /// A task can start; it has been counted with `count`. The ticket comes back in Graph::fill. `from` is a
  /// scheduler, or -1 for the orchestrator.
  void ready(int64_t ticket, CoreType type, int cluster, int from);
  void count(int tasks_or_blocks) { outstanding_.fetch_add(tasks_or_blocks, std::memory_order_relaxed); }
  void discount(int tasks_or_blocks);
  /// Note a task that needs no core, and is about to be completed by a scheduler; one that `waited` began to when it
  /// was ready.
  void record_without_core(int64_t id, int scheduler, bool waited);

  // --- time ---
  /// Nanoseconds: of the host, or the virtual time of the current actor.
  int64_t now() const { return virtual_ != nullptr ? virtual_->now() : now_ns(); }
  /// In virtual time the current actor needs this long.
  void spend(int64_t VirtualCosts::* cost) {
    if (virtual_ != nullptr) [[unlikely]]
      virtual_->spend(cost);
  }
  void spend(Phase phase) {
    if (virtual_ != nullptr) [[unlikely]]
      virtual_->spend(phase);
  }
  /// In virtual time: before the orchestrator reads the state of others, or shows its own.
  void catch_up() {
    if (virtual_ != nullptr) [[unlikely]]
      virtual_->catch_up();
  }
  VirtualTime* virtual_time() const { return virtual_.get(); }

  /// Add to the number of tasks without a core whose event comes without notice.
  void awaits(int more) { waiting_count_.fetch_add(more, std::memory_order_seq_cst); }

  // --- for orchestrators ---
  /// Wake a thread that searches published tasks.
  void published() {
    if (virtual_ != nullptr) [[unlikely]]
      return virtual_->published();
    parking_.wake_one();
  }
  /// With a single host thread: run what can run, so that tasks are still in the cache when they do. And an
  /// orchestration that never waits for long can be ended.
  void help_now_and_then(int64_t id) {
    if ((id & 1023) == 1023) ask();
    if (virtual_ == nullptr && alone_ && (id & 63) == 63) {
      const Unguarded ours;
      for (int n = 0; n < 128 && turn(0); ++n) {
      }
    }
  }
  /// Work on other things until `free()`; false if that is proven never to come. Counts tries in `spins`. The
  /// condition is tested when `released` is called with at least `wake_at`, or when a core begins to wait.
  bool help_until(const std::function<bool()>& free, const std::function<void(int)>& still_blocked,
                  int& spins, int64_t wake_at = 0);
  /// Something an orchestrator may be blocked on has changed: how far things have come.
  void released(int64_t reached = INT64_MAX) {
    if (orchestrator_blocked_.load(std::memory_order_seq_cst) &&
        reached >= wake_at_.load(std::memory_order_seq_cst)) {
      parking_.wake_all();
    }
  }
  /// True if a core waits in the middle of a kernel: perhaps for a task that is yet to be submitted.
  bool core_waits() const { return waiting_count_.load(std::memory_order_seq_cst) > 0; }
  void throw_if_failed() const {
    only_orchestrators();
    if (failure_.failed()) throw Aborted();
  }
  /// Throws in a kernel of this run.
  void only_orchestrators() const;

  void fail(ErrorCode code, std::string text, int kernel = -1, int mark = -1, int64_t task = -1);
  Failure& failure() { return failure_; }
  const Pause& pause() const { return pause_; }
  Machine& machine() { return machine_; }
  const ExecOptions& options() const { return options_; }
  bool nothing_can_happen() const;
  size_t queued(CoreType type) const;
  std::string waiting_cores() const;  // what cores in the middle of a kernel wait for, a line each
  void fail_stuck();                  // no core can go on: where each waits, and for what
  std::vector<Recorder>& recorders() { return recorders_; }
  Recorder* recorder() { return options_.record ? &recorders_[0] : nullptr; }  // of the orchestrator's thread
  const std::vector<std::unique_ptr<Scheduler>>& schedulers() const { return schedulers_; }
  VirtualCore& core(CoreType type, int index) {
    return cores_[static_cast<int>(type)][static_cast<size_t>(index)];
  }

 private:
  friend class Interleaver;
  friend class VirtualTime;
  bool wants(const Scheduler& s) const;
  bool round(Scheduler& s, int thread);
  int phase(Scheduler& s, int thread, Phase phase);
  int complete(Scheduler& s, int thread);
  int dispatch(Scheduler& s);
  int dispatch_mixed(Scheduler& s);
  void give_cluster(Scheduler& s, int cluster, int64_t ticket);
  void start(Scheduler& s, VirtualCore& core);
  int cluster_to_keep(const Scheduler& s) const;
  bool all_idle(const Scheduler& s, int cluster) const;
  bool mixed_waits(int cluster) const;
  VirtualCore& member(int cluster, int kernel);
  bool next_ready(CoreType type, int cluster, int shard, int64_t& ticket);
  int64_t wanted_threads() const;
  bool needed(Attention& attention) const;
  bool turn_if_needed(int thread, Attention& attention);
  void no_longer_busy(Attention& attention);
  bool turn(int thread);
  bool take_turn(int thread);
  VirtualCore* claim(int thread);
  void execute(VirtualCore& core, int thread);
  Attempt attempt(VirtualCore& core);
  bool conclude(VirtualCore& core, const Attempt& attempt, int thread);
  bool after(VirtualCore& core, Ran ran, int thread);
  void report(VirtualCore& core, Scheduler& s);
  bool resume_waiting(int thread);
  void work(int thread);
  bool over() const;
  bool rest(int thread, Attention& attention, const std::function<bool()>* free = nullptr);
  bool anything_to_do() const;
  void wake_for_more();
  void ask();
  void watch(int64_t now);
  std::string unmoved(int64_t now);
  std::string stall_report(int64_t seconds) const;
  void check_stuck(int thread);

  const ExecOptions options_;
  Graph& graph_;
  const Kernels& kernels_;
  const bool alone_;  // one host thread, and not in deterministic mode
  Pause pause_;
  Failure failure_;
  Machine machine_;
  std::deque<VirtualCore> cores_[kCoreTypes];
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::vector<std::unique_ptr<MpmcQueue>> queues_[kShapes];  // by shard
  std::vector<std::unique_ptr<MpmcQueue>> pinned_[kShapes];  // by cluster
  std::vector<int> mixed_left_;  // by cluster: kernels of its mixed task that run; of the holder of the baton
  alignas(64) std::atomic<int64_t> outstanding_{0};
  alignas(64) std::atomic<int> busy_{0};  // threads that have found work, and not yet run out of it
  alignas(64) std::atomic<int> pinned_count_{0};
  std::atomic<int> mixed_count_{0};  // tickets of mixed tasks that wait for a cluster
  std::atomic<bool> orchestrator_done_{false};
  std::atomic<bool> orchestrator_blocked_{false};
  std::atomic<int64_t> wake_at_{0};  // the smallest argument of `released` that wakes it
  std::atomic<int> waiting_count_{
      0};  // cores that wait in the middle of a kernel, and tasks without one that wait
  std::atomic<uint64_t> activity_{0};  // grows when a core has run or gone on, while some wait
  int nested_ = 0;  // kernels that the thread of the orchestrator is in: a kernel may have a run of its own
  Parking parking_;
  std::unique_ptr<Look[]> looks_;                   // by thread
  int64_t asked_ = 0;                               // when `poll` was last called
  SpinLock watching_;                               // guards the next three
  uint64_t watched_ = 0;                            // registers of all cores at their last change
  int64_t moved_ = 0, said_ = 0;                    // when that was, and when it was last reported
  std::vector<std::vector<VirtualCore*>> waiting_;  // by thread
  std::vector<Recorder> recorders_;                 // by thread
  std::vector<std::thread> threads_;
  std::unique_ptr<VirtualTime> virtual_;  // last: it refers to the cores and schedulers
};

}  // namespace pto2
