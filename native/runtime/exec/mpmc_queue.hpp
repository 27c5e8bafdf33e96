// A bounded queue for any number of producers and consumers: the ready queues and the orchestrator's queue.
//
// A cell has a turn: 2n when it waits for its n-th value, 2n+1 when it holds it. A producer takes a ticket t
// (head), which names cell t mod capacity and turn 2*(t / capacity); a consumer likewise with 2*(..)+1.
// Invariants:
//   - a ticket is given to one thread only (compare-exchange on head or tail), and only if its cell is at the
//     ticket's turn, so its owner writes or reads the cell without a lock;
//   - the turn is stored with release after the value is written or read, and loaded with acquire before.
// All zero is an empty queue, so memory fresh from the system needs no initialisation and untouched cells
// cost no page.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace pto2 {

/// Memory of zeros that is mapped when it is touched.
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

  /// False if the queue is full. A cell whose consumer has taken its ticket and not yet its value is waited
  /// for.
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

  /// False if the queue is empty.
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

  /// An estimate of the number of values in it, while other threads work on it.
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
