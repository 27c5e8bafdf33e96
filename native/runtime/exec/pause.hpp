// Short waits (spin locks) and long waits (parking).
//
// In deterministic mode no thread may spin, because its condition would never become true. So every wait, and
// every point where an interleaving matters, goes through a `Pause`.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace pto2 {

class Interleaver;
void yield_to_others(Interleaver& interleaver, bool always);  // interleave.cpp

/// Hint to the processor that this thread is in a spin loop.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct Pause {
  Interleaver* interleaver = nullptr;  // set in deterministic mode

  /// A point at which another actor may run first.
  void point() const {
    if (interleaver != nullptr) [[unlikely]]
      yield_to_others(*interleaver, false);
  }

  /// Pause once inside a loop that waits for a condition.
  void operator()(int& turns) const {
    if (interleaver != nullptr) [[unlikely]] {
      yield_to_others(*interleaver, true);
      return;
    }
    if (++turns < 64) {
      relax();
    } else {
      sched_yield();  // the lock holder may be waiting for this processor
    }
  }
};

/// A lock for a few instructions. Invariant: `held_` is 1 exactly while one thread is between lock
/// and unlock. The release in unlock publishes the guarded data; the acquire in lock makes the data visible.
class SpinLock {
 public:
  bool try_lock() {
    return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void lock(const Pause& pause) {
    for (int turns = 0; !try_lock();) pause(turns);
  }
  void unlock() { held_.store(0, std::memory_order_release); }

 private:
  std::atomic<int32_t> held_{0};
};

class Locked {
 public:
  Locked(SpinLock& lock, const Pause& pause) : lock_(lock) { lock_.lock(pause); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  SpinLock& lock_;
};

/// Sleeping place of idle threads.
///
/// A sleeper registers itself, tests its condition once more, and sleeps unless `epoch_` has changed since
/// the registration. A waker publishes its work, then tests for sleepers, with a full fence in between. So
/// either the waker sees the sleeper, or the second test of the sleeper sees the work: no wake-up is lost.
/// The mutex only prevents that a sleeper misses a change of `epoch_` between its test and its sleep.
class Parking {
 public:
  uint64_t prepare() {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t epoch = epoch_.load(std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // the next loads of the sleeper may be relaxed
    return epoch;
  }
  void cancel() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

  /// Sleep until woken, or for at most `milliseconds` if that is not 0.
  void sleep(uint64_t epoch, int milliseconds = 0) {
    {
      std::unique_lock guard(mutex_);
      const auto moved = [&] { return epoch_.load(std::memory_order_acquire) != epoch; };
      if (milliseconds > 0) {
        woken_.wait_for(guard, std::chrono::milliseconds(milliseconds), moved);
      } else {
        woken_.wait(guard, moved);
      }
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  int sleepers() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return sleepers_.load(std::memory_order_relaxed);
  }
  /// Return true if a wake-up may be useful. This is a guess, without a fence.
  bool somebody_sleeps() const { return sleepers_.load(std::memory_order_relaxed) > 0; }
  void wake_one() {
    if (sleepers() > 0) {
      move();
      woken_.notify_one();
    }
  }
  void wake_all() {
    if (sleepers() > 0) {
      move();
      woken_.notify_all();
    }
  }

 private:
  void move() {
    const std::lock_guard guard(mutex_);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
  }
  alignas(64) std::atomic<uint64_t> epoch_{0};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable woken_;
};

}  // namespace pto2
