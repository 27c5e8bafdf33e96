// Tiles that lie in memory which is not theirs: where a program reads what it loads, or takes from a FIFO, soon and
// only (src/pto/image/loans.py says where), nothing has to be copied.
#pragma once

#include "pto/core/bounds.hpp"

namespace pto::detail {

/// What instructions may read behind a tile, in vectors.
inline constexpr size_t kReadBehind = 128;

/// Whether an array goes on behind some bytes of it.
inline bool goes_on_behind(const void* data, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  for (int32_t i = 0; i < current->array_count; ++i) {
    const auto first = reinterpret_cast<uintptr_t>(current->arrays[i].data);
    if (at >= first && at + bytes + kReadBehind <= first + current->arrays[i].bytes) return true;
  }
  return false;
}

}  // namespace pto::detail
