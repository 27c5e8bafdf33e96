// Random overheads and durations, for fuzzers that run their graphs in virtual time.
#pragma once

#include <memory>

#include "exec/virtual_time.hpp"
#include "stress.hpp"

namespace stress {

inline std::shared_ptr<const pto2::VirtualOptions> random_virtual(Random& random) {
  using pto2::VirtualCosts;
  auto made = std::make_shared<pto2::VirtualOptions>();
  for (int64_t VirtualCosts::* cost :
       {&VirtualCosts::orchestration, &VirtualCosts::lookup, &VirtualCosts::finalize, &VirtualCosts::poll,
        &VirtualCosts::completion, &VirtualCosts::resolve, &VirtualCosts::enqueue, &VirtualCosts::dispatch,
        &VirtualCosts::store, &VirtualCosts::seen_by_core, &VirtualCosts::head, &VirtualCosts::cold_head,
        &VirtualCosts::seen_by_scheduler}) {
    made->costs.*cost = random.chance(30) ? 0 : random.below(1000);
  }
  const int longest = random.chance(20) ? 1 : 1 + random.below(20'000);
  made->duration = [longest](const pto2::DispatchPayload& payload) -> int64_t {
    return (payload.task_id * 7919 + payload.block_idx * 104729) % longest;
  };
  return made;
}

}  // namespace stress
