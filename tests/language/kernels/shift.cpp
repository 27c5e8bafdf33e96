// x += by, element by element. Slots: x, by, n.
#include "amount.h"
#include "tensor.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<const TensorData*>(args[0]);
  auto* data = reinterpret_cast<float*>(x->buffer.addr) + x->start_offset;
  for (int64_t i = 0; i < args[2]; i++) data[i] += amount(args[1]);
}
