// Storage of tensor descriptors: a table of TensorData with stable addresses, reference counted.
//
// Threads: the orchestrator alone allocates, retains and releases; schedulers and cores only read descriptors
// of tasks that have been published to them. A runtime therefore releases the parameters of a finished task
// on the orchestrator's side (when it uses the slot again, or when the pool asks through `set_reclaim`),
// never at completion of the task. There is no lock and no atomic here.
//
// Memory is mapped for the whole capacity and touched only as far as it was ever used. Index 0 means "no
// tensor". A free entry has ref_count 0 and holds the next free index in `version`.
//
// The pool belongs to the runtime. A shared object with orchestration code only has a pointer to it, its own:
// `pto2_bind_tensor_pool`, exported by every object that includes this header, sets it before the entry is
// called and clears it afterwards; `pto2_rt_init_tensor_pool` sets it too.
#pragma once

#include <stdint.h>
#include <sys/mman.h>

#include "common.h"
#include "tensor_data.h"

constexpr int TENSOR_DATA_MAX_SIZE = 1 << 17;

class TensorPool {
 public:
  explicit TensorPool(int32_t capacity = TENSOR_DATA_MAX_SIZE) : capacity_(capacity) {
    void* memory =
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) assert_fail(__FILE__, __LINE__, "no memory for the tensor pool");
    entries_ = static_cast<Entry*>(memory);
  }
  ~TensorPool() { munmap(entries_, bytes()); }
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  /// The pool that tensors of this shared object live in; null before a runtime has bound one.
  static TensorPool* instance() { return current(); }
  static void set_instance(TensorPool* pool) { current() = pool; }
  /// The same; required.
  static TensorPool& required(const char* file, int line) {
    TensorPool* pool = current();
    if (__builtin_expect(pool == nullptr, 0)) {
      assert_fail(file, line,
                  "a Tensor was made without a tensor pool: call pto2_rt_init_tensor_pool(rt) first");
    }
    return *pool;
  }

  /// A descriptor with one reference and undefined contents.
  int32_t allocate(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (free_ == 0 && next_ >= capacity_ &&
        (reclaim_ == nullptr || !reclaim_(reclaim_context_) || free_ == 0)) {
      assert_fail(file, line,
                  "the tensor pool is full: %d tensors are in use (next_index < TENSOR_DATA_MAX_SIZE, %d)",
                  live_, capacity_);
    }
    int32_t index;
    if (free_ != 0) {
      index = free_;
      free_ = entries_[index].data.version;
    } else {
      index = next_++;
    }
    entries_[index].data.ref_count = 1;
    if (++live_ > peak_) peak_ = live_;
    return index;
  }

  void retain(int32_t index) { entries_[index].data.ref_count++; }

  void release(int32_t index) {
    TensorData& data = entries_[index].data;
    if (--data.ref_count != 0) return;
    data.version = free_;
    free_ = index;
    live_--;
  }

  TensorData& data(int32_t index) { return entries_[index].data; }
  const TensorData& data(int32_t index) const { return entries_[index].data; }

  int32_t live() const { return live_; }
  int32_t peak() const { return peak_; }
  int32_t capacity() const { return capacity_; }

  /// Asked when no descriptor is free: release those of finished tasks, true if there were any.
  void set_reclaim(bool (*reclaim)(void*), void* context) {
    reclaim_ = reclaim;
    reclaim_context_ = context;
  }

  /// Forget every tensor; what still refers to one must not be used any more.
  void reset() {
    next_ = 1;
    free_ = live_ = peak_ = 0;
  }

 private:
  // Whole cache lines: counting references of one tensor does not disturb cores that read its neighbours.
  struct alignas(64) Entry {
    TensorData data;
  };

  size_t bytes() const { return sizeof(Entry) * static_cast<size_t>(capacity_); }

  // Hidden: an inline variable that is visible would be one for the whole process.
  __attribute__((visibility("hidden"))) static TensorPool*& current() {
    static TensorPool* pool = nullptr;
    return pool;
  }

  Entry* entries_;
  int32_t capacity_;
  int32_t next_ = 1;
  int32_t free_ = 0;
  int32_t live_ = 0;
  int32_t peak_ = 0;
  bool (*reclaim_)(void*) = nullptr;
  void* reclaim_context_ = nullptr;
};

/// Called by the runtime: the pool for the tensors of this shared object, or null when the run is over.
extern "C" __attribute__((weak, used, visibility("default"))) void pto2_bind_tensor_pool(TensorPool* pool) {
  TensorPool::set_instance(pool);
}
