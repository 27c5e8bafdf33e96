// Vector kernels with flags by hand. See test_cpp.py for the comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 16, kCols = 64, kCount = kRows * kCols, kBytes = kCount * 4;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
using Part = Tile<TileType::Vec, float, kRows, kCols>;

#define FLAG(from, to, id)   \
  set_flag(from, to, id);    \
  wait_flag(from, to, id)

// RUN: f32:16x64 f32:16x64 f32:16x64
__global__ AICORE void load_then_add(__gm__ float* a, __gm__ float* b, __gm__ float* c) {
  Matrix ga(a), gb(b), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  TLOAD(x, ga);
  TLOAD(y, gb);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  TADD(z, x, y);                            // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void set_before_load(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);  // bad
  TLOAD(x, ga);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TEXP(z, x);  // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void store_before_result(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TABS(z, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);  // good
  TSTORE(gc, z);                       // FOUND PTO-E2201
}

// RUN: f32:32x64 f32:32x64
__global__ AICORE void reload_too_early(__gm__ float* a, __gm__ float* c) {
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  for (int i = 0; i < 2; ++i) {
    Matrix ga(a + i * kCount), gc(c + i * kCount);
    if (i > 0) wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);    // good
    TLOAD(x, ga);                                          // FOUND PTO-E2201
    FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
    if (i > 0) wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    TMULS(z, x, 2.0f);
    if (i == 0) set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);    // good
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gc, z);
    if (i == 0) set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
  }
}

// RUN: f32:32x64 f32:32x64
__global__ AICORE void result_overwritten(__gm__ float* a, __gm__ float* c) {
  Part x[2], z;
  TASSIGN(x[0], 0);
  TASSIGN(x[1], kBytes);
  TASSIGN(z, 2 * kBytes);
  for (int i = 0; i < 2; ++i) {
    Matrix ga(a + i * kCount), gc(c + i * kCount);
    TLOAD(x[i], ga);
    FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
    if (i > 0) wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);  // good
    TMULS(z, x[i], 2.0f);                                // FOUND PTO-E2201
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gc, z);
    if (i == 0) set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);  // good
  }
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void no_vector_barrier(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, scratch, z;
  Tile<TileType::Vec, float, kRows, 1, BLayout::ColMajor> most;
  TASSIGN(x, 0);
  TASSIGN(scratch, kBytes);
  TASSIGN(z, 2 * kBytes);
  TASSIGN(most, 3 * kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TROWMAX(most, x, scratch);
  pipe_barrier(PIPE_V);       // good
  TROWEXPANDSUB(z, x, most);  // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:64x64 f32:64x64
__global__ AICORE void ping_pong(__gm__ float* a, __gm__ float* c) {
  Part x[2], z[2];
  for (int i = 0; i < 2; ++i) {
    TASSIGN(x[i], i * kBytes);
    TASSIGN(z[i], (2 + i) * kBytes);
    set_flag(PIPE_V, PIPE_MTE2, static_cast<event_t>(i));  // good
    set_flag(PIPE_MTE3, PIPE_V, static_cast<event_t>(i));
  }
  for (int i = 0; i < 4; ++i) {
    const auto id = static_cast<event_t>(i % 2);
    Matrix ga(a + i * kCount), gc(c + i * kCount);
    wait_flag(PIPE_V, PIPE_MTE2, id);  // good
    TLOAD(x[i % 2], ga);               // FOUND PTO-E2201
    FLAG(PIPE_MTE2, PIPE_V, id);
    wait_flag(PIPE_MTE3, PIPE_V, id);
    TEXP(z[i % 2], x[i % 2]);
    set_flag(PIPE_V, PIPE_MTE2, id);  // good
    FLAG(PIPE_V, PIPE_MTE3, id);
    TSTORE(gc, z[i % 2]);
    set_flag(PIPE_MTE3, PIPE_V, id);
  }
  for (int i = 0; i < 2; ++i) {
    wait_flag(PIPE_V, PIPE_MTE2, static_cast<event_t>(i));  // good
    wait_flag(PIPE_MTE3, PIPE_V, static_cast<event_t>(i));
  }
}

// RUN: f32:64x64 f32:64x64
__global__ AICORE void ping_pong_one_id(__gm__ float* a, __gm__ float* c) {
  Part x[2], z[2];
  for (int i = 0; i < 2; ++i) {
    TASSIGN(x[i], i * kBytes);
    TASSIGN(z[i], (2 + i) * kBytes);
  }
  for (int i = 0; i < 2; ++i) {
    Matrix ga(a + i * kCount);
    TLOAD(x[i], ga);
    set_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(i));  // good
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);                // bad FOUND PTO-E0804
  }
  for (int i = 0; i < 2; ++i) {
    Matrix gc(c + i * kCount);
    wait_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(i));  // good
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);                // bad
    TEXP(z[i], x[i]);
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gc, z[i]);
  }
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void wait_of_another_pipe(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);     // good
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  // bad FOUND PTO-E2104
  TEXP(z, x);                                  // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void wait_without_set(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);   // good
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);  // FOUND PTO-E2104
  TEXP(z, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void flag_left_set(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TEXP(z, x);
  set_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);  // bad FOUND PTO-E0805
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64 i32:4
__global__ AICORE void flag_on_one_path(__gm__ float* a, __gm__ float* c, __gm__ int32_t* n) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  if (n[0] > 100) set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);   // bad
  if (n[0] <= 100) set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);                  // FOUND PTO-E2104
  TEXP(z, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void never_loaded(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  TLOAD(x, ga);
  TLOAD(y, ga);  // good
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(z, x, y);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);  // FOUND PTO-E2203
}

