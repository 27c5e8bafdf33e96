// What an orchestration includes: submit tasks, open and close scopes, hold clusters, write log lines.
//
// An orchestration is a shared object that exports
//
//   extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t* args, int arg_count);   //
//   optional extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int arg_count);
//
// It is called inside a scope and reaches the runtime through the table of functions in `rt` only. When a run
// has failed, the next call of any function but scope_end throws, so that the entry is unwound; let it pass.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pto_types.h"
#include "tensor.h"
#ifndef PTO2_LEAN
#include <sstream>
#endif

#ifndef PTO2_ORCHESTRATION_CONFIG_DEFINED
#define PTO2_ORCHESTRATION_CONFIG_DEFINED
struct PTO2OrchestrationConfig {
  int expected_arg_count;  // more than 0: a run with fewer arguments is refused
};
#endif

struct PTO2Runtime;

/// Fields up to get_tensor_pool are in the order of the documented runtime; what follows is ours.
struct PTO2RuntimeOps {
  void (*submit_task)(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type, PTOParam* params,
                      int32_t num_params);
  void (*scope_begin)(PTO2Runtime* rt);
  void (*scope_end)(PTO2Runtime* rt);  // never throws: it runs while an orchestration is unwound
  void (*orchestration_done)(PTO2Runtime* rt);
  __attribute__((format(printf, 2, 3))) void (*log_error)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_warn)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_info)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_debug)(const char* func, const char* fmt, ...);
  __attribute__((format(printf, 2, 3))) void (*log_always)(const char* func, const char* fmt, ...);
  TensorPool* (*get_tensor_pool)(PTO2Runtime* rt);

  /// Where in the source the next call comes from. The string lives as long as the shared object.
  void (*set_site)(PTO2Runtime* rt, const char* file, int line);
  int32_t (*allocate_cluster)(PTO2Runtime* rt);
  void (*free_cluster)(PTO2Runtime* rt, int32_t cluster_id);
  void (*submit_task_clustered)(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type,
                                PTOParam* params, int32_t num_params, int32_t cluster_id);
  void (*submit_block_task)(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type, PTOParam* params,
                            int32_t num_params, int32_t block_dim, const int32_t* cluster_ids);
};

struct PTO2Runtime {
  const PTO2RuntimeOps* ops;
};

// The places of calls come from default arguments: leave them out.

/// Submit a task. Its dependencies follow from the tensors: it waits for the tasks that wrote what it reads.
/// OUTPUT tensors without an address get one here. The tensors move out of `params`.
static inline void pto2_rt_submit_task(PTO2Runtime* rt, int32_t kernel_id, PTO2WorkerType worker_type,
                                       PTOParam* params, int32_t num_params,
                                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->submit_task(rt, kernel_id, worker_type, params, num_params);
}

/// Tasks submitted between these belong to the scope; at its end their outputs may be taken back once the
/// tasks that read them have run.
static inline void pto2_rt_scope_begin(PTO2Runtime* rt, const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->scope_begin(rt);
}
static inline void pto2_rt_scope_end(PTO2Runtime* rt) { rt->ops->scope_end(rt); }

/// The runtime does this when the entry returns.
static inline void pto2_rt_orchestration_done(PTO2Runtime* rt) { rt->ops->orchestration_done(rt); }

/// Where tensors live. The runtime has done this already when it calls the entry; doing it again is harmless.
static inline void pto2_rt_init_tensor_pool(PTO2Runtime* rt) {
  TensorPool::set_instance(rt->ops->get_tensor_pool(rt));
}

/// Take a cluster (an AIC and its two AIVs) for a group of tasks; waits while none is free.
static inline int32_t pto2_rt_allocate_cluster(PTO2Runtime* rt, const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  return rt->ops->allocate_cluster(rt);
}

/// Give it back. Tasks of the group that have not run yet keep it until the last of them has.
static inline void pto2_rt_free_cluster(PTO2Runtime* rt, int32_t cluster_id,
                                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->free_cluster(rt, cluster_id);
}

/// Submit a task that runs on the cores of one cluster only; -1: on any core.
static inline void pto2_rt_submit_task_clustered(PTO2Runtime* rt, int kernel_id, int worker_type,
                                                 PTOParam* params, int n, int32_t cluster_id,
                                                 const char* file = __builtin_FILE(),
                                                 int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->submit_task_clustered(rt, kernel_id, static_cast<PTO2WorkerType>(worker_type), params, n,
                                 cluster_id);
}

/// Submit one SPMD kernel as block_dim tasks with one call: each gets `params` and behind them two scalars,
/// block_dim and its block id. cluster_ids, if given, has block_dim entries: where each block runs.
static inline void pto2_rt_submit_block_task(PTO2Runtime* rt, int kernel_id, int worker_type,
                                             PTOParam* params, int n, int32_t block_dim,
                                             const int32_t* cluster_ids = nullptr,
                                             const char* file = __builtin_FILE(),
                                             int line = __builtin_LINE()) {
  rt->ops->set_site(rt, file, line);
  rt->ops->submit_block_task(rt, kernel_id, static_cast<PTO2WorkerType>(worker_type), params, n, block_dim,
                             cluster_ids);
}

#define LOG_ERROR(rt, fmt, ...) (rt)->ops->log_error(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_WARN(rt, fmt, ...) (rt)->ops->log_warn(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_INFO(rt, fmt, ...) (rt)->ops->log_info(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_DEBUG(rt, fmt, ...) (rt)->ops->log_debug(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_ALWAYS(rt, fmt, ...) (rt)->ops->log_always(__FUNCTION__, fmt, ##__VA_ARGS__)

/// A scope for as long as the guard lives.
class PTO2ScopeGuard {
 public:
  explicit PTO2ScopeGuard(PTO2Runtime* rt, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : rt_(rt) {
    pto2_rt_scope_begin(rt_, file, line);
  }
  ~PTO2ScopeGuard() { pto2_rt_scope_end(rt_); }
  PTO2ScopeGuard(const PTO2ScopeGuard&) = delete;
  PTO2ScopeGuard& operator=(const PTO2ScopeGuard&) = delete;

 private:
  PTO2Runtime* rt_;
};

#define PTO2_CONCAT_(a, b) a##b
#define PTO2_CONCAT(a, b) PTO2_CONCAT_(a, b)

/// A scope up to the end of the enclosing block.
#define PTO2_SCOPE_GUARD(rt) \
  [[maybe_unused]] PTO2ScopeGuard PTO2_CONCAT(pto2_scope_guard_, __COUNTER__) { rt }

/// PTO2_SCOPE(rt) { ... }
#define PTO2_SCOPE(rt) if (PTO2ScopeGuard PTO2_CONCAT(pto2_scope_guard_, __COUNTER__){rt}; true)
