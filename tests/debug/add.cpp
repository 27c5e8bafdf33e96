// A sum with flags by hand, for the debugger: see kernels.py.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 64, kCols = 128, kCount = kRows * kCols, kBytes = kCount * 4;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
using Part = Tile<TileType::Vec, float, kRows, kCols>;

__global__ AICORE void add(__gm__ float* a, __gm__ float* b, __gm__ float* c) {
  Matrix ga(a);
  Matrix gb(b);
  Matrix gc(c);
  Part x;
  Part y;
  Part z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  TLOAD(x, ga);
  TLOAD(y, gb);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0), wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(z, x, y);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}
