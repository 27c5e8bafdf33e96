// c += p, where c is a 64x64 part of a larger matrix and p is packed. Slots: c, p, elements per row of c.
#include "../../../common/slots.h"

using namespace pto;

constexpr int kTile = 64;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Part = GlobalTensor<float, Shape<1, 1, 1, kTile, kTile>, Stride<1, 1, 1, -1, 1>>;
  Part gc(tensor_at<float>(args[0]), {}, Stride<1, 1, 1, -1, 1>(args[2]));
  Part gp(tensor_at<float>(args[1]), {}, Stride<1, 1, 1, -1, 1>(kTile));

  Tile<TileType::Vec, float, kTile, kTile> c, p;
  TASSIGN(c, 0);
  TASSIGN(p, kTile * kTile * sizeof(float));
  TLOAD(c, gc);
  TLOAD(p, gp);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(c, c, p);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, c);
}
