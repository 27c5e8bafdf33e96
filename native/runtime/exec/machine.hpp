// Running a kernel on a virtual core.
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

/// The progress of a kernel, and its exception, if any.
struct Attempt {
  Ran ran = Ran::ToItsEnd;
  bool threw = false, missing = false;  // missing: there is no such kernel
  std::string error;
};

/// Windows of ranks whose accesses are kept in order (WindowRecord). One thread adds, any number look up.
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
  /// The number of a record. Cores that are ordered take ordered numbers.
  int64_t next() { return numbers_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Window {
    uint64_t first, last;
    const Window* before;
  };
  std::deque<Window> all_;  // elements stay where they are
  std::atomic<const Window*> latest_{nullptr};
  std::atomic<int64_t> numbers_{0};
};

/// The on-chip state of all cores of a run: state shared in a cluster, memories, stacks.
class Machine {
 public:
  /// `note_uses`: keep accesses of tasks to global memory; `note_windows`: those to `windows`, memory that
  /// tasks reach besides their arguments (null for none).
  Machine(int block_dim, bool note_uses, bool note_windows, const pto_array& windows);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// The cores that will run here; before the first task.
  void add(VirtualCore& core);

  /// Make the shared state of `blocks` blocks that start together, each with `cubes` cube cores and `vectors`
  /// vector cores: barriers and flags of all of them. It is made for one task.
  static std::shared_ptr<Team> make_team(int blocks, int cubes, int vectors);

  /// The task in the core's payload is mixed, or a block of a team: fills in what its cores share, which is
  /// none of what belongs to their cluster: another group of tasks may have that. Before any of them starts.
  void join(VirtualCore& core);

  /// Run the task in the core's payload; the graph has the memory that it works on.
  Ran begin(VirtualCore& core, const Kernel& kernel, const Graph& graph);

  /// Return true if a waiting core can go on; and let it.
  static bool can_go_on(const VirtualCore& core);
  static Ran go_on(VirtualCore& core);

  /// The condition that a core waits for; the reason of its failure, and its last mark of a source location
  /// (or -1).
  static std::string waits_for(const VirtualCore& core);
  static std::string failure(const VirtualCore& core, int& mark);
  /// True if the reason was that it did not return after Ctrl-C.
  static bool was_stopped(const VirtualCore& core);

  /// The accesses of tasks to global memory; after the run.
  std::vector<UseRecord> uses() const;

  /// Keep accesses to this memory in the order of all cores, if accesses are kept; and those so far, after the
  /// run.
  void keep_order(uint64_t first, uint64_t last) { ordered_.add(first, last); }
  std::vector<WindowRecord> ordered_uses() const;

  /// Nothing of an earlier group of tasks is left in the pipes of a cluster.
  void reset_cluster(int cluster);

 private:
  /// A cluster gets its memories when the first of its cores needs them, all at once: its cube core may write
  /// to the memory of a vector core that has not run yet.
  struct Cores {
    std::once_flag made;
    std::vector<VirtualCore*> all;
  };
  Ran on_core(VirtualCore& core, const Kernel& kernel, const Graph& graph);
  void make(Cores& cores);
  std::vector<Cores> cores_;                  // by cluster
  std::vector<std::shared_ptr<Team>> teams_;  // by cluster: of the mixed task that it has
  pto::detail::Cluster* clusters_;
  std::unique_ptr<pto::detail::Grid[]> grids_;  // by cluster: a task meets only tasks of its own
  pto_array windows_;
  OrderedWindows ordered_;
  int block_dim_;
  bool note_uses_, note_windows_;
};

}  // namespace pto2
