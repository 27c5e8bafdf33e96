// Reports of a blocked orchestrator: the documented lines, and the chain of waits.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "tensormap_graph.hpp"

namespace pto2 {

namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...) {
  char line[512];
  std::va_list rest;
  va_start(rest, text);
  std::vsnprintf(line, sizeof line, text, rest);
  va_end(rest);
  return line;
}

using ull = unsigned long long;
constexpr const char* kRule = "========================================\n";
constexpr const char* kProven = "Proven, not timed out: no ready or running task can release any.\n";

/// Return the smallest power of two that is at least 4 and twice `value`, or 2^63.
uint64_t power_above_twice(uint64_t value) {
  uint64_t power = 4;
  while (power < uint64_t{1} << 63 && power / 2 < value) power *= 2;
  return power;
}

/// Return the smallest power of two that is at least 4 and `value`, or 2^63.
uint64_t power_from(uint64_t value) {
  uint64_t power = 4;
  while (power < uint64_t{1} << 63 && power < value) power *= 2;
  return power;
}

}  // namespace

std::string TensormapGraph::site_text(Site site) const {
  return site.file == nullptr ? "unknown place" : std::string(site.file) + ":" + std::to_string(site.line);
}

std::string TensormapGraph::task_line(int64_t id) const {
  const TaskDescriptor& task = memory_.task(id);
  const Kernel* kernel = kernels_.find(task.kernel_id);
  return format("task %lld (%s, submitted at ", static_cast<long long>(id),
                task.no_core        ? "dummy"
                : kernel != nullptr ? kernel->name.c_str()
                                    : "?") +
         site_text({task.site_file, task.site_line}) + ")";
}

/// Return the used, free and peak amounts of all resources that can run out.
std::string TensormapGraph::rings() const {
  const auto line = [](const char* name, uint64_t used, uint64_t size, uint64_t peak, const char* unit) {
    return format("  %-12s used %llu of %llu %s (free %llu, peak %llu)\n", name, ull(used), ull(size), unit,
                  ull(size - used), ull(peak));
  };
  return "Rings and pools:\n" +
         line("task ring", static_cast<uint64_t>(next_id_ - alive()), options_.task_window - 1,
              stats_.window_peak, "tasks") +
         line("heap ring", heap_.used(), heap_.size(), heap_.peak(), "bytes") +
         line("dep pool", deps_.used(), deps_.size(), deps_.peak(), "entries") +
         line("tensormap", map_.used(), map_.size(), map_.peak(), "entries") +
         line("clusters", static_cast<uint64_t>(clusters_.used()), static_cast<uint64_t>(clusters_.count()),
              static_cast<uint64_t>(clusters_.peak()), "blocks");
}

void TensormapGraph::say_blocked(Resource resource, uint64_t wanted, int spins) {
  // The oldest task when the ring was found full; it may have ended since.
  const auto current = static_cast<long long>(next_id_), oldest = static_cast<long long>(seen_alive_);
  const auto window = static_cast<long long>(options_.task_window);
  switch (resource) {
    case kTaskRing:
      log_(Level::Warn, "submit",
           "[TaskRing] BLOCKED (Flow Control): current=%lld, last_alive=%lld, active=%lld/%lld (%.1f%%), "
           "spins=%d",
           current, oldest, current - oldest, window, 100.0 * double(current - oldest) / double(window),
           spins);
      break;
    case kHeapRing:
      log_(Level::Warn, "submit",
           "[HeapRing] BLOCKED: requesting %llu bytes, available=%llu, top=%llu, tail=%llu, spins=%d",
           ull(wanted), ull(heap_.available()), ull(heap_.top() % heap_.size()),
           ull(heap_.tail() % heap_.size()), spins);
      break;
    case kDepPool:
      log_(Level::Warn, "submit", "[DepPool] BLOCKED: requesting %llu entries, available=%llu, spins=%d",
           ull(wanted), ull(deps_.size() - deps_.used()), spins);
      break;
    case kTensorMap:
      log_(Level::Warn, "submit", "[TensorMap] BLOCKED: requesting %llu entries, available=%llu, spins=%d",
           ull(wanted), ull(map_.size() - map_.used()), spins);
      break;
    case kClusters: log_(Level::Warn, "submit", "[Cluster] BLOCKED: no free cluster, spins=%d", spins); break;
  }
}

/// Log the end of a wait. Call it only if the wait was logged as blocked.
void TensormapGraph::say_unblocked(Resource resource, int spins) {
  static constexpr const char* names[] = {"TaskRing", "HeapRing", "DepPool", "TensorMap", "Cluster"};
  const std::string task =
      resource == kTaskRing ? format(", task_id=%lld", static_cast<long long>(next_id_)) : "";
  log_(Level::Info, "submit", "[%s] Unblocked after %d spins%s", names[resource], spins, task.c_str());
}

