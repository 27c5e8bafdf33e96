// Header for orchestrations: submit tasks, open and close scopes, allocate clusters, write log lines.
//
// An orchestration is a shared object that exports
//
//   extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t* args, int arg_count);
//   extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int arg_count);
//
// The configuration is optional. The entry is called inside a scope and uses the runtime only through the
// table of functions in `rt`. When a run has failed, the next call of any function but scope_end throws
// to unwind the entry; do not catch this exception.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pto_task_args.h"
#include "pto_types.h"
#include "tensor.h"
#ifndef PTO2_LEAN
#include <sstream>
#endif

#ifndef PTO2_ORCHESTRATION_CONFIG_DEFINED
#define PTO2_ORCHESTRATION_CONFIG_DEFINED
struct PTO2OrchestrationConfig {
  int expected_arg_count;  // if above 0: a run with fewer arguments is refused
};
#endif

struct PTO2Runtime;

/// Fields up to get_tensor_pool have the order of the documented runtime; the others are additions of pto.
struct PTO2RuntimeOps {
  void (*submit_task)(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type, PTOParam* params,
                      int32_t num_params);
  void (*scope_begin)(PTO2Runtime* rt);
  void (*scope_end)(PTO2Runtime* rt);  // never throws: it is called while an orchestration is unwound
  void (*orchestration_done)(PTO2Runtime* rt);
  __attribute__((format(printf, 2, 3))) void (*log_error)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_warn)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_info)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_debug)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_always)(const char* func, const char* fmt, ...);
  TensorPool* (*get_tensor_pool)(PTO2Runtime* rt);

  /// Set the source location of the next call. The string must outlive the shared object.
  void (*set_site)(PTO2Runtime* rt, const char* file, int line);
  int32_t (*allocate_cluster)(PTO2Runtime* rt);
  void (*free_cluster)(PTO2Runtime* rt, int32_t cluster_id);
  void (*submit_task_clustered)(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type,
                                PTOParam* params, int32_t num_params, int32_t cluster_id);
  void (*submit_block_task)(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type, PTOParam* params,
                            int32_t num_params, int32_t block_dim, const int32_t* cluster_ids);
  uint64_t (*submit)(PTO2Runtime* rt, const PTO2Submission* submission);
  void (*scope_begin_as)(PTO2Runtime* rt, PTO2ScopeMode mode);
  uint64_t (*get_tensor_data)(PTO2Runtime* rt, int32_t tensor, const uint64_t index[]);
  void (*set_tensor_data)(PTO2Runtime* rt, int32_t tensor, const uint64_t index[], uint64_t bits);
  bool (*is_fatal)(PTO2Runtime* rt);
  __attribute__((format(printf, 4, 5))) void (*report_fatal)(PTO2Runtime* rt, int32_t code, const char* func,
                                                             const char* fmt, ...);
  int32_t (*cluster_count)(PTO2Runtime* rt);
};

struct PTO2Runtime {
  const PTO2RuntimeOps* ops;
};

namespace pto2_detail {
/// The runtime that called this shared object. Each shared object has its own, as for the tensor pool.
__attribute__((visibility("hidden"))) inline PTO2Runtime*& bound_runtime() {
  static PTO2Runtime* bound = nullptr;
  return bound;
}
}  // namespace pto2_detail

/// Set the runtime of this shared object; the runtime calls this before the entry and after it.
extern "C" __attribute__((weak, used, visibility("default"))) void pto2_bind_runtime(PTO2Runtime* rt) {
  pto2_detail::bound_runtime() = rt;
}

static inline PTO2Runtime* current_runtime(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  PTO2Runtime* rt = pto2_detail::bound_runtime();
  if (rt == nullptr) assert_fail(file, line, "missing runtime: only an orchestration has one");
  return rt;
}

// Default arguments give the source locations of calls: omit them.

/// Submit a task. Its dependencies follow from the tensors: it waits for the tasks that wrote its inputs.
/// OUTPUT tensors without an address get memory here. The tensors move out of `params`.
static inline void pto2_rt_submit_task(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type,
                                       PTOParam* params, int32_t num_params,
                                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->submit_task(rt, kernel_id, worker_type, params, num_params);
}

/// Open and close a scope. Tasks that are submitted between the two calls belong to the scope; after its end,
/// memory of their outputs is freed once the tasks that read them have run.
static inline void pto2_rt_scope_begin(PTO2Runtime* rt, const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->scope_begin(rt);
}
static inline void pto2_rt_scope_end(PTO2Runtime* rt) { rt->ops->scope_end(rt); }

/// Declare the orchestration complete. The runtime does this itself when the entry returns.
static inline void pto2_rt_orchestration_done(PTO2Runtime* rt) { rt->ops->orchestration_done(rt); }

