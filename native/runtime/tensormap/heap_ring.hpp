// Output buffers in a circular heap. A position counts the bytes that were ever allocated or skipped before
// it, so positions only grow and can be compared; the offset in memory is the position modulo the size. A
// block never crosses the end of the memory: the rest is skipped and counts as part of the next block.
//
// Only the orchestrator allocates. Threads that retire tasks advance `tail` in task order; the orchestrator
// also advances it over skipped bytes of an empty heap. A block is free once `tail` has passed its end.
#pragma once

#include <cstdint>

#include "../exec/mpmc_queue.hpp"
#include "shared_memory.hpp"

namespace pto2 {

struct HeapBlock {
  uint64_t base = 0, end = 0;  // positions
};

class HeapRing {
 public:
  HeapRing(uint64_t size, SharedMemoryHeader& header) : size_(size), header_(header), memory_(size) {}

  /// Allocate `bytes` at a multiple of 64, if there is room now.
  bool try_allocate(uint64_t bytes, HeapBlock& block) {
    bytes = align_up(bytes, kAlign);
    uint64_t top = header_.heap_top.load(std::memory_order_relaxed);
    uint64_t tail = header_.heap_tail.load(std::memory_order_seq_cst);
    const uint64_t at = top % size_;
    if (bytes > size_) return false;
    if (at + bytes > size_) {  // skip the rest of this lap
      const bool empty = tail == top;
      top += size_ - at;
      if (empty) {  // no other thread moves the tail of an empty heap: release the skipped bytes here
        tail = top;
        header_.heap_tail.store(tail, std::memory_order_release);
        header_.heap_top.store(top, std::memory_order_relaxed);
      }
    }
    if (top + bytes - tail > size_) return false;
    block = {top, top + bytes};
    header_.heap_top.store(block.end, std::memory_order_relaxed);
    if (block.end - tail > peak_) peak_ = block.end - tail;
    return true;
  }

  char* address(uint64_t position) const { return memory_.data() + position % size_; }
  bool contains(uint64_t address) const {
    const auto begin = reinterpret_cast<uint64_t>(memory_.data());
    return address >= begin && address - begin < size_;
  }

  uint64_t size() const { return size_; }
  uint64_t top() const { return header_.heap_top.load(std::memory_order_relaxed); }
  uint64_t tail() const { return header_.heap_tail.load(std::memory_order_acquire); }
  uint64_t used() const { return top() - tail(); }
  uint64_t peak() const { return peak_; }
  /// Return the size of the largest block that could be allocated now.
  uint64_t available() const {
    const uint64_t at = top() % size_, free = size_ - used();
    if (free == 0 || free == size_) return free;
    const uint64_t to_end = size_ - at;
    if (free <= to_end) return free;
    return free - to_end > to_end ? free - to_end : to_end;
  }

 private:
  const uint64_t size_;
  SharedMemoryHeader& header_;
  ZeroedArray<char> memory_;
  uint64_t peak_ = 0;
};

}  // namespace pto2
