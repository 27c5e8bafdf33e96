// Clusters and blocks, in the way the documents write them; the entry returns int, which is accepted too.
#include "pto_orchestration_api.h"

enum { FUNC_A, FUNC_B, FUNC_C };

extern "C" int aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  const int block_dim = 2;
  uint64_t shapes[2] = {64, 64};
  Tensor x = make_tensor_external((void*)args[0], shapes, 2, DataType::BFLOAT16);
  int32_t cluster_ids[block_dim];
  for (int bid = 0; bid < block_dim; bid++) cluster_ids[bid] = pto2_rt_allocate_cluster(rt);
  PTO2_SCOPE(rt) {
    for (int bid = 0; bid < block_dim; bid++) {
      PTOParam params[] = {make_input_param(x), make_scalar_param(block_dim), make_scalar_param(bid)};
      pto2_rt_submit_task_clustered(rt, FUNC_A, PTO2_WORKER_CUBE, params, 3, cluster_ids[bid]);
    }
    PTOParam params[] = {make_input_param(x)};
    pto2_rt_submit_block_task(rt, FUNC_B, PTO2_WORKER_VECTOR, params, 1, block_dim, cluster_ids);
    PTOParam again[] = {make_inout_param(x)};
    pto2_rt_submit_block_task(rt, FUNC_C, PTO2_WORKER_VECTOR, again, 1, 24);
  }
  for (int bid = 0; bid < block_dim; bid++) pto2_rt_free_cluster(rt, cluster_ids[bid]);
  return 0;
}
