// Sizes of the machine: one block has one AIC and two AIVs.
#pragma once

#include <stdint.h>

constexpr int PLATFORM_MAX_BLOCKDIM = 24;
constexpr int PLATFORM_CORES_PER_BLOCKDIM = 3;
constexpr int PLATFORM_AIC_CORES_PER_BLOCKDIM = 1;
constexpr int PLATFORM_AIV_CORES_PER_BLOCKDIM = 2;
constexpr int PLATFORM_MAX_AICPU_THREADS = 4;
constexpr int PLATFORM_MAX_AIC_PER_THREAD = PLATFORM_MAX_BLOCKDIM * PLATFORM_AIC_CORES_PER_BLOCKDIM;
constexpr int PLATFORM_MAX_AIV_PER_THREAD = PLATFORM_MAX_BLOCKDIM * PLATFORM_AIV_CORES_PER_BLOCKDIM;
constexpr int PLATFORM_MAX_CORES_PER_THREAD = PLATFORM_MAX_AIC_PER_THREAD + PLATFORM_MAX_AIV_PER_THREAD;
constexpr int PLATFORM_MAX_CORES = PLATFORM_MAX_BLOCKDIM * PLATFORM_CORES_PER_BLOCKDIM;

constexpr int PLATFORM_PROF_BUFFER_SIZE = 1000;  // records in each of the two buffers of a core
constexpr int PLATFORM_PROF_READYQUEUE_SIZE = PLATFORM_MAX_CORES * 2;
constexpr uint64_t PLATFORM_PROF_SYS_CNT_FREQ = 50000000;  // Hz: a tick is 20 ns
constexpr int PLATFORM_PROF_TIMEOUT_SECONDS = 30;
constexpr int PLATFORM_PHASE_RECORDS_PER_THREAD = 16384;

namespace DAV_2201 {
constexpr int PLATFORM_MAX_PHYSICAL_CORES = 25;
}

inline constexpr double cycles_to_us(uint64_t cycles) {
  return static_cast<double>(cycles) / static_cast<double>(PLATFORM_PROF_SYS_CNT_FREQ) * 1e6;
}
