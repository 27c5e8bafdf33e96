// Interface of a task graph to the execution layer. The execution layer has only task ids; the graph decides
// which tasks exist and which tasks a completion makes ready.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform.hpp"
#include "pto/core/launch_abi.hpp"
#include "records.hpp"

namespace pto2 {

/// The number of tasks so far, and how many of them have completed.
struct Progress {
  int64_t completed = 0, total = 0;
};

class Graph {
 public:
  virtual ~Graph() = default;

  /// Return true if a published task exists that no scheduler has scanned yet. If this is false and nothing
  /// is outstanding, only the orchestrator can add work.
  virtual bool has_unseen() const = 0;

  /// Phases 3 and 4 of a scheduler: pass tasks that can start to Exec::ready. Return their number.
  virtual int look_for_ready(int scheduler) = 0;

  /// `awaited`: return true if the event has arrived that a task without a core waits for; `look_for_ready`
  /// then completes the task. `awaiting`: return the events that tasks still wait for, one line each.
  virtual bool awaited() const { return false; }
  virtual std::string awaiting() const { return {}; }

  /// Fill in the payload for a ticket that was passed to Exec::ready: id, kernel, arguments. Called right
  /// before the dispatch.
  virtual void fill(int64_t ticket, DispatchPayload& payload, int scheduler) = 0;

  /// Store up to kMaxArgs arrays: the memory of a task, as far as known. Return the number of arrays.
  virtual int memory(const DispatchPayload& payload, pto_array* out) const {
    (void)payload, (void)out;
    return 0;
  }

  /// Classify an access of a task as far as possible: fill in `arg` and `undeclared`. Return true if the
  /// access must be kept until the end of the run.
  virtual bool judge(const DispatchPayload& payload, UseRecord& use) const {
    return (void)payload, (void)use, false;
  }

  /// All kernels of a task have run: pass the tasks that became ready to Exec::ready and release its
  /// resources. Return false if this was one block of a task and other blocks have not ended.
  virtual bool completed(int64_t id, int scheduler) = 0;

  /// In virtual time: put a task that was passed to VirtualTime::ready into the queues.
  virtual void hand_on(int64_t id, int from) { (void)id, (void)from; }

  /// In virtual time: from now on, resources that `completed` released can be reused.
  virtual void settle() {}

  /// Record how full the rings are, after tasks have completed. Only called if the run records.
  virtual void sample(Recorder& recorder, int64_t now) { (void)recorder, (void)now; }

  // For the report of a blocked run. Other threads may run during these calls, so the numbers are not exact.
  virtual Progress progress() const { return {}; }
  /// Return the first ready and waiting tasks, a line each, and both totals; tasks in `running` are left out.
  virtual std::string stuck(const std::vector<int64_t>& running) const {
    return (void)running, std::string();
  }
  /// Return the submission site of a task that has not been retired; empty if unknown.
  virtual std::string site(int64_t id) const { return (void)id, std::string(); }

  /// Return the record for the times of a task; null unless the run records.
  virtual TaskRecord* record(int64_t id) = 0;
};

}  // namespace pto2
