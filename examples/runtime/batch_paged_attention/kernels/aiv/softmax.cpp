// Weights of block n of each sequence of a chunk. Slots: s, context_lens, p, m, l, first sequence, count, n,
// rows, scale (a float). If a sequence has ended before the block, no key counts: its m makes `update` ignore
// it.
#include "../chunk.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using namespace attention;
  auto* s = tensor_at<float>(args[0]);
  auto* context = tensor_at<int32_t>(args[1]);
  auto* p = tensor_at<half>(args[2]);
  auto* m = tensor_at<float>(args[3]);
  auto* l = tensor_at<float>(args[4]);
  const int64_t first = args[5], count = args[6], n = args[7];
  for (int64_t i = 0; i < count; ++i) {
    const int valid = context[first + i] - static_cast<int>(n) * kBlock;
    softmax(s + i * kScores, p + i * kScores, m + i * kNumbers, l + i * kNumbers, static_cast<int>(args[8]),
            valid, float_in(args[9]));
  }
}
