// How large the rings have to be. After a deadlock the orchestration goes on, without the tasks: what it
// submits is counted until it ends, or for a while, so that the report can name sizes that are large enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pto2 {

/// The most that was held at one time.
struct Needs {
  uint64_t tasks = 0;    // from the oldest that an open scope holds on
  uint64_t bytes = 0;    // of the heap
  uint64_t entries = 0;  // of the TensorMap
  uint64_t block = 0;    // the largest piece of the heap
  bool all = true;       // whether the orchestration came to its end
};

class Survey {
 public:
  static constexpr size_t kMostTasks = size_t{1} << 22;

  /// `next` is the first task to count; those before it hold `bytes` and `entries` between them.
  Survey(int64_t next, uint64_t bytes, uint64_t entries, int64_t until_ns)
      : first_(next), until_ns_(until_ns), before_{bytes, entries} {}

  int64_t next() const { return first_ + static_cast<int64_t>(starts_.size()); }
  bool enough(int64_t now_ns) const { return starts_.size() >= kMostTasks || now_ns > until_ns_; }

  /// A task; `oldest` is the first one that an open scope holds, or this one.
  void add(int64_t oldest, uint64_t bytes, uint64_t entries) {
    needs_.tasks = std::max(needs_.tasks, static_cast<uint64_t>(next() - oldest + 1));
    starts_.push_back(sum_);
    sum_ = {sum_.bytes + bytes, sum_.entries + entries};
    // What was there before is given back as a whole: a little later than it would be.
    const bool older = oldest < first_;
    const Held from = older ? Held{} : starts_[static_cast<size_t>(oldest - first_)];
    needs_.bytes = std::max(needs_.bytes, sum_.bytes - from.bytes + (older ? before_.bytes : 0));
    needs_.entries = std::max(needs_.entries, sum_.entries - from.entries + (older ? before_.entries : 0));
    needs_.block = std::max(needs_.block, bytes);
  }

  Needs needs(bool all) const {
    Needs found = needs_;
    found.all = all;
    return found;
  }

 private:
  struct Held {
    uint64_t bytes = 0, entries = 0;
  };
  const int64_t first_, until_ns_;
  const Held before_;
  Held sum_;
  std::vector<Held> starts_;  // by task: what the counted ones before it took
  Needs needs_;
};

}  // namespace pto2
