// Running orchestrations in shared objects that build graphs with explicit edges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph_run.hpp"

namespace pto2 {

/// host_build_graph: `int NAME(Runtime*, uint64_t* args, int arg_count)` builds the graph, then it runs.
void run_host_graph(GraphRun& run, const std::string& path, const std::string& name,
                    std::vector<uint64_t> args);

/// aicpu_build_graph: `int NAME(Runtime*)` builds while schedulers run; the arguments are in the runtime.
void run_device_graph(GraphRun& run, const std::string& path, const std::string& name,
                      std::vector<uint64_t> args);

}  // namespace pto2
