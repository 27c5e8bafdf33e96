// Bounded queue for any number of producers and consumers. It holds ready tasks.
//
// A cell has a turn: 2n while it waits for its n-th value, 2n+1 while it holds it (n counts from 0). A
// producer takes a ticket t from `head_`, which selects cell t mod capacity and turn 2*(t / capacity). A
// consumer takes a ticket from `tail_`, and the turn is 2*(t / capacity)+1. Invariants:
//   - A ticket goes to one thread only (compare-exchange on head or tail), and only if its cell is at the
//     turn of the ticket, so the owner of the ticket accesses the cell without a lock.
//   - The turn is stored with release after the value is written or read, and loaded with acquire before.
// A queue of zero bytes is empty, so fresh memory of the system needs no initialization and untouched cells
// cost no page.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace pto2 {

/// Zeroed memory whose pages are mapped on first access.
template <class T>
class ZeroedArray {
 public:
  explicit ZeroedArray(size_t count) : bytes_(count * sizeof(T)) {
    if (bytes_ == 0) bytes_ = 1;
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
  }
  ~ZeroedArray() { munmap(static_cast<void*>(data_), bytes_); }
  ZeroedArray(const ZeroedArray&) = delete;
  ZeroedArray& operator=(const ZeroedArray&) = delete;
  T& operator[](size_t i) const { return data_[i]; }
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

class MpmcQueue {
 public:
  /// `capacity` is rounded up to a power of two.
  explicit MpmcQueue(size_t capacity)
      : mask_(rounded(capacity) - 1), bits_(bits_of(mask_ + 1)), cells_(mask_ + 1) {}

  /// Add a value; return false if the queue is full. Wait for a consumer that has taken the ticket of the
  /// cell but not yet its value.
  bool push(int64_t value) {
    uint64_t ticket = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket & mask_];
      const uint64_t due = 2 * (ticket >> bits_);
      const uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == due) {
        if (head_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
          cell.value = value;
          cell.turn.store(due + 1, std::memory_order_release);
          return true;
        }
      } else {
        const uint64_t seen = head_.load(std::memory_order_relaxed);
        if (seen == ticket) {
          if (ticket == tail_.load(std::memory_order_acquire) + mask_ + 1) return false;
          sched_yield();
        }
        ticket = seen;
      }
    }
  }

  /// Take a value; return false if the queue is empty, or if the first value is still being stored.
  bool pop(int64_t& value) {
    uint64_t ticket = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket & mask_];
      const uint64_t due = 2 * (ticket >> bits_) + 1;
      const uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == due) {
        if (tail_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
          value = cell.value;
          cell.turn.store(due + 1, std::memory_order_release);
          return true;
        }
      } else {
        const uint64_t seen = tail_.load(std::memory_order_relaxed);
        if (seen == ticket) return false;
        ticket = seen;
      }
    }
  }

  /// Return the number of values; an estimate while other threads use the queue.
  size_t size() const {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t head = head_.load(std::memory_order_relaxed);
    return head > tail ? head - tail : 0;
  }
  bool empty() const { return size() == 0; }

 private:
  struct Cell {
    std::atomic<uint64_t> turn;
    int64_t value;
  };
  static size_t rounded(size_t n) {
    size_t power = 2;
    while (power < n) power *= 2;
    return power;
  }
  static int bits_of(size_t power) { return __builtin_ctzll(power); }

  const size_t mask_;
  const int bits_;
  ZeroedArray<Cell> cells_;
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace pto2