/// Set the tensor pool of this shared object. The runtime has done this before it calls the entry; a
/// repetition is harmless.
static inline void pto2_rt_init_tensor_pool(PTO2Runtime* rt) {
  TensorPool::set_instance(rt->ops->get_tensor_pool(rt));
}

/// Allocate a cluster (an AIC and its two AIVs) for a group of tasks; wait while none is free.
static inline int32_t pto2_rt_allocate_cluster(PTO2Runtime* rt, const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  return rt->ops->allocate_cluster(rt);
}

/// Free a cluster. Tasks of its group that have not run yet keep the cluster until the last of them has run.
static inline void pto2_rt_free_cluster(PTO2Runtime* rt, int32_t cluster_id,
                                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->free_cluster(rt, cluster_id);
}

/// Submit a task that runs only on the cores of one cluster; -1: on any core.
static inline void pto2_rt_submit_task_clustered(PTO2Runtime* rt, int kernel_id, int worker_type,
                                                 PTOParam* params, int n, int32_t cluster_id,
                                                 const char* file = __builtin_FILE(),
                                                 int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->submit_task_clustered(rt, kernel_id, static_cast<PTO2WorkerType>(worker_type), params, n,
                                 cluster_id);
}

/// Submit one SPMD kernel as block_dim tasks with one call. Each task gets `params` followed by two scalars,
/// block_dim and its block id. If given, cluster_ids has the cluster of each of the block_dim blocks.
static inline void pto2_rt_submit_block_task(PTO2Runtime* rt, int kernel_id, int worker_type,
                                             PTOParam* params, int n, int32_t block_dim,
                                             const int32_t* cluster_ids = nullptr,
                                             const char* file = __builtin_FILE(),
                                             int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->submit_block_task(rt, kernel_id, static_cast<PTO2WorkerType>(worker_type), params, n, block_dim,
                             cluster_ids);
}

#ifndef PTO2_CHIP_TENSORS  // there the macros take no runtime
#define LOG_ERROR(rt, fmt, ...) (rt)->ops->log_error(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_WARN(rt, fmt, ...) (rt)->ops->log_warn(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_INFO(rt, fmt, ...) (rt)->ops->log_info(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_DEBUG(rt, fmt, ...) (rt)->ops->log_debug(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_ALWAYS(rt, fmt, ...) (rt)->ops->log_always(__FUNCTION__, fmt, ##__VA_ARGS__)
#endif

// --- calls without a runtime argument (pto_task_args.h) ---

namespace pto2_detail {
/// The number of open manual scopes, in this shared object.
__attribute__((visibility("hidden"))) inline int& manual_scopes() {
  static int open = 0;
  return open;
}
}  // namespace pto2_detail

struct PTO2Submitter {
  static TaskOutputTensors submit(const int32_t* kernels, const CoreTaskArgs& args, const char* file,
                                  int line) {
    PTO2Runtime* rt = current_runtime(file, line);
    if (args.has_error) refuse(rt, args.error_msg, file, line);
    int32_t cores = 0;  // per block
    for (int i = 0; kernels != nullptr && i < 3; i++) cores += kernels[i] >= 0;
    if (args.launch_spec.block_num() < 1) refuse(rt, "expected at least 1 block", file, line);
    if (args.launch_spec.block_num() * cores > INT16_MAX) {
      refuse(rt, "a task has at most 32767 cores, those of all its blocks", file, line);
    }
    TaskOutputTensors out;
    PTOParam params[PTO2_MAX_TASK_ARGS];
    Tensor made[PTO2_MAX_TASK_ARGS];
    int32_t count = 0;
    for (uint32_t i = 0; i < args.tensor_count_; i++) {
      if ((args.made_ >> i & 1) != 0) {
        made[out.count_] = args.infos_[i].copy(file, line);
        params[count++] = PTOParam(args.types_[i], made[out.count_++], 0);
      } else {
        params[count++] = PTOParam(args.types_[i], pto2_detail::handle_of(args.tensors_[i], file, line), 0);
      }
    }
    for (uint32_t i = 0; i < args.scalar_count_; i++) params[count++] = make_scalar_param(args.scalars_[i]);
    const Edges edges(args);
    const bool blocks = args.launch_spec.block_num() != 1 || args.launch_spec.require_sync_start();
    const CorePredicateOperand& operand = args.predicate_.operand;
    PTO2Predicate<Tensor> predicate{{}, args.predicate_.op, args.predicate_.target};
    Tensor tested;
    if (operand.tensor != nullptr) {
      tested = pto2_detail::handle_of(*operand.tensor, file, line);
      predicate.operand.tensor = &tested;
    }
    predicate.operand.ndims = operand.ndims;
    for (int d = 0; d < RUNTIME_MAX_TENSOR_DIMS; d++) predicate.operand.indices[d] = operand.indices[d];
    const PTO2Submission submission = {kernels,
                                       params,
                                       args.initial_,
                                       count,
                                       args.no_dep_,
                                       args.has_initial_,
                                       reinterpret_cast<const uint64_t*>(edges.ids),
                                       edges.count,
                                       blocks ? args.launch_spec.block_num() : 0,
                                       args.launch_spec.require_sync_start(),
                                       predicate.op != PredicateOp::NONE ? &predicate : nullptr};
    rt->ops->set_site(rt, file, line);
    out.id_ = PTO2TaskId{rt->ops->submit(rt, &submission)};
    for (uint32_t i = 0; i < out.count_; i++) pto2_detail::show(made[i], out.tensors_[i], file, line);
    return out;
  }

