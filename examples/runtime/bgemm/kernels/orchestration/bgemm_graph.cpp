// C = A @ B by 64x64 tiles, with explicit edges: for host_build_graph and aicpu_build_graph.
//
// The first product of a tile goes straight into C. The others go through one buffer, which the next product
// may overwrite only after it was added: an edge that tensormap_and_ringbuffer users get by taking a fresh
// tensor.
#include "../../../common/graph.h"

enum Function { GEMM = 0, ADD = 1 };
constexpr uint64_t kTile = 64, kFloat = sizeof(float);

// Arguments: a, b, c, batch, m, k, n. The sizes are multiples of 64.
static void build(Graph& graph, const uint64_t* args) {
  const uint64_t batch = args[3], m = args[4], k = args[5], n = args[6];
  const uint64_t a = graph.input(args[0], batch * m * k * kFloat);
  const uint64_t b = graph.input(args[1], batch * k * n * kFloat);
  const uint64_t c = graph.output(args[2], batch * m * n * kFloat);

  for (uint64_t at = 0; at < batch; at++) {
    for (uint64_t row = 0; row < m; row += kTile) {
      for (uint64_t col = 0; col < n; col += kTile) {
        const uint64_t c_tile = c + ((at * m + row) * n + col) * kFloat;
        const uint64_t p = graph.buffer(kTile * kTile * kFloat);
        int last = -1;
        for (uint64_t step = 0; step < k; step += kTile) {
          const uint64_t a_tile = a + ((at * m + row) * k + step) * kFloat;
          const uint64_t b_tile = b + ((at * k + step) * n + col) * kFloat;
          if (step == 0) {
            last = graph.task(GEMM, CoreType::AIC, {a_tile, b_tile, c_tile, k, n, n});
            continue;
          }
          const int product = graph.task(GEMM, CoreType::AIC, {a_tile, b_tile, p, k, n, kTile}, {last});
          last = graph.task(ADD, CoreType::AIV, {c_tile, p, n}, {product});
        }
      }
    }
  }
}

GRAPH_ENTRY(build_bgemm, build)
