// What kernels of the examples share: how they read the slots of their task.
//
// tensormap_and_ringbuffer passes a tensor as a pointer to its descriptor, the two graph runtimes pass the
// address of its first element. The runner puts the headers of one runtime on the include path, so the same
// kernel source works with all of them.
#pragma once

#include <cstdint>
#include <pto/pto-inst.hpp>

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif

#if __has_include("tensor.h")
#include "tensor.h"
#endif

/// The first element of a tensor.
template <typename T>
AICORE inline __gm__ T* tensor_at(int64_t slot) {
#if __has_include("tensor.h")
  auto* tensor = reinterpret_cast<__gm__ TensorData*>(slot);
  return reinterpret_cast<__gm__ T*>(tensor->buffer.addr) + tensor->start_offset;
#else
  return reinterpret_cast<__gm__ T*>(slot);
#endif
}

/// A float in the low half of a slot.
AICORE inline float float_in(int64_t slot) {
  union {
    uint32_t bits;
    float value;
  } word;
  word.bits = static_cast<uint32_t>(slot);
  return word.value;
}
