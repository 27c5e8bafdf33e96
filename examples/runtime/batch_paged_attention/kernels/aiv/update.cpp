// Takes a block of each sequence of a chunk into its accumulators. Slots: m, l and o of the block, m, l, o,
// the part of out, count, num_heads, rows, head_dim (16 or 256), whether it is the last block.
#include "../chunk.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace attention;
  __gm__ float* at[7];
  for (int i = 0; i < 7; ++i) at[i] = tensor_at<float>(args[i]);
  const int64_t count = args[7], heads = args[8], dim = args[10];
  const int rows = static_cast<int>(args[9]);
  const bool last = args[11] != 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = i * kNumbers, matrix = i * kHeads * dim;
    auto* out = at[6] + i * heads * dim;
    if (dim == 16) {
      update<16>(at[0] + number, at[1] + number, at[2] + matrix, at[3] + number, at[4] + number,
                 at[5] + matrix, out, rows, last);
    } else {
      update<256>(at[0] + number, at[1] + number, at[2] + matrix, at[3] + number, at[4] + number,
                  at[5] + matrix, out, rows, last);
    }
  }
}
