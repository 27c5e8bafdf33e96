// For each tile of 16 heads and each chunk of 16 sequences: a scope with one task that starts the
// accumulators and four for each block of the longest sequence. A scope is all that has to fit in the task
// ring at a time.
#include <algorithm>

#include "pto_orchestration_api.h"

enum Function { QK = 0, SF = 1, PV = 2, UP = 3, AIV_HUB = 5 };
constexpr uint64_t kHeads = 16, kBlock = 16, kChunk = 16;

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {11}; }

static PTOParam scalar(uint64_t value) { return make_scalar_param(value); }

// Arguments: query, key_cache, value_cache, block_table, context_lens, out, batch, num_heads, head_dim,
// max_blocks, scale (a float).
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const auto* context_lens = reinterpret_cast<const int32_t*>(args[4]);
  const uint64_t batch = args[6], heads = args[7], dim = args[8], max_blocks = args[9], scale = args[10];
  auto external = [](uint64_t address, uint64_t rows, uint64_t cols, DataType dtype) {
    const uint64_t shape[] = {rows, cols};
    return make_tensor_external(reinterpret_cast<void*>(address), shape, 2, dtype);
  };
  Tensor query = external(args[0], batch * heads, dim, DataType::FLOAT16);
  Tensor keys = external(args[1], batch * max_blocks * kBlock, dim, DataType::FLOAT16);
  Tensor values = external(args[2], batch * max_blocks * kBlock, dim, DataType::FLOAT16);
  Tensor table = external(args[3], batch, max_blocks, DataType::INT32);
  Tensor lengths = external(args[4], batch, 1, DataType::INT32);
  const uint64_t out_shape[] = {batch, heads, dim};
  Tensor out = make_tensor_external(reinterpret_cast<void*>(args[5]), out_shape, 3);

  for (uint64_t head = 0; head < heads; head += kHeads) {
    const uint64_t rows = std::min(kHeads, heads - head);
    for (uint64_t first = 0; first < batch; first += kChunk) {
      PTO2_SCOPE(rt) {
        const uint64_t count = std::min(kChunk, batch - first);
        const uint64_t longest = *std::max_element(context_lens + first, context_lens + first + count);
        const uint64_t blocks = (longest + kBlock - 1) / kBlock;
        const uint64_t numbers[] = {count, kHeads}, matrix[] = {count * kHeads, dim},
                       weights[] = {count * kHeads, kBlock};
        // What this scope writes. Parts of different scopes are disjoint: they run side by side.
        const uint64_t part[] = {count, rows, dim}, part_at[] = {first, head, 0};
        Tensor result = out.view(part, part_at);

        Tensor m = make_tensor(numbers, 2), l = make_tensor(numbers, 2), o = make_tensor(matrix, 2);
        PTOParam hub[] = {make_output_param(m), make_output_param(l), make_output_param(o),
                          scalar(count),        scalar(rows),         scalar(dim)};
        pto2_rt_submit_task(rt, AIV_HUB, PTO2_WORKER_VECTOR, hub, 6);

        for (uint64_t n = 0; n < blocks; n++) {
          Tensor s = make_tensor(weights, 2), p = make_tensor(weights, 2, DataType::FLOAT16);
          Tensor m_block = make_tensor(numbers, 2), l_block = make_tensor(numbers, 2),
                 o_block = make_tensor(matrix, 2);

          PTOParam qk[] = {make_input_param(query),
                           make_input_param(keys),
                           make_input_param(table),
                           make_output_param(s),
                           scalar(first),
                           scalar(count),
                           scalar(n),
                           scalar(max_blocks),
                           scalar(heads),
                           scalar(head),
                           scalar(rows),
                           scalar(dim)};
          pto2_rt_submit_task(rt, QK, PTO2_WORKER_CUBE, qk, 12);

          PTOParam sf[] = {make_input_param(s),
                           make_input_param(lengths),
                           make_output_param(p),
                           make_output_param(m_block),
                           make_output_param(l_block),
                           scalar(first),
                           scalar(count),
                           scalar(n),
                           scalar(rows),
                           scalar(scale)};
          pto2_rt_submit_task(rt, SF, PTO2_WORKER_VECTOR, sf, 10);

          PTOParam pv[] = {make_input_param(p),
                           make_input_param(values),
                           make_input_param(table),
                           make_output_param(o_block),
                           scalar(first),
                           scalar(count),
                           scalar(n),
                           scalar(max_blocks),
                           scalar(rows),
                           scalar(dim)};
          pto2_rt_submit_task(rt, PV, PTO2_WORKER_CUBE, pv, 10);

          PTOParam up[] = {make_input_param(m_block),
                           make_input_param(l_block),
                           make_input_param(o_block),
                           make_inout_param(m),
                           make_inout_param(l),
                           make_inout_param(o),
                           make_output_param(result),
                           scalar(count),
                           scalar(heads),
                           scalar(rows),
                           scalar(dim),
                           scalar(n + 1 == blocks)};
          pto2_rt_submit_task(rt, UP, PTO2_WORKER_VECTOR, up, 12);
        }
      }
    }
  }
}
