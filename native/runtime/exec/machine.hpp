// Running a kernel on a virtual core.
#pragma once

#include <string>
#include <vector>

#include "core.hpp"
#include "kernel.hpp"

namespace pto::detail {
struct Cluster;
}

namespace pto2 {

enum class Ran { ToItsEnd, IntoAWait, IntoAFailure };

/// The on-chip state of all cores of a run: what the cores of a cluster share, memories, stacks.
class Machine {
 public:
  explicit Machine(int block_dim);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Run the task in the core's payload.
  Ran begin(VirtualCore& core, const Kernel& kernel);

  /// Whether a core that waits can go on, and letting it.
  static bool can_go_on(const VirtualCore& core);
  static Ran go_on(VirtualCore& core);

  /// What a core waits for; why it failed.
  static std::string waits_for(const VirtualCore& core);
  static std::string failure(const VirtualCore& core);

  /// Nothing of an earlier group of tasks is left in the pipes of a cluster.
  void reset_cluster(int cluster);

 private:
  Ran on_core(VirtualCore& core, const Kernel& kernel);
  pto::detail::Cluster* clusters_;
  int block_dim_;
};

}  // namespace pto2