Progress TensormapGraph::progress() const {
  const int64_t total = memory_.header().current_task_index.load(std::memory_order_acquire);
  Progress progress{alive(), total};
  for (int64_t id = alive(); id < total; ++id) {
    progress.completed += memory_.task(id).state.load(std::memory_order_relaxed) >= kCompleted ? 1 : 0;
  }
  return progress;
}

std::string TensormapGraph::site(int64_t id) const {
  const TaskDescriptor& task = memory_.task(id);
  return task.task_id == id && task.site_file != nullptr ? site_text({task.site_file, task.site_line}) : "";
}

std::string TensormapGraph::stuck(const std::vector<int64_t>& running) const {
  constexpr int kReadyShown = 8, kWaitShown = 4;
  std::string text;
  int ready = 0, waiting = 0;
  const int64_t total = memory_.header().current_task_index.load(std::memory_order_acquire);
  for (int64_t id = alive(); id < total; ++id) {
    const TaskDescriptor& task = memory_.task(id);
    const int32_t state = task.state.load(std::memory_order_relaxed);
    if (state >= kCompleted || std::find(running.begin(), running.end(), id) != running.end()) continue;
    const bool is_ready = state == kReady;
    if (is_ready ? ++ready > kReadyShown : ++waiting > kWaitShown) continue;
    text += format("\n  %s slot=%zu kernel_id=%d refcount=%d fanin=%d state=%d",
                   is_ready ? "STUCK-READY " : "STUCK-WAIT  ", memory_.slot(id), task.kernel_id,
                   task.fanin_refcount.load(std::memory_order_relaxed),
                   task.fanin_count.load(std::memory_order_relaxed), state);
    text += "  " + task_line(id);
  }
  return text + format("\n  scan result: stuck_ready=%d stuck_waiting=%d in_flight=%zu", ready, waiting,
                       running.size());
}

/// Return the blocked call and the reason.
std::string TensormapGraph::cause(Resource resource, uint64_t wanted, int spins) const {
  const int64_t oldest = alive();
  const auto active = static_cast<uint64_t>(next_id_ - oldest);
  std::string text = kRule;
  switch (resource) {
    case kTaskRing:
      text += "FATAL: Flow Control Deadlock Detected!\n" + std::string(kRule);
      text += format("Task Ring is FULL and no progress after %d spins.\n", spins);
      text += kProven;
      text += "Flow Control Status:\n";
      text += format("  - Current task index:  %lld\n", static_cast<long long>(next_id_));
      text += format("  - Last task alive:     %lld\n", static_cast<long long>(oldest));
      text += format("  - Active tasks:        %llu\n", ull(active));
      text += format("  - Window size:         %llu\n", ull(options_.task_window));
      text +=
          format("  - Window utilization:  %.1f%%\n", 100.0 * double(active) / double(options_.task_window));
      text +=
          "Root Cause:\n  Tasks cannot transition to CONSUMED state because fanout_count includes 1 for the\n"
          "  owning scope, and scope_end() requires the orchestrator to continue, which waits for\n"
          "  task ring space: a circular dependency.\n";
      break;
    case kHeapRing:
      text += "FATAL: Heap Ring Deadlock Detected!\n" + std::string(kRule);
      text += format("Orchestrator blocked waiting for heap space after %d spins.\n", spins);
      text += kProven;
      text += format("  - Requested:     %llu bytes\n", ull(wanted));
      text += format("  - Available:     %llu bytes\n", ull(heap_.available()));
      text += format("  - Heap top:      %llu\n", ull(heap_.top() % heap_.size()));
      text += format("  - Heap tail:     %llu\n", ull(heap_.tail() % heap_.size()));
      text += format("  - Heap size:     %llu\n", ull(heap_.size()));
      if (wanted > heap_.size()) text += "The outputs of this task alone take more than the whole heap.\n";
      break;
    case kDepPool:
      text += "FATAL: Dependency Pool Deadlock Detected!\n" + std::string(kRule);
      text += format("The task needs %llu entries, %llu are free of %llu.\n", ull(wanted),
                     ull(deps_.size() - deps_.used()), ull(deps_.size()));
      break;
    case kTensorMap:
      text += "FATAL: TensorMap Pool Deadlock Detected!\n" + std::string(kRule);
      text += format("The task needs %llu entries, %llu are free of %llu.\n", ull(wanted),
                     ull(map_.size() - map_.used()), ull(map_.size()));
      break;
    case kClusters:
      text += "FATAL: Cluster allocation deadlock \xE2\x80\x94 all clusters occupied\n" + std::string(kRule);
      text += format(
          "All %d clusters are allocated and every submitted task has completed: only the\n"
          "orchestrator can free one.\n",
          clusters_.count());
      break;
  }
  return text;
}

