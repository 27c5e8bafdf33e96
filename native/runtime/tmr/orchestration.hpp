// An orchestration in a shared object: `aicpu_orchestration_entry`, which reaches the runtime through a table
// of functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tmr.hpp"

namespace pto2 {

/// Load it, check its arguments, run it. What went wrong is in tmr.failure(); throws if it cannot be loaded.
void run_orchestration(Tmr& tmr, Log& log, const std::string& path, std::vector<uint64_t> args);

}  // namespace pto2
