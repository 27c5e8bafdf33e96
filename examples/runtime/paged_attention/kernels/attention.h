// One block of paged attention, piece by piece: functions for the kernels of both attention examples.
//
// Queries come in tiles of up to 16 heads, keys and values in blocks of 16; all heads share one KV head. For
// a tile of queries, block after block:
//
//   scores   s = q @ k^T                                                  (cube)
//   softmax  s = scale * s, masked;  m = rowmax(s);  p = exp(s - m);  l = rowsum(p)    (vector)
//   values   o' = p @ v                                                   (cube)
//   update   the running m, l and o take in m, l and o' of the block; after the last one, out = o / l
//   (vector)
//
// Each piece waits for all its operations before it returns, so that the next may use the same memory.
#pragma once

#include "../../common/slots.h"

namespace attention {

using namespace pto;

constexpr int kHeads = 16;  // rows of a tile of queries
constexpr int kBlock = 16;  // keys of a block
constexpr float kMasked =
    -1.0e30f;  // a score without effect; not infinite, which could lead to NaN

/// Row-major in global memory: as many rows as are used, packed.
template <typename T, int Cols>
AICORE inline auto packed(__gm__ T* data, int rows) {
  using Size = Shape<1, 1, 1, -1, Cols>;
  return GlobalTensor<T, Size, Stride<1, 1, 1, Cols, 1>>(data, Size(rows));
}

/// One number per head. A column for operations along rows and a row for element-wise ones are the same
/// bytes.
using Column = Tile<TileType::Vec, float, kHeads, 1, BLayout::ColMajor, -1, 1>;
using Row = Tile<TileType::Vec, float, 1, kHeads, BLayout::RowMajor, 1, -1>;

AICORE inline auto vector(__gm__ float* data, int count) {
  using Size = Shape<1, 1, 1, 1, -1>;
  return GlobalTensor<float, Size, Stride<1, 1, 1, 1, 1>>(data, Size(count));
}

/// z = x @ y: rows x K times K x N. Y is how y lies in memory, Y1 the tile that takes it.
template <int K, int N, typename Y1, typename Y>
AICORE inline void product(__gm__ half* x, Y& gy, __gm__ float* z, int rows) {
  auto gx = packed<half, K>(x, rows);
  auto gz = packed<float, N>(z, rows);
  Tile<TileType::Mat, half, kHeads, K, BLayout::ColMajor, -1, K, SLayout::RowMajor, 512> x1(rows);
  Y1 y1;
  TileLeft<half, kHeads, K, -1, K> x0(rows);
  TileRight<half, K, N, K, N> y0;
  TileAcc<float, kHeads, N, -1, N> acc(rows);
  TASSIGN(x1, 0);
  TASSIGN(y1, kHeads * K * sizeof(half));
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(acc, 0);

  TLOAD(x1, gx);
  TLOAD(y1, gy);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(x0, x1);
  TMOV(y0, y1);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(acc, x0, y0);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gz, acc);
  pipe_barrier(PIPE_ALL);
}

/// s (rows x 16) = q (rows x D) @ k^T, with k (16 x D) read as its transpose.
template <int D>
AICORE inline void scores(__gm__ half* q, __gm__ half* k, __gm__ float* s, int rows) {
  GlobalTensor<half, Shape<1, 1, 1, D, kBlock>, Stride<1, 1, 1, 1, D>, Layout::DN> gk(k);
  using K1 = Tile<TileType::Mat, half, D, kBlock, BLayout::RowMajor, D, kBlock, SLayout::ColMajor, 512>;
  product<D, kBlock, K1>(q, gk, s, rows);
}

/// o (rows x D) = p (rows x 16) @ v (16 x D).
template <int D>
AICORE inline void values(__gm__ half* p, __gm__ half* v, __gm__ float* o, int rows) {
  GlobalTensor<half, Shape<1, 1, 1, kBlock, D>, Stride<1, 1, 1, D, 1>> gv(v);
  using V1 = Tile<TileType::Mat, half, kBlock, D, BLayout::ColMajor, kBlock, D, SLayout::RowMajor, 512>;
  product<kBlock, D, V1>(p, gv, o, rows);
}

