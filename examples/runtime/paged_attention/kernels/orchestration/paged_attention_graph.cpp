// Paged attention with explicit edges: for host_build_graph and aicpu_build_graph.
#include <algorithm>

#include "../../../common/graph.h"

enum Function { QK = 0, SF = 1, PV = 2, UP = 3, AIV_HUB = 5 };
constexpr uint64_t kHeads = 16, kBlock = 16, kHalf = 2, kFloat = 4;

// Arguments: query, key_cache, value_cache, block_table, context_lens, out, batch, num_heads, head_dim,
// max_blocks, scale (a float).
static void build(Graph& graph, const uint64_t* args) {
  const auto* block_table = reinterpret_cast<const int32_t*>(args[3]);
  const auto* context_lens = reinterpret_cast<const int32_t*>(args[4]);
  const uint64_t batch = args[6], heads = args[7], dim = args[8], max_blocks = args[9], scale = args[10];
  const uint64_t cache_bytes = batch * max_blocks * kBlock * dim * kHalf;
  const uint64_t query = graph.input(args[0], batch * heads * dim * kHalf);
  const uint64_t keys = graph.input(args[1], cache_bytes), values = graph.input(args[2], cache_bytes);
  const uint64_t out = graph.output(args[5], batch * heads * dim * kFloat);

  for (uint64_t b = 0; b < batch; b++) {
    const uint64_t context = context_lens[b], blocks = (context + kBlock - 1) / kBlock;
    for (uint64_t head = 0; head < heads; head += kHeads) {
      const uint64_t rows = std::min(kHeads, heads - head), first = b * heads + head;
      const uint64_t q = query + first * dim * kHalf, result = out + first * dim * kFloat;
      const uint64_t m = graph.buffer(rows * kFloat), l = graph.buffer(rows * kFloat);
      const uint64_t o = graph.buffer(rows * dim * kFloat);
      int before = graph.task(AIV_HUB, CoreType::AIV, {m, l, o, rows, dim});
      for (uint64_t n = 0; n < blocks; n++) {
        const uint64_t at = block_table[b * max_blocks + n] * kBlock * dim * kHalf;
        const uint64_t valid = std::min(kBlock, context - n * kBlock), last = n + 1 == blocks;
        const uint64_t s = graph.buffer(rows * kBlock * kFloat), p = graph.buffer(rows * kBlock * kHalf);
        const uint64_t m_block = graph.buffer(rows * kFloat), l_block = graph.buffer(rows * kFloat);
        const uint64_t o_block = graph.buffer(rows * dim * kFloat);
        const int qk = graph.task(QK, CoreType::AIC, {q, keys + at, s, rows, dim});
        const int sf = graph.task(SF, CoreType::AIV, {s, p, m_block, l_block, rows, valid, scale}, {qk});
        const int pv = graph.task(PV, CoreType::AIC, {p, values + at, o_block, rows, dim}, {sf});
        before = graph.task(UP, CoreType::AIV, {m_block, l_block, o_block, m, l, o, result, rows, dim, last},
                            {pv, before});
      }
    }
  }
}

GRAPH_ENTRY(build_paged_attention, build)
