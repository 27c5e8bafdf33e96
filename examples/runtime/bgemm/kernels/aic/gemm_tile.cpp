// p = a @ b, 64x64 parts of larger row-major matrices. Slots: a, b, p, elements per row of a, of b, of p.
#include "../../../common/slots.h"

using namespace pto;

constexpr int kTile = 64;

using Part = GlobalTensor<float, Shape<1, 1, 1, kTile, kTile>, Stride<1, 1, 1, -1, 1>>;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Part ga(tensor_at<float>(args[0]), {}, Stride<1, 1, 1, -1, 1>(args[3]));
  Part gb(tensor_at<float>(args[1]), {}, Stride<1, 1, 1, -1, 1>(args[4]));
  Part gp(tensor_at<float>(args[2]), {}, Stride<1, 1, 1, -1, 1>(args[5]));

  using L1 =
      Tile<TileType::Mat, float, kTile, kTile, BLayout::ColMajor, kTile, kTile, SLayout::RowMajor, 512>;
  L1 a1, b1;
  TileLeft<float, kTile, kTile, kTile, kTile> a0;
  TileRight<float, kTile, kTile, kTile, kTile> b0;
  TileAcc<float, kTile, kTile, kTile, kTile> p;
  TASSIGN(a1, 0);
  TASSIGN(b1, kTile * kTile * sizeof(float));
  TASSIGN(a0, 0);
  TASSIGN(b0, 0);
  TASSIGN(p, 0);

  TLOAD(a1, ga);
  TLOAD(b1, gb);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(a0, a1);
  TMOV(b0, b1);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(p, a0, b0);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gp, p);
}
