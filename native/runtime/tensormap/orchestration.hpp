// Running an orchestration in a shared object: `aicpu_orchestration_entry`, which reaches the runtime through
// a table of functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../exec/shared_object.hpp"
#include "tensormap_graph.hpp"

namespace pto2 {

/// Load the library, check the arguments, run the orchestration. Errors of the run are in graph.failure();
/// throw if it cannot be loaded. Return the library: it contains the file names of source locations.
std::unique_ptr<SharedObject> run_orchestration(TensormapGraph& graph, Log& log, const std::string& path,
                                                std::vector<uint64_t> args);

}  // namespace pto2
