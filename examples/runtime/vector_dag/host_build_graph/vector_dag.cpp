// The vector graph with explicit tasks, edges and copies.
#include <cstring>
#include <initializer_list>

#include "runtime.h"

enum Function { ADD = 0, ADD_SCALAR = 1, MUL = 2 };

static uint64_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Arguments: a, b, f (on the host), n.
extern "C" int build_vector_dag(Runtime* runtime, uint64_t* args, int arg_count) {
  if (arg_count < 4) return -1;
  const HostApi& api = runtime->host_api;
  const uint64_t n = args[3], bytes = n * sizeof(float);
  uint64_t a, b, f, sum, one_more, two_more, product;
  for (uint64_t* buffer : {&a, &b, &f, &sum, &one_more, &two_more, &product}) {
    *buffer = reinterpret_cast<uint64_t>(api.device_malloc(bytes));
    if (*buffer == 0) return -1;
  }
  api.copy_to_device(reinterpret_cast<void*>(a), reinterpret_cast<void*>(args[0]), bytes);
  api.copy_to_device(reinterpret_cast<void*>(b), reinterpret_cast<void*>(args[1]), bytes);

  auto task = [&](Function function, uint64_t x, uint64_t y, uint64_t z) {
    uint64_t slots[] = {x, y, z, n};
    return runtime->add_task(slots, 4, function, CoreType::AIV);
  };
  const int t0 = task(ADD, a, b, sum);
  const int t1 = task(ADD_SCALAR, sum, bits_of(1.0f), one_more);
  const int t2 = task(ADD_SCALAR, sum, bits_of(2.0f), two_more);
  const int t3 = task(MUL, one_more, two_more, product);
  const int t4 = task(ADD, product, sum, f);
  runtime->add_successor(t0, t1);
  runtime->add_successor(t0, t2);
  runtime->add_successor(t1, t3);
  runtime->add_successor(t2, t3);
  runtime->add_successor(t3, t4);  // t4 also reads sum, but t0 is long done by then

  runtime->record_tensor_pair(reinterpret_cast<void*>(args[2]), reinterpret_cast<void*>(f), bytes);
  return 0;
}
