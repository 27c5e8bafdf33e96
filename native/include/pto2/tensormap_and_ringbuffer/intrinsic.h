// What a kernel asks about its task: which block it is, of how many, and which vector core of its cluster.
//
// They take the slots of the kernel, as they do elsewhere; here the core knows.
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

/// Memory of an asynchronous engine: there is none here.
static inline uint8_t* get_dma_workspace(const int64_t*, int) { return nullptr; }
