// target: a5
// Kernels on vector registers. See test_cpp.py for the comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 16, kCols = 64, kCount = kRows * kCols, kBytes = kCount * 4;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
using Part = Tile<TileType::Vec, float, kRows, kCols>;

#define FLAG(from, to, id) \
  set_flag(from, to, id);  \
  wait_flag(from, to, id)

// RUN: f32:16x64 f32:16x64
__global__ AICORE void scope_before_load(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  __VEC_SCOPE__ {
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 v, w;
    for (int i = 0; i < kRows; ++i) {
      vlds(v, from, i * kCols, NORM);  // FOUND PTO-E2201
      vadds(w, v, 1.0f, all, MODE_ZEROING);
      vsts(w, to, i * kCols, NORM_B32, all);
    }
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void store_before_scope(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__ {
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 v, w;
    for (int i = 0; i < kRows; ++i) {
      vlds(v, from, i * kCols, NORM);
      vmul(w, v, v, all, MODE_ZEROING);
      vsts(w, to, i * kCols, NORM_B32, all);
    }
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);  // good
  TSTORE(gc, z);                       // FOUND PTO-E2201
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void stored_then_loaded(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  __ubuf__ float* from = x.data();
  __ubuf__ float* over = y.data();
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__ {
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 v, w;
    for (int i = 0; i < kRows; ++i) {
      vlds(v, from, i * kCols, NORM);
      vsts(v, over, i * kCols, NORM_B32, all);
    }
    mem_bar(VST_VLD);  // good
    mem_bar(VLD_VST);  // bad
    for (int i = 0; i < kRows; ++i) {
      vlds(w, over, i * kCols, NORM);  // FOUND PTO-E2206
      vsts(w, to, i * kCols, NORM_B32, all);
    }
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void loaded_then_overwritten(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__ {
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 zero, v;
    vbr(zero, 0.0f);
    for (int i = 0; i < kRows; ++i) {
      vlds(v, from, i * kCols, NORM);
      vsts(v, to, i * kCols, NORM_B32, all);
      mem_bar(VLD_VST);                           // good
      vsts(zero, from, i * kCols, NORM_B32, all);  // FOUND PTO-E2206
    }
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void not_at_a_block(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();  // good
  __ubuf__ float* from = x.data() + 1;  // bad
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  TEXPANDS(z, 0.0f);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__ {
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 v;
    vlds(v, from, 0, NORM);  // FOUND PTO-E2102
    vsts(v, to, 0, NORM_B32, all);
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void mask_of_another_width(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__ {
    vector_bool on = pset_b32(PAT_VL16);  // good
    vector_bool on = pset_b16(PAT_VL16);  // bad
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 v, w;
    for (int i = 0; i < kRows; ++i) {
      vlds(v, from, i * kCols, NORM);
      vadd(w, v, v, on, MODE_ZEROING);  // FOUND PTO-E2208
      vsts(w, to, i * kCols, NORM_B32, all);
    }
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x40 f32:16x64
__global__ AICORE void lanes_behind_the_data(__gm__ float* a, __gm__ float* c) {
  using Some = GlobalTensor<float, Shape<1, 1, 1, kRows, 40>, Stride<640, 640, 640, 40, 1>>;
  Some ga(a);
  Matrix gc(c);
  Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, 40> x;
  Part z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();
  __ubuf__ float* to = z.data();
  TLOAD(x, ga);
  TEXPANDS(z, 0.0f);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  __VEC_SCOPE__ {
    uint32_t valid = 40;   // good
    uint32_t valid = 64;   // bad
    vector_bool on = plt_b32(valid, POST_UPDATE);
    vector_bool all = pset_b32(PAT_ALL);
    vector_f32 v, w;
    for (int i = 0; i < kRows; ++i) {
      vlds(v, from, i * kCols, NORM);
      vmul(w, v, v, on, MODE_ZEROING);
      vsts(w, to, i * kCols, NORM_B32, all);
    }
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);  // FOUND PTO-E2203
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void bursts_not_awaited(__gm__ float* a, __gm__ float* c) {
  Matrix gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = x.data();
  copy_gm_to_ubuf_align_v2(from, a, 0, kRows, kCols * 4, 0, 0, false, 0, kCols * 4, kCols * 4);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  TEXP(z, x);                          // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void bursts_too_early(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  __ubuf__ float* from = z.data();
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TNEG(z, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);                                                         // good
  copy_ubuf_to_gm_align_v2(c, from, 0, kRows, kCols * 4, 0, kCols * 4, kCols * 4);  // FOUND PTO-E2201
}