// RUN: f32:16x64 f32:16x8
__global__ AICORE void sum_of_padding(__gm__ float* a, __gm__ float* c) {
  using Some = GlobalTensor<float, Shape<1, 1, 1, kRows, 40>, Stride<kCount, kCount, kCount, kCols, 1>>;
  using Sums = GlobalTensor<float, Shape<1, 1, 1, kRows, 1>, Stride<kRows, kRows, kRows, 1, 1>, Layout::DN>;
  Some ga(a);
  Sums gc(c);
  Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, 40> x;
  Part all, scratch;
  Tile<TileType::Vec, float, kRows, 1, BLayout::ColMajor> s;
  TASSIGN(x, 0);
  TASSIGN(all, 0);
  TASSIGN(scratch, kBytes);
  TASSIGN(s, 2 * kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TROWSUM(s, x, scratch);    // good
  TROWSUM(s, all, scratch);  // bad
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, s);  // FOUND PTO-E2203
}

// RUN: f32:8x64 f32:16x64
__global__ AICORE void load_beyond_array(__gm__ float* a, __gm__ float* c) {
  using Half = GlobalTensor<float, Shape<1, 1, 1, 8, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  Matrix gc(c);
  Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, DYNAMIC, DYNAMIC> x(8, kCols);  // good
  Part x;                                                                                     // bad
  Half ga(a);                                                                                 // good
  Matrix ga(a);                                                                               // bad
  Part z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TEXPANDS(z, 0.0f);
  TLOAD(x, ga);  // FOUND PTO-E2101
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void store_beyond_array(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a);
  Matrix gc(c + kCols);  // bad
  Matrix gc(c);          // good
  Part x;
  TASSIGN(x, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);  // FOUND PTO-E2101
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void beyond_the_buffer(__gm__ float* a, __gm__ float* c) {
  constexpr uint64_t kEnd = 192 * 1024;
  Matrix ga(a), gc(c);
  Part x;
  uint64_t at = kEnd - kBytes;  // good
  uint64_t at = kEnd - 1024;    // bad
  TASSIGN(x, at);               // FOUND SA-0353
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void address_not_aligned(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x;
  uint64_t at = 64;  // good
  uint64_t at = 40;  // bad
  TASSIGN(x, at);    // FOUND SA-0354
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
}

// RUN: f32:16x64 f32:16x64 f32:16x64
__global__ AICORE void tiles_overlap(__gm__ float* a, __gm__ float* b, __gm__ float* c) {
  Matrix ga(a), gb(b), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);       // good
  TASSIGN(y, kBytes / 2);   // bad
  TASSIGN(z, 2 * kBytes);
  TLOAD(x, ga);
  TLOAD(y, gb);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADD(z, x, y);  // FOUND PTO-E2210
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:32x64 f32:32x64 blocks=2
__global__ AICORE void blocks_write_the_same(__gm__ float* a, __gm__ float* c) {
  const int64_t at = get_block_idx() * kCount;
  Matrix ga(a + at);
  Matrix gc(c);       // bad
  Matrix gc(c + at);  // good
  Part x;
  TASSIGN(x, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);  // FOUND PTO-E2202
}

// RUN: f32:32x64 f32:32x64 blocks=2
__global__ AICORE void blocks_read_before_barrier(__gm__ float* a, __gm__ float* c) {
  const int64_t me = get_block_idx(), other = 1 - me;
  Matrix mine(a + me * kCount), theirs(a + other * kCount), gc(c + me * kCount);
  Part x, y;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TEXPANDS(x, 3.0f);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(mine, x);  // FOUND PTO-E2202
  FLAG(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
  SYNCALL<SyncCoreType::Mix>();  // good
  TLOAD(y, theirs);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, y);
}

// RUN: f32:16x64 f32:16x64 f32:16x64
__global__ AICORE void through_global_memory(__gm__ float* a, __gm__ float* w, __gm__ float* c) {
  Matrix ga(a), gw(w), gc(c);
  Part x, y;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gw, x);
  FLAG(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);  // good
  TLOAD(y, gw);                           // FOUND PTO-E2201
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
  TSTORE(gc, y);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void scalar_reads_early(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_S, EVENT_ID0);  // good
  const float first = x.GetValue(0);   // FOUND PTO-E2201
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADDS(z, x, first);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void scalar_writes_late(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_S, EVENT_ID0);
  x.SetValue(5, 1.5f);
  FLAG(PIPE_S, PIPE_V, EVENT_ID0);     // good
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);  // bad
  TEXP(z, x);                          // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:8x64
__global__ AICORE void window_outside(__gm__ float* a, __gm__ float* c) {
  using Half = GlobalTensor<float, Shape<1, 1, 1, 8, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  Matrix ga(a);
  Half gc(c);
  Part x;
  Tile<TileType::Vec, float, 8, kCols> low;
  TASSIGN(x, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSUBVIEW(low, x, 8, 0);   // good
  TSUBVIEW(low, x, 12, 0);  // bad FOUND PTO-E2204
  TSTORE(gc, low);          // FOUND PTO-E2203
}

// RUN: f32:16x64 i32:16x64 f32:16x64
__global__ AICORE void index_outside(__gm__ float* a, __gm__ int32_t* i, __gm__ float* c) {
  using Indices = GlobalTensor<int32_t, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  Matrix ga(a), gc(c);
  Indices gi(i);
  Part x, z;
  Tile<TileType::Vec, int32_t, kRows, kCols> n, scratch;
  TASSIGN(x, 0);
  TASSIGN(n, kBytes);
  TASSIGN(z, 2 * kBytes);
  TASSIGN(scratch, 3 * kBytes);
  TLOAD(x, ga);
  TLOAD(n, gi);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADDS(n, n, 2000);     // bad
  pipe_barrier(PIPE_V);  // bad
  TGATHER(z, x, n, scratch);  // FOUND PTO-E2211
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

template <class Tensor, class TileT>
AICORE inline void fetch(TileT& into, Tensor& from, bool wait) {
  TLOAD(into, from);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  if (wait) wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}

template <class TileT>
AICORE inline void negate(TileT& into, TileT& from) {
  TNEG(into, from);  // FOUND PTO-E2201
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void in_functions(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  fetch(x, ga, true);   // good
  fetch(x, ga, false);  // bad
  negate(z, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

#define STEP(into, from)            \
  do {                              \
    TMULS(into, from, 0.5f);        \
  } while (0)

// RUN: f32:16x64 f32:16x64
__global__ AICORE void in_a_macro(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  STEP(z, x);                          // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f16:16x64
__global__ AICORE void template_arguments(__gm__ float* a, __gm__ half* c) {
  using Halves = GlobalTensor<half, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  Matrix ga(a);
  Halves gc(c);
  Part x;
  Tile<TileType::Vec, half, kRows, kCols> z;
  TASSIGN<0>(x);
  TASSIGN<kBytes>(z);
  pto::TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  pto::TCVT(z, x, RoundMode::CAST_RINT);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);                                     // good
  pto::TSTORE<decltype(z), Halves, AtomicType::AtomicNone>(gc, z);        // FOUND PTO-E2201
}

// RUN: f32:16x64 f32:1x64
__global__ AICORE void scratch_in_use(__gm__ float* a, __gm__ float* c) {
  using Row = GlobalTensor<float, Shape<1, 1, 1, 1, kCols>, Stride<kCols, kCols, kCols, kCols, 1>>;
  Matrix ga(a);
  Row gc(c);
  Part x, y, scratch;
  Tile<TileType::Vec, float, 1, kCols> s;
  TASSIGN(x, 0);
  TASSIGN(scratch, kBytes);
  TASSIGN(s, 2 * kBytes);
  TASSIGN(y, 3 * kBytes);  // good
  TASSIGN(y, kBytes);      // bad
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TLOAD(y, ga);
  TCOLSUM(s, x, scratch, true);  // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, s);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void never_assigned(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x;
  TASSIGN(x, 0);  // good
  TLOAD(x, ga);   // FOUND PTO-E2103
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
}

// RUN: f32:16x64 f32:16x64 40
__global__ AICORE void masked_in_place(__gm__ float* a, __gm__ float* c, int32_t valid) {
  using Open = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, DYNAMIC>;
  using Padded =
      Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, kCols, SLayout::NoneBox, 512, PadValue::Min>;
  Matrix ga(a), gc(c);
  Part x;
  Open open(valid);
  Padded padded;
  TASSIGN(x, 0);  // three names of the same bytes
  TASSIGN(open, 0);
  TASSIGN(padded, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TFILLPAD_INPLACE(padded, open);  // good
  TEXPANDS(padded, 0.0f);          // bad
  pipe_barrier(PIPE_V);
  TMULS(x, x, 2.0f);  // FOUND PTO-E2210
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void placed_once(__gm__ float* a, __gm__ float* c) {
  using Open = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, DYNAMIC, kCols>;
  Matrix ga(a), gc(c);
  Open x(8);
  TASSIGN(x, 0);
  x = Open(kRows);  // where it lies stays
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  // good
  TSTORE(gc, x);                          // FOUND PTO-E2201
}

// RUN: f32:2x64 f32:1x128
__global__ AICORE void merged_over_a_source(__gm__ float* a, __gm__ float* c) {
  using List = GlobalTensor<float, Shape<1, 1, 1, 1, 128>, Stride<128, 128, 128, 128, 1>>;
  using Half = Tile<TileType::Vec, float, 1, 128, BLayout::RowMajor, 1, DYNAMIC>;
  List ga(a), gc(c);
  Half whole(128), first(64), second(64), scratch(128);
  TASSIGN(whole, 0);
  TASSIGN(first, 0);
  TASSIGN(second, 64 * 4);
  TASSIGN(scratch, kBytes);
  TLOAD(whole, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  MrgSortExecutedNumList done;
  TMRGSORT<Half, Half, Half, Half, false>(whole, done, scratch, first, second);  // in scratch first
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);                                            // good
  TSTORE(gc, whole);                                                             // FOUND PTO-E2201
}

// RUN: f32:64x32 i32:16 f32:16x32
__global__ AICORE void indices_not_awaited(__gm__ float* a, __gm__ int32_t* which, __gm__ float* c) {
  using Table = GlobalTensor<float, Shape<1, 1, 1, 64, 32>, Stride<2048, 2048, 2048, 32, 1>>;
  using Rows = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
  using Names = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>>;
  Tile<TileType::Vec, float, 16, 32> x;
  Tile<TileType::Vec, int32_t, 1, 16> i, j;
  TASSIGN(x, 0x0);
  TASSIGN(i, 0x1000);
  TASSIGN(j, 0x2000);
  Table table(a);
  Names names(which);
  Rows rows(c);
  TLOAD(i, names);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);  // good
  TADDS(j, i, 1);                      // FOUND PTO-E2201
  MGATHER(x, table, j);  // waits for the others, and they for it
  TSTORE(rows, x);
}

// RUN: f32:16x32 f32:16x32 f32:16x64
__global__ AICORE void parts_of_a_tile(__gm__ float* a, __gm__ float* b, __gm__ float* c) {
  using Half = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
  using Whole = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
  Tile<TileType::Vec, float, 16, 64> x;
  Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 32> left;
  Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 32> right;
  Half ga(a), gb(b);
  Whole gc(c);
  TASSIGN(x, 0x0);
  TASSIGN(left, (uint64_t)x.data());            // good
  TASSIGN(right, (uint64_t)x.data() + 32 * 4);  // good
  TASSIGN(left, 0x0);                           // bad
  TASSIGN(right, 32 * 4);                       // bad
  TEXPANDS(x, 1.0f);
  FLAG(PIPE_V, PIPE_MTE2, EVENT_ID0);
  TLOAD(left, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADDS(right, right, 1.0f);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);  // FOUND PTO-E2210
}
