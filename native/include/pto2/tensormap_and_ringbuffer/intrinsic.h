// Queries of a kernel about its task: its block, the number of blocks, and its vector core in the cluster.
//
// They take the slots of the kernel, as on a device; here the core has the values.
#pragma once

#include <stdint.h>

#include "pto/core/machine.hpp"
#include "pto_task_id.h"

static inline int32_t get_block_idx(const int64_t*) {
  return static_cast<int32_t>(pto::detail::core().block_idx);
}
static inline int32_t get_block_num(const int64_t*) {
  return static_cast<int32_t>(pto::detail::core().block_num);
}
static inline int32_t get_sub_block_id(const int64_t*) {
  return static_cast<int32_t>(pto::detail::core().subblock_idx);
}

/// DMA engines.
enum DmaWorkspaceKind { DMA_WORKSPACE_SDMA = 0, DMA_WORKSPACE_URMA = 1, DMA_WORKSPACE_KIND_COUNT = 2 };

/// Return the opaque memory of an engine; null for a missing engine. Copies need no memory here.
static inline uint8_t* get_dma_workspace(const int64_t*, int kind) {
  alignas(64) static uint8_t workspace[64];
  return kind == DMA_WORKSPACE_SDMA ? workspace : nullptr;
}
