#pragma once

#include <pto/pto-inst.hpp>

/// The f32 in the low half of a slot.
inline float amount(int64_t slot) {
  float value;
  __builtin_memcpy(&value, &slot, sizeof value);
  return value;
}
