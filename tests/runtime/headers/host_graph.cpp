// Loads a host_build_graph orchestration, prints the graph. Linked together with device_graph.cpp: the two
// kinds of `Runtime` must not be taken for one another.
#include <dlfcn.h>
#include <stdlib.h>

#include "graphs.h"
#include "runtime.h"

int run_host_graph(const char* path, const char* name, bool report) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
  const auto entry = (int (*)(Runtime*, uint64_t*, int))dlsym(library, name);
  const auto bind = (void (*)(PTO2LogSink))dlsym(library, "pto2_bind_log");
  bind([](int level, const char* func, const char* text) { printf("log %d %s: %s\n", level, func, text); });
  {
    Runtime runtime;
    runtime.host_api.device_malloc = malloc;
    runtime.host_api.device_free = free;
    runtime.host_api.copy_to_device = [](void* to, const void* from, size_t size) {
      memcpy(to, from, size);
      return 0;
    };
    uint64_t args[] = {1, 2};
    printf("returned %d\n", entry(&runtime, args, 2));
    printf("errors %d %s\n", runtime.get_error_count(), runtime.get_first_error());
    printf("tasks %d ready %d pairs %d\n", runtime.get_task_count(), runtime.get_initial_ready_tasks(nullptr),
           runtime.get_tensor_pair_count());
    for (int id = 0; report && id < runtime.get_task_count(); id++) {
      const Task* task = runtime.get_task(id);
      printf("task %d func %d %s fanin %d line %d:", task->task_id, task->func_id,
             core_type_to_string(task->core_type), task->fanin.load(), task->site_line);
      for (int i = 0; i < task->fanout_count; i++) printf(" %d", task->fanout[i]);
      printf(" args");
      for (int i = 0; i < task->num_args; i++) printf(" %lu", (unsigned long)task->args[i]);
      printf("\n");
    }
    for (int i = 0; i < runtime.get_tensor_pair_count(); i++) free(runtime.get_tensor_pairs()[i].dev_ptr);
  }
  dlclose(library);
  return 0;
}
