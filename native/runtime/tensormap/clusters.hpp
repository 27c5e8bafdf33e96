// Clusters (one AIC and its two AIVs) that an orchestration has taken for a group of tasks.
//
// Freeing one while tasks of its group are unfinished is allowed: it returns to the pool when the last of
// them completes. What an orchestration does not free is freed when the scope it was allocated in ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../exec/pause.hpp"
#include "../exec/platform.hpp"

namespace pto2 {

class Clusters {
 public:
  Clusters(int count, const Pause& pause) : pause_(pause), all_(static_cast<size_t>(count)) {}

  /// A free cluster, or -1. Scope is where it is released at the latest.
  int try_allocate(int scope) {
    const Locked guard(lock_, pause_);
    for (size_t c = 0; c < all_.size(); ++c) {
      if (all_[c].group >= 0) continue;
      all_[c] = {++groups_, 0, scope, false};
      peak_ = std::max(peak_, ++used_);
      return static_cast<int>(c);
    }
    return -1;
  }

  bool allocated(int cluster) const {
    const Locked guard(lock_, pause_);
    return valid(cluster) && all_[static_cast<size_t>(cluster)].group >= 0 &&
           !all_[static_cast<size_t>(cluster)].freed;
  }
  int32_t group(int cluster) const { return all_[static_cast<size_t>(cluster)].group; }

  void submitted(int cluster) {
    const Locked guard(lock_, pause_);
    ++all_[static_cast<size_t>(cluster)].unfinished;
  }

  /// A task of the group has completed; true if this gave the cluster back.
  bool completed(int cluster) {
    const Locked guard(lock_, pause_);
    Cluster& it = all_[static_cast<size_t>(cluster)];
    --it.unfinished;
    return give_back(it);
  }

  bool free(int cluster) {
    const Locked guard(lock_, pause_);
    Cluster& it = all_[static_cast<size_t>(cluster)];
    it.freed = true;
    return give_back(it);
  }

  /// The scope ends: its clusters are freed. True if a cluster came back.
  bool end_scope(int scope) {
    const Locked guard(lock_, pause_);
    bool any = false;
    for (Cluster& it : all_) {
      if (it.group < 0 || it.scope != scope || it.freed) continue;
      it.freed = true;
      any |= give_back(it);
    }
    return any;
  }

  int count() const { return static_cast<int>(all_.size()); }
  int used() const {
    const Locked guard(lock_, pause_);
    return used_;
  }
  int peak() const {
    const Locked guard(lock_, pause_);
    return peak_;
  }

 private:
  struct Cluster {
    int32_t group = -1;
    int unfinished = 0;
    int scope = 0;
    bool freed = false;
  };
  bool valid(int cluster) const { return cluster >= 0 && cluster < static_cast<int>(all_.size()); }
  bool give_back(Cluster& it) {
    if (!it.freed || it.unfinished > 0) return false;
    it.group = -1;
    --used_;
    return true;
  }

  const Pause& pause_;
  mutable SpinLock lock_;
  std::vector<Cluster> all_;
  int32_t groups_ = -1;
  int used_ = 0, peak_ = 0;
};

}  // namespace pto2
