// Execution: schedulers complete and dispatch tasks, virtual cores execute them, and host threads run both.
//
// A scheduler owns a range of clusters. The thread that holds its baton runs one round: take the finished
// tasks of its cores, give ready tasks to idle cores, look for new ready tasks. Any host thread can claim a
// core that has a task. So the number of simulated cores does not depend on the number of host threads. A
// host thread without work sleeps.
//
// `outstanding` counts tasks (or the blocks of a block task) from ready to complete. A task is counted before
// it can run. It is discounted after all tasks that its completion makes ready have been counted. So if
// outstanding == 0 and no published task is unseen, only the orchestrator can add work. Deadlock reports and
// the end of a run rest on this proof.
//
// An idle thread leaves work to the busy threads (`needed`): tasks that a busy thread has just made ready are
// in its cache, and two threads that alternate on a chain of tasks are slower than one. The idle thread
// returns when more tasks are outstanding than threads are busy. No work is lost: a thread counts as busy
// until it has searched everything in vain, and the last busy thread sees that no other thread is busy and
// searches once more.
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
  int host_threads = 1;  // including the calling thread
  size_t queue = 65536;  // most tasks that are ready at one time
  bool deterministic = false;
  uint64_t seed = 0;
  std::shared_ptr<const VirtualOptions> virtual_time;  // null: host time
  bool record = false;
  bool note_uses = false;   // record accesses of tasks to global memory: Machine::uses
  bool callers = false;     // record the calls of an orchestration that submitted each task
  bool interrupts = false;  // Ctrl-C stops this run
  /// Called on the orchestrator's thread: `leave` when it stops orchestrating to help, `enter` when it
  /// continues, `poll` from time to time while it waits (may call Exec::fail).
  std::function<void()> leave, enter, poll;
  /// Called on any thread: after `stall_seconds` without progress, and when Ctrl-C has stopped a kernel.
  std::function<void(const std::string&)> stalled;
  int stall_seconds = 5;
  /// Runs that kernels may wait for, and the number of this run among them.
  std::shared_ptr<RunGroup> group;
  int member = -1;
  /// Windows of all ranks, which tasks may access besides their arguments; none if `data` is null.
  pto_array windows{};
};

/// The idle time of a thread, and whether the thread counts as busy.
struct Attention {
  int idle = 0;      // polls since it last found work
  int suspects = 0;  // consecutive polls that found one task more than there are busy threads
  bool busy = false;
};

struct Scheduler {
  int number = 0;
  uint64_t mine[kCoreTypes] = {};  // its cores, as bits
  SpinLock baton;
  alignas(64) std::atomic<uint64_t> idle[kCoreTypes];  // changed only by the holder of the baton
  /// The cluster that gets no tasks for one core, so that all its cores become free for a mixed task; -1:
  /// none. Changed only by the holder of the baton.
  std::atomic<int> kept_free{-1};
  alignas(64)
      std::atomic<uint64_t> finished[kCoreTypes];  // set by the thread that ran the core, taken by the holder
  alignas(64) std::atomic<
      uint64_t> runnable[kCoreTypes];  // set by the holder, taken by the thread that claims the core
  uint64_t rounds = 0, completed = 0, hits = 0, misses = 0;  // changed only by the holder of the baton
  std::vector<TaskRecord> without_core;                      // tasks without a core; likewise
};

/// The last search of a thread for work, while cores wait in the middle of kernels.
struct alignas(64) Look {
  static constexpr uint64_t kBusy = 0, kAsleep = UINT64_MAX;
  std::atomic<uint64_t> found_nothing{kBusy};  // activity + 1 at the begin of a search that found no work
  std::atomic<uint64_t> count{0};              // number of searches that found no work
  // The suspicion of this thread that the run is stuck: the activity since then, and the round of the group
  // and the counts of all threads at that time.
  uint64_t since = 0, round = 0;
  std::vector<uint64_t> counts;
};

class Exec {
 public:
  Exec(const ExecOptions& options, Graph& graph, const Kernels& kernels);
  ~Exec();

  /// Start the threads, call `orchestrate` on the calling thread, and return when every task has completed or
  /// the run has failed. `orchestrate` may throw Aborted; any other exception becomes the failure.
  void run(const std::function<void()>& orchestrate);

  // --- for graphs ---
  /// Queue a task that can start and that `count` has counted. The ticket is later passed to Graph::fill.
  /// `from` is a scheduler, or -1 for the orchestrator.
  void ready(int64_t ticket, CoreType type, int cluster, int from);
  void count(int tasks_or_blocks) { outstanding_.fetch_add(tasks_or_blocks, std::memory_order_relaxed); }
  void discount(int tasks_or_blocks);
  /// Record a task without a core that a scheduler is about to complete. If the task `waited`, it has started
  /// at the time when it was ready.
  void record_without_core(int64_t id, int scheduler, bool waited);

