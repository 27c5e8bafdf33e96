// Storage of tensor descriptors: a table of reference-counted TensorData with stable addresses.
//
// Threads: only the orchestrator allocates, retains and releases. Schedulers and cores only read descriptors
// of tasks that were published to them. A runtime therefore releases the parameters of a finished task in the
// orchestrator thread (when it uses the slot again, or when the pool calls the function of `set_reclaim`),
// never at completion of the task. So there is no lock and no atomic here.
//
// Memory is mapped for the whole capacity, and an entry takes memory at its first use. Index 0 means "no
// tensor". A free entry has ref_count 0 and holds the next free index in `version`.
//
// The pool belongs to the runtime. Each shared object with orchestration code has its own pointer to the
// pool: `pto2_bind_tensor_pool`, exported by every object that includes this header, sets the pointer before
// the entry is called and clears it afterwards; `pto2_rt_init_tensor_pool` sets it too.
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

  /// Return the pool of the tensors of this shared object; null before a runtime has bound one.
  static TensorPool* instance() { return current(); }
  static void set_instance(TensorPool* pool) { current() = pool; }
  /// Return the pool; fail if there is none.
  static TensorPool& required(const char* file, int line) {
    TensorPool* pool = current();
    if (__builtin_expect(pool == nullptr, 0)) {
      assert_fail(file, line,
                  "a Tensor was made without a tensor pool: call pto2_rt_init_tensor_pool(rt) first");
    }
    return *pool;
  }

  /// Allocate a descriptor with one reference and undefined contents.
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

  /// Set a function that is called when no descriptor is free: it releases those of finished tasks, and
  /// returns true if there were any.
  void set_reclaim(bool (*reclaim)(void*), void* context) {
    reclaim_ = reclaim;
    reclaim_context_ = context;
  }

  /// Forget all tensors; handles that still refer to a tensor become invalid.
  void reset() {
    next_ = 1;
    free_ = live_ = peak_ = 0;
  }

 private:
  // Whole cache lines: changes of a reference count do not disturb cores that read the neighbouring entries.
  struct alignas(64) Entry {
    TensorData data;
  };

  size_t bytes() const { return sizeof(Entry) * static_cast<size_t>(capacity_); }

  // Hidden: a visible inline variable would be shared by the whole process.
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

/// Set the pool for the tensors of this shared object; null when the run is over. The runtime calls this.
extern "C" __attribute__((weak, used, visibility("default"))) void pto2_bind_tensor_pool(TensorPool* pool) {
  TensorPool::set_instance(pool);
}
