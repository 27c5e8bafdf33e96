// Virtual time: a run with the clock of a model. Kernels have given durations; the orchestrator, the
// schedulers and the way to a core and back have costs. Queues, rounds, rings and clusters use the code of
// every run; only the order of actions is decided here.
//
// This is a discrete-event simulation on the thread of the orchestrator. The orchestrator has a time of its
// own, which its calls advance; before it shows its state to others, all events up to that time happen
// (`catch_up`). While it waits, events happen. Hence there is one order of all events, whatever threads the
// host has: those only execute kernels. A kernel may begin on the host as soon as its task has been
// dispatched, since all its producers have ended, and must be done when the task ends; its time on the host
// does not matter. Tasks that may wait for one another (of a mixed task, of a team, on a cluster of their
// own) run on the thread of the events, one after another, at their ends.
//
// The duration of a kernel may follow from its execution (`by_doing`): then the kernel is executed at its
// begin, on the thread of the events, and the duration is computed afterwards; for a block of several kernels
// after all of them.
//
// Changes by one event are seen by later ones: a scheduler that works from t to t + c hands a task on by an
// event at the time of the handover, so that no core takes it earlier. Events of one time happen in the order
// of their creation.
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

/// Costs besides kernels, in nanoseconds; src/pto/runtime/overheads.py defines them and cites the sources of
/// the numbers.
struct VirtualCosts {
  // The orchestrator, for every task.
  int64_t orchestration = 0, sync = 0, alloc = 0, heap = 0, params = 0, lookup = 0, fanin = 0, insert = 0,
          finalize = 0, scope_end = 0;
  // A scheduler: to poll a core; for a core that has finished, a task that waited for it, a task that is
  // ready, one that is found by the scan, one that is given to cores, and each of these.
  int64_t poll = 1, completion = 0, resolve = 0, enqueue = 0, scan = 0, dispatch = 0, store = 0;
  // A core: until it sees its task, until the kernel begins, the same for its first task, until its scheduler
  // can see that it has ended.
  int64_t seen_by_core = 0, head = 0, cold_head = 0, seen_by_scheduler = 0;
};

struct VirtualOptions {
  VirtualCosts costs;
  bool compute = true;  // whether kernels are executed, or only take their time
  /// Return the duration of the kernel of a payload; negative: unknown, and the run has failed.
  std::function<int64_t(const DispatchPayload&)> duration;
  /// True if that is known only when the kernel (its number) has been executed.
  std::function<bool(int32_t)> by_doing = [](int32_t) { return false; };
};

class VirtualTime {
 public:
  static constexpr int64_t kBegin = 1;  // 0 is a time that was not recorded

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

  // --- for the thread that orchestrates ---
  void start(int host_threads);
  void stop();
  /// Everything up to the time of the orchestrator happens.
  void catch_up();
  /// Process events until `free()`; false if none is left.
  bool wait(const std::function<bool()>& free);
  /// The orchestrator is done: all remaining events happen.
  void finish();
  /// The orchestrator has published state that schedulers poll for.
  void published();

  // --- for the actor of an event ---
  /// A scheduler has found that a task is ready: it hands it on from now on (Graph::hand_on).
  void ready(int64_t id, int scheduler);
  /// Something is in a queue.
  void handed_on();
  /// Consumed tasks are visible as consumed from now on: Graph::settle.
  void settle();
  /// A core has its payload.
  void dispatched(VirtualCore& core);
  /// Its kernel has been executed.
  void executed(VirtualCore& core);

 private:
  enum class Kind : int8_t { Ready, Complete, Dispatch, End, Seen, Settle };
  struct Event {
    int64_t time;
    uint64_t order;
    int64_t task;  // that is ready
    int32_t who;   // a scheduler or a core
    Kind kind;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  /// Rounds of a scheduler: it polls its cores one after another, then the queues. `clock` is the end of its
  /// last round with an action; it polls again at multiples of the duration of a round after that.
  struct Turns {
    int64_t clock = kBegin;
    int64_t next = INT64_MAX;  // when it begins a round, if it will
    bool in_round = false;
    int done = 0;  // in this round
  };
  /// A kernel on its way: it waits for a thread, has one, or has been executed.
  enum State : int { kNone, kQueued, kRunning, kDone };
  struct Slot {
    VirtualCore* core = nullptr;
    std::atomic<int> state{kNone};
    Attempt attempt;
    bool warm = false;      // it had a task before
    bool together = false;  // it may wait for other tasks, and is executed when it ends
    bool by_doing = false;  // how long it takes is known when it has been executed
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
      teams_;  // those that have cores, not all of them
  std::map<std::pair<int64_t, int32_t>, std::vector<VirtualCore*>>
      done_of_;           // executed kernels of a block of a task whose duration follows from its execution
  bool outside_ = false;  // the thread of the orchestrator orchestrates no more

  std::mutex lock_;  // guards the next three
  std::condition_variable more_, done_;
  std::deque<Slot*> queue_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pto2
