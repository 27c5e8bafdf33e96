// Tasks with all options: explicit dependencies, untracked parameters, several kernels at once, blocks,
// predicates. The calls need no runtime argument: the runtime binds itself to the shared object.
//
//   CoreTaskArgsWithDeps<> args;
//   args.add_input(a, b);
//   args.add_output(TensorCreateInfo(shapes, 2, DataType::FLOAT32));
//   args.add_dep(earlier.task_id());
//   TaskOutputTensors made = rt_submit_aiv_task(ADD, args);
//   use(made.get_ref(0), made.task_id());
//
// Arguments are tensors in the form of the source (PTO2ArgTensor): handles, or the plain values of pto2/chip,
// which become handles at the submission of a task.
#pragma once

#include <stdint.h>

#include <type_traits>

#include "pto_task_id.h"
#include "pto_types.h"
#include "tensor.h"

struct PTO2Runtime;

#ifdef PTO2_CHIP_TENSORS
using PTO2ArgTensor = ChipTensor;
#else
using PTO2ArgTensor = Tensor;
#endif

namespace pto2_detail {
// The tensor functions of pto2/chip/tensor.h, for handles.
inline const Tensor& handle_of(const Tensor& tensor, const char*, int) { return tensor; }
inline void show(const Tensor& tensor, Tensor& as, const char*, int) { as = tensor; }
inline uint64_t creator_of(const Tensor&) { return UINT64_MAX; }
inline bool is_untracked(const Tensor&) { return false; }
}  // namespace pto2_detail

inline constexpr int32_t INVALID_KERNEL_ID = -1;
inline constexpr uint32_t PTO2_MAX_TASK_ARGS = 64;  // tensors and scalars of one task

/// The order of the tasks of a scope: by their tensors (AUTO), or only by explicit dependencies (MANUAL).
enum class PTO2ScopeMode : uint8_t { AUTO = 0, MANUAL = 1 };

/// Kernels of one task, for the cores of one cluster; at least one kernel is valid.
struct MixedKernels {
  int32_t aic_kernel_id = INVALID_KERNEL_ID;
  int32_t aiv0_kernel_id = INVALID_KERNEL_ID;
  int32_t aiv1_kernel_id = INVALID_KERNEL_ID;
};

enum class PredicateOp : uint8_t { NONE = 0, EQ, NE, GT, LT, GE, LE };

template <class Of>
struct PTO2PredicateOperand {
  const Of* tensor = nullptr;  // an integer tensor
  uint32_t ndims = 0;
  uint32_t indices[RUNTIME_MAX_TENSOR_DIMS] = {};
};

/// A condition that is tested after all producers: if it is false, the task ends without running.
template <class Of>
struct PTO2Predicate {
  PTO2PredicateOperand<Of> operand;
  PredicateOp op = PredicateOp::NONE;
  int64_t target = 0;
};

using CorePredicateOperand = PTO2PredicateOperand<PTO2ArgTensor>;
using CoreTaskPredicate = PTO2Predicate<PTO2ArgTensor>;

/// The number of blocks of a task, and whether all blocks need their cores at the same time.
class PTO2LaunchSpec {
 public:
  int16_t block_num() const { return block_num_; }
  void set_block_num(int16_t n) { block_num_ = n; }
#ifdef PTO2_CORE_NUM  // the name of A5 for the same; sources test which of the names exists
  int16_t core_num() const { return block_num_; }
  void set_core_num(int16_t n) { block_num_ = n; }
#endif
  bool require_sync_start() const { return require_sync_start_; }
  void set_require_sync_start(bool v) { require_sync_start_ = v; }

 private:
  int16_t block_num_ = 1;
  bool require_sync_start_ = false;
};

