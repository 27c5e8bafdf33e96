// f = (a + b + 1) * (a + b + 2) + (a + b): five tasks, two of which can run at the same time.
#include <cstring>

#include "pto_orchestration_api.h"

enum Function { ADD = 0, ADD_SCALAR = 1, MUL = 2 };

static uint64_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void binary(PTO2Runtime* rt, Function function, Tensor& x, Tensor& y, Tensor& z) {
  PTOParam params[] = {make_input_param(x), make_input_param(y), make_output_param(z),
                       make_scalar_param(x.numel())};
  pto2_rt_submit_task(rt, function, PTO2_WORKER_VECTOR, params, 4);
}

static void add_scalar(PTO2Runtime* rt, Tensor& x, float value, Tensor& z) {
  PTOParam params[] = {make_input_param(x), make_scalar_param(bits_of(value)), make_output_param(z),
                       make_scalar_param(x.numel())};
  pto2_rt_submit_task(rt, ADD_SCALAR, PTO2_WORKER_VECTOR, params, 4);
}

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {4}; }

// Arguments: a, b, f, n.
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const uint64_t shape[] = {args[3]};
  Tensor a = make_tensor_external(reinterpret_cast<void*>(args[0]), shape, 1);
  Tensor b = make_tensor_external(reinterpret_cast<void*>(args[1]), shape, 1);
  Tensor f = make_tensor_external(reinterpret_cast<void*>(args[2]), shape, 1);

  Tensor sum = make_tensor(shape, 1);  // memory comes from the heap ring when a task writes it
  binary(rt, ADD, a, b, sum);
  PTO2_SCOPE(rt) {  // memory of this scope can be taken back before the whole graph is done
    Tensor one_more = make_tensor(shape, 1), two_more = make_tensor(shape, 1),
           product = make_tensor(shape, 1);
    add_scalar(rt, sum, 1.0f, one_more);
    add_scalar(rt, sum, 2.0f, two_more);
    binary(rt, MUL, one_more, two_more, product);
    binary(rt, ADD, product, sum, f);
  }
}
