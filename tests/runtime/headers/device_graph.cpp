// The same for aicpu_build_graph: tasks run (by name only) as soon as they may.
#include <dlfcn.h>
#include <stdlib.h>

#include <vector>

#include "graphs.h"
#include "runtime.h"

namespace {

std::vector<int> ready;

void run_ready(Runtime* runtime) {
  while (!ready.empty()) {
    const int id = ready.back();
    ready.pop_back();
    printf("run %d\n", id);
    runtime->graph().complete(id, [](int next) { ready.push_back(next); });
  }
}

}  // namespace

int run_device_graph(const char* path, const char* name, bool concurrent) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
  const auto entry = (int (*)(Runtime*))dlsym(library, name);
  Runtime runtime;
  runtime.build_mode = concurrent ? 1 : 0;
  runtime.orch_argc = 2;
  runtime.orch_args[0] = 40;
  runtime.kernel_addrs[0] = 1000;
  runtime.kernel_addrs[63] = 1063;
  AicpuBuildApi& api = runtime.aicpu_build_api;
  api.add_task = {[](Runtime* rt, uint64_t* args, int n, int func, CoreType type, uint64_t addr) {
    return rt->add_task(args, n, func, type, addr, rt->site_file(), rt->site_line());
  }};
  api.add_successor_conditional = [](Runtime* rt, int from, int to) {
    rt->add_successor_conditional(from, to);
  };
  api.publish_task = [](Runtime* rt, int id) {
    if (!rt->graph().mark_published(id) || rt->build_mode == 0) return;
    if (rt->graph().satisfied(id)) ready.push_back(id);
    run_ready(rt);
  };
  api.device_malloc = malloc;
  api.device_free = free;
  printf("returned %d\n", entry(&runtime));
  for (int id = 0; !concurrent && id < runtime.get_task_count(); id++) {
    if (runtime.get_task(id)->published && runtime.graph().satisfied(id)) ready.push_back(id);
  }
  run_ready(&runtime);
  printf("errors %d %s\n", runtime.get_error_count(), runtime.get_first_error());
  for (int id = 0; id < runtime.get_task_count(); id++) {
    const Task* task = runtime.get_task(id);
    printf("task %d func %d addr %lu line %d fanin %d fanout %d published %d completed %d\n", id,
           task->func_id, (unsigned long)task->function_bin_addr, task->site_line, task->fanin.load(),
           task->fanout_count, task->published.load(), task->completed.load());
  }
  dlclose(library);
  return 0;
}