 private:
  [[noreturn]] static void refuse(PTO2Runtime* rt, const char* what, const char* file, int line) {
    constexpr int kInvalidArgs = 5;  // PTO2_ERROR_INVALID_ARGS
    rt->ops->set_site(rt, file, line);
    rt->ops->report_fatal(rt, kInvalidArgs, "submit", "%s:%d: %s", file, line, what);
    assert_fail(file, line, "%s", what);
  }

  /// The explicit dependencies, and dependencies on the tasks that allocated the memory of untracked tensors.
  struct Edges {
    const PTO2TaskId* ids;
    uint32_t count;
    PTO2TaskId* more = nullptr;

    explicit Edges(const CoreTaskArgs& args) : ids(args.deps_), count(args.dep_count_) {
      if (pto2_detail::manual_scopes() > 0) return;
      PTO2TaskId found[PTO2_MAX_TASK_ARGS];
      uint32_t makers = 0;
      for (uint32_t i = 0; i < args.tensor_count_; i++) {
        if ((args.made_ >> i & 1) != 0) continue;
        const PTO2TaskId maker{pto2_detail::creator_of(args.tensors_[i])};
        const bool tracked = (args.no_dep_ >> i & 1) == 0 && args.types_[i] != PTOParamType::OUTPUT &&
                             !pto2_detail::is_untracked(args.tensors_[i]);
        if (maker.is_valid() && !tracked) found[makers++] = maker;
      }
      if (makers == 0) return;
      more = new PTO2TaskId[count + makers];
      for (uint32_t i = 0; i < count; i++) more[i] = ids[i];
      for (uint32_t i = 0; i < makers; i++) more[count + i] = found[i];
      ids = more;
      count += makers;
    }
    ~Edges() { delete[] more; }
    Edges(const Edges&) = delete;
    Edges& operator=(const Edges&) = delete;
  };
};

/// Submit one task with a kernel for each named core of a cluster. The kernels start together.
static inline TaskOutputTensors rt_submit_task(const MixedKernels& kernels, const CoreTaskArgs& args,
                                               const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
  const int32_t ids[] = {kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id};
  return PTO2Submitter::submit(ids, args, file, line);
}
static inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, const CoreTaskArgs& args,
                                                   const char* file = __builtin_FILE(),
                                                   int line = __builtin_LINE()) {
  return rt_submit_task({kernel_id, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args, file, line);
}
static inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, const CoreTaskArgs& args,
                                                   const char* file = __builtin_FILE(),
                                                   int line = __builtin_LINE()) {
  return rt_submit_task({INVALID_KERNEL_ID, kernel_id, INVALID_KERNEL_ID}, args, file, line);
}
/// Submit a task without a kernel, which joins other tasks.
static inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs& args,
                                                     const char* file = __builtin_FILE(),
                                                     int line = __builtin_LINE()) {
  return PTO2Submitter::submit(nullptr, args, file, line);
}
/// Allocate tensors that several tasks write in parts.
template <class... Infos>
static inline TaskOutputTensors alloc_tensors(const TensorCreateInfo& first, const Infos&... more) {
  CoreTaskArgs args;
  args.add_output(first, more...);
  return rt_submit_dummy_task(args, first.file, first.line);
}
static inline TaskOutputTensors alloc_tensors(const TensorCreateInfo infos[], uint32_t count,
                                              const char* file = __builtin_FILE(),
                                              int line = __builtin_LINE()) {
  CoreTaskArgs args;
  for (uint32_t i = 0; i < count; i++) args.add_output(infos[i]);
  return rt_submit_dummy_task(args, file, line);
}
static inline TaskOutputTensors alloc_tensors(const CoreTaskArgs& args, const char* file = __builtin_FILE(),
                                              int line = __builtin_LINE()) {
  return rt_submit_dummy_task(args, file, line);
}

