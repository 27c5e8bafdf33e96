// Values of block n of each sequence of a chunk, weighted. Slots: p, value_cache, block_table, o, first
// sequence, count, n, max_blocks, rows, head_dim (16 or 256).
#include "../chunk.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace attention;
  auto* p = tensor_at<half>(args[0]);
  auto* cache = tensor_at<half>(args[1]);
  auto* table = tensor_at<int32_t>(args[2]);
  auto* o = tensor_at<float>(args[3]);
  const int64_t first = args[4], count = args[5], n = args[6], max_blocks = args[7], dim = args[9];
  const int rows = static_cast<int>(args[8]);
  for (int64_t i = 0; i < count; ++i) {
    auto* v = block_of(cache, table, first + i, max_blocks, n, dim);
    if (dim == 16) {
      values<16>(p + i * kScores, v, o + i * kHeads * dim, rows);
    } else {
      values<256>(p + i * kScores, v, o + i * kHeads * dim, rows);
    }
  }
}
