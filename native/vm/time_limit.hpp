// Time limit of a launch. A core checks the limit at the ends of loop iterations, so that an endless loop can
// be ended. The first check comes after one iteration; later checks are rarer, until 1 to 10 ms lie between
// two of them. With several ranks, the core also lets other ranks run at each check.
#pragma once

#include <signal.h>
#include <time.h>

#include "pto/launch.hpp"
#include "vm.hpp"

namespace pto::vm {

inline uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

/// The handler of Ctrl-C during long launches: counts the signal, and passes it on to the previous handler.
struct Interrupts {
  static inline detail::Atomic<uint32_t> count{0};
  static inline struct sigaction before{};
  static inline int watchers = 0;
  static inline pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

  static void on_signal(int signal, siginfo_t* info, void* context) {
    count.fetch_add(1);
    detail::pass_signal_on(before, signal, info, context);
  }
  static bool is_own(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
  }
  static void watch() {
    pthread_mutex_lock(&lock);
    struct sigaction found{};
    sigaction(SIGINT, nullptr, &found);
    ++watchers;
    const bool ignored = (found.sa_flags & SA_SIGINFO) == 0 && found.sa_handler == SIG_IGN;
    if (!ignored && !is_own(found)) {
      before = found;
      struct sigaction own{};
      own.sa_sigaction = on_signal;
      own.sa_flags = (found.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO;
      own.sa_mask = found.sa_mask;
      sigaction(SIGINT, &own, nullptr);
    }
    pthread_mutex_unlock(&lock);
  }
  static void leave() {
    pthread_mutex_lock(&lock);
    struct sigaction found{};
    if (--watchers == 0 && sigaction(SIGINT, nullptr, &found) == 0 && is_own(found))
      sigaction(SIGINT, &before, nullptr);
    pthread_mutex_unlock(&lock);
  }
};

/// A launch on the machine, with its deadline, and the count of Ctrl-C when it began to watch for Ctrl-C.
struct Running : pto_launch {
  explicit Running(const pto_launch& given)
      : pto_launch(given), deadline(given.limit != 0 ? now() + given.limit : 0) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (watching.load() != 0) Interrupts::leave();
  }
  uint64_t deadline;
  detail::Atomic<uint32_t> watching{0};  // 0: no, 1: about to, 2: yes
  uint32_t seen = 0;

  bool interrupted() {
    uint32_t none = 0;
    if (watching.load(detail::kRelaxed) == 0 && watching.compare_exchange_strong(none, 1)) {
      Interrupts::watch();
      seen = Interrupts::count.load();
      watching.store(2);
    }
    return watching.load() == 2 && Interrupts::count.load() != seen;
  }
};

class TimeLimit {
 public:
  /// Call at the end of an iteration.
  PTO_INLINE void tick(detail::Core& core, const uint32_t* words, const uint32_t* pc, int32_t base) {
    if (--left_ == 0) [[unlikely]] {
      core.mark = base + static_cast<int32_t>(pc - words);
      left_ = again(core);
    }
  }

  /// Return the number of iterations until the next check; does not return if the launch must end.
  uint32_t again(detail::Core& core) { return span_ = ask(core); }

 private:
  static constexpr uint64_t kSoon = 1'000'000, kLong = 10 * kSoon;

  [[gnu::cold, gnu::noinline]] uint32_t ask(detail::Core& core) {
    const detail::Launch& launch = *static_cast<detail::Fiber*>(core.fiber)->thread->launch;
    auto& given = static_cast<Running&>(*launch.given);
    if (launch.over.load(detail::kRelaxed))
      core.host->fail(core, "");                      // ended by another core, which has reported the reason
    if (launch.ranks > 1) detail::step_aside(false);  // the loop may poll for a write of another rank
    const uint64_t time = now();
    if (begun_ == 0) begun_ = asked_ = time;
    if (given.deadline != 0 && time >= given.deadline)
      detail::failf("[PTO-E2106] still running after %g s", static_cast<double>(given.limit) / 1e9);
    done_ += span_;
    if (given.steps != 0 && done_ >= given.steps)
      detail::failf("[PTO-E2106] still running after %llu repetitions of loops",
                    static_cast<unsigned long long>(given.steps));
    if (time - begun_ > kLong && given.interrupted()) detail::fail("interrupted");
    const uint64_t took = time - asked_;
    asked_ = time;
    uint64_t span = took < kSoon ? uint64_t{span_} * 2 : took > kLong && span_ > 1 ? span_ / 2 : span_;
    if (span > (1u << 30)) span = 1u << 30;
    if (given.steps != 0 && span > given.steps - done_) span = given.steps - done_;
    return static_cast<uint32_t>(span);
  }

  uint32_t left_ = 1, span_ = 1;
  uint64_t begun_ = 0, asked_ = 0, done_ = 0;
};

/// The time limit for machine code, which sets the mark of the core (its source location) before each check.
struct Asked : pto_time_limit {
  Asked(detail::Core& core, bool in_launch) : pto_time_limit{in_launch ? in_time : never}, core(core) {}
  static uint32_t in_time(pto_time_limit* asked) {
    auto& self = static_cast<Asked&>(*asked);
    return self.time_limit.again(self.core);
  }
  static uint32_t never(pto_time_limit*) { return ~uint32_t{0}; }

  detail::Core& core;
  TimeLimit time_limit;
};

}  // namespace pto::vm
