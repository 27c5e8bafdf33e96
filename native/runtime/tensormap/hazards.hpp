// Hazards: a task writes memory that an earlier task reads or writes, with no path between the two. The
// TensorMap does not order these tasks (it does not record readers, and an OUTPUT looks nothing up), so the
// outcome depends on the schedule. Each task is checked against the whole graph when it is submitted, so the
// findings do not depend on the speed of tasks.
#pragma once

#include <bitset>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pto2/tensormap_and_ringbuffer/pto_types.h"
#include "tensormap/shared_memory.hpp"

namespace pto2 {

struct Hazard {
  int64_t earlier, later;
  int8_t kind;          // 0 RAW, 1 WAW, 2 WAR, 4 the scope of the tensor has ended (then `earlier` is -1)
  int32_t arg;          // parameter of the later task
  bool tracked = true;  // false: one of the parameters makes no edges, so order was left to explicit edges
};

class Hazards {
 public:
  using Tracked = std::bitset<kMaxParams + 1>;
  /// Check a task at its submission: its parameters, and the tasks it will wait for. Return the accesses of
  /// earlier tasks that conflict and are not ordered before it. With `order`, the caller adds edges to the
  /// tracked ones. `tracked`: bits of the parameters that make edges. A reader through another parameter, or
  /// of data written through another parameter, may conflict as well.
  std::vector<Hazard> submit(int64_t id, const PTOParamType* types, const TensorData* const* tensors,
                             int count, const std::vector<int64_t>& producers, bool order,
                             const Tracked& tracked) {
    predecessors_.push_back(producers);
    joined_before_.push_back(joined_.size());
    std::vector<Hazard> found;
    std::vector<Hazard> unseen;        // RAW candidates: writers to which no automatic edge leads
    for (int i = 0; i < count; ++i) {  // retired producers are missing in `producers`
      if (types[i] != PTOParamType::INPUT && types[i] != PTOParamType::INOUT) continue;
      for (const Access& access : accesses_[tensors[i]->buffer.addr]) {
        if (!access.writes || tensor_overlap(*tensors[i], access.region.get()) == OverlapStatus::NO_OVERLAP)
          continue;
        if (tracked[i] && access.tracked) {
          predecessors_.back().push_back(access.task);
        } else {
          unseen.push_back({access.task, id, 0, i, false});
        }
      }
    }
    for (const Hazard& hazard : unseen) {
      if (!known(found, hazard.earlier) && !before(hazard.earlier, id)) found.push_back(hazard);
    }
    for (int i = 0; i < count; ++i) {
      if (types[i] == PTOParamType::SCALAR || types[i] == PTOParamType::INPUT) continue;
      for (const Access& access : accesses_[tensors[i]->buffer.addr]) {
        if (access.task == id ||
            tensor_overlap(*tensors[i], access.region.get()) == OverlapStatus::NO_OVERLAP) {
          continue;
        }
        if (known(found, access.task) || before(access.task, id)) continue;
        const bool both = tracked[i] && access.tracked;
        found.push_back({access.task, id, static_cast<int8_t>(access.writes ? 1 : 2), i, both});
      }
    }
    if (order) {
      for (const Hazard& hazard : found) {
        if (hazard.tracked) predecessors_.back().push_back(hazard.earlier);
      }
    }
    for (int i = 0; i < count; ++i) {
      if (types[i] == PTOParamType::SCALAR) continue;
      add(id, *tensors[i], types[i] != PTOParamType::INPUT, tracked[i]);
    }
    return found;
  }

  /// Note that the orchestrator has waited for a task: all later submissions are ordered after the task.
  void joined(int64_t task) { joined_.push_back(task); }

  /// Return the order of all tasks as edges, including edges from retired tasks. The node -k stands for the
  /// first k tasks that the orchestrator has waited for.
  std::vector<std::pair<int64_t, int64_t>> order() const {
    std::vector<std::pair<int64_t, int64_t>> edges;
    for (size_t k = 0; k < joined_.size(); ++k) {
      const auto point = -static_cast<int64_t>(k) - 1;
      edges.emplace_back(joined_[k], point);
      if (k > 0) edges.emplace_back(point + 1, point);
    }
    for (size_t task = 0; task < predecessors_.size(); ++task) {
      const auto id = static_cast<int64_t>(task);
      for (const int64_t before : predecessors_[task]) edges.emplace_back(before, id);
      if (joined_before_[task] > 0) edges.emplace_back(-static_cast<int64_t>(joined_before_[task]), id);
    }
    return edges;
  }

  /// Forget the accesses to memory that has just been allocated from the heap.
  void fresh(uint64_t address) { accesses_.erase(address); }

 private:
  /// A copy of a descriptor; TensorData itself cannot be copied.
  struct Region {
    alignas(TensorData) char bytes[sizeof(TensorData)];
    explicit Region(const TensorData& data) {
      __builtin_memcpy(bytes, static_cast<const void*>(&data), sizeof bytes);
    }
    const TensorData& get() const { return *reinterpret_cast<const TensorData*>(bytes); }
  };
  struct Access {
    int64_t task;
    bool writes, tracked;
    Region region;
  };

  static bool known(const std::vector<Hazard>& found, int64_t task) {
    for (const Hazard& hazard : found) {
      if (hazard.earlier == task) return true;
    }
    return false;
  }

  /// Return true if there is a path from `from` to the later task `to`. Only tasks between them can be on it.
  bool before(int64_t from, int64_t to) {
    seen_.resize(predecessors_.size(), 0);
    ++search_;
    stack_.assign(1, to);
    const auto follow = [&](int64_t p) {
      if (p < from || seen_[static_cast<size_t>(p)] == search_) return;
      seen_[static_cast<size_t>(p)] = search_;
      stack_.push_back(p);
    };
    size_t followed = 0;  // number of followed entries of joined_
    while (!stack_.empty()) {
      const int64_t at = stack_.back();
      if (at == from) return true;
      stack_.pop_back();
      for (const int64_t p : predecessors_[static_cast<size_t>(at)]) follow(p);
      for (; followed < joined_before_[static_cast<size_t>(at)]; ++followed) follow(joined_[followed]);
    }
    return false;
  }

  /// Record an access. A write replaces the earlier accesses that it covers and that are ordered before it.
  void add(int64_t id, const TensorData& tensor, bool writes, bool tracked) {
    std::vector<Access>& list = accesses_[tensor.buffer.addr];
    if (writes) {
      std::erase_if(list, [&](const Access& access) {
        return access.task != id && tensor_overlap(tensor, access.region.get()) == OverlapStatus::COVERED &&
               before(access.task, id);
      });
    }
    list.push_back({id, writes, tracked, Region(tensor)});
  }

  std::vector<std::vector<int64_t>> predecessors_;  // by task
  std::vector<size_t> joined_before_;               // by task: size of joined_ at its submission
  std::vector<int64_t> joined_;
  std::unordered_map<uint64_t, std::vector<Access>> accesses_;  // by base address
  std::vector<uint32_t> seen_;
  std::vector<int64_t> stack_;
  uint32_t search_ = 0;
};

}  // namespace pto2
