// PTO_PREFETCH: requests memory to be near before its use. Here all of it is near.
#pragma once

#include "pto/pto-inst.hpp"

namespace pto {

inline constexpr uint32_t kPtoPrefetchTileBytes = 64 * 1024, kPtoPrefetchDefaultBlocks = 20;

template <bool UseSdma = true, int AivCores = -1>
inline void PTO_PREFETCH(__gm__ void* /*tensor*/, uint64_t /*bytes*/, void* /*stream*/) {}

}  // namespace pto
