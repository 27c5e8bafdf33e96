// Scores of block n of each sequence of a chunk. Slots: query, key_cache, block_table, s, first sequence,
// count, n, max_blocks, num_heads, first head, rows, head_dim (16 or 256).
#include "../chunk.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace attention;
  auto* query = tensor_at<half>(args[0]);
  auto* keys = tensor_at<half>(args[1]);
  auto* table = tensor_at<int32_t>(args[2]);
  auto* s = tensor_at<float>(args[3]);
  const int64_t first = args[4], count = args[5], n = args[6], max_blocks = args[7], dim = args[11];
  const int rows = static_cast<int>(args[10]);
  for (int64_t i = 0; i < count; ++i) {
    auto* q = query + ((first + i) * args[8] + args[9]) * dim;
    auto* k = block_of(keys, table, first + i, max_blocks, n, dim);
    if (dim == 16) {
      scores<16>(q, k, s + i * kScores, rows);
    } else {
      scores<256>(q, k, s + i * kScores, rows);
    }
  }
}
