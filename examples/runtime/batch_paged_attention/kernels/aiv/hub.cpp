// Accumulators of a chunk before its first block. Slots: m, l, o, count, rows, head_dim (16 or 256).
#include "../chunk.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace attention;
  auto* m = tensor_at<float>(args[0]);
  auto* l = tensor_at<float>(args[1]);
  auto* o = tensor_at<float>(args[2]);
  const int rows = static_cast<int>(args[4]);
  for (int64_t i = 0; i < args[3]; ++i) {
    if (args[5] == 16) {
      start<16>(m + i * kNumbers, l + i * kNumbers, o + i * kHeads * 16, rows);
    } else {
      start<256>(m + i * kNumbers, l + i * kNumbers, o + i * kHeads * 256, rows);
    }
  }
}
