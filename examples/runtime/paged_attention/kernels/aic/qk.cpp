// Scores of one block. Slots: q, k, s, rows, head_dim (16 or 256).
#include "../attention.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* q = tensor_at<half>(args[0]);
  auto* k = tensor_at<half>(args[1]);
  auto* s = tensor_at<float>(args[2]);
  const int rows = static_cast<int>(args[3]);
  if (args[4] == 16) {
    attention::scores<16>(q, k, s, rows);
  } else {
    attention::scores<256>(q, k, s, rows);
  }
}
