// The vector graph, built while it runs: a task starts when it is published and its producers are done.
#include <cstring>
#include <initializer_list>

#include "runtime.h"

enum Function { ADD = 0, ADD_SCALAR = 1, MUL = 2 };

static uint64_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// orch_args: a, b, f (in memory of the device), n.
extern "C" int orchestration(Runtime* runtime) {
  if (runtime->orch_argc < 4) return -1;
  const AicpuBuildApi& api = runtime->aicpu_build_api;
  const uint64_t *args = runtime->orch_args, n = args[3];
  uint64_t sum, one_more, two_more, product;
  for (uint64_t* buffer : {&sum, &one_more, &two_more, &product}) {
    *buffer = reinterpret_cast<uint64_t>(api.device_malloc(n * sizeof(float)));
    if (*buffer == 0) return -1;
  }

  auto task = [&](Function function, uint64_t x, uint64_t y, uint64_t z, std::initializer_list<int> after) {
    uint64_t slots[] = {x, y, z, n};
    const int id = api.add_task(runtime, slots, 4, function, CoreType::AIV, 0);
    for (int earlier : after) api.add_successor_conditional(runtime, earlier, id);
    api.publish_task(runtime, id);
    return id;
  };
  const int t0 = task(ADD, args[0], args[1], sum, {});
  const int t1 = task(ADD_SCALAR, sum, bits_of(1.0f), one_more, {t0});
  const int t2 = task(ADD_SCALAR, sum, bits_of(2.0f), two_more, {t0});
  const int t3 = task(MUL, one_more, two_more, product, {t1, t2});
  task(ADD, product, sum, args[2], {t3});
  return 0;
}