  // --- time ---
  /// Nanoseconds of the host, or the virtual time of the current actor.
  int64_t now() const { return virtual_ != nullptr ? virtual_->now() : now_ns(); }
  /// In virtual time: add a cost to the time of the current actor.
  void spend(int64_t VirtualCosts::* cost) {
    if (virtual_ != nullptr) [[unlikely]]
      virtual_->spend(cost);
  }
  void spend(Phase phase) {
    if (virtual_ != nullptr) [[unlikely]]
      virtual_->spend(phase);
  }
  /// In virtual time: process earlier events. Call before the orchestrator reads or publishes shared state.
  void catch_up() {
    if (virtual_ != nullptr) [[unlikely]]
      virtual_->catch_up();
  }
  VirtualTime* virtual_time() const { return virtual_.get(); }

  /// Add to the number of waiting tasks without a core, whose event arrives without notification.
  void awaits(int more) { waiting_count_.fetch_add(more, std::memory_order_seq_cst); }

  // --- for orchestrators ---
  /// Wake a thread that looks for published tasks.
  void published() {
    if (virtual_ != nullptr) [[unlikely]]
      return virtual_->published();
    parking_.wake_one();
  }
  /// With one host thread: run ready tasks while their data is in the cache. From time to time, also check
  /// for a request to end the run.
  void help_now_and_then(int64_t id) {
    if ((id & 1023) == 1023) ask();
    if (virtual_ == nullptr && alone_ && (id & 63) == 63) {
      const Unguarded ours;
      for (int n = 0; n < 128 && turn(0); ++n) {
      }
    }
  }
  /// Do other work until `free()`; return false if that is proven impossible. Count tries in `spins`. A
  /// sleeper tests again after `released` of at least `wake_at`, when a core begins to wait, and regularly.
  bool help_until(const std::function<bool()>& free, const std::function<void(int)>& still_blocked,
                  int& spins, int64_t wake_at = 0);
  /// Wake a blocked orchestrator after a change that it may wait for. `reached`: the new watermark of tasks.
  void released(int64_t reached = INT64_MAX) {
    if (orchestrator_blocked_.load(std::memory_order_seq_cst) &&
        reached >= wake_at_.load(std::memory_order_seq_cst)) {
      parking_.wake_all();
    }
  }
  /// Return true if a core waits in the middle of a kernel, perhaps for a task that is not yet submitted.
  bool core_waits() const { return waiting_count_.load(std::memory_order_seq_cst) > 0; }
  void throw_if_failed() const {
    only_orchestrators();
    if (failure_.failed()) throw Aborted();
  }
  /// Throw if called in a kernel of this run.
  void only_orchestrators() const;

  void fail(ErrorCode code, std::string text, int kernel = -1, int mark = -1, int64_t task = -1);
  Failure& failure() { return failure_; }
  const Pause& pause() const { return pause_; }
  Machine& machine() { return machine_; }
  const ExecOptions& options() const { return options_; }
  bool nothing_can_happen() const;
  size_t queued(CoreType type) const;
  std::string waiting_cores() const;  // what cores in the middle of a kernel wait for, one line each
  void fail_stuck();                  // fail because no core can continue; report each wait
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
  const bool alone_;  // one host thread, not in deterministic mode
  Pause pause_;
  Failure failure_;
  Machine machine_;
  std::deque<VirtualCore> cores_[kCoreTypes];
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::vector<std::unique_ptr<MpmcQueue>> queues_[kShapes];  // by shard
  std::vector<std::unique_ptr<MpmcQueue>> pinned_[kShapes];  // by cluster
  std::vector<int> mixed_left_;  // by cluster: running kernels of its mixed task; for the holder of the baton
  alignas(64) std::atomic<int64_t> outstanding_{0};
  alignas(64) std::atomic<int> busy_{0};  // threads that have found work and not yet run out of it
  alignas(64) std::atomic<int> pinned_count_{0};
  std::atomic<int> mixed_count_{0};  // tickets of mixed tasks that wait for a cluster
  std::atomic<bool> orchestrator_done_{false};
  std::atomic<bool> orchestrator_blocked_{false};
  std::atomic<int64_t> wake_at_{0};  // the smallest argument of `released` that wakes the orchestrator
  std::atomic<int> waiting_count_{
      0};  // cores that wait in the middle of a kernel, and tasks without a core that wait
  std::atomic<uint64_t> activity_{0};  // grows when a core has run or continued while others wait
  int nested_ = 0;  // kernels that the orchestrator's thread is in: a kernel may start its own run
  Parking parking_;
  std::unique_ptr<Look[]> looks_;                   // by thread
  int64_t asked_ = 0;                               // time of the last call of `poll`
  SpinLock watching_;                               // guards watched_, moved_, said_
  uint64_t watched_ = 0;                            // hash of the registers of all cores at the last poll
  int64_t moved_ = 0, said_ = 0;                    // time of their last change; time of the last report
  std::vector<std::vector<VirtualCore*>> waiting_;  // by thread: cores that wait in the middle of a kernel
  std::vector<Recorder> recorders_;                 // by thread
  std::vector<std::thread> threads_;
  std::unique_ptr<VirtualTime> virtual_;  // last, because it refers to the cores and schedulers
};

}  // namespace pto2
