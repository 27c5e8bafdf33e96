// The ring sizes that an orchestration needs. The tasks of a scope stay until the scope ends, and hold back
// all younger tasks. So the need is all submissions since the oldest task that an open scope holds.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pto2 {

/// The largest amounts that had to be held at one time.
struct Demand {
  uint64_t tasks = 0;
  uint64_t bytes = 0;    // bytes of the heap
  uint64_t block = 0;    // largest block of the heap
  uint64_t entries = 0;  // entries of the TensorMap
};

class DemandMeter {
 public:
  /// Count a task. `first`: open scopes hold no other task.
  void add(bool first, uint64_t bytes, uint64_t entries) {
    if (first) now_ = {};
    now_ = {now_.tasks + 1, std::min(now_.bytes + bytes, kAbsurd), 0, now_.entries + entries};
    most_.tasks = std::max(most_.tasks, now_.tasks);
    most_.bytes = std::max(most_.bytes, now_.bytes);
    most_.block = std::max(most_.block, bytes);
    most_.entries = std::max(most_.entries, now_.entries);
  }
  const Demand& most() const { return most_; }

  static constexpr uint64_t kAbsurd = uint64_t{1} << 60;  // bytes; a sum of two does not overflow

 private:
  Demand now_, most_;
};

}  // namespace pto2
