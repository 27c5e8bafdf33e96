// Kernels of a cube core and its vector cores. See test_cpp.py for the comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kSize = 32, kCount = kSize * kSize, kBytes = kCount * 2;
using Operand = GlobalTensor<half, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using Result = GlobalTensor<float, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using HalfResult = GlobalTensor<float, Shape<1, 1, 1, kSize / 2, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using InL1 = Tile<TileType::Mat, half, kSize, kSize, BLayout::ColMajor, kSize, kSize, SLayout::RowMajor, 512>;
using Left = TileLeft<half, kSize, kSize>;
using Right = TileRight<half, kSize, kSize>;
using Acc = TileAcc<float, kSize, kSize>;
using HalfPart = Tile<TileType::Vec, float, kSize / 2, kSize>;
using Pipe = TPipe<0, Direction::DIR_C2V, kCount * 4, 2>;

#define FLAG(from, to, id) \
  set_flag(from, to, id);  \
  wait_flag(from, to, id)

template <class Tile>
AICORE inline void product(Tile& z, __gm__ half* a, __gm__ half* b) {
  Operand ga(a), gb(b);
  InL1 x1, y1;
  Left x0;
  Right y0;
  TASSIGN(x1, 0);
  TASSIGN(y1, kBytes);
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TLOAD(x1, ga);
  TLOAD(y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(x0, x1);
  TMOV(y0, y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(z, x0, y0);
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
}

// RUN: f16:32x32 f16:32x32 f32:32x32 f32:32x32
__global__ AICORE void signal_missing(__gm__ half* a, __gm__ half* b, __gm__ float* w, __gm__ float* c) {
#ifdef __DAV_CUBE__
  Result gw(w);
  Acc z;
  TASSIGN(z, 0);
  product(z, a, b);
  TSTORE(gw, z);
  ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, 4));  // good
#endif
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfResult gw(w + at), gc(c + at);
  HalfPart x, y;
  TASSIGN(x, 0);
  TASSIGN(y, 4 * kBytes);
  wait_flag_dev(4);  // good
  TLOAD(x, gw);      // FOUND PTO-E2201
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TEXP(y, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, y);
#endif
}

// RUN: f16:32x32 f16:32x32 f32:32x32 f32:32x32
__global__ AICORE void signal_of_another_pipe(__gm__ half* a, __gm__ half* b, __gm__ float* w, __gm__ float* c) {
#ifdef __DAV_CUBE__
  Result gw(w);
  Acc z;
  TASSIGN(z, 0);
  product(z, a, b);
  TSTORE(gw, z);
  ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, 4));   // good
  ffts_cross_core_sync(PIPE_MTE2, getFFTSMsg(FFTS_MODE_VAL, 4));  // bad
#endif
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfResult gw(w + at), gc(c + at);
  HalfPart x;
  TASSIGN(x, 0);
  wait_flag_dev(4);
  TLOAD(x, gw);  // FOUND PTO-E2201
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
#endif
}

// RUN: f16:32x32 f16:32x32 f32:32x32 f32:32x32
__global__ AICORE void signal_never_comes(__gm__ half* a, __gm__ half* b, __gm__ float* w, __gm__ float* c) {
#ifdef __DAV_CUBE__
  Result gw(w);
  Acc z;
  TASSIGN(z, 0);
  product(z, a, b);
  TSTORE(gw, z);
  ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, 4));  // good
  ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(FFTS_MODE_VAL, 3));  // bad
#endif
#ifdef __DAV_VEC__
  const int64_t at = get_subblockid() * kCount / 2;
  HalfResult gw(w + at), gc(c + at);
  HalfPart x;
  TASSIGN(x, 0);
  wait_flag_dev(4);  // FOUND PTO-E2104
  TLOAD(x, gw);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
