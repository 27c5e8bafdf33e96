// (a+b+1)(a+b+2) with memory of its own, and orchestrations that go wrong.
#include <stdexcept>

#include "runtime.h"

static uint64_t bits(float value) {
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

extern "C" {

int build_vector(Runtime* runtime, uint64_t* args, int arg_count) {
  if (arg_count < 4) return -1;
  const uint64_t size = args[3];
  const size_t bytes = size * sizeof(float);
  const HostApi& api = runtime->host_api;
  void* dev[6];
  for (void*& memory : dev) memory = api.device_malloc(bytes);
  api.copy_to_device(dev[0], (void*)args[0], bytes);
  api.copy_to_device(dev[1], (void*)args[1], bytes);
  const auto slot = [&](int i) { return (uint64_t)dev[i]; };
  uint64_t sum[] = {slot(0), slot(1), slot(2), size};
  uint64_t one[] = {slot(2), bits(1), slot(3), size};
  uint64_t two[] = {slot(2), bits(2), slot(4), size};
  uint64_t product[] = {slot(3), slot(4), slot(5), size};
  int t0 = runtime->add_task(sum, 4, 0, CoreType::AIV);
  int t1 = runtime->add_task(one, 4, 1, CoreType::AIV);
  int t2 = runtime->add_task(two, 4, 1, CoreType::AIV);
  int t3 = runtime->add_task(product, 4, 2);
  runtime->add_successor(t0, t1);
  runtime->add_successor(t0, t2);
  runtime->add_successor(t1, t3);
  runtime->add_successor(t2, t3);
  runtime->record_tensor_pair((void*)args[2], dev[5], bytes);
  LOG_INFO("%d tasks", runtime->get_task_count());
  return 0;
}

static int task(Runtime* runtime, int func_id, CoreType type = CoreType::AIV) {
  return runtime->add_task(nullptr, 0, func_id, type);
}

int build_cycle(Runtime* runtime, uint64_t*, int) {
  const int a = task(runtime, 11), b = task(runtime, 11), c = task(runtime, 11), d = task(runtime, 11);
  runtime->add_successor(a, b);
  runtime->add_successor(b, c);
  runtime->add_successor(c, d);
  runtime->add_successor(c, b);
  return 0;
}
int build_lost_edge(Runtime* runtime, uint64_t*, int) {
  runtime->add_successor(task(runtime, 11), 7);
  return 0;
}
int build_failing(Runtime* runtime, uint64_t*, int) {
  const int first = task(runtime, 11), second = task(runtime, 12);
  runtime->add_successor(first, second);
  return 0;
}
int build_unknown_kernel(Runtime* runtime, uint64_t*, int) {
  task(runtime, 11);
  task(runtime, 20);
  return 0;
}
int build_wrong_core(Runtime* runtime, uint64_t*, int) {
  task(runtime, 2, CoreType::AIV);
  return 0;
}
int build_code(Runtime*, uint64_t*, int) { return 17; }
int build_throws(Runtime* runtime, uint64_t*, int) {
  runtime->host_api.device_malloc(1 << 20);
  throw std::runtime_error("no such thing");
}
int build_overrun(Runtime* runtime, uint64_t* args, int) {
  void* memory = runtime->host_api.device_malloc(64);
  return runtime->host_api.copy_to_device(memory, (void*)args[0], 65);
}
int build_double_free(Runtime* runtime, uint64_t*, int) {
  void* memory = runtime->host_api.device_malloc(64);
  runtime->host_api.device_free(nullptr);
  runtime->host_api.device_free(memory);
  runtime->host_api.device_free(memory);
  return 0;
}
int build_bad_pair(Runtime* runtime, uint64_t* args, int) {
  void* memory = runtime->host_api.device_malloc(64);
  runtime->record_tensor_pair((void*)args[0], (char*)memory + 32, 33);
  return 0;
}
int build_nothing(Runtime*, uint64_t*, int) { return 0; }
}
