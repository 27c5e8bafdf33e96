// C = A @ B by 64x64 tiles: for each tile of C, a chain of additions behind products that run in any order.
#include "pto_orchestration_api.h"

enum Function { GEMM = 0, ADD = 1 };
constexpr uint64_t kTile = 64;

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {7}; }

static Tensor tile_of(const Tensor& matrix, uint64_t batch, uint64_t row, uint64_t col) {
  const uint64_t shape[] = {1, kTile, kTile}, offsets[] = {batch, row * kTile, col * kTile};
  return matrix.view(shape, offsets);
}

// Arguments: a, b, c, batch, m, k, n. The sizes are multiples of 64.
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const uint64_t batch = args[3], m = args[4], k = args[5], n = args[6];
  const uint64_t a_shape[] = {batch, m, k}, b_shape[] = {batch, k, n}, c_shape[] = {batch, m, n};
  Tensor a = make_tensor_external(reinterpret_cast<void*>(args[0]), a_shape, 3);
  Tensor b = make_tensor_external(reinterpret_cast<void*>(args[1]), b_shape, 3);
  Tensor c = make_tensor_external(reinterpret_cast<void*>(args[2]), c_shape, 3);

  for (uint64_t at = 0; at < batch; at++) {
    for (uint64_t row = 0; row < m / kTile; row++) {
      for (uint64_t col = 0; col < n / kTile; col++) {
        PTO2_SCOPE(rt) {
          Tensor c_tile = tile_of(c, at, row, col);
          for (uint64_t step = 0; step < k / kTile; step++) {
            Tensor a_tile = tile_of(a, at, row, step), b_tile = tile_of(b, at, step, col);
            const uint64_t p_shape[] = {kTile, kTile};
            Tensor p = make_tensor(p_shape, 2);
            PTOParam product[] = {make_input_param(a_tile), make_input_param(b_tile),
                                  make_output_param(p),     make_scalar_param(k),
                                  make_scalar_param(n),     make_scalar_param(kTile)};
            pto2_rt_submit_task(rt, GEMM, PTO2_WORKER_CUBE, product, 6);
            // INOUT: waits for the addition before it. Other tiles of C are disjoint and do not matter.
            PTOParam sum[] = {make_inout_param(c_tile), make_input_param(p), make_scalar_param(n)};
            pto2_rt_submit_task(rt, ADD, PTO2_WORKER_VECTOR, sum, 3);
          }
        }
      }
    }
  }
}
