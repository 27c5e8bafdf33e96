// PTO_PREFETCH: asks for memory to be near before it is used. Here all of it is.
#pragma once

#include "pto/pto-inst.hpp"

namespace pto {

inline constexpr uint32_t kPtoPrefetchTileBytes = 64 * 1024, kPtoPrefetchDefaultBlocks = 20;

template <bool UseSdma = true, int AivCores = -1>
inline void PTO_PREFETCH(__gm__ void* /*tensor*/, uint64_t /*bytes*/, void* /*stream*/) {}

}  // namespace pto
