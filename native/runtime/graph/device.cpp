// aicpu_build_graph: the graph is built while the schedulers run.
#include "../exec/shared_object.hpp"
#include "orchestration.hpp"
#include "pto2/aicpu_build_graph/runtime.h"

namespace pto2 {

namespace {

/// Return the run of this thread; throw Aborted if it has failed, so an orchestration ends at its next call.
GraphRun& run_of_thread() {
  GraphRun* run = BuildScope::current();
  run->exec().throw_if_failed();
  run->exec().pause().point();
  return *run;
}

}  // namespace

void run_device_graph(GraphRun& run, const std::string& path, const std::string& name,
                      std::vector<uint64_t> args) {
  const SharedObject library(path);
  auto* entry = library.get<int(::Runtime*)>(name.c_str());
  auto* bind_log = library.find<void(PTO2LogSink)>("pto2_bind_log");
  if (args.size() > RUNTIME_MAX_ORCH_ARGS) {
    throw std::runtime_error("Too many arguments: " + std::to_string(args.size()) + " (max " +
                             std::to_string(RUNTIME_MAX_ORCH_ARGS) + ")");
  }
  const auto runtime = std::make_shared<::Runtime>();
  const ExecOptions& options = run.options().exec;
  runtime->worker_count = options.block_dim * kCoresPerBlock;
  runtime->sche_cpu_num = options.schedulers;
  runtime->enable_profiling = options.record;
  runtime->build_mode = run.options().concurrent ? 1 : 0;
  runtime->orch_argc = static_cast<int>(args.size());
  for (size_t i = 0; i < args.size(); ++i) runtime->orch_args[i] = args[i];
  for (int id = 0; id < RUNTIME_MAX_FUNC_ID && id < run.kernels().end(); ++id) {
    runtime->set_function_bin_addr(id, reinterpret_cast<uint64_t>(run.kernels().find(id)));
  }
  AicpuBuildApi& api = runtime->aicpu_build_api;
  api.add_task = {
      [](::Runtime* rt, uint64_t* values, int count, int func_id, ::CoreType type, uint64_t address) {
        run_of_thread();
        return rt->add_task(values, count, func_id, type, address, rt->site_file(), rt->site_line());
      }};
  api.add_successor_conditional = [](::Runtime* rt, int from, int to) {
    run_of_thread();
    rt->add_successor_conditional(from, to);
  };
  api.publish_task = [](::Runtime*, int id) { run_of_thread().publish(id); };
  api.device_malloc = &BuildScope::device_malloc;
  api.device_free = &BuildScope::device_free;
  run.adopt(std::shared_ptr<TaskTable>(runtime, &runtime->graph()));
  if (options.callers) run.set_callers(callers_in(library));
  if (bind_log != nullptr) bind_log(&BuildScope::log_line);
  run.run([&] {
    int code = 0;
    call_guarded(library.text(), [&] { code = entry(runtime.get()); });
    if (runtime->get_error_count() == 0 && code != 0) {
      throw std::runtime_error("Orchestration function failed with code " + std::to_string(code));
    }
  });
}

}  // namespace pto2
