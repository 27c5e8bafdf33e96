// The memory that a graph allocates for its kernels. The host simulates the device, so this is host memory.
// Each allocation is tracked, so that copies outside of it are refused and no allocation outlives the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "pto/core/launch_abi.hpp"

namespace pto2 {

/// One thread allocates and frees: it builds the graph and ends the run. Other threads may call `block`.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { clear(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Allocate; return null if there is no memory. With `poison`, each byte is 0xFF (a NaN as a float).
  void* allocate(size_t size, bool poison) {
    const size_t rounded = (size + 63) / 64 * 64 + (size == 0 ? 64 : 0);
    if (rounded < size) return nullptr;
    void* memory = std::aligned_alloc(64, rounded);
    if (memory == nullptr) return nullptr;
    if (poison) std::memset(memory, 0xFF, rounded);
    const std::unique_lock lock(changing_);
    blocks_[reinterpret_cast<uintptr_t>(memory)] = size;
    used_ += size;
    if (used_ > peak_) peak_ = used_;
    return memory;
  }

  /// Free an allocation; return false if the pointer is not the start of one.
  bool release(void* pointer) {
    const auto at = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (at == blocks_.end()) return false;
    used_ -= at->second;
    {
      const std::unique_lock lock(changing_);
      blocks_.erase(at);
    }
    std::free(pointer);
    return true;
  }

  void clear() {
    for (const auto& [begin, size] : blocks_) std::free(reinterpret_cast<void*>(begin));
    blocks_.clear();
    used_ = 0;
  }

  /// Return true if all these bytes are inside one allocation.
  bool holds(const void* pointer, size_t size) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    auto at = blocks_.upper_bound(address);
    if (at == blocks_.begin()) return false;
    --at;
    const size_t offset = address - at->first;
    return offset <= at->second && size <= at->second - offset;
  }

  /// Find the allocation that contains an address; return false if there is none. Any thread may call this.
  bool block(uint64_t address, pto_array& out) const {
    const std::shared_lock lock(changing_);
    auto at = blocks_.upper_bound(address);
    if (at == blocks_.begin()) return false;
    --at;
    out = {reinterpret_cast<void*>(at->first), at->second, "its allocation", 0};
    return address - at->first < at->second;
  }

  size_t used() const { return used_; }
  size_t peak() const { return peak_; }

 private:
  std::map<uintptr_t, size_t> blocks_;
  mutable std::shared_mutex changing_;  // guards blocks_
  size_t used_ = 0, peak_ = 0;
};

}  // namespace pto2
