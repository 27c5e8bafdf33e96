// A ring of entries for the edges of the graph. When a task is retired, the entries of its submission are
// dead: they name the task as consumer, and its producers are older, so they are retired too. So entries are
// released in the order in which they were taken, and no entry is overwritten while it is in a list.
#pragma once

#include <cstdint>

namespace pto2 {

class DepPool {
 public:
  explicit DepPool(uint64_t size) : size_(size) {}

  /// Take the next entry; return 0 if all are in use.
  int32_t take() {
    if (taken_ - released_ >= size_) return 0;
    const auto offset = static_cast<int32_t>(1 + taken_ % size_);
    ++taken_;
    if (used() > peak_) peak_ = used();
    return offset;
  }
  bool has(uint64_t count) const { return size_ - used() >= count; }

  /// The number of entries ever taken. `release_to` gets the value after the submission of a retired task.
  uint64_t position() const { return taken_; }
  void release_to(uint64_t position) { released_ = position; }

  uint64_t size() const { return size_; }
  uint64_t used() const { return taken_ - released_; }
  uint64_t peak() const { return peak_; }

 private:
  const uint64_t size_;
  uint64_t taken_ = 0, released_ = 0, peak_ = 0;
};

}  // namespace pto2
