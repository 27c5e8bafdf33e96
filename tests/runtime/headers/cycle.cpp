// find_cycle for ctypes: edges as pairs, `gone` as bytes; the length of the cycle, which is written to `out`.
#include "graph/cycle.hpp"

extern "C" int cycle(int count, const int* edges, int edge_count, const char* gone, int* out) {
  std::vector<std::vector<int>> successors(static_cast<size_t>(count));
  for (int e = 0; e < edge_count; ++e)
    successors[static_cast<size_t>(edges[2 * e])].push_back(edges[2 * e + 1]);
  const std::vector<int> found = pto2::find_cycle(
      count,
      [&](int task, const auto& visit) {
        for (const int next : successors[static_cast<size_t>(task)]) visit(next);
      },
      [&](int task) { return gone[task] != 0; });
  for (size_t i = 0; i < found.size(); ++i) out[i] = found[i];
  return static_cast<int>(found.size());
}
