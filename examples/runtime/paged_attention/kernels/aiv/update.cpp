// Takes a block into the accumulators. Slots: m, l and o of the block, m, l, o, out, rows, head_dim (16 or
// 256), whether it is the last block.
#include "../attention.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ float* tensors[7];
  for (int i = 0; i < 7; ++i) tensors[i] = tensor_at<float>(args[i]);
  const int rows = static_cast<int>(args[7]);
  const bool last = args[9] != 0;
  if (args[8] == 16) {
    attention::update<16>(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], tensors[5], tensors[6],
                          rows, last);
  } else {
    attention::update<256>(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], tensors[5], tensors[6],
                           rows, last);
  }
}
