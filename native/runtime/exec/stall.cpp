// Reports of a run without progress: the documented lines, and the diagnostic report.
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "exec.hpp"

namespace pto2 {

namespace {

constexpr size_t kCoresShown = 8;

[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  char line[256];
  std::va_list rest;
  va_start(rest, format);
  std::vsnprintf(line, sizeof line, format, rest);
  va_end(rest);
  text += line;
}

}  // namespace

/// Report if no core has begun or ended a task for a while: a kernel may never return.
void Exec::watch(int64_t now) {
  if (options_.stalled == nullptr || !watching_.try_lock()) return;
  const std::string text = unmoved(now);
  watching_.unlock();
  if (!text.empty()) options_.stalled(text);
}

std::string Exec::unmoved(int64_t now) {
  auto seen = static_cast<uint64_t>(outstanding_.load(std::memory_order_relaxed));
  for (const auto& cores : cores_) {
    for (const VirtualCore& core : cores) {
      seen = (seen ^ core.cond.load(std::memory_order_relaxed)) * 0x100000001B3u;
    }
  }
  if (seen != watched_ || outstanding_.load(std::memory_order_relaxed) == 0) {
    watched_ = seen;
    moved_ = said_ = now;
    return {};
  }
  if (now - said_ < int64_t{options_.stall_seconds} * 1'000'000'000) return {};
  said_ = now;
  return stall_report((now - moved_) / 1'000'000'000);
}

/// The values may change while they are read, but not in a blocked run.
std::string Exec::stall_report(int64_t seconds) const {
  const Progress progress = graph_.progress();
  std::string text, busy, status;
  std::vector<int64_t> running;
  int all = 0;
  for (const auto& cores : cores_) {
    for (const VirtualCore& core : cores) {
      ++all;
      const uint32_t cond = core.cond.load(std::memory_order_acquire);
      if ((cond & kFinBit) != 0) continue;
      running.push_back(core.payload.task_id);
      if (running.size() > kCoresShown) continue;
      const auto id = static_cast<long long>(cond & kTaskIdMask);
      const char* type = core.type == CoreType::Aic ? "AIC" : "AIV";
      const int32_t number = core.payload.kernel_id;
      const Kernel* kernel = kernels_.find(number);
      add(busy, "\n    core=%d cond=0x%x(state=0,id=%lld) exec_id=%lld payload_task=%lld kernel=%d",
          core.worker, cond, id, id, static_cast<long long>(core.payload.task_id), number);
      add(status,
          "\n  Core %d [%s, BUSY]: COND=0x%x (reg_task_id=%lld, reg_state=ACK), executing_task_id=%lld, "
          "kernel_id=%d",
          core.worker, type, cond, id, id, number);
      add(status, "\n    %s %d executes task %lld (%s", type, core.index, id,
          kernel != nullptr ? kernel->name.c_str() : "?");
      const std::string site = graph_.site(core.payload.task_id);
      status += site.empty() ? ")" : ", submitted at " + site + ")";
    }
  }
  const auto total = static_cast<long long>(progress.total),
             done = static_cast<long long>(progress.completed);
  add(text, "PTO2 stall: no progress for %lld s, completed=%lld total=%lld", static_cast<long long>(seconds),
      done, total);
  text += graph_.stuck(running) + busy;
  text += "\n========== DIAGNOSTIC REPORT ==========";
  add(text, "\nProgress: %lld/%lld tasks (%.1f%%)", done, total,
      total > 0 ? 100.0 * double(done) / double(total) : 0.0);
  add(text, "\nReady Queues: AIC=%zu, AIV=%zu", queued(CoreType::Aic), queued(CoreType::Aiv));
  text += "\nCore Status:" + status;
  const auto busy_cores = static_cast<int>(running.size());
  add(text, "\nSummary: %d busy, %d idle", busy_cores, all - busy_cores);
  if (busy_cores > 0) {  // a hung kernel cannot be told from a slow one
    add(text, "\n%d core%s executing for %lld s: the kernel takes long, or never returns", busy_cores,
        busy_cores == 1 ? "" : "s", static_cast<long long>(seconds));
  }
  return text + "\n========== END DIAGNOSTIC ==========";
}

}  // namespace pto2
