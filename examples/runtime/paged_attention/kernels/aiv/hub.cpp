// Accumulators before the first block. Slots: m, l, o, rows, head_dim (16 or 256).
#include "../attention.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* m = tensor_at<float>(args[0]);
  auto* l = tensor_at<float>(args[1]);
  auto* o = tensor_at<float>(args[2]);
  const int rows = static_cast<int>(args[3]);
  if (args[4] == 16) {
    attention::start<16>(m, l, o, rows);
  } else {
    attention::start<256>(m, l, o, rows);
  }
}