/// A tensor to allocate: a task with this output gets memory for it.
class TensorCreateInfo {
 public:
  template <class Extent>
  TensorCreateInfo(const Extent shapes[], uint32_t ndims, DataType dtype = DataType::FLOAT32,
                   bool manual_dep = false, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : ndims_(ndims), dtype_(dtype), manual_dep_(manual_dep), file(file), line(line) {
    if (ndims > static_cast<uint32_t>(RUNTIME_MAX_TENSOR_DIMS)) {
      assert_fail(file, line, "a tensor has at most 5 dimensions, got %u", ndims);
    }
    for (uint32_t d = 0; d < ndims; d++) shapes_[d] = static_cast<uint64_t>(shapes[d]);
  }

  /// Set the initial value of every element.
  template <class Value>
  void set_initial_value(Value value) {
    static_assert(sizeof(Value) <= 8 && std::is_trivially_copyable<Value>::value, "an element");
    initial_ = 0;
    __builtin_memcpy(&initial_, &value, sizeof value);
    has_initial_ = true;
  }

  Tensor make(const char* file, int line) const {
    Tensor made = make_tensor(shapes_, ndims_, dtype_, 0, file, line);
    made.data(file, line).manual_dep = manual_dep_ ? 1 : 0;
    return made;
  }
  bool has_initial_value() const { return has_initial_; }
  uint64_t initial_value() const { return initial_; }

 private:
  uint64_t shapes_[RUNTIME_MAX_TENSOR_DIMS] = {};
  uint32_t ndims_;
  DataType dtype_;
  bool manual_dep_, has_initial_ = false;
  uint64_t initial_ = 0;

 public:
  const char* file;  // source location of the constructor call
  int line;
};

/// The arguments in the form for the runtime: see CoreTaskArgs.
struct PTO2Submission {
  const int32_t* kernels;  // for AIC, AIV0, AIV1; null: the task has no kernel
  PTOParam* params;
  const uint64_t* initial;  // by parameter: the initial value of its elements
  int32_t count;
  uint64_t no_dep, has_initial;  // one bit per parameter
  const uint64_t* deps;
  uint32_t dep_count;
  int32_t block_num;
  bool sync_start;
  const PTO2Predicate<Tensor>* predicate;
};

/// The direction of a tensor of a task.
enum class TensorArgType : int32_t { INPUT = 0, OUTPUT = 1, INOUT = 2, OUTPUT_EXISTING = 3, NO_DEP = 4 };

/// The purpose of an explicit edge. It has no effect here: the memory of every producer is kept as long as it
/// is needed.
enum DepFlags : uint8_t { DEP_NONE = 0, DEP_WAIT = 1, DEP_RETAIN = 2 };
constexpr DepFlags operator|(DepFlags a, DepFlags b) {
  return static_cast<DepFlags>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}

/// A reference to a tensor argument.
class TensorRef {
 public:
  explicit TensorRef(const PTO2ArgTensor& tensor) : tensor_(&tensor) {}
  const PTO2ArgTensor& ref() const { return *tensor_; }

 private:
  const PTO2ArgTensor* tensor_;
};

/// The parameters of a task: tensors before scalars, in the order in which they are added. Tensors are
/// shared, not moved: the same arguments can be used for another task.
class CoreTaskArgs {
 public:
  PTO2LaunchSpec launch_spec;

  template <class... Tensors>
  void add_input(const Tensors&... tensors) {
    (add(PTOParamType::INPUT, tensors, false), ...);
  }
  template <class... Tensors>
  void add_inout(const Tensors&... tensors) {
    (add(PTOParamType::INOUT, tensors, false), ...);
  }
  /// Add tensors that are written as a whole: existing tensors, or TensorCreateInfo.
  template <class... Outputs>
  void add_output(const Outputs&... outputs) {
    (add_one_output(outputs), ...);
  }
  /// Add tensors that the task may read and write without edges to other tasks.
  template <class... Tensors>
  void add_no_dep(const Tensors&... tensors) {
    (add(PTOParamType::INOUT, tensors, true), ...);
  }
  /// Add numbers, each in the low bits of its slot.
  template <class... Values>
  void add_scalar(Values... values) {
    (add_one_scalar(values), ...);
  }
  void add_scalars(const uint64_t* values, int count) {
    for (int i = 0; i < count; i++) add_one_scalar(values[i]);
  }
  void add_scalars_i32(const int32_t* values, int count) {
    for (int i = 0; i < count; i++) add_one_scalar(static_cast<uint32_t>(values[i]));
  }
  void copy_scalars_from(const CoreTaskArgs& other, int first, int count) {
    if (first < 0 || count < 0 || first + count > static_cast<int>(other.scalar_count_)) {
      return set_error("copy_scalars_from: the other task has not as many scalars");
    }
    for (int i = 0; i < count; i++) add_one_scalar(other.scalars_[first + i]);
  }

