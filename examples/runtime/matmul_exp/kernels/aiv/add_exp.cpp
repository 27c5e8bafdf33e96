// z = exp(x + y), 128x128 of f32. Slots: x, y, z.
#include "../../../common/slots.h"

using namespace pto;

constexpr int kSize = 128;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<float, Shape<1, 1, 1, kSize, kSize>, Stride<1, 1, 1, kSize, 1>>;
  Global gx(tensor_at<float>(args[0])), gy(tensor_at<float>(args[1])), gz(tensor_at<float>(args[2]));
  Tile<TileType::Vec, float, kSize, kSize> x, y;
  TASSIGN(x, 0);
  TASSIGN(y, kSize * kSize * sizeof(float));
  TLOAD(x, gx);
  TLOAD(y, gy);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(x, x, y);
  pipe_barrier(PIPE_V);
  TEXP(x, x);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gz, x);
}
