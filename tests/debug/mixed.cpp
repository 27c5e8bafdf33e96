// A product on the cube core, its exponential on two vector cores, for the debugger: see kernels.py.
#include "parts.hpp"

constexpr int kSize = 32, kCount = kSize * kSize, kBytes = kCount * 2, kTimes = 2;
using Operand = GlobalTensor<half, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using Result = GlobalTensor<float, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using HalfResult = GlobalTensor<float, Shape<1, 1, 1, kSize / 2, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using InL1 = Tile<TileType::Mat, half, kSize, kSize, BLayout::ColMajor, kSize, kSize, SLayout::RowMajor, 512>;
using HalfPart = Tile<TileType::Vec, float, kSize / 2, kSize>;

__global__ AICORE void both(__gm__ half* a, __gm__ half* b, __gm__ float* w, __gm__ float* c) {
#ifdef __DAV_CUBE__
  Operand ga(a), gb(b);
  Result gw(w);
  InL1 x1, y1;
  TileLeft<half, kSize, kSize> x0;
  TileRight<half, kSize, kSize> y0;
  TileAcc<float, kSize, kSize> z;
  TASSIGN(x1, 0);
  TASSIGN(y1, kBytes);
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(z, 0);
  TLOAD(x1, ga);
  TLOAD(y1, gb);
  sync(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(x0, x1);
  TMOV(y0, y1);
  sync(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(z, x0, y0);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gw, z);
  ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, 4));
#endif
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfResult gw(w + at), gc(c + at);
  HalfPart x, y;
  TASSIGN(x, 0);
  TASSIGN(y, 4 * kBytes);
  wait_flag_dev(4);
  for (int i = 0; i < kTimes; ++i) {
    exponent(y, x, gw, gc);
    pipe_barrier(PIPE_ALL);
  }
#endif
}
