// The diamond with explicit edges: for host_build_graph and aicpu_build_graph.
#include "../../../common/graph.h"

enum Function { LOG_SQRT = 0, MATMUL = 1, ADD_EXP = 2 };
constexpr uint64_t kCount = 128 * 128, kHalf = 2 * kCount, kFloat = 4 * kCount;

// Arguments: a, w1, w2, f.
static void build(Graph& graph, const uint64_t* args) {
  const uint64_t a = graph.input(args[0], kHalf), w1 = graph.input(args[1], kHalf),
                 w2 = graph.input(args[2], kHalf);
  const uint64_t f = graph.output(args[3], kFloat);
  const uint64_t b = graph.buffer(kHalf), c = graph.buffer(kFloat), d = graph.buffer(kFloat);
  const int first = graph.task(LOG_SQRT, CoreType::AIV, {a, b});
  const int left = graph.task(MATMUL, CoreType::AIC, {b, w1, c}, {first});
  const int right = graph.task(MATMUL, CoreType::AIC, {b, w2, d}, {first});
  graph.task(ADD_EXP, CoreType::AIV, {c, d, f}, {left, right});
}

GRAPH_ENTRY(build_matmul_exp, build)
