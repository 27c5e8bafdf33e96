// out = a + b, elements of f32 as many as a has. Slots: a, b, out.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "pipe_sync.h"
#include "tensor.h"

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif

using namespace pto;

static __aicore__ __gm__ float* data_of(int64_t slot) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(slot);
  return reinterpret_cast<__gm__ float*>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ float *a = data_of(args[0]), *b = data_of(args[1]), *out = data_of(args[2]);
  const int count = static_cast<int>(reinterpret_cast<__gm__ ChipTensor*>(args[0])->shapes[0]);
  using Global = GlobalTensor<float, Shape<1, 1, 1, 1, -1>, Stride<1, 1, 1, 1, 1>>;
  Global ga(a, Shape<1, 1, 1, 1, -1>(count)), gb(b, Shape<1, 1, 1, 1, -1>(count)),
      gout(out, Shape<1, 1, 1, 1, -1>(count));
  Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, -1> ta(count), tb(count);
  TASSIGN(ta, 0);
  TASSIGN(tb, 1024);
  TLOAD(ta, ga);
  TLOAD(tb, gb);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(ta, ta, tb);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gout, ta);
  pipe_sync();
}
