// Tiles of the element-wise kernels: up to 128 rows of 128 elements, as many as n fills.
#pragma once

#include "../../../common/slots.h"

constexpr int kCols = 128;
constexpr int kMaxRows = 128;

using Rows = pto::Tile<pto::TileType::Vec, float, kMaxRows, kCols, pto::BLayout::RowMajor, -1, kCols>;
using Global = pto::GlobalTensor<float, pto::Shape<1, 1, 1, -1, kCols>, pto::Stride<-1, -1, -1, kCols, 1>>;

constexpr int kTileBytes = kMaxRows * kCols * sizeof(float);

AICORE inline Global rows_of(int64_t slot, int rows) {
  const int all = rows * kCols;
  return Global(tensor_at<float>(slot), pto::Shape<1, 1, 1, -1, kCols>(rows),
                pto::Stride<-1, -1, -1, kCols, 1>(all, all, all));
}

/// z = OP(x, y) of three tensors of n elements: slots x, y, z, n.
template <typename Op>
AICORE inline void binary(__gm__ int64_t* args, Op op) {
  const int rows = static_cast<int>(args[3]) / kCols;
  Global gx = rows_of(args[0], rows), gy = rows_of(args[1], rows), gz = rows_of(args[2], rows);
  Rows x(rows), y(rows), z(rows);
  TASSIGN(x, 0);
  TASSIGN(y, kTileBytes);
  TASSIGN(z, 2 * kTileBytes);
  TLOAD(x, gx);
  TLOAD(y, gy);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  op(z, x, y);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gz, z);
}
