// Virtual time: a run with the clock of a model. Kernels have given durations; the orchestrator, the
// schedulers and the messages to and from a core have costs. Queues, rounds, rings and clusters use the same
// code as other runs; this file only decides the order of actions.
//
// This is a discrete-event simulation on the thread of the orchestrator. The orchestrator has its own time,
// which its calls advance. Before it publishes state, all events up to its time are processed (`catch_up`).
// While it waits, events are processed. So the order of events does not depend on the host threads, which
// only execute kernels. A kernel may begin on the host as soon as its task has been dispatched, because all
// its producers have ended, and it must be done when the task ends; its time on the host has no effect. Tasks
// that may wait for one another (of a mixed task, of a team, on a cluster of their own) run on the thread of
// the events, one after another, at their ends.
//
// The duration of a kernel may follow from its execution (`by_doing`). Then the kernel is executed at its
// begin, on the thread of the events, and its duration is computed afterwards; for a block of several
// kernels, after all of them.
//
// Later events see the changes of an earlier event. A scheduler that works from t to t + c hands a task on by
// an event at the time of the handover, so that no core takes the task earlier. Events of the same time are
// processed in the order of their creation.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core.hpp"
#include "kernel.hpp"
#include "machine.hpp"
#include "records.hpp"

namespace pto2 {

class Exec;
struct Scheduler;

/// Costs other than kernels, in nanoseconds; src/pto/runtime/overheads.py defines them and cites the sources
/// of the numbers.
struct VirtualCosts {
  // Of the orchestrator, for every task.
  int64_t orchestration = 0, sync = 0, alloc = 0, heap = 0, params = 0, lookup = 0, fanin = 0, insert = 0,
          finalize = 0, scope_end = 0;
  // Of a scheduler: per poll of a core, core that has finished, consumer of an ended task, ready task, task
  // found by the scan, task or block given to cores, and core that gets a payload.
  int64_t poll = 1, completion = 0, resolve = 0, enqueue = 0, scan = 0, dispatch = 0, store = 0;
  // Delays of a core: until it sees its task, until the kernel begins, the same for its first task, and until
  // its scheduler can see that the task has ended.
  int64_t seen_by_core = 0, head = 0, cold_head = 0, seen_by_scheduler = 0;
};

struct VirtualOptions {
  VirtualCosts costs;
  bool compute = true;  // false: kernels only take time and are not executed
  /// Return the duration of the kernel of a payload; negative if unknown, and then the run fails.
  std::function<int64_t(const DispatchPayload&)> duration;
  /// Return true if the duration of a kernel, given by number, is known only after its execution.
  std::function<bool(int32_t)> by_doing = [](int32_t) { return false; };
};

class VirtualTime {
 public:
  static constexpr int64_t kBegin = 1;  // 0 means a time that was not recorded

  VirtualTime(Exec& exec, const VirtualOptions& options);
  ~VirtualTime();
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  /// The time of the current actor.
  int64_t now() const { return now_; }
  void spend(int64_t VirtualCosts::* cost) { now_ += options_.costs.*cost; }
  void spend(Phase phase);
  bool compute() const { return options_.compute; }
  uint64_t events() const { return happened_; }

  // --- for the thread of the orchestrator ---
  void start(int host_threads);
  void stop();
  /// Process all events up to the time of the orchestrator.
  void catch_up();
  /// Process events until `free()`; return false if that cannot happen any more.
  bool wait(const std::function<bool()>& free);
  /// Process all remaining events. Called when the orchestration has ended.
  void finish();
  /// Make a scheduler poll the state that the orchestrator has published.
  void published();

  // --- for the actor of an event ---
  /// Hand on a ready task at the current time of the scheduler that found it (Graph::hand_on).
  void ready(int64_t id, int scheduler);
  /// Make the schedulers that want the new entry of a queue poll.
  void handed_on();
  /// Make consumed tasks visible as consumed from now on (Graph::settle).
  void settle();
  /// Start the task of a core that has got its payload.
  void dispatched(VirtualCore& core);
  /// Note that the kernel of a core has been executed.
  void executed(VirtualCore& core);

 private:
  enum class Kind : int8_t { Ready, Complete, Dispatch, End, Seen, Settle };
  struct Event {
    int64_t time;
    uint64_t order;
    int64_t task;  // the task that is ready
    int32_t who;   // a scheduler or a core (worker number)
    Kind kind;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  /// Polling by a scheduler: first its cores, one after another, then the queues. `clock` is the end of its
  /// last round that found work. It polls again at multiples of the duration of a round after `clock`.
  struct Turns {
    int64_t clock = kBegin;
    int64_t next = INT64_MAX;  // the begin of its next round; INT64_MAX: none planned
    bool in_round = false;
    int done = 0;  // actions in this round
  };
  /// State of a kernel: it waits for a thread, a thread runs it, or it has been executed.
  enum State : int { kNone, kQueued, kRunning, kDone };
  struct Slot {
    VirtualCore* core = nullptr;
    std::atomic<int> state{kNone};
    Attempt attempt;
    bool warm = false;      // the core has had a task before
    bool together = false;  // the kernel may wait for other tasks, so the thread of the events executes it
    bool by_doing = false;  // its duration is known only after its execution
  };

  void push(Kind kind, int64_t time, int who, int64_t task = -1);
  bool step();
  void look(Scheduler& s, int64_t since);
  int64_t next_look(const Scheduler& s, int64_t since) const;
  void complete(Scheduler& s);
  void dispatch(Scheduler& s);
  void end_round(Scheduler& s);
  int64_t start_of(const VirtualCore& core);
  void begin(VirtualCore& core, int64_t start);
  void execute_together(VirtualCore& core);
  void execute_first(VirtualCore& core, int64_t start);
  bool by_doing(const DispatchPayload& payload) const;
  int64_t duration_of(const DispatchPayload& payload);
  void block_executed(VirtualCore& core);
  void seen(VirtualCore& core);
  Slot& slot(const VirtualCore& core) { return slots_[static_cast<size_t>(core.worker)]; }
  bool stuck();

  void hand_over(Slot& slot);
  void await(Slot& slot);
  void work();

  Exec& exec_;
  const VirtualOptions& options_;
  int64_t now_ = kBegin;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t order_ = 0, happened_ = 0;
  std::vector<Turns> turns_;  // by scheduler
  std::vector<Slot> slots_;   // by worker number of the core
  std::unordered_map<const Team*, std::vector<VirtualCore*>>
      teams_;  // teams of which some cores, but not all, have their payload
  std::map<std::pair<int64_t, int32_t>, std::vector<VirtualCore*>>
      done_of_;           // by block: executed kernels of a block whose duration follows from its execution
  bool outside_ = false;  // true: the orchestration has ended on the orchestrator's thread

  std::mutex lock_;  // guards queue_ and stopped_, and the changes that more_ and done_ signal
  std::condition_variable more_, done_;
  std::deque<Slot*> queue_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pto2
