// A cube core and its vector cores in loops: who may write where the others still read. See test_cpp.py for the
// comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kSize = 16, kCount = kSize * kSize, kBytes = kCount * 2;
using Operand = GlobalTensor<half, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using Result = GlobalTensor<float, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using HalfResult = GlobalTensor<float, Shape<1, 1, 1, kSize / 2, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using HalfOperand = GlobalTensor<half, Shape<1, 1, 1, kSize / 2, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using InL1 = Tile<TileType::Mat, half, kSize, kSize, BLayout::ColMajor, kSize, kSize, SLayout::RowMajor, 512>;
using Left = TileLeft<half, kSize, kSize>;
using Right = TileRight<half, kSize, kSize>;
using Acc = TileAcc<float, kSize, kSize>;
using HalfPart = Tile<TileType::Vec, float, kSize / 2, kSize>;
using HalfHalves = Tile<TileType::Vec, half, kSize / 2, kSize>;

template <pipe_t From, pipe_t To>
AICORE inline void after(int id = 0) {
  set_flag(From, To, static_cast<event_t>(id));
  wait_flag(From, To, static_cast<event_t>(id));
}

AICORE inline void tell(pipe_t pipe, int id) {
  if (pipe == PIPE_FIX)
    ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, id));
  else if (pipe == PIPE_MTE2)
    ffts_cross_core_sync(PIPE_MTE2, getFFTSMsg(FFTS_MODE_VAL, id));
  else
    ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(FFTS_MODE_VAL, id));
}

struct Cube {
  InL1 x1;
  Left x0;
  Right y0;
  Acc z;
  AICORE Cube() {
    TASSIGN(x1, 0);
    TASSIGN(x0, 0);
    TASSIGN(y0, 0);
    TASSIGN(z, 0);
  }
  AICORE void square(__gm__ half* a) {
    Operand ga(a);
    TLOAD(x1, ga);
    after<PIPE_MTE2, PIPE_MTE1>();
    TMOV(x0, x1);
    TMOV(y0, x1);
    after<PIPE_MTE1, PIPE_M>();
    TMATMUL(z, x0, y0);
    after<PIPE_M, PIPE_FIX>();
    after<PIPE_MTE1, PIPE_MTE2>();
    after<PIPE_M, PIPE_MTE1>();
  }
};

// RUN: f16:4x256 f32:2x256 f32:4x256 4
__global__ AICORE void slot_written_again(__gm__ half* a, __gm__ float* slots, __gm__ float* c, int32_t rounds) {
#ifdef __DAV_CUBE__
  Cube cube;
  for (int32_t i = 0; i < rounds; ++i) {
    cube.square(a + i * kCount);
    if (i >= 2) wait_flag_dev(4 + i % 2);  // good
    Result gs(slots + i % 2 * kCount);
    TSTORE(gs, cube.z);  // FOUND PTO-E2201
    tell(PIPE_FIX, i % 2);
    after<PIPE_FIX, PIPE_M>();
  }
#endif
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfPart x;
  TASSIGN(x, 0);
  for (int32_t i = 0; i < rounds; ++i) {
    HalfResult gs(slots + i % 2 * kCount + at), gc(c + i * kCount + at);
    wait_flag_dev(i % 2);
    TLOAD(x, gs);
    if (i < rounds - 2) tell(PIPE_MTE2, 4 + i % 2);  // good
    after<PIPE_MTE2, PIPE_MTE3>();
    TSTORE(gc, x);
    after<PIPE_MTE3, PIPE_MTE2>();
  }
#endif
}

// RUN: f32:16x16 f16:16x16 f32:16x16
__global__ AICORE void vector_first(__gm__ float* a, __gm__ half* w, __gm__ float* c) {
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfResult ga(a + at);
  HalfOperand gw(w + at);
  HalfPart x;
  HalfHalves y;
  TASSIGN(x, 0);
  TASSIGN(y, 2 * kBytes);
  TLOAD(x, ga);
  after<PIPE_MTE2, PIPE_V>();
  TCVT(y, x, RoundMode::CAST_RINT);
  after<PIPE_V, PIPE_MTE3>();
  TSTORE(gw, y);
  tell(PIPE_MTE3, 2);  // good
#endif
#ifdef __DAV_CUBE__
  Cube cube;
  wait_flag_dev(2);  // good
  Operand gw(w);
  TLOAD(cube.x1, gw);  // FOUND PTO-E2201
  after<PIPE_MTE2, PIPE_MTE1>();
  TMOV(cube.x0, cube.x1);
  TMOV(cube.y0, cube.x1);
  after<PIPE_MTE1, PIPE_M>();
  TMATMUL(cube.z, cube.x0, cube.y0);
  after<PIPE_M, PIPE_FIX>();
  Result gc(c);
  TSTORE(gc, cube.z);
#endif
}

