// An orchestration in a shared object: `aicpu_orchestration_entry`, which reaches the runtime through a table
// of functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../exec/shared_object.hpp"
#include "tensormap_graph.hpp"

namespace pto2 {

/// Load it, check its arguments, run it. What went wrong is in graph.failure(); throws if it cannot be loaded.
/// The library is returned: places in it are named by strings that lie in it.
std::unique_ptr<SharedObject> run_orchestration(TensormapGraph& graph, Log& log, const std::string& path,
                                                std::vector<uint64_t> args);

}  // namespace pto2