  /// Set the dependencies, at most once; a count of 0 removes them. The array is read at the submission.
  void set_dependencies(const PTO2TaskId* deps, uint32_t count) {
    if (count > 0 && deps == nullptr) set_error("set_dependencies: no dependencies at a null pointer");
    if (count > 0 && dep_count_ > 0) set_error("set_dependencies: they have been set before");
    deps_ = count > 0 ? deps : nullptr;
    dep_count_ = count;
  }
  /// Set the dependencies; the kinds have no effect here (DepFlags).
  void set_dependencies_with_kinds(const PTO2TaskId* deps, const DepFlags* kinds, uint32_t count) {
    if (count > 0 && kinds == nullptr) set_error("set_dependencies_with_kinds: no kinds at a null pointer");
    set_dependencies(deps, count);
  }
  uint32_t explicit_dep_count() const { return dep_count_; }
  PTO2TaskId explicit_dep(uint32_t index) const {
    return index < dep_count_ ? deps_[index] : PTO2TaskId::invalid();
  }
  void set_predicate(const CoreTaskPredicate& predicate) { predicate_ = predicate; }
  const CoreTaskPredicate& predicate() const { return predicate_; }
  // Hints for timing only: they have no effect here.
  void set_allow_early_resolve(bool early = true) { early_ = early; }
  bool allow_early_resolve() const { return early_; }
  void set_task_timing_slot(int32_t slot) {
    if (slot < 0 || slot > 15) return set_error("set_task_timing_slot: slots are 0 to 15");
    timing_slot_ = slot;
  }
  int32_t task_timing_slot() const { return timing_slot_; }
  template <class... Args>
  void dump(const Args&...) {}

  void reset() { *this = CoreTaskArgs(); }
  void clear() {
    const PTO2LaunchSpec kept = launch_spec;
    reset();
    launch_spec = kept;
  }
  void set_error(const char* text) {
    if (!has_error) error_msg = text;
    has_error = true;
  }
  bool has_error = false;
  const char* error_msg = nullptr;

  int32_t tensor_count() const { return static_cast<int32_t>(tensor_count_); }
  int32_t scalar_count() const { return static_cast<int32_t>(scalar_count_); }
  uint64_t scalar(int32_t i) const { return scalars_[i]; }
  TensorRef tensor(int32_t i, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (i < 0 || i >= tensor_count()) {
      assert_fail(file, line, "tensor %d of arguments that have %d", i, tensor_count());
    }
    return TensorRef(tensors_[i]);
  }
  TensorArgType tag(int32_t i) const {
    if ((no_dep_ >> i & 1) != 0) return TensorArgType::NO_DEP;
    if (types_[i] != PTOParamType::OUTPUT) return static_cast<TensorArgType>(types_[i]);
    return (made_ >> i & 1) != 0 ? TensorArgType::OUTPUT : TensorArgType::OUTPUT_EXISTING;
  }

 protected:
  friend struct PTO2Submitter;

