// Running kernels on virtual cores.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core.hpp"
#include "fault.hpp"
#include "graph.hpp"
#include "kernel.hpp"

namespace pto::detail {
struct Cluster;
struct Grid;
}  // namespace pto::detail

namespace pto2 {

enum class Ran { ToItsEnd, IntoAWait, IntoAFailure };

/// The outcome of running a kernel: how far it got, and its exception, if any.
struct Attempt {
  Ran ran = Ran::ToItsEnd;
  bool threw = false, missing = false;  // missing: there is no such kernel
  std::string error;
};

/// Windows of ranks whose accesses are recorded in order (WindowRecord). One thread adds, any number look up.
class OrderedWindows {
 public:
  void add(uint64_t first, uint64_t last) {
    all_.push_back({first, last, latest_.load(std::memory_order_relaxed)});
    latest_.store(&all_.back(), std::memory_order_release);
  }
  bool empty() const { return latest_.load(std::memory_order_acquire) == nullptr; }
  bool holds(uint64_t address) const {
    const Window* window = latest_.load(std::memory_order_acquire);
    while (window != nullptr && (address < window->first || address >= window->last)) window = window->before;
    return window != nullptr;
  }
  /// Return the number of a new record. Cores that are ordered get ordered numbers.
  int64_t next() { return numbers_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Window {
    uint64_t first, last;
    const Window* before;
  };
  std::deque<Window> all_;  // a deque, because elements must not move
  std::atomic<const Window*> latest_{nullptr};
  std::atomic<int64_t> numbers_{0};
};

/// The on-chip state of all cores of a run: state that a cluster shares, memories, stacks.
class Machine {
 public:
  /// `note_uses`: record accesses of tasks to global memory. `note_windows`: record accesses to `windows`,
  /// memory that tasks access besides their arguments (null for none).
  Machine(int block_dim, bool note_uses, bool note_windows, const pto_array& windows);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Register a core. Call before the first task.
  void add(VirtualCore& core);

  /// Create the shared state of `blocks` blocks that start together, each with `cubes` cube cores and
  /// `vectors` vector cores: barriers and flags of all of them. A team is used for one task only.
  static std::shared_ptr<Team> make_team(int blocks, int cubes, int vectors);

  /// Set the shared state (`grid`, `shared`) in the payload of a mixed task or of a block of a team. It is
  /// not the state of the cluster, which other tasks may use. Call it before any core of the task starts.
  void join(VirtualCore& core);

  /// Run the task in the core's payload; `graph` has the memory of the task.
  Ran begin(VirtualCore& core, const Kernel& kernel, const Graph& graph);

  /// `can_go_on`: return true if a waiting core can continue. `go_on`: continue it.
  static bool can_go_on(const VirtualCore& core);
  static Ran go_on(VirtualCore& core);

  /// `waits_for`: return the condition that a core waits for. `failure`: return the reason of its failure,
  /// and its last mark of a source location (or -1) in `mark`.
  static std::string waits_for(const VirtualCore& core);
  static std::string failure(const VirtualCore& core, int& mark);
  /// Return true if the reason of the failure was that the kernel did not return after Ctrl-C.
  static bool was_stopped(const VirtualCore& core);

  /// Return the accesses of tasks to global memory. Call after the run.
  std::vector<UseRecord> uses() const;

  /// `keep_order`: record accesses to this memory in order, if accesses are recorded. `ordered_uses`: return
  /// them. Call it after the run.
  void keep_order(uint64_t first, uint64_t last) { ordered_.add(first, last); }
  std::vector<WindowRecord> ordered_uses() const;

  /// Clear the state that an earlier group of tasks left in a cluster.
  void reset_cluster(int cluster);

 private:
  /// The cores of a cluster. All get their memories when the first of them needs one, because the cube core
  /// may write to the memory of a vector core that has not run yet.
  struct Cores {
    std::once_flag made;
    std::vector<VirtualCore*> all;
  };
  Ran on_core(VirtualCore& core, const Kernel& kernel, const Graph& graph);
  void make(Cores& cores);
  std::vector<Cores> cores_;                  // by cluster
  std::vector<std::shared_ptr<Team>> teams_;  // by cluster: state of its current mixed task
  pto::detail::Cluster* clusters_;
  std::unique_ptr<pto::detail::Grid[]> grids_;  // by cluster: for tasks of one core
  pto_array windows_;
  OrderedWindows ordered_;
  int block_dim_;
  bool note_uses_, note_windows_;
};

}  // namespace pto2
