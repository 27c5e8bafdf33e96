// For each sequence and each tile of 16 heads: one task that starts the accumulators, then four per block.
//
//   HUB ---------------------> UP --> UP --> ...      UP waits for the one before it: m, l and o are INOUT
//        QK --> SF --> PV ---> UP
//               QK --> SF --> PV --> UP               QK, SF and PV of a later block do not wait for anything
//               else
#include <algorithm>

#include "pto_orchestration_api.h"

enum Function { QK = 0, SF = 1, PV = 2, UP = 3, AIV_HUB = 5 };
constexpr uint64_t kHeads = 16, kBlock = 16;

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {11}; }

// Arguments: query, key_cache, value_cache, block_table, context_lens, out, batch, num_heads, head_dim,
// max_blocks, scale (a float).
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const auto* block_table = reinterpret_cast<const int32_t*>(args[3]);
  const auto* context_lens = reinterpret_cast<const int32_t*>(args[4]);
  const uint64_t batch = args[6], heads = args[7], dim = args[8], max_blocks = args[9], scale = args[10];
  const uint64_t query_shape[] = {batch * heads, dim}, cache_shape[] = {batch * max_blocks * kBlock, dim};
  Tensor query = make_tensor_external(reinterpret_cast<void*>(args[0]), query_shape, 2, DataType::FLOAT16);
  Tensor keys = make_tensor_external(reinterpret_cast<void*>(args[1]), cache_shape, 2, DataType::FLOAT16);
  Tensor values = make_tensor_external(reinterpret_cast<void*>(args[2]), cache_shape, 2, DataType::FLOAT16);
  Tensor out = make_tensor_external(reinterpret_cast<void*>(args[5]), query_shape, 2);

  for (uint64_t b = 0; b < batch; b++) {
    const uint64_t context = context_lens[b], blocks = (context + kBlock - 1) / kBlock;
    for (uint64_t head = 0; head < heads; head += kHeads) {
      PTO2_SCOPE(rt) {
        const uint64_t rows = std::min(kHeads, heads - head);
        const uint64_t first[] = {b * heads + head, 0}, tile[] = {rows, dim};
        Tensor q = query.view(tile, first), result = out.view(tile, first);

        const uint64_t vector[] = {rows}, weights[] = {rows, kBlock};
        Tensor m = make_tensor(vector, 1), l = make_tensor(vector, 1), o = make_tensor(tile, 2);
        PTOParam hub[] = {make_output_param(m), make_output_param(l), make_output_param(o),
                          make_scalar_param(rows), make_scalar_param(dim)};
        pto2_rt_submit_task(rt, AIV_HUB, PTO2_WORKER_VECTOR, hub, 5);

        for (uint64_t n = 0; n < blocks; n++) {
          const uint64_t block[] = {kBlock, dim}, at[] = {block_table[b * max_blocks + n] * kBlock, 0};
          Tensor k = keys.view(block, at), v = values.view(block, at);
          Tensor s = make_tensor(weights, 2), p = make_tensor(weights, 2, DataType::FLOAT16);
          Tensor m_block = make_tensor(vector, 1), l_block = make_tensor(vector, 1),
                 o_block = make_tensor(tile, 2);

          PTOParam qk[] = {make_input_param(q), make_input_param(k), make_output_param(s),
                           make_scalar_param(rows), make_scalar_param(dim)};
          pto2_rt_submit_task(rt, QK, PTO2_WORKER_CUBE, qk, 5);

          PTOParam sf[] = {
              make_input_param(s),        make_output_param(p),
              make_output_param(m_block), make_output_param(l_block),
              make_scalar_param(rows),    make_scalar_param(std::min(kBlock, context - n * kBlock)),
              make_scalar_param(scale)};
          pto2_rt_submit_task(rt, SF, PTO2_WORKER_VECTOR, sf, 7);

          PTOParam pv[] = {make_input_param(p), make_input_param(v), make_output_param(o_block),
                           make_scalar_param(rows), make_scalar_param(dim)};
          pto2_rt_submit_task(rt, PV, PTO2_WORKER_CUBE, pv, 5);

          PTOParam up[] = {make_input_param(m_block), make_input_param(l_block),
                           make_input_param(o_block), make_inout_param(m),
                           make_inout_param(l),       make_inout_param(o),
                           make_output_param(result), make_scalar_param(rows),
                           make_scalar_param(dim),    make_scalar_param(n + 1 == blocks)};
          pto2_rt_submit_task(rt, UP, PTO2_WORKER_VECTOR, up, 10);
        }
      }
    }
  }
}
