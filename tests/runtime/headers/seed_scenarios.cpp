// Orchestrations for the tests of the runtime's description: args[0] chooses one, args[1] is an array of 64
// numbers that kernels and orchestrations leave marks in, args[2] an argument of the scenario.
#include <stdexcept>

#include "pto_orchestration_api.h"

namespace {

enum { FUNC_VECTOR = 0, FUNC_CUBE = 1 };  // both: mark(tensor...)

void one(PTO2Runtime* rt, Tensor& t) {
  PTOParam params[] = {make_inout_param(t)};
  pto2_rt_submit_task(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, params, 1);
}

void chunks(PTO2Runtime* rt, Tensor& t, int count, int tasks) {
  for (int c = 0; c < count; c++) {
    PTO2_SCOPE(rt) {
      for (int i = 0; i < tasks; i++) one(rt, t);
    }
  }
}

// What submit does to parameters and tensors.
void parameters(PTO2Runtime* rt, uint64_t* marks) {
  uint64_t shapes[1] = {64};
  Tensor x = make_tensor_external(marks, shapes, 1, DataType::UINT64);
  Tensor made = make_tensor(shapes, 1, DataType::UINT64);
  uint64_t part[1] = {8}, at[1] = {8};
  Tensor early = made.view(part, at);
  PTOParam params[] = {make_inout_param(x), make_output_param(made), make_scalar_param(~0ull)};
  pto2_rt_submit_task(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, params, 3);
  marks[10] = params[0].tensor.index == 0 && params[1].tensor.index == 0;  // moved out
  marks[11] = made.data().buffer.addr != 0;                                // known at once
  marks[12] = early.data().buffer.addr == 0;                               // a view taken before is stale
  marks[13] = made.view(part, at).data().buffer.addr == made.data().buffer.addr;
  marks[14] = x.data().buffer.addr == reinterpret_cast<uint64_t>(marks);
  pto2_rt_orchestration_done(rt);  // not the user's to call: nothing happens
  one(rt, x);
}

void clusters(PTO2Runtime* rt, Tensor& t, int block_dim) {
  int32_t cluster_ids[24];
  for (int bid = 0; bid < block_dim; bid++) cluster_ids[bid] = pto2_rt_allocate_cluster(rt);
  PTO2_SCOPE(rt) {
    for (int bid = 0; bid < block_dim; bid++) {
      PTOParam a[] = {make_input_param(t), make_scalar_param(block_dim), make_scalar_param(bid)};
      pto2_rt_submit_task_clustered(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, a, 3, cluster_ids[bid]);
      PTOParam b[] = {make_input_param(t), make_scalar_param(block_dim), make_scalar_param(bid)};
      pto2_rt_submit_task_clustered(rt, FUNC_CUBE, PTO2_WORKER_CUBE, b, 3, cluster_ids[bid]);
    }
    PTOParam c[] = {make_input_param(t)};
    pto2_rt_submit_block_task(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, c, 1, block_dim, cluster_ids);
  }
  for (int bid = 0; bid < block_dim; bid++) pto2_rt_free_cluster(rt, cluster_ids[bid]);
}

}  // namespace

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {2}; }

extern "C" int aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int arg_count) {
  auto* marks = reinterpret_cast<uint64_t*>(args[1]);
  const int n = arg_count > 2 ? static_cast<int>(args[2]) : 0;
  uint64_t shapes[1] = {64};
  Tensor t = make_tensor_external(marks, shapes, 1, DataType::UINT64);  // no pto2_rt_init_tensor_pool
  switch (args[0]) {
    case 0: parameters(rt, marks); break;
    case 1:
      pto2_rt_init_tensor_pool(rt);
      chunks(rt, t, 16, n);
      break;
    case 2: {  // worker types
      PTOParam params[] = {make_inout_param(t)};
      pto2_rt_submit_task(rt, FUNC_VECTOR, static_cast<PTO2WorkerType>(n), params, 1);
      break;
    }
    case 3: {  // number of parameters
      PTOParam params[80];
      for (auto& param : params) param = make_scalar_param(7);
      pto2_rt_submit_task(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, params, n);
      break;
    }
    case 4: {
      PTOParam params[] = {make_inout_param(t)};
      pto2_rt_submit_block_task(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, params, 1, n);
      break;
    }
    case 5: {
      PTO2_SCOPE_GUARD(rt);
      one(rt, t);
      throw std::runtime_error("the orchestration's own words");
    }
    case 6: {
      Tensor nothing = make_tensor(shapes, 1);
      PTOParam params[] = {n == 0 ? make_input_param(nothing) : make_inout_param(nothing)};
      pto2_rt_submit_task(rt, FUNC_VECTOR, PTO2_WORKER_VECTOR, params, 1);
      break;
    }
    case 7:
      for (;; ++marks[0]) chunks(rt, t, 1, 1);
    case 8: clusters(rt, t, n); break;
    case 9:
      pto2_rt_scope_end(rt);
      pto2_rt_scope_end(rt);
      one(rt, t);
      break;
    case 10:
      LOG_ERROR(rt, "level %d", 0);
      LOG_WARN(rt, "level %d", 1);
      LOG_INFO(rt, "level %d", 2);
      LOG_DEBUG(rt, "level %d", 3);
      LOG_ALWAYS(rt, "level %d", -1);
      break;
    case 11: {
      PTOParam params[] = {make_inout_param(t)};
      pto2_rt_submit_task(rt, n, PTO2_WORKER_VECTOR, params, 1);
      break;
    }
    default: break;
  }
  return 0;
}
