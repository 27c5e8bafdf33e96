// (a+b+1)(a+b+2)+(a+b) as five tasks, in the way orchestrations are usually written.
#include <stddef.h>
#include <stdint.h>

#include "pto_orchestration_api.h"

#define FUNC_ADD 0
#define FUNC_ADD_SCALAR 1
#define FUNC_MUL 2

static uint64_t float_bits(float value) {
  union {
    float f32;
    uint64_t u64;
  } both;
  both.u64 = 0;
  both.f32 = value;
  return both.u64;
}

extern "C" {

__attribute__((visibility("default"))) PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t* args,
                                                                                          int arg_count) {
  (void)args;
  (void)arg_count;
  return PTO2OrchestrationConfig{
      .expected_arg_count = 4,
  };
}

__attribute__((visibility("default"))) void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args,
                                                                      int arg_count) {
  (void)arg_count;
  pto2_rt_init_tensor_pool(rt);
  void* a_ptr = (void*)(uintptr_t)args[0];
  int size = (int)args[3];
  LOG_INFO(rt, "size=%d", size);
  LOG_DEBUG(rt, "no values");

  uint64_t shapes[1] = {(uint64_t)size};
  Tensor a = make_tensor_external(a_ptr, shapes, 1, DataType::FLOAT32);
  Tensor b = make_tensor_external((void*)args[1], shapes, 1);
  Tensor f = make_tensor_external((void*)args[2], shapes, 1, DataType::FLOAT32);
  Tensor c = make_tensor(shapes, 1, DataType::FLOAT32);

  PTOParam params_c[] = {
      make_input_param(a),
      make_input_param(b),
      make_output_param(c),
  };
  pto2_rt_submit_task(rt, FUNC_ADD, PTO2_WORKER_VECTOR, params_c, 3);  // line 54

  PTO2_SCOPE(rt) {  // line 56
    Tensor d = make_tensor(shapes, 1, DataType::FLOAT32);
    Tensor e = make_tensor(shapes, 1, DataType::FLOAT32);
    Tensor g = make_tensor(shapes, 1, DataType::FLOAT32);
    PTOParam params_d[] = {make_input_param(c), make_scalar_param(float_bits(1.0f)), make_output_param(d)};
    pto2_rt_submit_task(rt, FUNC_ADD_SCALAR, PTO2_WORKER_VECTOR, params_d, 3);
    PTOParam params_e[] = {make_input_param(c), make_scalar_param(float_bits(2.0f)), make_output_param(e)};
    pto2_rt_submit_task(rt, FUNC_ADD_SCALAR, PTO2_WORKER_VECTOR, params_e, 3);
    PTO2_SCOPE(rt) {
      PTO2_SCOPE_GUARD(rt);
      PTOParam params_g[] = {make_input_param(d), make_input_param(e), make_output_param(g)};
      pto2_rt_submit_task(rt, FUNC_MUL, PTO2_WORKER_VECTOR, params_g, 3);
    }
    PTOParam params_f[] = {make_input_param(g), make_inout_param(c), make_output_param(f)};
    pto2_rt_submit_task(rt, FUNC_ADD, PTO2_WORKER_CUBE, params_f, 3);
  }
}

}  // extern "C"
