// Durations of kernels in virtual time, which Python provides.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/platform.hpp"
#include "pto2/tensormap_and_ringbuffer/tensor_data.h"

namespace pto2 {

namespace nb = nanobind;

/// Durations of kernels: fixed by kernel, or returned by a function of the task.
class Durations {
 public:
  Durations() = default;
  Durations(const Durations&) = delete;
  Durations& operator=(const Durations&) = delete;
  ~Durations() { forget(); }

  void set(int func_id, int64_t nanoseconds) {
    if (func_id >= static_cast<int>(fixed_.size())) fixed_.resize(static_cast<size_t>(func_id) + 1, kAsk);
    fixed_[static_cast<size_t>(func_id)] = nanoseconds;
  }
  /// Take the duration from the work of the kernel: the function is called after every execution.
  void set_by_doing(int func_id) { set(func_id, kByDoing); }
  bool by_doing(int func_id) const {
    return static_cast<size_t>(func_id) < fixed_.size() && fixed_[static_cast<size_t>(func_id)] == kByDoing;
  }
  void ask(nb::object call) {
    forget();
    call_ = call.release().ptr();
  }
  void forget() {
    Py_XDECREF(call_);
    call_ = nullptr;
  }

  /// Return the duration, or -1 if there is no function or it threw; the exception is in `thrown`. The
  /// function is called once for each combination of kernel, core type, block, directions, types and shapes of tensors, and numbers,
  /// but for every task that has arguments and no tensor (as in graphs), or whose kernel is set by doing.
  int64_t of(const DispatchPayload& payload, nb::object& thrown) {
    const auto kernel = static_cast<size_t>(payload.kernel_id);
    if (kernel < fixed_.size() && fixed_[kernel] >= 0) return fixed_[kernel];
    if (call_ == nullptr) return -1;
    const bool known = !by_doing(payload.kernel_id) && (payload.tensors != 0 || payload.num_args == 0);
    if (known) {
      key(payload);
      if (const auto found = known_.find(key_); found != known_.end()) return found->second;
    }
    const nb::gil_scoped_acquire gil;
    int64_t nanoseconds = -1;
    try {
      nb::list slots;
      for (int i = 0; i < payload.num_args; ++i) slots.append(payload.args[i]);
      nanoseconds = nb::cast<int64_t>(nb::borrow<nb::callable>(call_)(
          payload.kernel_id, static_cast<int>(payload.core_type), slots, payload.tensors, payload.inputs,
          payload.block_idx, payload.block_num, payload.one_of_blocks, payload.task_id));
    } catch (nb::python_error& error) {
      if (!thrown.is_valid()) thrown = nb::borrow(error.value());
      return -1;
    }
    if (known) known_.emplace(key_, nanoseconds);
    return nanoseconds;
  }

 private:
  static constexpr int64_t kAsk = -1, kByDoing = -2;
  void key(const DispatchPayload& payload) {
    key_.clear();
    const auto add = [&](uint64_t word) { key_.append(reinterpret_cast<const char*>(&word), sizeof word); };
    add(static_cast<uint64_t>(payload.kernel_id));
    add(static_cast<uint64_t>(payload.core_type) << 1 | uint64_t{payload.one_of_blocks});
    add(payload.tensors);
    add(payload.inputs);
    add(static_cast<uint64_t>(payload.block_idx) << 32 | static_cast<uint32_t>(payload.block_num));
    for (int i = 0; i < payload.num_args; ++i) {
      if ((payload.tensors >> i & 1) == 0) {
        add(static_cast<uint64_t>(payload.args[i]));
        continue;
      }
      const auto& tensor = *reinterpret_cast<const TensorData*>(payload.args[i]);
      add(static_cast<uint64_t>(tensor.dtype) << 32 | tensor.ndims);
      for (uint64_t d = 0; d < tensor.ndims; ++d) add(tensor.shapes[d]);
    }
  }
  std::vector<int64_t> fixed_;
  std::unordered_map<std::string, int64_t> known_;
  std::string key_;
  PyObject* call_ = nullptr;
};

}  // namespace pto2
