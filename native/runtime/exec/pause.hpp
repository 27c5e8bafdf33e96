// Waiting for a short time (spin locks) and for a long one (parking).
//
// In deterministic mode no thread may spin: its condition would never come true. So every wait, and every
// place with an interesting interleaving, goes through a `Pause`.
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

/// Tells the processor that this thread waits.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct Pause {
  Interleaver* interleaver = nullptr;  // set in deterministic mode

  /// A place where another actor might come first.
  void point() const {
    if (interleaver != nullptr) [[unlikely]]
      yield_to_others(*interleaver, false);
  }

  /// Called again and again until a condition holds.
  void operator()(int& turns) const {
    if (interleaver != nullptr) [[unlikely]] {
      yield_to_others(*interleaver, true);
      return;
    }
    if (++turns < 64) {
      relax();
    } else {
      sched_yield();  // the holder may be waiting for this processor
    }
  }
};

/// A lock held for a few instructions. Invariant: `held` is 1 exactly while one thread is between lock and
/// unlock; the guarded data is published by unlock's release and seen by lock's acquire.
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

/// The place where idle threads sleep.
///
/// A sleeper announces itself, looks once more, and sleeps unless `epoch` has moved since the announcement. A
/// waker makes its work visible, then looks for sleepers, with a full fence between. So either the waker sees
/// the sleeper, or the sleeper's second look sees the work: no wake-up is lost. The mutex only keeps a
/// sleeper from missing a change of `epoch` between its test and its sleep.
class Parking {
 public:
  uint64_t prepare() {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t epoch = epoch_.load(std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // the sleeper's next loads may be relaxed
    return epoch;
  }
  void cancel() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

  /// Until woken; or for some time, if `milliseconds` is not 0.
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
  /// True if a wake-up may be worth while: a guess, without a fence.
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
