// A race in C++, planted: two buffers alternate, and no flag makes MTE2 wait until V is done with a buffer.
//
// It compiles, and run in program order the result is right. The race checker does not depend on luck:
//   pto run 17_race.cpp --sanitize race -- @a.npy f32:64x128
// A schedule the flags allow, in which a load overtakes the arithmetic:
//   pto run 17_race.cpp --schedule seed=1 -- @a.npy f32:64x128=c.npy
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 16, kCols = 128, kCount = kRows * kCols, kBytes = kCount * 4;

__global__ AICORE void exp_race(__gm__ float* a, __gm__ float* c) {
  using Rows = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  using Part = Tile<TileType::Vec, float, kRows, kCols>;
  Part x[2], y[2];
  for (int i = 0; i < 2; ++i) {
    TASSIGN(x[i], i * kBytes);
    TASSIGN(y[i], (2 + i) * kBytes);
    set_flag(PIPE_MTE3, PIPE_V, static_cast<event_t>(i));
  }
  for (int i = 0; i < 4; ++i) {
    const auto id = static_cast<event_t>(i % 2);
    Rows ga(a + i * kCount), gc(c + i * kCount);
    TLOAD(x[i % 2], ga);
    set_flag(PIPE_MTE2, PIPE_V, id);
    wait_flag(PIPE_MTE2, PIPE_V, id);
    wait_flag(PIPE_MTE3, PIPE_V, id);
    TEXP(y[i % 2], x[i % 2]);
    set_flag(PIPE_V, PIPE_MTE3, id);
    wait_flag(PIPE_V, PIPE_MTE3, id);
    TSTORE(gc, y[i % 2]);
    set_flag(PIPE_MTE3, PIPE_V, id);
  }
  for (int i = 0; i < 2; ++i) wait_flag(PIPE_MTE3, PIPE_V, static_cast<event_t>(i));
}
