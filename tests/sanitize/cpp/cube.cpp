// Kernels of the cube core with flags by hand. See test_cpp.py for the comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kSize = 32, kCount = kSize * kSize, kBytes = kCount * 2;
using Operand = GlobalTensor<half, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using Result = GlobalTensor<float, Shape<1, 1, 1, kSize, kSize>, Stride<kCount, kCount, kCount, kSize, 1>>;
using InL1 = Tile<TileType::Mat, half, kSize, kSize, BLayout::ColMajor, kSize, kSize, SLayout::RowMajor, 512>;
using Left = TileLeft<half, kSize, kSize>;
using Right = TileRight<half, kSize, kSize>;
using Acc = TileAcc<float, kSize, kSize>;

#define FLAG(from, to, id) \
  set_flag(from, to, id);  \
  wait_flag(from, to, id)

struct Tiles {
  InL1 x1, y1;
  Left x0;
  Right y0;
  Acc z;
  AICORE void assign() {
    TASSIGN(x1, 0);
    TASSIGN(y1, kBytes);
    TASSIGN(x0, 0);
    TASSIGN(y0, 0);
    TASSIGN(z, 0);
  }
};

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void move_before_load(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Operand ga(a), gb(b);
  Result gc(c);
  Tiles t;
  t.assign();
  TLOAD(t.x1, ga);
  TLOAD(t.y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);  // good
  TMOV(t.x0, t.x1);                       // FOUND PTO-E2201
  TMOV(t.y0, t.y1);                       // FOUND PTO-E2201
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(t.z, t.x0, t.y0);
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, t.z);
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void product_before_move(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Operand ga(a), gb(b);
  Result gc(c);
  Tiles t;
  t.assign();
  TLOAD(t.x1, ga);
  TLOAD(t.y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(t.x0, t.x1);
  TMOV(t.y0, t.y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);  // good
  TMATMUL(t.z, t.x0, t.y0);            // FOUND PTO-E2201
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, t.z);
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void store_before_product(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Operand ga(a), gb(b);
  Result gc(c);
  Tiles t;
  t.assign();
  TLOAD(t.x1, ga);
  TLOAD(t.y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(t.x0, t.x1);
  TMOV(t.y0, t.y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(t.z, t.x0, t.y0);
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);  // good
  TSTORE(gc, t.z);                    // FOUND PTO-E2201
}

// RUN: f16:64x32 f16:64x32 f32:32x32
__global__ AICORE void next_load_too_early(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Result gc(c);
  Tiles t;
  t.assign();
  for (int k = 0; k < 2; ++k) {
    Operand ga(a + k * kCount), gb(b + k * kCount);
    if (k > 0) wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);  // good
    TLOAD(t.x1, ga);                                        // FOUND PTO-E2201
    TLOAD(t.y1, gb);                                        // FOUND PTO-E2201
    FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    if (k > 0) wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    TMOV(t.x0, t.x1);
    TMOV(t.y0, t.y1);
    if (k == 0) set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);  // good
    FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
    if (k == 0) {
      TMATMUL(t.z, t.x0, t.y0);
      set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    } else {
      TMATMUL_ACC(t.z, t.z, t.x0, t.y0);
    }
  }
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, t.z);
}

// RUN: f16:64x32 f16:64x32 f32:32x32
__global__ AICORE void next_move_too_early(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Result gc(c);
  Tiles t;
  t.assign();
  for (int k = 0; k < 2; ++k) {
    Operand ga(a + k * kCount), gb(b + k * kCount);
    if (k > 0) wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    TLOAD(t.x1, ga);
    TLOAD(t.y1, gb);
    FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    if (k > 0) wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);  // good
    TMOV(t.x0, t.x1);                                    // FOUND PTO-E2201
    TMOV(t.y0, t.y1);
    if (k == 0) set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
    if (k == 0) {
      TMATMUL(t.z, t.x0, t.y0);
      set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);  // good
    } else {
      TMATMUL_ACC(t.z, t.z, t.x0, t.y0);
    }
  }
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, t.z);
}

