// A runtime that executes nothing: it loads orchestrations, calls them, and prints their requests.
//
//   record_calls [--no-pool] LIBRARY...
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#include "pto_orchestration_api.h"

namespace {

struct Recorder : PTO2Runtime {
  TensorPool pool;
  uint64_t next_address = 0x10000;
  int next_cluster = 0;
  int depth = 0;
};

Recorder* recorder(PTO2Runtime* rt) { return static_cast<Recorder*>(rt); }

// As a runtime does it: place outputs, take the descriptors out of the parameters, release them later.
void take(PTO2Runtime* rt, PTOParam* params, int n) {
  TensorPool& pool = recorder(rt)->pool;
  for (int i = 0; i < n; i++) {
    if (params[i].type == PTOParamType::SCALAR) {
      printf(" %lu", (unsigned long)params[i].scalar_value);
      continue;
    }
    const int32_t index = params[i].tensor.detach();
    TensorData& data = pool.data(index);
    if (data.buffer.addr == 0) {
      data.buffer.addr = recorder(rt)->next_address;
      recorder(rt)->next_address += 0x1000;
    }
    printf(" %s@%lx",
           params[i].type == PTOParamType::INPUT    ? "in"
           : params[i].type == PTOParamType::OUTPUT ? "out"
                                                    : "inout",
           (unsigned long)data.buffer.addr);
    pool.release(index);
  }
  printf("\n");
}

#define LOG_TO(name, level)                                 \
  void log_##name(const char* func, const char* fmt, ...) { \
    va_list values;                                         \
    va_start(values, fmt);                                  \
    printf("[%s] %s: ", level, func);                       \
    vprintf(fmt, values);                                   \
    printf("\n");                                           \
    va_end(values);                                         \
  }
LOG_TO(error, "ERROR")
LOG_TO(warn, "WARN")
LOG_TO(info, "INFO")
LOG_TO(debug, "DEBUG")
LOG_TO(always, "ALWAYS")

const PTO2RuntimeOps kOps = {
    .submit_task =
        [](PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t n) {
          printf("submit %d on %d:", kernel, worker);
          take(rt, params, n);
        },
    .scope_begin = [](PTO2Runtime* rt) { printf("scope %d\n", ++recorder(rt)->depth); },
    .scope_end = [](PTO2Runtime* rt) { printf("end %d\n", recorder(rt)->depth--); },
    .orchestration_done = [](PTO2Runtime*) { printf("done\n"); },
    .log_error = log_error,
    .log_warn = log_warn,
    .log_info = log_info,
    .log_debug = log_debug,
    .log_always = log_always,
    .get_tensor_pool = [](PTO2Runtime* rt) { return &recorder(rt)->pool; },
    .set_site =
        [](PTO2Runtime*, const char* file, int line) {
          const char* name = strrchr(file, '/');
          printf("%s:%d ", name == nullptr ? file : name + 1, line);
        },
    .allocate_cluster =
        [](PTO2Runtime* rt) {
          printf("take cluster\n");
          return recorder(rt)->next_cluster++;
        },
    .free_cluster = [](PTO2Runtime*, int32_t cluster) { printf("give cluster %d\n", cluster); },
    .submit_task_clustered =
        [](PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t n,
           int32_t cluster) {
          printf("submit %d on %d in %d:", kernel, worker, cluster);
          take(rt, params, n);
        },
    .submit_block_task =
        [](PTO2Runtime* rt, int32_t kernel, PTO2WorkerType worker, PTOParam* params, int32_t n,
           int32_t blocks, const int32_t* clusters) {
          printf("submit %d on %d %d times%s:", kernel, worker, blocks,
                 clusters == nullptr ? "" : " in clusters");
          take(rt, params, n);
        },
    .submit = nullptr,  // not called by the orchestrations of the description
    .scope_begin_as = nullptr,
    .get_tensor_data = nullptr,
    .set_tensor_data = nullptr,
    .is_fatal = nullptr,
    .report_fatal = nullptr,
    .cluster_count = nullptr,
};

}  // namespace

int main(int argc, char** argv) {
  const bool pooled = strcmp(argv[1], "--no-pool") != 0;
  for (int i = pooled ? 1 : 2; i < argc; i++) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
    const auto bind = (void (*)(TensorPool*))dlsym(library, "pto2_bind_tensor_pool");
    const auto config =
        (PTO2OrchestrationConfig (*)(uint64_t*, int))dlsym(library, "aicpu_orchestration_config");
    const auto entry = (void (*)(PTO2Runtime*, uint64_t*, int))dlsym(library, "aicpu_orchestration_entry");
    uint64_t args[] = {0x1000, 0x2000, 0x3000, 128};
    Recorder runtime;
    runtime.ops = &kOps;
    if (pooled) bind(&runtime.pool);
    if (config != nullptr) printf("expects %d\n", config(args, 4).expected_arg_count);
    try {
      entry(&runtime, args, 4);
    } catch (const AssertionError& error) {
      printf("AssertionError %s\n", error.what());
    }
    printf("live %d\n", runtime.pool.live());
    if (!pooled) continue;  // state of this library stays with it
    bind(nullptr);
    dlclose(library);
  }
  return 0;
}
