// Runs at the same time whose kernels may wait for one another, as ranks do: one in which no core can go on is
// stuck only if that holds of all of them.
//
// Who says so has looked at everything since the last time that anything moved anywhere: a member that comes to
// a halt begins a new round, in which all have to look once more, because what it did last may be what another
// one waits for; one that goes on takes its word back.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace pto2 {

class Company {
 public:
  /// A run that is about to begin, or something else that may still bring what others wait for.
  int join() {
    const std::lock_guard guard(lock_);
    members_[next_] = 0;
    ++round_;
    return next_++;
  }
  void leave(int member) {
    const std::lock_guard guard(lock_);
    members_.erase(member);
    ++round_;  // it has done something since the others looked
  }
  /// A core of the member goes on.
  void moves(int member) {
    const std::lock_guard guard(lock_);
    const auto found = members_.find(member);
    if (found == members_.end() || found->second == 0) return;
    found->second = 0;
    ++round_;
  }
  /// No core of the member can go on. True if nobody's can.
  bool halts(int member) {
    const std::lock_guard guard(lock_);
    const auto found = members_.find(member);
    if (found == members_.end()) return true;
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
