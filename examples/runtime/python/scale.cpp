// y = x * factor for 64x128 of f32. Slots: x, factor (a float), y.
#include "../common/slots.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<float, Shape<1, 1, 1, 64, 128>, Stride<1, 1, 1, 128, 1>>;
  Global gx(tensor_at<float>(args[0])), gy(tensor_at<float>(args[2]));
  Tile<TileType::Vec, float, 64, 128> x, y;
  TASSIGN(x, 0);
  TASSIGN(y, 64 * 128 * sizeof(float));
  TLOAD(x, gx);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMULS(y, x, float_in(args[1]));
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gy, y);
}
