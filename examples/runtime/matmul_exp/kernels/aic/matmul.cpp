// z = x @ y, 128x128, f16 times f16 into f32. Slots: x, y, z.
#include "../../../common/slots.h"

using namespace pto;

constexpr int kSize = 128;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  GlobalTensor<half, Shape<1, 1, 1, kSize, kSize>, Stride<1, 1, 1, kSize, 1>> gx(tensor_at<half>(args[0])),
      gy(tensor_at<half>(args[1]));
  GlobalTensor<float, Shape<1, 1, 1, kSize, kSize>, Stride<1, 1, 1, kSize, 1>> gz(tensor_at<float>(args[2]));
  using L1 = Tile<TileType::Mat, half, kSize, kSize, BLayout::ColMajor, kSize, kSize, SLayout::RowMajor, 512>;
  L1 x1, y1;
  TileLeft<half, kSize, kSize, kSize, kSize> x0;
  TileRight<half, kSize, kSize, kSize, kSize> y0;
  TileAcc<float, kSize, kSize, kSize, kSize> z;
  TASSIGN(x1, 0);
  TASSIGN(y1, kSize * kSize * sizeof(half));
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(z, 0);

  TLOAD(x1, gx);
  TLOAD(y1, gy);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(x0, x1);
  TMOV(y0, y1);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(z, x0, y0);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gz, z);
}