/// p, m and l of a block of which the first `valid` keys count; p is of a narrower type, and l the sum of it
/// as rounded.
template <typename P>
AICORE inline void softmax(__gm__ float* s, __gm__ P* p, __gm__ float* m, __gm__ float* l, int rows,
                           int valid, float scale) {
  auto gs = packed<float, kBlock>(s, rows);
  auto gp = packed<P, kBlock>(p, rows);
  auto gm = vector(m, rows), gl = vector(l, rows);
  Tile<TileType::Vec, float, kHeads, kBlock, BLayout::RowMajor, -1, kBlock> x(rows), scratch(rows);
  Tile<TileType::Vec, P, kHeads, kBlock, BLayout::RowMajor, -1, kBlock> narrow(rows);
  Tile<TileType::Vec, float, 1, kBlock> mask;
  Column largest(rows), sum(rows);
  Row largest_row(rows), sum_row(rows);
  TASSIGN(x, 0x0);
  TASSIGN(scratch, 0x400);
  TASSIGN(narrow, 0x800);
  TASSIGN(mask, 0xa00);
  TASSIGN(largest, 0xa40);
  TASSIGN(largest_row, 0xa40);
  TASSIGN(sum, 0xa80);
  TASSIGN(sum_row, 0xa80);

  TLOAD(x, gs);
  for (int i = 0; i < kBlock; ++i) mask.SetValue(i, i < valid ? 0.0f : kMasked);
  set_flag(PIPE_S, PIPE_V, EVENT_ID0);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_S, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMULS(x, x, scale);
  pipe_barrier(PIPE_V);
  TCOLEXPANDADD(x, x, mask);
  pipe_barrier(PIPE_V);
  TROWMAX(largest, x, scratch);
  pipe_barrier(PIPE_V);
  TROWEXPANDSUB(x, x, largest);
  pipe_barrier(PIPE_V);
  TEXP(x, x);
  pipe_barrier(PIPE_V);
  TCVT(narrow, x, RoundMode::CAST_RINT);
  pipe_barrier(PIPE_V);
  TCVT(x, narrow, RoundMode::CAST_RINT);
  pipe_barrier(PIPE_V);
  TROWSUM(sum, x, scratch);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gp, narrow);
  TSTORE(gm, largest_row);
  TSTORE(gl, sum_row);
  pipe_barrier(PIPE_ALL);
}

/// The accumulators before the first block.
template <int D>
AICORE inline void start(__gm__ float* m, __gm__ float* l, __gm__ float* o, int rows) {
  auto go = packed<float, D>(o, rows);
  auto gm = vector(m, rows), gl = vector(l, rows);
  Tile<TileType::Vec, float, kHeads, D, BLayout::RowMajor, -1, D> zero(rows);
  Row masked(rows), nothing(rows);
  TASSIGN(zero, 0x0);
  TASSIGN(masked, kHeads * D * sizeof(float));
  TASSIGN(nothing, kHeads * (D + 1) * sizeof(float));
  TEXPANDS(zero, 0.0f);
  TEXPANDS(masked, kMasked);
  TEXPANDS(nothing, 0.0f);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(go, zero);
  TSTORE(gm, masked);
  TSTORE(gl, nothing);
  pipe_barrier(PIPE_ALL);
}

/// What a block adds to the accumulators; with the last one, `out` gets the result.
template <int D>
AICORE inline void update(__gm__ float* m_block, __gm__ float* l_block, __gm__ float* o_block,
                          __gm__ float* m, __gm__ float* l, __gm__ float* o, __gm__ float* out, int rows,
                          bool last) {
  constexpr int kMatrix = kHeads * D * sizeof(float), kVector = kHeads * sizeof(float);
  auto g_m_block = vector(m_block, rows), g_l_block = vector(l_block, rows);
  auto g_m = vector(m, rows), g_l = vector(l, rows);
  auto g_o_block = packed<float, D>(o_block, rows), g_o = packed<float, D>(o, rows),
       g_out = packed<float, D>(out, rows);
  using Matrix = Tile<TileType::Vec, float, kHeads, D, BLayout::RowMajor, -1, D>;
  Matrix sum(rows), added(rows), result(rows);
  Row old_m(rows), new_m(rows), largest(rows), sum_l(rows), added_l(rows);
  Column keep(rows), take(rows), total(rows);
  TASSIGN(sum, 0);
  TASSIGN(added, kMatrix);
  TASSIGN(result, 2 * kMatrix);
  TASSIGN(old_m, 3 * kMatrix);
  TASSIGN(keep, 3 * kMatrix);  // exp(old m - largest), in the place of the old m
  TASSIGN(new_m, 3 * kMatrix + kVector);
  TASSIGN(take, 3 * kMatrix + kVector);  // exp(m of the block - largest)
  TASSIGN(largest, 3 * kMatrix + 2 * kVector);
  TASSIGN(sum_l, 3 * kMatrix + 3 * kVector);
  TASSIGN(total, 3 * kMatrix + 3 * kVector);
  TASSIGN(added_l, 3 * kMatrix + 4 * kVector);

  TLOAD(old_m, g_m);
  TLOAD(new_m, g_m_block);
  TLOAD(sum_l, g_l);
  TLOAD(added_l, g_l_block);
  TLOAD(sum, g_o);
  TLOAD(added, g_o_block);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMAX(largest, old_m, new_m);
  pipe_barrier(PIPE_V);
  TSUB(old_m, old_m, largest);
  TSUB(new_m, new_m, largest);
  pipe_barrier(PIPE_V);
  TEXP(old_m, old_m);
  TEXP(new_m, new_m);
  pipe_barrier(PIPE_V);
  TMUL(sum_l, sum_l, old_m);
  TMUL(added_l, added_l, new_m);
  TROWEXPANDMUL(sum, sum, keep);
  TROWEXPANDMUL(added, added, take);
  pipe_barrier(PIPE_V);
  TADD(sum_l, sum_l, added_l);
  TADD(sum, sum, added);
  if (last) {
    pipe_barrier(PIPE_V);
    TROWEXPANDDIV(result, sum, total);
  }
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(g_m, largest);
  TSTORE(g_l, sum_l);
  TSTORE(g_o, sum);
  if (last) TSTORE(g_out, result);
  pipe_barrier(PIPE_ALL);
}

}  // namespace attention
