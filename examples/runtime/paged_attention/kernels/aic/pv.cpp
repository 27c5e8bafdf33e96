// Values of one block, weighted. Slots: p, v, o, rows, head_dim (16 or 256).
#include "../attention.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* p = tensor_at<half>(args[0]);
  auto* v = tensor_at<half>(args[1]);
  auto* o = tensor_at<float>(args[2]);
  const int rows = static_cast<int>(args[3]);
  if (args[4] == 16) {
    attention::values<16>(p, v, o, rows);
  } else {
    attention::values<256>(p, v, o, rows);
  }
}
