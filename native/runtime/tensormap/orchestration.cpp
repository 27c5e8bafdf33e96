#include "orchestration.hpp"

#include <cstdarg>
#include <cstdio>

#include "pto2/tensormap_and_ringbuffer/pto_orchestration_api.h"

namespace pto2 {

namespace {

/// The PTO2Runtime that an orchestration gets.
struct Handle : PTO2Runtime {
  TensormapGraph& graph;
  TensorPool& pool;
};

thread_local Log* log_of_thread = nullptr;  // thread-local, because log functions have no runtime argument

TensormapGraph& graph_of(PTO2Runtime* rt) { return static_cast<Handle*>(rt)->graph; }

void submit(PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t count,
            int32_t cluster, int32_t block_dim, const int32_t* cluster_ids) {
  auto& handle = *static_cast<Handle*>(rt);
  Args room(count);
  Arg* args = room.get();
  for (int i = 0; i < count && count <= kMaxParams; ++i) {
    const PTOParam& param = params[i];
    args[i].type = param.type;
    args[i].scalar = param.scalar_value;
    if (param.type != PTOParamType::SCALAR && param.tensor.index != 0) {
      args[i].tensor = &handle.pool.data(param.tensor.index);
    }
  }
  handle.graph.submit({kernel, static_cast<int32_t>(worker), args, count, cluster, block_dim, cluster_ids});
  for (int i = 0; i < count; ++i) {  // the task has copies of the tensors
    if (params[i].tensor.index != 0) handle.pool.release(params[i].tensor.index);
    params[i].tensor.index = 0;
  }
}

/// Submit a task for `rt_submit_*`: a task with one kernel runs on one core, a task with several is mixed.
uint64_t submit_all(PTO2Runtime* rt, const PTO2Submission& given) {
  auto& handle = *static_cast<Handle*>(rt);
  Args room(given.count);
  Arg* args = room.get();
  for (int i = 0; i < given.count && given.count <= kMaxParams; ++i) {
    const PTOParam& param = given.params[i];
    args[i].type = param.type;
    args[i].scalar = param.scalar_value;
    args[i].no_dep = (given.no_dep >> i & 1) != 0;
    if (param.type == PTOParamType::SCALAR) continue;
    if (param.tensor.index != 0) args[i].tensor = &handle.pool.data(param.tensor.index);
    args[i].filled = (given.has_initial >> i & 1) != 0;
    if (args[i].filled) args[i].scalar = given.initial[i];
  }
  Submission made;
  made.args = args;
  made.count = given.count;
  made.block_dim = given.block_num == 0 ? 0 : given.block_num > 0 ? given.block_num : INT32_MIN;
  made.deps = reinterpret_cast<const int64_t*>(given.deps);
  made.dep_count = static_cast<int>(given.dep_count);
  made.sync_start = given.sync_start;
  made.no_core = given.kernels == nullptr;
  made.worker_type = made.no_core ? 1 : 0;
  if (!made.no_core) {
    const int32_t* kernels = given.kernels;
    const int named = (kernels[0] >= 0) + (kernels[1] >= 0) + (kernels[2] >= 0);
    made.kernel_id = kernels[0] >= 0 ? kernels[0] : kernels[1] >= 0 ? kernels[1] : kernels[2];
    made.worker_type = kernels[0] >= 0 ? 0 : 1;
    if (named > 1) made.kernels = kernels;
  }
  if (given.predicate != nullptr) {
    const CorePredicateOperand& operand = given.predicate->operand;
    const TensorData* tensor = operand.tensor == nullptr || operand.tensor->index == 0
                                   ? nullptr
                                   : &handle.pool.data(operand.tensor->index);
    if (tensor == nullptr) handle.graph.give_up("a predicate without a tensor");
    if (operand.ndims != tensor->ndims) handle.graph.give_up("a predicate with an index of another rank");
    for (uint32_t d = 0; d < operand.ndims; ++d) {
      if (operand.indices[d] >= tensor->shapes[d]) handle.graph.give_up("a predicate beside its tensor");
      made.predicate.index[d] = operand.indices[d];
    }
    made.predicate.tensor = tensor;
    made.predicate.op = static_cast<int8_t>(given.predicate->op);
    made.predicate.target = given.predicate->target;
  }
  return static_cast<uint64_t>(handle.graph.submit(made));
}

void report_fatal(PTO2Runtime* rt, int32_t code, const char* function, const char* format, ...) {
  char text[400];
  std::va_list rest;
  va_start(rest, format);
  std::vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  // Codes of the documentation are passed on; other codes are written into the text only.
  const bool known = code >= 1 && code <= 11 && code != 6;
  graph_of(rt).give_up(std::string(function) + ": " + text + " (code " + std::to_string(code) + ")",
                       known ? static_cast<ErrorCode>(code) : ErrorCode::ExplicitFatal);
}

template <Level level>
void log_line(const char* function, const char* format, ...) {
  std::va_list rest;
  va_start(rest, format);
  if (log_of_thread != nullptr) log_of_thread->line(level, function, format, rest);
  va_end(rest);
}

constexpr PTO2RuntimeOps kOps = {
    [](PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t count) {
      submit(rt, kernel, worker, params, count, -1, 0, nullptr);
    },
    [](PTO2Runtime* rt) { graph_of(rt).scope_begin(); },
    [](PTO2Runtime* rt) {
      try {
        graph_of(rt).scope_end();
      } catch (const Aborted&) {  // called from destructors, which must not throw; the next call throws
      }
    },
    [](PTO2Runtime*) {},
    log_line<Level::Error>,
    log_line<Level::Warn>,
    log_line<Level::Info>,
    log_line<Level::Debug>,
    log_line<Level::Always>,
    [](PTO2Runtime* rt) { return &static_cast<Handle*>(rt)->pool; },
    [](PTO2Runtime* rt, const char* file, int line) { graph_of(rt).set_site({file, line}); },
    [](PTO2Runtime* rt) { return graph_of(rt).allocate_cluster(); },
    [](PTO2Runtime* rt, int32_t cluster) { graph_of(rt).free_cluster(cluster); },
    [](PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t count,
       int32_t cluster) { submit(rt, kernel, worker, params, count, cluster, 0, nullptr); },
    [](PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t count,
       int32_t block_dim, const int32_t* cluster_ids) {
      // a block_dim of 0 would mean a task that is not a block task: refuse it
      submit(rt, kernel, worker, params, count, -1, block_dim == 0 ? INT32_MIN : block_dim, cluster_ids);
    },
    [](PTO2Runtime* rt, const PTO2Submission* submission) { return submit_all(rt, *submission); },
    [](PTO2Runtime* rt, PTO2ScopeMode mode) { graph_of(rt).scope_begin(mode == PTO2ScopeMode::MANUAL); },
    [](PTO2Runtime* rt, int32_t tensor, const uint64_t* index) {
      return graph_of(rt).load(static_cast<Handle*>(rt)->pool.data(tensor), index);
    },
    [](PTO2Runtime* rt, int32_t tensor, const uint64_t* index, uint64_t bits) {
      graph_of(rt).store(static_cast<Handle*>(rt)->pool.data(tensor), index, bits);
    },
    [](PTO2Runtime* rt) { return graph_of(rt).failure().failed(); },
    report_fatal,
    [](PTO2Runtime* rt) { return static_cast<int32_t>(graph_of(rt).options().exec.block_dim); },
};

}  // namespace

std::unique_ptr<SharedObject> run_orchestration(TensormapGraph& graph, Log& log, const std::string& path,
                                                std::vector<uint64_t> args) {
  auto loaded = std::make_unique<SharedObject>(path);
  const SharedObject& library = *loaded;
  auto* entry = library.get<void(PTO2Runtime*, uint64_t*, int)>("aicpu_orchestration_entry");
  auto* config = library.find<PTO2OrchestrationConfig(uint64_t*, int)>("aicpu_orchestration_config");
  auto* bind = library.find<void(TensorPool*)>("pto2_bind_tensor_pool");
  auto* bind_runtime = library.find<void(PTO2Runtime*)>("pto2_bind_runtime");
  const int* returns = library.find<const int>("pto2_entry_returns");
  auto* coded = returns == nullptr || *returns == 0
                    ? nullptr
                    : library.get<int(PTO2Runtime*, uint64_t*, int)>("aicpu_orchestration_entry");
  const auto count = static_cast<int>(args.size());
  TensorPool pool;
  Handle handle{{&kOps}, graph, pool};
  log_of_thread = &log;
  if (bind != nullptr) bind(&pool);
  if (bind_runtime != nullptr) bind_runtime(&handle);
  if (graph.options().exec.callers) graph.set_callers(callers_in(library));
  graph.run([&] {
    log_of_thread = &log;
    if (config != nullptr) {
      int expected = 0;
      call_guarded(library.text(), [&] { expected = config(args.data(), count).expected_arg_count; });
      if (expected > 0 && count < expected) {
        throw std::runtime_error("arg_count " + std::to_string(count) + " < expected " +
                                 std::to_string(expected));
      }
    }
    const int64_t start = now_ns();
    int code = 0;
    call_guarded(library.text(), [&] {
      if (coded != nullptr) {
        code = coded(&handle, args.data(), count);
      } else {
        entry(&handle, args.data(), count);
      }
    });
    if (code != 0) {
      throw std::runtime_error("aicpu_orchestration_entry failed with code " + std::to_string(code));
    }
    log(Level::Info, "orchestrate", "aicpu_orchestration_entry returned, cost %.3fus",
        static_cast<double>(now_ns() - start) / 1e3);
  });
  if (bind_runtime != nullptr) bind_runtime(nullptr);
  if (bind != nullptr) bind(nullptr);
  log_of_thread = nullptr;
  return loaded;
}

}  // namespace pto2
