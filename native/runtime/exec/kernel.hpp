// What a task executes: a function by its number (func_id).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fault.hpp"
#include "platform.hpp"

namespace pto::detail {
struct Core;
}

namespace pto2 {

struct Kernel {
  std::string name;
  int core_type = -1;  // of CoreType; -1: any
  /// One of these is set. `on_core` is C++ compiled with the PTO intrinsics: it runs on a stack of its own
  /// and may wait for other cores. `plain` and `call` run to their end on the host thread; `call` may throw.
  void (*on_core)(int64_t* args, pto::detail::Core* core) = nullptr;
  Text text;  // where the code of `on_core` is, if known
  void (*plain)(int64_t* args) = nullptr;
  std::function<void(const DispatchPayload&)> call;
};

class Kernels {
 public:
  void add(int func_id, Kernel kernel) {
    const auto at = static_cast<size_t>(func_id);
    if (at >= kernels_.size()) kernels_.resize(at + 1);
    kernels_[at] = std::make_unique<Kernel>(std::move(kernel));
  }
  const Kernel* find(int func_id) const {
    const auto at = static_cast<size_t>(func_id);
    return func_id >= 0 && at < kernels_.size() ? kernels_[at].get() : nullptr;
  }
  int end() const { return static_cast<int>(kernels_.size()); }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace pto2
