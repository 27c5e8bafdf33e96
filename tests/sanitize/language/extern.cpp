// x += x, without a flag between the load and the addition. Slots: x, n.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<const TensorData*>(args[0]);
  using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>>;
  Row row(reinterpret_cast<__gm__ float*>(x->buffer.addr) + x->start_offset);
  Tile<TileType::Vec, float, 1, 64> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, row);
  TADD(tile, tile, tile);  // FOUND PTO-E2201
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(row, tile);
}
