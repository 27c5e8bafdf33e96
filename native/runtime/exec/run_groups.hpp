// Groups of concurrent runs whose kernels may wait for one another, as ranks do. A run in a group is stuck
// only if no core of any run in the group can continue.
//
// A member that halts has tested all conditions since the start of the round that it names. Its first halt
// begins a new round, in which all members must test again, because its last action may satisfy a condition
// of another. A member that continues withdraws its halt. A member that leaves also begins a new round.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace pto2 {

class RunGroup {
 public:
  /// Add a run that is about to begin, or another source of events.
  int join() {
    const std::lock_guard guard(lock_);
    members_[next_] = 0;
    ++round_;
    return next_++;
  }
  void leave(int member) {
    const std::lock_guard guard(lock_);
    members_.erase(member);
    ++round_;  // the member has acted since the others tested
  }
  /// A core of the member continues.
  void moves(int member) {
    const std::lock_guard guard(lock_);
    const auto found = members_.find(member);
    if (found == members_.end() || found->second == 0) return;
    found->second = 0;
    ++round_;
  }
  /// Return the current round. A member reads the round before it tests its conditions.
  uint64_t round() {
    const std::lock_guard guard(lock_);
    return round_;
  }
  /// Halt a member: no core can continue, by tests begun in round `tested`. True if the whole group halts.
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
  std::map<int, uint64_t> members_;  // the round in which each member halted; 0: it runs
  uint64_t round_ = 1;
  int next_ = 0;
};

}  // namespace pto2