/// Return sufficient sizes: enough for the counted needs, and at least twice the current use.
std::string TensormapGraph::solution(const Deadlock& found, bool all) const {
  const Resource resource = found.resource;
  if (resource == kClusters) return "Solution: free clusters before allocating more than block_dim\n";
  const Demand& most = demand_.most();
  const auto size = [&](Resource of, uint64_t now, uint64_t need) {
    return std::max(resource == of ? power_above_twice(found.used[of]) : now, power_from(need));
  };
  const uint64_t window = size(kTaskRing, options_.task_window, most.tasks + 1);
  // The survey does not count edges: assume the average number per task so far, plus a half.
  const double edges = double(stats_.edges) / double(std::max<int64_t>(stats_.tasks, 1)) * 1.5;
  struct Ring {
    Resource resource;
    const char* name;
    uint64_t size, now;
  };
  const Ring rings[] = {
      {kTaskRing, "PTO2_RING_TASK_WINDOW=", window, options_.task_window},
      // A block does not cross the end of the heap, so almost the largest block may be skipped.
      {kHeapRing, "PTO2_RING_HEAP=", size(kHeapRing, heap_.size(), most.bytes + most.block), heap_.size()},
      {kDepPool, "PTO2_RING_DEP_POOL=",
       size(kDepPool, deps_.size(),
            window > options_.task_window ? static_cast<uint64_t>(edges * double(most.tasks)) : 0),
       deps_.size()},
      {kTensorMap, "a tensormap pool of ", size(kTensorMap, map_.size(), most.entries), map_.size()}};
  std::string text = "Solution:";
  if (resource == kTaskRing)
    text += format("\n  Recommended: %llu (at least 2x current active tasks):", ull(window));
  if (resource == kHeapRing) text += " Increase the heap:";
  const char* between = " ";
  for (const bool own : {true, false}) {
    for (const Ring& ring : rings) {
      if ((ring.resource == resource) != own || (!own && ring.size <= ring.now)) continue;
      text += between + std::string(ring.name) + std::to_string(ring.size);
      between = " and ";
    }
  }
  text += all || resource == kDepPool ? "," : ", or more: the orchestration was not seen to its end,";
  text += "\n  or end scopes earlier";
  const char* more = all ? "" : "more than ";
  if (resource == kTaskRing)
    text += format(": open ones hold %s%llu tasks at one time, at most %llu fit", more, ull(most.tasks),
                   ull(options_.task_window - 1));
  if (resource == kHeapRing)
    text += format(": open ones hold %s%llu bytes at one time", more, ull(most.bytes));
  return text + "\n";
}

/// Return the chain of waits and the use of the resources.
std::string TensormapGraph::circle(Resource resource) const {
  const int64_t oldest = alive();
  std::string text;
  text += "Who waits for whom:\n  the orchestrator, at " + site_text(site_) + ", waits for ";
  static constexpr const char* names[] = {"a task slot", "heap space", "dependency entries",
                                          "TensorMap entries", "a cluster"};
  text += std::string(names[resource]) + "\n";
  const auto opened = [&](const Scope& scope) {
    return scope.number == 0 ? "the start of the orchestration" : site_text(scope.site);
  };
  const int64_t submitted = resource == kTaskRing ? next_id_ : next_id_ - 1;  // without the task that waits
  if (resource != kClusters && oldest < submitted && memory_.task(oldest).task_id == oldest) {
    TaskDescriptor& task = memory_.task(oldest);
    const Locked guard(task.fanout_lock, exec_.pause());  // other threads may be running
    static constexpr const char* states[] = {"waits for others", "ready", "completed", "consumed"};
    const int state = task.state.load() & 3;
    const bool root = state == kInitial && task.fanin_refcount.load() == task.fanin_count.load();
    text += "  which waits for the oldest, " + task_line(oldest) + ": " + (root ? "ready" : states[state]);
    text += format(", released by %d of %d holders\n", task.fanout_released, task.fanout_count);
    for (const Scope& scope : scopes_) {
      if (scope.number != task.scope) continue;
      text += "  which is held by its scope, opened at " + opened(scope) +
              ", which the orchestrator has to end\n";
    }
  }
  text += "Open scopes, outermost first:\n";
  for (size_t i = 0; i < scopes_.size(); ++i) {
    const size_t end = i + 1 < scopes_.size() ? scopes_[i + 1].first : tasks_in_scopes_.size();
    text += format("  depth %zu, %zu tasks, opened at ", i + 1, end - scopes_[i].first) + opened(scopes_[i]) +
            "\n";
  }
  return text + rings() + kRule;
}

}  // namespace pto2
