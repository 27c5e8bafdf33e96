// Concurrent runs whose kernels may wait for one another, as ranks do: such a run is stuck only if no core of
// any run in the group can go on.
//
// A member that halts has tested all conditions since the round that it names began. It begins a new round,
// in which all must test again, because its last action may satisfy the condition of another; a member that
// goes on withdraws its report, and one that leaves begins a new round, too.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace pto2 {

class RunGroup {
 public:
  /// Add a run that is about to begin, or another source of events for the others.
  int join() {
    const std::lock_guard guard(lock_);
    members_[next_] = 0;
    ++round_;
    return next_++;
  }
  void leave(int member) {
    const std::lock_guard guard(lock_);
    members_.erase(member);
    ++round_;  // it has acted since the others tested
  }
  /// A core of the member goes on.
  void moves(int member) {
    const std::lock_guard guard(lock_);
    const auto found = members_.find(member);
    if (found == members_.end() || found->second == 0) return;
    found->second = 0;
    ++round_;
  }
  /// The present round. A member asks before it tests its conditions.
  uint64_t round() {
    const std::lock_guard guard(lock_);
    return round_;
  }
  /// No core of the member could go on, by tests that began in `tested`. True if no core of the group can.
  bool halts(int member, uint64_t tested) {
    const std::lock_guard guard(lock_);
    const auto found = members_.find(member);
    if (found == members_.end()) return true;
    if (tested != round_) return false;  // another member has acted since
    if (found->second == 0) ++round_;
    found->second = round_;
    for (const auto& [other, said] : members_) {
      if (said != round_) return false;
    }
    return true;
  }

 private:
  std::mutex lock_;
  std::map<int, uint64_t> members_;  // the round in which each came to a halt; 0: it goes on
  uint64_t round_ = 1;
  int next_ = 0;
};

}  // namespace pto2
