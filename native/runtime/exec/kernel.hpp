// Kernels: the code of tasks, by number (func_id).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fault.hpp"
#include "mpmc_queue.hpp"
#include "platform.hpp"

namespace pto::detail {
struct Core;
}

namespace pto2 {

struct Kernel {
  std::string name;
  int core_type = -1;  // a CoreType; -1: any
  bool meets = false;  // has a grid barrier: its blocks wait for one another
  /// One of four functions is set. `on_core` is C++ compiled with the PTO intrinsics; it has its own stack
  /// and may wait for other cores. `plain` and `call` run to their end on the host thread; `call` may throw.
  void (*on_core)(int64_t* args, pto::detail::Core* core) = nullptr;
  Text text;  // address range of the code of `on_core`, if known
  /// A program on the virtual machine (native/vm/vm.hpp), which runs like `on_core`: the function that runs
  /// it, and `places`, sorted pairs (word of the program, source location). Marks of a core are such words.
  void (*on_machine)(const void* task, int64_t* args, pto::detail::Core* core) = nullptr;
  const void* task = nullptr;
  std::vector<std::pair<int, int>> places;

  /// Return the source location for a mark of a core; -1 if unknown.
  int place(int mark) const {
    if (on_machine == nullptr || mark < 0) return mark;
    const auto after = std::upper_bound(places.begin(), places.end(), mark,
                                        [](int word, const auto& place) { return word < place.first; });
    return after == places.begin() ? -1 : std::prev(after)->second;
  }
  void (*plain)(int64_t* args) = nullptr;
  std::function<void(const DispatchPayload&)> call;
};

/// Kernels by number. A Python orchestration adds kernels at their first submission, while tasks run: one
/// thread adds, any number of threads look up. An added kernel is never removed.
class Kernels {
 public:
  static constexpr int kMost = 1 << 20;

  void add(int func_id, Kernel kernel) {
    if (func_id < 0 || func_id >= kMost) throw std::out_of_range("func_id " + std::to_string(func_id));
    kept_.push_back(std::make_unique<Kernel>(std::move(kernel)));
    table_->by_number[static_cast<size_t>(func_id)].store(kept_.back().get(), std::memory_order_release);
    if (func_id >= table_->end.load(std::memory_order_relaxed))
      table_->end.store(func_id + 1, std::memory_order_relaxed);
  }
  const Kernel* find(int func_id) const {
    if (func_id < 0 || func_id >= kMost) return nullptr;
    return table_->by_number[static_cast<size_t>(func_id)].load(std::memory_order_acquire);
  }
  int end() const { return table_->end.load(std::memory_order_relaxed); }

 private:
  struct Table {
    ZeroedArray<std::atomic<const Kernel*>> by_number{kMost};  // pages are mapped on first access
    std::atomic<int> end{0};
  };
  std::unique_ptr<Table> table_ = std::make_unique<Table>();
  std::vector<std::unique_ptr<Kernel>> kept_;
};

}  // namespace pto2
