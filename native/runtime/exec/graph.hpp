// What the execution layer asks of a task graph. It knows tasks by their ids only; which of them exist, and
// what the completion of one makes possible, is the graph's affair.
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

  /// Whether tasks have been published that no scheduler has looked at. When this is false and nothing is
  /// outstanding, only the orchestrator can bring new work.
  virtual bool has_unseen() const = 0;

  /// Phases 3 and 4 of a scheduler: find tasks that can start and hand them to Exec::ready. The number found.
  virtual int look_for_ready(int scheduler) = 0;

  /// Whether a task without a core waited for something that has come: `look_for_ready` completes it. And what
  /// those that still wait do wait for, a line each.
  virtual bool awaited() const { return false; }
  virtual std::string awaiting() const { return {}; }

  /// What a ticket that was given to Exec::ready stands for, as it is about to be dispatched: id, kernel,
  /// arguments.
  virtual void fill(int64_t ticket, DispatchPayload& payload, int scheduler) = 0;

  /// The memory that a task works on, as far as the graph knows it: up to kMaxArgs arrays, how many.
  virtual int memory(const DispatchPayload& payload, pto_array* out) const {
    (void)payload, (void)out;
    return 0;
  }

  /// What a task is about to do to some bytes, as far as the graph can tell: fills `arg` and `undeclared`.
  /// Whether anybody wants to know of it after the run.
  virtual bool judge(const DispatchPayload& payload, UseRecord& use) const {
    return (void)payload, (void)use, false;
  }

  /// A task has run, with all of its kernels: hand what it makes possible to Exec::ready, release what it held.
  /// False if this was only a block of a task that has more of them.
  virtual bool completed(int64_t id, int scheduler) = 0;

  /// In virtual time: a task that was said to be ready (VirtualTime::ready) goes to the queues.
  virtual void hand_on(int64_t id, int from) { (void)id, (void)from; }

  /// In virtual time: what `completed` has released can be used again from now on.
  virtual void settle() {}

  /// Tasks have completed: note how full things are. Only called when the run records.
  virtual void sample(Recorder& recorder, int64_t now) { (void)recorder, (void)now; }

  // For the report of a run that stands still: read while others may work, so nothing is exact.
  virtual Progress progress() const { return {}; }
  /// Tasks that are ready or wait, a line each, and how many there are of both; `running` cores execute.
  virtual std::string stuck(const std::vector<int64_t>& running) const {
    return (void)running, std::string();
  }
  /// Where a task that has not been retired was submitted; empty if that is not known.
  virtual std::string site(int64_t id) const { return (void)id, std::string(); }

  /// Where the times of a task go; null unless the run records them.
  virtual TaskRecord* record(int64_t id) = 0;
};

}  // namespace pto2