// RUN: f16:32x32 f16:32x32 f32:64x32
__global__ AICORE void accumulator_too_early(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Operand ga(a), gb(b);
  Tiles t;
  t.assign();
  TLOAD(t.x1, ga);
  TLOAD(t.y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(t.x0, t.x1);
  TMOV(t.y0, t.y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  for (int i = 0; i < 2; ++i) {
    Result gc(c + i * kCount);
    if (i > 0) wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0);  // good
    TMATMUL(t.z, t.x0, t.y0);                           // FOUND PTO-E2201
    FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(gc, t.z);
    if (i == 0) set_flag(PIPE_FIX, PIPE_M, EVENT_ID0);  // good
  }
}

// RUN: f16:64x32 f16:64x32 f32:32x32
__global__ AICORE void first_step_accumulates(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Result gc(c);
  Tiles t;
  t.assign();
  for (int k = 0; k < 2; ++k) {
    Operand ga(a + k * kCount), gb(b + k * kCount);
    pipe_barrier(PIPE_ALL);
    TLOAD(t.x1, ga);
    TLOAD(t.y1, gb);
    FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(t.x0, t.x1);
    TMOV(t.y0, t.y1);
    FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
    if (k == 0) TMATMUL(t.z, t.x0, t.y0);               // good
    if (k > 0) TMATMUL_ACC(t.z, t.z, t.x0, t.y0);       // good
    TMATMUL_ACC(t.z, t.z, t.x0, t.y0);                  // bad
  }
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, t.z);  // FOUND PTO-E2203
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void operands_overlap(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Operand ga(a), gb(b);
  Result gc(c);
  Tiles t;
  t.assign();
  TASSIGN(t.y1, kBytes / 2);  // bad
  TLOAD(t.x1, ga);
  TLOAD(t.y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(t.x0, t.x1);  // FOUND PTO-E2210
  TMOV(t.y0, t.y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  TMATMUL(t.z, t.x0, t.y0);
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, t.z);
}

// RUN: f16:64x32 f16:64x32 f32:32x32
__global__ AICORE void l1_ping_pong(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Result gc(c);
  InL1 x1[2], y1[2];
  Left x0;
  Right y0;
  Acc z;
  for (int i = 0; i < 2; ++i) {
    TASSIGN(x1[i], 2 * i * kBytes);
    TASSIGN(y1[i], (2 * i + 1) * kBytes);
  }
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(z, 0);
  for (int k = 0; k < 2; ++k) {
    Operand ga(a + k * kCount), gb(b + k * kCount);
    TLOAD(x1[k], ga);
    set_flag(PIPE_MTE2, PIPE_MTE1, static_cast<event_t>(k));  // bad
    TLOAD(y1[k], gb);
    set_flag(PIPE_MTE2, PIPE_MTE1, static_cast<event_t>(k));  // good
  }
  for (int k = 0; k < 2; ++k) {
    wait_flag(PIPE_MTE2, PIPE_MTE1, static_cast<event_t>(k));
    if (k > 0) wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    TMOV(x0, x1[k]);
    TMOV(y0, y1[k]);  // FOUND PTO-E2201
    FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
    if (k == 0) TMATMUL(z, x0, y0);
    if (k == 0) set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    if (k > 0) TMATMUL_ACC(z, x0, y0);
  }
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f16:16x16 f32:16x16
__global__ AICORE void product_of_pointers(__gm__ half* a, __gm__ float* c) {
  GlobalTensor<half, Shape<1, 1, 1, 16, 16>, Stride<256, 256, 256, 16, 1>> ga(a);
  GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<256, 256, 256, 16, 1>> gc(c);
  Tile<TileType::Mat, half, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 512> x1;
  TileLeft<half, 16, 16> x0;
  TileRight<half, 16, 16> y0;
  TileAcc<float, 16, 16> z;
  TASSIGN(x1, 0);
  TASSIGN(x0, 0);
  TASSIGN(y0, 0);
  TASSIGN(z, 0);
  TLOAD(x1, ga);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  load_cbuf_to_ca((__ca__ half*)x0.data(), (__cbuf__ half*)x1.data(), 0, 0, 1, 1, 1, 1, false);
  load_cbuf_to_cb((__cb__ half*)y0.data(), (__cbuf__ half*)x1.data(), 0, 0, 1, 1, 1, 1, true);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);   // good
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);  // good
  mad(z.data(), x0.data(), y0.data(), 16, 16, 16, 0, false, false, true);  // FOUND PTO-E2201
  mad(z.data(), x0.data(), y0.data(), 16, 16, 16, 0, false, false, false);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: i32:8
__global__ AICORE void fill_not_awaited(__gm__ int32_t* c) {
  auto* l1 = reinterpret_cast<__cbuf__ int32_t*>(0x1000);
  create_cbuf_matrix(l1, int64_t{1} << 16 | 1, uint32_t{7});
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  // good
  copy_cbuf_to_gm(c, l1, 0, 1, 1, 0, 0);  // FOUND PTO-E2201
}

// RUN: f16:32x32 f16:32x32 f32:32 f32:32x32
__global__ AICORE void bias_not_awaited(__gm__ half* a, __gm__ half* b, __gm__ float* bias, __gm__ float* c) {
  auto *x1 = reinterpret_cast<__cbuf__ half*>(0), *y1 = reinterpret_cast<__cbuf__ half*>(kBytes);
  auto* bias1 = reinterpret_cast<__cbuf__ float*>(2 * kBytes);
  auto* x0 = reinterpret_cast<__ca__ half*>(0);
  auto* y0 = reinterpret_cast<__cb__ half*>(0);
  auto* z0 = reinterpret_cast<__cc__ float*>(0);
  set_mte2_nz_para(uint64_t{kSize} << 32 | 1 << 16 | 1);
  copy_gm_to_cbuf_multi_nd2nz(x1, a, 0, kSize * 2, 0, kSize, kSize, 0, false);
  copy_gm_to_cbuf_multi_nd2nz(y1, b, 0, kSize * 2, 0, kSize, kSize, 0, false);
  copy_gm_to_cbuf_align_v2(bias1, bias, 0, 1, kSize * 4, 0, 0, false, 0, 0, 0);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  load_cbuf_to_ca(x0, x1, 0, 0, 2, 2, 2, 2, false);
  load_cbuf_to_cb(y0, y1, 0, 0, 2, 2, 2, 2, true);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  copy_cbuf_to_bt(0, bias1, 0, 1, kSize * 4 / 32, 0, 0);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID1);                               // good
  mad(z0, x0, y0, kSize, kSize, kSize, 0, true, true, false);       // FOUND PTO-E2201
  FLAG(PIPE_M, PIPE_FIX, EVENT_ID0);
  Acc z;
  TASSIGN(z, 0);
  Result gc(c);
  TSTORE(gc, z);
}

// RUN: f16:32x32 f16:32x32 f32:32x32
__global__ AICORE void handed_over_by_unit_flags(__gm__ half* a, __gm__ half* b, __gm__ float* c) {
  Operand ga(a), gb(b);
  Result gc(c);
  Tiles t;
  t.assign();
  TLOAD(t.x1, ga);
  TLOAD(t.y1, gb);
  FLAG(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  TMOV(t.x0, t.x1);
  TMOV(t.y0, t.y1);
  FLAG(PIPE_MTE1, PIPE_M, EVENT_ID0);
  for (int i = 0; i < 2; ++i) {
    TMATMUL<AccPhase::Final>(t.z, t.x0, t.y0);  // FOUND PTO-E2201
    TSTORE<STPhase::Final>(gc, t.z);            // good
    TSTORE(gc, t.z);                            // bad, FOUND PTO-E2201
  }
}
