// A diamond over both kinds of cores: sqrt(log(a)) on a vector core, two products on cube cores, exp of their
// sum.
#include "pto_orchestration_api.h"

enum Function { LOG_SQRT = 0, MATMUL = 1, ADD_EXP = 2 };

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {4}; }

// Arguments: a, w1, w2, f.
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const uint64_t shape[] = {128, 128};
  auto external = [&](uint64_t address, DataType dtype) {
    return make_tensor_external(reinterpret_cast<void*>(address), shape, 2, dtype);
  };
  Tensor a = external(args[0], DataType::FLOAT16);
  Tensor w[] = {external(args[1], DataType::FLOAT16), external(args[2], DataType::FLOAT16)};
  Tensor f = external(args[3], DataType::FLOAT32);

  Tensor b = make_tensor(shape, 2, DataType::FLOAT16);
  PTOParam first[] = {make_input_param(a), make_output_param(b)};
  pto2_rt_submit_task(rt, LOG_SQRT, PTO2_WORKER_VECTOR, first, 2);

  Tensor product[] = {make_tensor(shape, 2), make_tensor(shape, 2)};
  for (int i = 0; i < 2; i++) {
    PTOParam params[] = {make_input_param(b), make_input_param(w[i]), make_output_param(product[i])};
    pto2_rt_submit_task(rt, MATMUL, PTO2_WORKER_CUBE, params, 3);
  }

  PTOParam last[] = {make_input_param(product[0]), make_input_param(product[1]), make_output_param(f)};
  pto2_rt_submit_task(rt, ADD_EXP, PTO2_WORKER_VECTOR, last, 3);
}
