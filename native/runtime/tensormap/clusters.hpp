// Clusters (one AIC and its two AIVs) that an orchestration has allocated for a group of tasks.
//
// A cluster may be freed while tasks of its group are unfinished: it returns to the pool when all have ended.
// If the orchestration does not free a cluster, the end of the scope that allocated it does.
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

  /// Allocate a free cluster; return -1 if there is none. It is freed at the end of `scope` at the latest.
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

  /// Count a completed task of the group; return true if this returned the cluster to the pool.
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

  /// Free the clusters of a scope that ends; return true if one returned to the pool.
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
