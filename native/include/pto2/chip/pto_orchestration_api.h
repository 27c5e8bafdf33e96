// Header for an orchestration whose entry takes ChipTaskArgs.
//
//   extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& args);  // optional
//   extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& args);
//
// Tensors are values (tensor.h in this folder), and no call takes a runtime. Otherwise the runtime and the
// calls are those of ../tensormap_and_ringbuffer/pto_orchestration_api.h.
#pragma once

#define PTO2_CHIP_TENSORS

// clang-format off
#include "tensor.h"
#include "../tensormap_and_ringbuffer/pto_orchestration_api.h"
#include "../tensormap_and_ringbuffer/pto_runtime2_types.h"
// clang-format on

#define LOG_ERROR(fmt, ...) current_runtime()->ops->log_error(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_WARN(fmt, ...) current_runtime()->ops->log_warn(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_INFO(fmt, ...) current_runtime()->ops->log_info(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_DEBUG(fmt, ...) current_runtime()->ops->log_debug(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_TIMING(fmt, ...) LOG_INFO(fmt, ##__VA_ARGS__)
#define LOG_ALWAYS(fmt, ...) current_runtime()->ops->log_always(__FUNCTION__, fmt, ##__VA_ARGS__)

inline constexpr uint32_t CHIP_MAX_TENSOR_ARGS = 256;
inline constexpr uint32_t CHIP_MAX_SCALAR_ARGS = 128;

/// The arguments of an orchestration: tensors, and scalars of 64 bits.
class ChipTaskArgs {
 public:
  ChipTaskArgs() = default;
  ChipTaskArgs(const ChipTaskArgs&) = delete;
  ChipTaskArgs& operator=(const ChipTaskArgs&) = delete;
  ~ChipTaskArgs() { delete[] tensors_; }

  /// Read the words of the runtime: the number of tensors; for each tensor its address, bytes, type, number
  /// of dimensions and five extents; then the scalars.
  void read(const uint64_t* words, int count) {
    constexpr int kWords = 4 + MAX_TENSOR_DIMS;
    tensor_count_ = count > 0 ? static_cast<int32_t>(words[0]) : 0;
    if (tensor_count_ < 0 || 1 + tensor_count_ * kWords > count) {
      assert_fail(__FILE__, __LINE__, "arguments that are none: %d words for %d tensors", count,
                  tensor_count_);
    }
    tensors_ = new ChipTensor[static_cast<size_t>(tensor_count_)];
    for (int32_t i = 0; i < tensor_count_; i++) {
      const uint64_t* at = words + 1 + i * kWords;
      tensors_[i].init_external(reinterpret_cast<void*>(at[0]), at[1], at + 4, static_cast<uint32_t>(at[3]),
                                static_cast<DataType>(at[2]));
    }
    scalars_ = words + 1 + tensor_count_ * kWords;
    scalar_count_ = count - 1 - tensor_count_ * kWords;
  }

  const ChipTensor& tensor(int32_t i, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) const {
    if (i < 0 || i >= tensor_count_) {
      assert_fail(file, line, "tensor %d of an orchestration that was given %d", i, tensor_count_);
    }
    return tensors_[i];
  }
  uint64_t scalar(int32_t i, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (i < 0 || i >= scalar_count_) {
      assert_fail(file, line, "scalar %d of an orchestration that was given %d", i, scalar_count_);
    }
    return scalars_[i];
  }
  const uint64_t* scalars() const { return scalars_; }
  int32_t tensor_count() const { return tensor_count_; }
  int32_t scalar_count() const { return scalar_count_; }

 private:
  ChipTensor* tensors_ = nullptr;
  const uint64_t* scalars_ = nullptr;
  int32_t tensor_count_ = 0, scalar_count_ = 0;
};

/// Arguments of a graph: a part of an orchestration that a device records once and replays. The part reads
/// them as an orchestration reads its own arguments.
class GraphTaskArgs : public CoreTaskArgs {};

/// The result of rt_submit_graph. Here each call submits the tasks again: a replay would only save time.
struct GraphSubmitResult {
  bool recording = false, execute_block = true, cache_hit = false;
};

template <class... Config>
static inline GraphSubmitResult rt_submit_graph(void (*part)(const GraphTaskArgs&, Config...),
                                                const GraphTaskArgs& args,
                                                typename std::common_type<Config>::type... config) {
  part(args, config...);
  return {};
}
template <class... Config>
static inline GraphSubmitResult rt_submit_graph(uint64_t, void (*part)(const GraphTaskArgs&, Config...),
                                                const GraphTaskArgs& args,
                                                typename std::common_type<Config>::type... config) {
  part(args, config...);
  return {};
}
static inline void rt_graph_commit() {}

#include "pto_arg_with_deps.h"

// Names of earlier versions, for sources with an entry that takes L2TaskArgs or ChipStorageTaskArgs. `Tensor`
// is a macro because handles have that name in the headers above.
using L2TaskArgs = ChipTaskArgs;
using ChipStorageTaskArgs = ChipTaskArgs;
using L0TaskArgs = CoreTaskArgs;
using Arg = CoreTaskArgs;
template <uint32_t Most = 16>
using L0TaskArgsWithDeps = CoreTaskArgsWithDeps<Most>;
template <uint32_t Most = 16>
using ArgWithDeps = CoreTaskArgsWithDeps<Most>;
using L0TaskPredicate = CoreTaskPredicate;
using ContinuousTensor = ChipTensor;
inline ChipTensor from_tensor_arg(const ChipTensor& tensor, bool manual_dep = false, int32_t version = 0) {
  ChipTensor made = tensor;
  made.manual_dep = manual_dep;
  made.version = version;
  return made;
}
#define Tensor ChipTensor
#define LOG_INFO_V0 LOG_INFO
#define LOG_INFO_V9 LOG_INFO
