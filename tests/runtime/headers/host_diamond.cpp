// A diamond, a table that is filled beyond its limits, and every call that is refused.
#include "runtime.h"

extern "C" {

int build_diamond(Runtime* runtime, uint64_t* args, int arg_count) {
  if (arg_count < 2) return -1;
  const size_t bytes = 64;
  float host[16] = {};
  void* dev = runtime->host_api.device_malloc(bytes);
  runtime->host_api.copy_to_device(dev, host, bytes);
  uint64_t first[] = {args[0], 11}, middle[] = {12}, last[] = {13, 14, args[1]};
  int t0 = runtime->add_task(first, 2, 0, CoreType::AIV);
  int t1 = runtime->add_task(middle, 1, 1);
  int t2 = runtime->add_task(middle, 1, 31, CoreType::AIV);
  int t3 = runtime->add_task(last, 3, 2, CoreType::AIV);
  runtime->add_successor(t0, t1);
  runtime->add_successor(t0, t2);
  runtime->add_successor(t1, t3);
  runtime->add_successor(t2, t3);
  runtime->add_successor(t2, t3);  // twice: counts twice
  runtime->record_tensor_pair(host, dev, bytes);
  runtime->print_runtime();
  LOG_INFO("tasks %d", runtime->get_task_count());
  return runtime->tasks[t3].fanin - 3;
}

int build_refused(Runtime* runtime, uint64_t* args, int) {
  uint64_t many[17] = {};
  const int results[] = {runtime->add_task(many, 17, 0), runtime->add_task(many, -1, 0),
                         runtime->add_task(nullptr, 1, 0), runtime->add_task(args, 1, 32),
                         runtime->add_task(args, 1, -1)};
  for (int result : results) {
    if (result != -1) return 1;
  }
  const int hub = runtime->add_task(args, 1, 0);
  const int leaf = runtime->add_task(nullptr, 0, 0);
  runtime->add_successor(-1, leaf);
  runtime->add_successor(hub, 2);
  for (int i = 0; i < RUNTIME_MAX_FANOUT + 1; i++) runtime->add_successor(hub, leaf);
  for (int i = 0; i < RUNTIME_MAX_TENSOR_PAIRS + 1; i++) runtime->record_tensor_pair(nullptr, nullptr, 0);
  runtime->set_function_bin_addr(32, 1);
  runtime->set_function_bin_addr(31, 5);
  if (runtime->get_function_bin_addr(31) != 5 || runtime->get_function_bin_addr(32) != 0) return 2;
  if (runtime->get_task(2) != nullptr || runtime->get_task(-1) != nullptr) return 3;
  return runtime->get_task(leaf)->fanin == RUNTIME_MAX_FANOUT ? 0 : 4;
}

int build_full(Runtime* runtime, uint64_t* args, int) {
  Task* first = nullptr;
  for (int i = 0; i < RUNTIME_MAX_TASKS; i++) {
    if (runtime->add_task(args, 1, 0) != i) return 1;
    if (i == 0) first = runtime->get_task(0);
    if (i > 0) runtime->add_successor(i - 1, i);
  }
  if (runtime->get_task(0) != first) return 2;  // tasks do not move
  return runtime->add_task(args, 1, 0) == -1 ? 0 : 3;
}
}
