// Interface of a task graph to the execution layer. That layer has the ids of tasks only; the graph decides
// which exist and which become ready by a completion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform.hpp"
#include "pto/core/launch_abi.hpp"
#include "records.hpp"

namespace pto2 {

/// Tasks that exist so far, and how many of them have completed.
struct Progress {
  int64_t completed = 0, total = 0;
};

class Graph {
 public:
  virtual ~Graph() = default;

  /// True if published tasks exist that no scheduler has seen. If this is false and nothing is outstanding,
  /// only the orchestrator can bring new work.
  virtual bool has_unseen() const = 0;

  /// Phases 3 and 4 of a scheduler: find tasks that can start and hand them to Exec::ready. The number found.
  virtual int look_for_ready(int scheduler) = 0;

  /// True if an event arrived that a task without a core waited for: `look_for_ready` completes the task. And
  /// the events that others still wait for, a line each.
  virtual bool awaited() const { return false; }
  virtual std::string awaiting() const { return {}; }

  /// Describe the task of a ticket that was given to Exec::ready, as it is about to be dispatched: id,
  /// kernel, arguments.
  virtual void fill(int64_t ticket, DispatchPayload& payload, int scheduler) = 0;

  /// Store the memory that a task works on, as far as it is known: up to kMaxArgs arrays; return their number.
  virtual int memory(const DispatchPayload& payload, pto_array* out) const {
    (void)payload, (void)out;
    return 0;
  }

  /// Judge an access of a task, as far as the graph can: fills `arg` and `undeclared`. True if the access is
  /// to be kept for the end of the run.
  virtual bool judge(const DispatchPayload& payload, UseRecord& use) const {
    return (void)payload, (void)use, false;
  }

  /// A task has run, with all of its kernels: pass newly ready tasks to Exec::ready, release its resources.
  /// False if this was only a block of a task that has more of them.
  virtual bool completed(int64_t id, int scheduler) = 0;

  /// In virtual time: a task that was reported ready (VirtualTime::ready) goes to the queues.
  virtual void hand_on(int64_t id, int from) { (void)id, (void)from; }

  /// In virtual time: what `completed` has released can be used again from now on.
  virtual void settle() {}

  /// Tasks have completed: note how full things are. Only called when the run records.
  virtual void sample(Recorder& recorder, int64_t now) { (void)recorder, (void)now; }

  // For the report of a blocked run: read while other threads may work, so the numbers are not exact.
  virtual Progress progress() const { return {}; }
  /// Tasks that are ready or wait, a line each, and how many there are of both; `running` cores execute.
  virtual std::string stuck(const std::vector<int64_t>& running) const {
    return (void)running, std::string();
  }
  /// The location of the submission of a task that has not been retired; empty if unknown.
  virtual std::string site(int64_t id) const { return (void)id, std::string(); }

  /// The record for the times of a task; null unless the run records them.
  virtual TaskRecord* record(int64_t id) = 0;
};

}  // namespace pto2