#endif
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void push_before_product(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Pipe pipe(nullptr, 0, 0);
#ifdef __DAV_CUBE__
  Operand ga(a), gb(b);
  InL1 x1, y1;
  Left x0;
  Right y0;
  Acc z;
  TASSIGN(x1, 0);
  TASSIGN(y1, kBytes);
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(z, 0);
  TLOAD(x1, ga);
  TLOAD(y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(x0, x1);
  TMOV(y0, y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(z, x0, y0);
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);                     // good
  TPUSH<Pipe, Acc, TileSplitAxis::TILE_UP_DOWN>(pipe, z);  // FOUND PTO-E2201
#endif
#ifdef __DAV_VEC__
  HalfResult gc(c + get_subblockid() * kCount / 2);
  HalfPart x, y;
  TASSIGN(y, 16 * kBytes);
  TPOP<Pipe, HalfPart, TileSplitAxis::TILE_UP_DOWN>(pipe, x);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TEXP(y, x);
  TFREE<Pipe, TileSplitAxis::TILE_UP_DOWN>(pipe);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, y);
#endif
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void popped_tile_read_early(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Pipe pipe(nullptr, 0, 0);
#ifdef __DAV_CUBE__
  Acc z;
  TASSIGN(z, 0);
  product(z, a, b);
  TPUSH<Pipe, Acc, TileSplitAxis::TILE_UP_DOWN>(pipe, z);
#endif
#ifdef __DAV_VEC__
  HalfResult gc(c + get_subblockid() * kCount / 2);
  HalfPart x, y;
  TASSIGN(y, 16 * kBytes);
  TPOP<Pipe, HalfPart, TileSplitAxis::TILE_UP_DOWN>(pipe, x);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  TEXP(y, x);                          // FOUND PTO-E2201
  TFREE<Pipe, TileSplitAxis::TILE_UP_DOWN>(pipe);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, y);
#endif
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void pop_without_push(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Pipe pipe(nullptr, 0, 0);
#ifdef __DAV_CUBE__
  Acc z;
  TASSIGN(z, 0);
  product(z, a, b);
  TPUSH<Pipe, Acc, TileSplitAxis::TILE_UP_DOWN>(pipe, z);  // good
#endif
#ifdef __DAV_VEC__
  HalfResult gc(c + get_subblockid() * kCount / 2);
  HalfPart x;
  TPOP<Pipe, HalfPart, TileSplitAxis::TILE_UP_DOWN>(pipe, x);  // FOUND PTO-E2104
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
  TFREE<Pipe, TileSplitAxis::TILE_UP_DOWN>(pipe);
#endif
}

using Square = TileAcc<float, 16, 16>;
using Rows = Tile<TileType::Vec, float, 8, 16>;
using Steered = TMPipe<0, FIFOType::GM_FIFO, 2, 1, Square, Rows, false, 0>;

// RUN: f16:16x16 f32:4x256 f32:2x256 4
__global__ AICORE void steered_by_hand(__gm__ half* a, __gm__ float* c, __gm__ float* slots, int32_t rounds) {
  Steered pipe(slots);
#ifdef __DAV_CUBE__
  GlobalTensor<half, Shape<1, 1, 1, 16, 16>, Stride<256, 256, 256, 16, 1>> ga(a);
  Tile<TileType::Mat, half, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 512> x1;
  TileLeft<half, 16, 16> x0;
  TileRight<half, 16, 16> y0;
  Square z;
  TASSIGN(x1, 0);
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(z, 0);
  TLOAD(x1, ga);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(x0, x1);
  TMOV(y0, x1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  for (int32_t i = 0; i < rounds; ++i) {
    TMATMUL(z, x0, y0);
    FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);  // good
    pipe.prod.setTileId(i, 0);
    TPUSH(z, pipe);  // FOUND PTO-E2201
    FLAG(PIPE_FIX, PIPE_M, EVENT_ID0);
  }
#endif
#ifdef __DAV_VEC__
  Rows x;
  TASSIGN(x, 0);
  const int mine = static_cast<int>(get_subblockid()) * 128;
  pipe.cons.setEntryOffset(mine * 4);
  for (int32_t i = 0; i < rounds; ++i) {
    pipe.cons.setTileId(i, 0);
    TPOP(x, pipe);
    FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(x, x, 1.0f);
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
    GlobalTensor<float, Shape<1, 1, 1, 8, 16>, Stride<256, 256, 256, 16, 1>> gc(c + i * 256 + mine);
    TSTORE(gc, x);
    FLAG(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
  }
#endif
}
