// Cache operations between an orchestration and the cores: here they share memory, and fences are enough.
#pragma once

#include <stddef.h>

#include <atomic>

inline void cache_invalidate_range(const void*, size_t) {
  std::atomic_thread_fence(std::memory_order_acquire);
}
inline void cache_flush_range(const void*, size_t) { std::atomic_thread_fence(std::memory_order_release); }
