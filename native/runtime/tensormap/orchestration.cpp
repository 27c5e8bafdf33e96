#include "orchestration.hpp"

#include <cstdarg>

#include "pto2/tensormap_and_ringbuffer/pto_orchestration_api.h"

namespace pto2 {

namespace {

/// What an orchestration sees as PTO2Runtime.
struct Handle : PTO2Runtime {
  TensormapGraph& graph;
  TensorPool& pool;
};

thread_local Log* log_of_thread = nullptr;  // log functions take no runtime

TensormapGraph& graph_of(PTO2Runtime* rt) { return static_cast<Handle*>(rt)->graph; }

void submit(PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t count,
            int32_t cluster, int32_t block_dim, const int32_t* cluster_ids) {
  auto& handle = *static_cast<Handle*>(rt);
  Arg args[kMaxParams];
  for (int i = 0; i < count && i < kMaxParams; ++i) {
    const PTOParam& param = params[i];
    args[i].type = param.type;
    args[i].scalar = param.scalar_value;
    if (param.type != PTOParamType::SCALAR && param.tensor.index != 0) {
      args[i].tensor = &handle.pool.data(param.tensor.index);
    }
  }
  handle.graph.submit({kernel, static_cast<int32_t>(worker), args, count, cluster, block_dim, cluster_ids});
  for (int i = 0; i < count; ++i) {  // the tensors have moved into the task
    if (params[i].tensor.index != 0) handle.pool.release(params[i].tensor.index);
    params[i].tensor.index = 0;
  }
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
      } catch (const Aborted&) {  // called from destructors; the next call throws
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
      // 0 would be a task without blocks
      submit(rt, kernel, worker, params, count, -1, block_dim == 0 ? INT32_MIN : block_dim, cluster_ids);
    },
};

}  // namespace

std::unique_ptr<SharedObject> run_orchestration(TensormapGraph& graph, Log& log, const std::string& path,
                                                std::vector<uint64_t> args) {
  auto loaded = std::make_unique<SharedObject>(path);
  const SharedObject& library = *loaded;
  auto* entry = library.get<void(PTO2Runtime*, uint64_t*, int)>("aicpu_orchestration_entry");
  auto* config = library.find<PTO2OrchestrationConfig(uint64_t*, int)>("aicpu_orchestration_config");
  auto* bind = library.find<void(TensorPool*)>("pto2_bind_tensor_pool");
  const int* returns = library.find<const int>("pto2_entry_returns");
  auto* coded = returns == nullptr || *returns == 0
                    ? nullptr
                    : library.get<int(PTO2Runtime*, uint64_t*, int)>("aicpu_orchestration_entry");
  const auto count = static_cast<int>(args.size());
  TensorPool pool;
  Handle handle{{&kOps}, graph, pool};
  log_of_thread = &log;
  if (bind != nullptr) bind(&pool);
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
  if (bind != nullptr) bind(nullptr);
  log_of_thread = nullptr;
  return loaded;
}

}  // namespace pto2
