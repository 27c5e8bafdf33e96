// Where the sequences of a chunk lie in memory. Each has a place of its own in the buffers between the tasks:
// 16 heads, whether or not they are all used.
#pragma once

#include "../../paged_attention/kernels/attention.h"

namespace attention {

/// Elements from one sequence of the chunk to the next.
constexpr int kScores = kHeads * kBlock;
constexpr int kNumbers = kHeads;

/// The place of block n of a sequence in a cache.
AICORE inline __gm__ half* block_of(__gm__ half* cache, __gm__ int32_t* table, int64_t sequence,
                                    int64_t max_blocks, int64_t n, int64_t dim) {
  return cache + static_cast<int64_t>(table[sequence * max_blocks + n]) * kBlock * dim;
}

}  // namespace attention