  bool has_room() {
#ifdef PTO2_CHIP_TENSORS
    if (scalar_count_ > 0) set_error("add_input, add_output, add_inout: tensors come before scalars");
#endif
    if (tensor_count_ + scalar_count_ >= PTO2_MAX_TASK_ARGS) set_error("a task has at most 64 parameters");
    return !has_error;
  }
  void add(PTOParamType type, const PTO2ArgTensor& tensor, bool no_dep) {
    if (!has_room()) return;
    types_[tensor_count_] = type;
    no_dep_ |= static_cast<uint64_t>(no_dep) << tensor_count_;
    tensors_[tensor_count_++] = tensor;
  }
  void add_one_output(const PTO2ArgTensor& tensor) { add(PTOParamType::OUTPUT, tensor, false); }
  void add_one_output(const TensorCreateInfo& info) {
    if (!has_room()) return;
    const uint64_t bit = uint64_t{1} << (tensor_count_ & 63);
    const uint32_t at = tensor_count_;
    types_[at] = PTOParamType::OUTPUT;
    infos_[at] = info.make(info.file, info.line);
    tensor_count_++;
    made_ |= bit;
    if (!info.has_initial_value()) return;
    has_initial_ |= bit;
    initial_[at] = info.initial_value();
  }
  template <class Value>
  void add_one_scalar(Value value) {
    static_assert(std::is_arithmetic<Value>::value || std::is_enum<Value>::value, "a scalar is a number");
    if (tensor_count_ + scalar_count_ >= PTO2_MAX_TASK_ARGS)
      return set_error("a task has at most 64 parameters");
    uint64_t word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    scalars_[scalar_count_++] = word;
  }

  PTO2ArgTensor tensors_[PTO2_MAX_TASK_ARGS];
  Tensor infos_[PTO2_MAX_TASK_ARGS];  // of outputs to allocate
  uint64_t initial_[PTO2_MAX_TASK_ARGS] = {};
  PTOParamType types_[PTO2_MAX_TASK_ARGS] = {};
  uint64_t scalars_[PTO2_MAX_TASK_ARGS] = {};
  uint32_t tensor_count_ = 0, scalar_count_ = 0;
  uint64_t no_dep_ = 0, made_ = 0, has_initial_ = 0;  // one bit per tensor; made_: allocated for each task
  const PTO2TaskId* deps_ = nullptr;
  uint32_t dep_count_ = 0;
  CoreTaskPredicate predicate_;
  bool early_ = false;
  int32_t timing_slot_ = -1;
};

/// Task arguments with storage for dependencies that are added one by one.
template <uint32_t Most = 16>
class CoreTaskArgsWithDeps : public CoreTaskArgs {
 public:
  CoreTaskArgsWithDeps() = default;
  CoreTaskArgsWithDeps(const CoreTaskArgsWithDeps&) = delete;  // deps_ points into this object
  CoreTaskArgsWithDeps& operator=(const CoreTaskArgsWithDeps&) = delete;

  /// Add dependencies: the task waits for these tasks. Invalid ids are ignored.
  template <class... Ids>
  void add_dep(Ids... ids) {
    (add_one_dep(ids), ...);
  }
  template <class... Ids>
  void add_dep_wait(Ids... ids) {
    (add_one_dep(ids), ...);
  }
  void reset() {
    CoreTaskArgs::reset();
    kept_count_ = 0;
  }
  void clear() {
    CoreTaskArgs::clear();
    kept_count_ = 0;
  }

 private:
  void add_one_dep(PTO2TaskId id) {
    if (explicit_dep_count() != kept_count_)
      return set_error("add_dep: dependencies have been set with set_dependencies");
    if (kept_count_ >= Most)
      return set_error("add_dep: more dependencies than CoreTaskArgsWithDeps has room for");
    kept_[kept_count_++] = id;
    set_dependencies(nullptr, 0);
    set_dependencies(kept_, kept_count_);
  }
  PTO2TaskId kept_[Most];
  uint32_t kept_count_ = 0;
};

/// The result of a submission: the task, and the tensors that were allocated for it.
class TaskOutputTensors {
 public:
  bool empty() const { return count_ == 0; }
  uint32_t size() const { return count_; }
  const PTO2ArgTensor& get_ref(uint32_t index, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) const& {
    if (index >= count_)
      assert_fail(file, line, "expected the number of one of %u tensors of the task, got %u", count_, index);
    return tensors_[index];
  }
  const PTO2ArgTensor& get_ref(uint32_t index) const&& = delete;
  PTO2TaskId task_id() const { return id_; }

 private:
  friend struct PTO2Submitter;
  PTO2TaskId id_ = PTO2TaskId::invalid();
  uint32_t count_ = 0;
  PTO2ArgTensor tensors_[PTO2_MAX_TASK_ARGS];
};
