// Weights of one block. Slots: s, p, m, l, rows, keys that count, scale (a float).
#include "../attention.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  attention::softmax(tensor_at<float>(args[0]), tensor_at<half>(args[1]), tensor_at<float>(args[2]),
                     tensor_at<float>(args[3]), static_cast<int>(args[4]), static_cast<int>(args[5]),
                     float_in(args[6]));
}
