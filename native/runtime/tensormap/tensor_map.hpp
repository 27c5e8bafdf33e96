// A map from regions of memory to the tasks that wrote them. The edges of the graph follow from it.
//
// Entries are in hash buckets by the base address of their buffer, newest first. An entry is valid while its
// task is alive (last_task_alive has not passed its id). Ids decrease along a bucket, so all entries after
// the first invalid entry are invalid too. A lookup cuts the list off there, so it never visits more than the
// valid entries of its bucket. The entries of a task also form a list, for the periodic cleanup.
//
// Only the orchestrator uses the map. Entries point to the tensor descriptors of their tasks, which live as
// long as the tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "../exec/mpmc_queue.hpp"
#include "pto2/tensormap_and_ringbuffer/tensor_data.h"
#include "shared_memory.hpp"

namespace pto2 {

class TensorMap {
 public:
  TensorMap(uint64_t pool, uint64_t buckets, uint64_t window)
      : pool_(pool),
        bucket_mask_(buckets - 1),
        window_mask_(window - 1),
        entries_(pool + 1),
        buckets_(buckets),
        tasks_(window) {}

  /// For every live entry that overlaps `access`, call found(producer, status). With `writes` (INOUT), remove
  /// entries of INOUT parameters that `access` covers: later tasks depend on the task of `access` instead.
  template <class Found>
  void lookup(const TensorData& access, bool writes, int64_t last_task_alive, Found&& found) {
    int32_t* link = &buckets_[bucket(access.buffer.addr)];
    while (*link != 0) {
      Entry& entry = entries_[static_cast<size_t>(*link)];
      if (entry.producer < last_task_alive) {
        cut(link);
        return;
      }
      ++visited_;
      const OverlapStatus status = tensor_overlap(access, *entry.tensor);
      if (status != OverlapStatus::NO_OVERLAP) {
        found(entry.producer, status);
        if (writes && status == OverlapStatus::COVERED && !entry.with_alloc) {
          const int32_t next = entry.next_in_bucket;
          entry.in_bucket = false;  // still in the list of its task; cleanup frees it
          *link = next;
          continue;
        }
      }
      link = &entry.next_in_bucket;
    }
  }

  bool has(uint64_t count) const { return pool_ - used_ >= count; }

  void insert(const TensorData& tensor, int64_t producer, bool with_alloc) {
    int32_t at = free_;
    if (at != 0) {
      free_ = entries_[static_cast<size_t>(at)].next_of_task;
    } else {
      at = static_cast<int32_t>(++bumped_);
    }
    if (++used_ > peak_) peak_ = used_;
    Entry& entry = entries_[static_cast<size_t>(at)];
    const size_t where = bucket(tensor.buffer.addr);
    int32_t& head = buckets_[where];
    int32_t& of_task = tasks_[static_cast<uint64_t>(producer) & window_mask_];
    entry = {&tensor, producer, head, of_task, static_cast<uint32_t>(where), with_alloc, true};
    head = at;
    of_task = at;
  }

  /// Free the entries of tasks that have been retired since the last call.
  void cleanup_retired(int64_t last_task_alive) {
    for (int64_t id = cleaned_; id < last_task_alive; ++id) {
      int32_t& of_task = tasks_[static_cast<uint64_t>(id) & window_mask_];
      while (of_task != 0) {
        const int32_t at = of_task;
        Entry& entry = entries_[static_cast<size_t>(at)];
        if (entry.in_bucket) unlink(at);
        of_task = entry.next_of_task;
        entry.next_of_task = free_;
        free_ = at;
        --used_;
      }
    }
    cleaned_ = last_task_alive;
  }
  int64_t cleaned() const { return cleaned_; }

  uint64_t size() const { return pool_; }
  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  uint64_t visited() const { return visited_; }

 private:
  struct Entry {
    const TensorData* tensor;
    int64_t producer;
    int32_t next_in_bucket;
    int32_t next_of_task;
    uint32_t bucket;  // kept here, because the descriptor may be gone when the entry is unlinked
    bool with_alloc;  // from an OUTPUT parameter, not from INOUT
    bool in_bucket;
  };

  size_t bucket(uint64_t key) const {
    key ^= key >> 16;
    key ^= key >> 32;
    return key & bucket_mask_;
  }
  void cut(int32_t* link) {
    for (int32_t at = *link; at != 0;) {
      Entry& entry = entries_[static_cast<size_t>(at)];
      entry.in_bucket = false;
      at = entry.next_in_bucket;
    }
    *link = 0;
  }
  void unlink(int32_t target) {
    int32_t* link = &buckets_[entries_[static_cast<size_t>(target)].bucket];
    while (*link != target) link = &entries_[static_cast<size_t>(*link)].next_in_bucket;
    cut(link);  // the following entries are older, so their tasks are retired as well
  }

  const uint64_t pool_, bucket_mask_, window_mask_;
  ZeroedArray<Entry> entries_;
  ZeroedArray<int32_t> buckets_;
  ZeroedArray<int32_t> tasks_;  // by task slot: the entries of the task
  int32_t free_ = 0;
  uint64_t bumped_ = 0, used_ = 0, peak_ = 0, visited_ = 0;
  int64_t cleaned_ = 0;
};

}  // namespace pto2