// RUN: f16:16x16 f32:16x16 f32:16x16
__global__ AICORE void both_write_the_first_half(__gm__ half* a, __gm__ float* w, __gm__ float* c) {
#ifdef __DAV_CUBE__
  Cube cube;
  cube.square(a);
  Result gw(w);
  TSTORE(gw, cube.z);
  tell(PIPE_FIX, 0);
#endif
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfResult gw(w + at);
  HalfResult gc(c + at);  // good
  HalfResult gc(c);       // bad
  HalfPart x;
  TASSIGN(x, 0);
  wait_flag_dev(0);
  TLOAD(x, gw);
  after<PIPE_MTE2, PIPE_V>();
  TADDS(x, x, 1.0f);
  after<PIPE_V, PIPE_MTE3>();
  TSTORE(gc, x);  // FOUND PTO-E2201
#endif
}

using Pipe = TPipe<0, Direction::DIR_C2V, kCount * 4, 2>;

// RUN: f16:4x256 f32:4x256 4
__global__ AICORE void popped_over_what_is_read(__gm__ half* a, __gm__ float* c, int32_t rounds) {
  Pipe pipe(nullptr, 0, 0);
#ifdef __DAV_CUBE__
  Cube cube;
  for (int32_t i = 0; i < rounds; ++i) {
    cube.square(a + i * kCount);
    TPUSH<Pipe, Acc, TileSplitAxis::TILE_UP_DOWN>(pipe, cube.z);
    after<PIPE_FIX, PIPE_M>();
  }
#endif
#ifdef __DAV_VEC__
  for (int32_t i = 0; i < rounds; ++i) {
    HalfResult gc(c + i * kCount + get_subblockid() * kCount / 2);
    HalfPart x, y;
    TASSIGN(y, 16 * kBytes);
    TPOP<Pipe, HalfPart, TileSplitAxis::TILE_UP_DOWN>(pipe, x);  // FOUND PTO-E2201
    after<PIPE_MTE2, PIPE_V>();
    TEXP(y, x);
    TFREE<Pipe, TileSplitAxis::TILE_UP_DOWN>(pipe);
    after<PIPE_V, PIPE_MTE2>();  // good
    after<PIPE_V, PIPE_MTE3>();
    TSTORE(gc, y);
    after<PIPE_MTE3, PIPE_V>();
  }
#endif
}

// RUN: f16:4x256 f32:4x256 4
__global__ AICORE void product_over_a_push(__gm__ half* a, __gm__ float* c, int32_t rounds) {
  Pipe pipe(nullptr, 0, 0);
#ifdef __DAV_CUBE__
  Cube cube;
  for (int32_t i = 0; i < rounds; ++i) {
    Operand ga(a + i * kCount);
    TLOAD(cube.x1, ga);
    after<PIPE_MTE2, PIPE_MTE1>();
    TMOV(cube.x0, cube.x1);
    TMOV(cube.y0, cube.x1);
    after<PIPE_MTE1, PIPE_M>();
    TMATMUL(cube.z, cube.x0, cube.y0);  // FOUND PTO-E2201
    after<PIPE_M, PIPE_FIX>();
    TPUSH<Pipe, Acc, TileSplitAxis::TILE_UP_DOWN>(pipe, cube.z);
    after<PIPE_MTE1, PIPE_MTE2>();
    after<PIPE_M, PIPE_MTE1>();
    after<PIPE_FIX, PIPE_M>();  // good
  }
#endif
#ifdef __DAV_VEC__
  for (int32_t i = 0; i < rounds; ++i) {
    HalfResult gc(c + i * kCount + get_subblockid() * kCount / 2);
    HalfPart x;
    TPOP<Pipe, HalfPart, TileSplitAxis::TILE_UP_DOWN>(pipe, x);
    after<PIPE_MTE2, PIPE_MTE3>();
    TSTORE(gc, x);
    after<PIPE_MTE3, PIPE_MTE2>();
    TFREE<Pipe, TileSplitAxis::TILE_UP_DOWN>(pipe);
  }
#endif
}
