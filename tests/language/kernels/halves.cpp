// The cube core adds 1 to the first half of x, the vector core 2 to the rest. Slots: x, n.
#include <pto/pto-inst.hpp>

#include "tensor.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<const TensorData*>(args[0]);
  auto* data = reinterpret_cast<float*>(x->buffer.addr) + x->start_offset;
#ifdef __DAV_CUBE__
  for (int64_t i = 0; i < args[1] / 2; i++) data[i] += 1;
#endif
#ifdef __DAV_VEC__
  for (int64_t i = args[1] / 2; i < args[1]; i++) data[i] += 2;
#endif
}
