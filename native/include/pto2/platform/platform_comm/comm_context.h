// The description of a rank and its peers for kernels. Programs depend on this binary layout.
#pragma once

#include <stddef.h>
#include <stdint.h>

static constexpr uint32_t COMM_MAX_RANK_NUM = 64;

struct CommContext {
  uint64_t workSpace;  // for asynchronous engines, which do not exist here
  uint64_t workSpaceSize;
  uint32_t rankId;
  uint32_t rankNum;
  uint64_t winSize;                       // bytes per window
  uint64_t windowsIn[COMM_MAX_RANK_NUM];  // the address of the window of each rank, for this rank
  uint64_t windowsOut[COMM_MAX_RANK_NUM];
};

static_assert(sizeof(CommContext) == 1056 && offsetof(CommContext, rankId) == 16 &&
                  offsetof(CommContext, winSize) == 24 && offsetof(CommContext, windowsIn) == 32 &&
                  offsetof(CommContext, windowsOut) == 544,
              "kernels and hosts agree on this layout");