static inline void rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO,
                                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  PTO2Runtime* rt = current_runtime(file, line);
  rt->ops->set_site(rt, file, line);
  rt->ops->scope_begin_as(rt, mode);
  // A manual scope contains only manual scopes, so a count tells whether the innermost scope is manual.
  if (mode == PTO2ScopeMode::MANUAL) pto2_detail::manual_scopes()++;
}
static inline void rt_scope_end() {
  if (pto2_detail::manual_scopes() > 0) pto2_detail::manual_scopes()--;
  pto2_rt_scope_end(current_runtime());
}
static inline void rt_orchestration_done() {}
static inline bool rt_is_fatal() { return current_runtime()->ops->is_fatal(current_runtime()); }
static inline int32_t rt_available_cluster_count() {
  return current_runtime()->ops->cluster_count(current_runtime());
}
static inline int32_t rt_available_aiv_count() { return 2 * rt_available_cluster_count(); }

#define rt_report_fatal(code, fmt, ...)                                     \
  (current_runtime()->ops->set_site(current_runtime(), __FILE__, __LINE__), \
   current_runtime()->ops->report_fatal(current_runtime(), (code), __FUNCTION__, fmt, ##__VA_ARGS__))

namespace pto2_detail {

/// The checked indices of an element. The constructor passes the source location of the call to the runtime.
struct Place {
  uint64_t index[RUNTIME_MAX_TENSOR_DIMS] = {};
  template <class Index>
  Place(PTO2Runtime* rt, const Tensor& tensor, uint32_t ndims, const Index given[], const char* file,
        int line) {
    const TensorData& data = tensor.data(file, line);
    if (ndims != data.ndims) {
      assert_fail(file, line, "%u numbers for an element of a tensor of %u dimensions", ndims,
                  static_cast<unsigned>(data.ndims));
    }
    for (uint32_t d = 0; d < ndims; d++) {
      index[d] = static_cast<uint64_t>(given[d]);
      if (index[d] >= data.shapes[d]) {
        assert_fail(file, line, "element %" PRIu64 " of %" PRIu64 " in dimension %u", index[d],
                    data.shapes[d], d);
      }
    }
    rt->ops->set_site(rt, file, line);
  }
};

}  // namespace pto2_detail

/// Return an element, after the tasks that write it have run.
template <class T = uint64_t, class Index = uint32_t>
static inline T get_tensor_data(const PTO2ArgTensor& of, uint32_t ndims, const Index indices[],
                                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  PTO2Runtime* rt = current_runtime(file, line);
  const Tensor tensor = pto2_detail::handle_of(of, file, line);
  const pto2_detail::Place place(rt, tensor, ndims, indices, file, line);
  const uint64_t bits = rt->ops->get_tensor_data(rt, tensor.index, place.index);
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// Set an element, after the tasks that write or read it have run.
template <class T, class Index = uint32_t>
static inline void set_tensor_data(const PTO2ArgTensor& of, uint32_t ndims, const Index indices[], T value,
                                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  PTO2Runtime* rt = current_runtime(file, line);
  const Tensor tensor = pto2_detail::handle_of(of, file, line);
  const pto2_detail::Place place(rt, tensor, ndims, indices, file, line);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  rt->ops->set_tensor_data(rt, tensor.index, place.index, bits);
}

/// A scope that lasts as long as its guard.
class PTO2ScopeGuard {
 public:
  explicit PTO2ScopeGuard(PTO2Runtime* rt, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : rt_(rt) {
    pto2_rt_scope_begin(rt_, file, line);
  }
  explicit PTO2ScopeGuard(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE())
      : rt_(current_runtime(file, line)) {
    rt_scope_begin(mode, file, line);
  }
  ~PTO2ScopeGuard() {
    if (pto2_detail::manual_scopes() > 0) pto2_detail::manual_scopes()--;
    pto2_rt_scope_end(rt_);
  }
  PTO2ScopeGuard(const PTO2ScopeGuard&) = delete;
  PTO2ScopeGuard& operator=(const PTO2ScopeGuard&) = delete;

 private:
  PTO2Runtime* rt_;
};

#define PTO2_CONCAT_(a, b) a##b
#define PTO2_CONCAT(a, b) PTO2_CONCAT_(a, b)

/// A scope up to the end of the enclosing block.
#define PTO2_SCOPE_GUARD(...) \
  [[maybe_unused]] PTO2ScopeGuard PTO2_CONCAT(pto2_scope_guard_, __COUNTER__) { __VA_ARGS__ }

/// PTO2_SCOPE(rt) { ... }, PTO2_SCOPE() { ... }, PTO2_SCOPE(PTO2ScopeMode::MANUAL) { ... }
#define PTO2_SCOPE(...) if (PTO2ScopeGuard PTO2_CONCAT(pto2_scope_guard_, __COUNTER__){__VA_ARGS__}; true)
