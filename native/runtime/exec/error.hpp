// Early end of a run. The first error is kept; all threads stop as soon as they test for it.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

namespace pto2 {

/// Codes 1..11 and 100 are those of the vendor stack's runtime (simpler); codes from 200 on are ours.
enum class ErrorCode : int {
  None = 0,
  ScopeDeadlock = 1,
  HeapRingDeadlock = 2,
  FlowControlDeadlock = 3,
  DepPoolOverflow = 4,
  InvalidArgs = 5,
  SyncStartInvalid = 7,
  ExplicitFatal = 9,
  ScopeOverflow = 10,
  TensorMapOverflow = 11,
  SchedulerTimeout = 100,
  KernelFailed = 200,
  OrchestrationFailed = 201,
  ClusterDeadlock = 202,
  Stuck = 203,
  Cancelled = 204,
  Cycle = 205,
  Internal = 299,
};

/// Unwinds an orchestration. The Failure has the reason.
struct Aborted : std::exception {
  const char* what() const noexcept override { return "the run was stopped"; }
};

/// A core that waits in the middle of a kernel.
struct StuckCore {
  int kernel = -1, mark = -1;
  int64_t task = -1;
};

class Failure {
 public:
  /// Keep the first error; return true if this is it. `kernel` failed at `mark` in its source, if known;
  /// its task was submitted at `site`. `others`: waiting cores of a deadlock, except that of `task`.
  bool set(ErrorCode code, std::string text, int kernel = -1, int mark = -1, int64_t task = -1,
           std::string site = "", std::vector<StuckCore> others = {}) {
    const std::lock_guard guard(lock_);
    if (failed_.load(std::memory_order_relaxed)) return false;
    code_ = code;
    kernel_ = kernel;
    mark_ = mark;
    task_ = task;
    site_ = std::move(site);
    others_ = std::move(others);
    text_ = std::move(text);
    failed_.store(true, std::memory_order_release);
    return true;
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  ErrorCode code() const { return code_; }
  const std::string& text() const { return text_; }
  int kernel() const { return kernel_; }
  int mark() const { return mark_; }
  int64_t task() const { return task_; }  // -1: the failure belongs to no task
  const std::string& site() const { return site_; }
  const std::vector<StuckCore>& others() const { return others_; }

 private:
  std::atomic<bool> failed_{false};
  std::mutex lock_;
  ErrorCode code_ = ErrorCode::None;
  int kernel_ = -1, mark_ = -1;
  int64_t task_ = -1;
  std::string text_, site_;
  std::vector<StuckCore> others_;
};

}  // namespace pto2
