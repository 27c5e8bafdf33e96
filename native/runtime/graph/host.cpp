// host_build_graph: the host builds the whole graph, which runs afterwards.
#include "../exec/shared_object.hpp"
#include "orchestration.hpp"
#include "pto2/host_build_graph/runtime.h"

namespace pto2 {

void run_host_graph(GraphRun& run, const std::string& path, const std::string& name,
                    std::vector<uint64_t> args) {
  const SharedObject library(path);
  auto* entry = library.get<int(::Runtime*, uint64_t*, int)>(name.c_str());
  auto* bind_log = library.find<void(PTO2LogSink)>("pto2_bind_log");
  const auto runtime = std::make_shared<::Runtime>();
  const ExecOptions& options = run.options().exec;
  runtime->worker_count = options.block_dim * kCoresPerBlock;
  runtime->sche_cpu_num = options.schedulers;
  runtime->enable_profiling = options.record;
  for (int id = 0; id < RUNTIME_MAX_FUNC_ID && id < run.kernels().end(); ++id) {
    runtime->set_function_bin_addr(id, reinterpret_cast<uint64_t>(run.kernels().find(id)));
  }
  runtime->host_api = {&BuildScope::device_malloc, &BuildScope::device_free, &BuildScope::copy_to_device,
                       &BuildScope::copy_from_device, [](int id, const uint8_t*, size_t) {
                         // Kernels are loaded already, so the given binary does not matter.
                         const GraphRun* run = BuildScope::current();
                         return run == nullptr ? 0 : reinterpret_cast<uint64_t>(run->kernels().find(id));
                       }};
  run.adopt(runtime);
  if (options.callers) run.set_callers(callers_in(library));
  if (bind_log != nullptr) bind_log(&BuildScope::log_line);
  run.run([&] {
    int code = 0;
    call_guarded(library.text(),
                 [&] { code = entry(runtime.get(), args.data(), static_cast<int>(args.size())); });
    if (runtime->get_error_count() > 0) return;  // the run reports the error
    if (code != 0)
      throw std::runtime_error("Orchestration function failed with code " + std::to_string(code));
    for (int id = 0; id < runtime->get_task_count(); ++id) run.publish(id);
  });
}

}  // namespace pto2
