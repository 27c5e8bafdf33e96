// The same, published while it is built.
#include "runtime.h"

static uint64_t bits(float value) {
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

extern "C" {

int orchestration(Runtime* runtime) {
  const AicpuBuildApi& api = runtime->aicpu_build_api;
  if (runtime->orch_argc < 4 || runtime->kernel_addrs[0] == 0) return -1;
  const uint64_t size = runtime->orch_args[3];
  uint64_t memory[3];
  for (uint64_t& slot : memory) slot = (uint64_t)api.device_malloc(size * sizeof(float));
  uint64_t sum[] = {runtime->orch_args[0], runtime->orch_args[1], memory[0], size};
  int t0 = api.add_task(runtime, sum, 4, 0, CoreType::AIV, 0);
  api.publish_task(runtime, t0);
  uint64_t one[] = {memory[0], bits(1), memory[1], size};
  int t1 = api.add_task(runtime, one, 4, 1, CoreType::AIV, 0);
  api.add_successor_conditional(runtime, t0, t1);
  api.publish_task(runtime, t1);
  uint64_t two[] = {memory[0], bits(2), memory[2], size};
  // Named by its address: the function id is that of another kernel.
  int t2 = api.add_task(runtime, two, 4, 0, CoreType::AIV, runtime->kernel_addrs[1]);
  api.add_successor_conditional(runtime, t0, t2);
  api.publish_task(runtime, t2);
  uint64_t product[] = {memory[1], memory[2], runtime->orch_args[2], size};
  int t3 = aicpu_runtime_add_task(runtime, product, 4, 2, CoreType::AIC, 0);
  aicpu_runtime_add_successor_conditional(runtime, t1, t3);
  aicpu_runtime_add_successor_conditional(runtime, t2, t3);
  aicpu_runtime_publish_task(runtime, t3);
  return 0;
}

static int task(Runtime* runtime, int func_id, uint64_t address = 0) {
  return runtime->aicpu_build_api.add_task(runtime, nullptr, 0, func_id, CoreType::AIV, address);
}

int unpublished(Runtime* runtime) {
  const int a = task(runtime, 11), b = task(runtime, 11);
  runtime->aicpu_build_api.add_successor_conditional(runtime, a, b);
  runtime->aicpu_build_api.publish_task(runtime, b);
  return 0;
}
int left_over(Runtime* runtime) {
  const int a = task(runtime, 11);
  task(runtime, 11);
  runtime->aicpu_build_api.publish_task(runtime, a);
  return 0;
}
int cycle(Runtime* runtime) {
  const int a = task(runtime, 11), b = task(runtime, 11);
  runtime->aicpu_build_api.add_successor_conditional(runtime, a, b);
  runtime->aicpu_build_api.add_successor_conditional(runtime, b, a);
  runtime->aicpu_build_api.publish_task(runtime, a);
  runtime->aicpu_build_api.publish_task(runtime, b);
  return 0;
}
int bad_address(Runtime* runtime) {
  runtime->aicpu_build_api.publish_task(runtime, task(runtime, 11, 0x1234));
  return 0;
}
int code(Runtime*) { return 3; }
/// Tasks are added until the failure of the first one is seen.
int endless(Runtime* runtime) {
  runtime->aicpu_build_api.publish_task(runtime, task(runtime, 12));
  for (;;) {
    const int id = task(runtime, 11);
    if (id >= 0) runtime->aicpu_build_api.publish_task(runtime, id);
  }
}
}
