// Cycles of tasks that wait for each other.
#pragma once

#include <cstddef>
#include <vector>

namespace pto2 {

/// Find a shortest cycle through some task that can never start; return an empty list if every task can
/// start. `successors(task, visit)` calls visit(other) for every edge; tasks with `gone(task)` are ignored.
///
/// Tasks are removed in an order in which they could run. The remaining tasks depend on a cycle. A walk
/// backwards through remaining tasks ends in a cycle.
template <class Successors, class Gone>
std::vector<int> find_cycle(int count, const Successors& successors, const Gone& gone) {
  const auto n = static_cast<size_t>(count);
  std::vector<int> waits(n, 0);
  for (int task = 0; task < count; ++task) {
    if (!gone(task)) successors(task, [&](int other) { ++waits[static_cast<size_t>(other)]; });
  }
  std::vector<int> order;
  for (int task = 0; task < count; ++task) {
    if (waits[static_cast<size_t>(task)] == 0 || gone(task)) order.push_back(task);
  }
  std::vector<char> left(n, 1);
  for (size_t i = 0; i < order.size(); ++i) {
    left[static_cast<size_t>(order[i])] = 0;
    if (gone(order[i])) continue;
    successors(order[i], [&](int other) {
      if (--waits[static_cast<size_t>(other)] == 0 && !gone(other)) order.push_back(other);
    });
  }
  if (order.size() == n) return {};

  std::vector<int> before(n, -1);  // by task: some remaining predecessor
  int start = -1;
  for (int task = 0; task < count; ++task) {
    if (left[static_cast<size_t>(task)] == 0) continue;
    start = task;
    successors(task, [&](int other) { before[static_cast<size_t>(other)] = task; });
  }
  std::vector<char> seen(n, 0);
  while (seen[static_cast<size_t>(start)] == 0) {
    seen[static_cast<size_t>(start)] = 1;
    start = before[static_cast<size_t>(start)];
  }

  // Find the shortest path from `start` back to itself.
  std::vector<int> from(n, -1), queue{start};
  bool back = false;
  for (size_t i = 0; i < queue.size() && !back; ++i) {
    successors(queue[i], [&](int other) {
      const auto at = static_cast<size_t>(other);
      if (left[at] == 0 || from[at] >= 0 || back) return;
      from[at] = queue[i];
      back = other == start;
      queue.push_back(other);
    });
  }
  std::vector<int> cycle;
  for (int task = from[static_cast<size_t>(start)]; task != start; task = from[static_cast<size_t>(task)]) {
    cycle.push_back(task);
  }
  cycle.push_back(start);
  return {cycle.rbegin(), cycle.rend()};
}

}  // namespace pto2
