// A diamond that is published task by task, once through the table of functions and once by name.
#include "runtime.h"

extern "C" {

int orchestration(Runtime* runtime) {
  const AicpuBuildApi& api = runtime->aicpu_build_api;
  if (api.add_task == nullptr || api.add_successor_conditional == nullptr || !api.publish_task) return -1;
  if (runtime->orch_argc < 2 || runtime->kernel_addrs[0] == 0) return -2;
  void* memory = api.device_malloc(64);
  uint64_t args[] = {runtime->orch_args[0], reinterpret_cast<uint64_t>(memory)};
  int t0 = api.add_task(runtime, args, 2, 0, CoreType::AIV, 0);
  api.publish_task(runtime, t0);
  api.publish_task(runtime, t0);  // again: nothing happens
  int t1 = api.add_task(runtime, args, 2, 63, CoreType::AIC, 0);
  int t2 = aicpu_runtime_add_task(runtime, args, 2, 0, CoreType::AIV, 77);
  int t3 = runtime->add_task(args, 1, 0, CoreType::AIV);
  api.add_successor_conditional(runtime, t0, t1);
  aicpu_runtime_add_successor_conditional(runtime, t0, t2);
  api.add_successor_conditional(runtime, t1, t3);
  runtime->add_successor_conditional(t2, t3);
  aicpu_runtime_publish_task(runtime, t3);
  api.publish_task(runtime, t2);
  api.publish_task(runtime, t1);
  api.device_free(memory);
  return 0;
}

int late_edge(Runtime* runtime) {
  const AicpuBuildApi& api = runtime->aicpu_build_api;
  int t0 = api.add_task(runtime, nullptr, 0, 0, CoreType::AIV, 0);
  int t1 = api.add_task(runtime, nullptr, 0, 0, CoreType::AIV, 0);
  api.publish_task(runtime, t1);
  api.add_successor_conditional(runtime, t0, t1);
  api.publish_task(runtime, t0);
  api.publish_task(runtime, 9);
  return 0;
}

int tables(Runtime* runtime) {
  static unsigned char code[RUNTIME_MAX_AICPU_ORCH_SO_SIZE + 1] = {7, 8};
  if (runtime->try_set_aicpu_orch_so(code, sizeof code)) return 1;
  if (!runtime->try_set_aicpu_orch_so(code, 2) || runtime->get_aicpu_orch_so_size() != 2) return 2;
  if (static_cast<const unsigned char*>(runtime->get_aicpu_orch_so_data())[1] != 8) return 3;
  runtime->record_device_alloc(code);
  if (runtime->get_device_alloc_count() != 1 || runtime->get_device_allocs()[0].dev_ptr != code) return 4;
  runtime->clear_device_allocs();
  if (runtime->get_device_alloc_count() != 0) return 5;
  return runtime->add_task(nullptr, 0, 64) == -1 ? 0 : 6;
}
}
