// y = sqrt(log(x)), 128x128 of f16. Slots: x, y.
#include "../../../common/slots.h"

using namespace pto;

constexpr int kSize = 128;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<half, Shape<1, 1, 1, kSize, kSize>, Stride<1, 1, 1, kSize, 1>>;
  Global gx(tensor_at<half>(args[0])), gy(tensor_at<half>(args[1]));
  Tile<TileType::Vec, half, kSize, kSize> x, y;
  TASSIGN(x, 0);
  TASSIGN(y, kSize * kSize * sizeof(half));
  TLOAD(x, gx);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TLOG(y, x);
  pipe_barrier(PIPE_V);
  TSQRT(y, y);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gy, y);
}
