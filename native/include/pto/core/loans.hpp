// Borrowed tiles: tiles that alias memory of another owner. A load or a pop whose result is read soon, and
// only read, needs no copy (src/pto/image/loans.py finds them).
#pragma once

#include "pto/core/bounds.hpp"

namespace pto::detail {

/// The number of bytes after a tile that instructions may read, since they read whole vectors.
inline constexpr size_t kReadBehind = 128;

/// Return true if the array that holds these bytes has at least kReadBehind bytes after them.
inline bool goes_on_behind(const void* data, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  for (int32_t i = 0; i < current->array_count; ++i) {
    const auto first = reinterpret_cast<uintptr_t>(current->arrays[i].data);
    if (at >= first && at + bytes + kReadBehind <= first + current->arrays[i].bytes) return true;
  }
  return false;
}

}  // namespace pto::detail
