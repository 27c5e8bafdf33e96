// Ways to write kernels: lambdas, classes, macros, early ends. See test_cpp.py for the comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 8, kCols = 64, kCount = kRows * kCols, kBytes = kCount * 4;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
using Part = Tile<TileType::Vec, float, kRows, kCols>;

#define FLAG(from, to, id) \
  set_flag(from, to, id);  \
  wait_flag(from, to, id)
#define WITH(x) if constexpr (true) { x; }

// One pipe tells another, as libraries wrap it.
template <pipe_t From, pipe_t To>
class Handshake {
 public:
  AICORE explicit Handshake(int id) : id_(static_cast<event_t>(id)) {}
  AICORE void give() const { set_flag(From, To, id_); }
  AICORE void take() const { wait_flag(From, To, id_); }
  AICORE void both() const {
    give();
    take();
  }

 private:
  event_t id_;
};

// RUN: f32:8x64 f32:8x64
__global__ AICORE void handshake_not_taken(__gm__ float* a, __gm__ float* c) {
  const Handshake<PIPE_MTE2, PIPE_V> loaded(3);
  const Handshake<PIPE_V, PIPE_MTE3> computed(2);
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  loaded.give();
  loaded.take();     // good
  TMULS(z, x, 2.0f); // FOUND PTO-E2201
  computed.both();
  TSTORE(gc, z);
}

// RUN: f32:8x64 f32:8x64 f32:8x64
__global__ AICORE void lambdas(__gm__ float* a, __gm__ float* b, __gm__ float* c) {
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  auto staged = [&](auto load, auto compute, auto store) {
    load();
    FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
    compute();
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);  // good
    store();
  };
  auto of = [](__gm__ float* at) { return Matrix(at); };
  staged(
      [&] {
        auto ga = of(a), gb = of(b);
        TLOAD(x, ga);
        TLOAD(y, gb);
      },
      [&] { TADD(z, x, y); },
      [&] {
        auto gc = of(c);
        TSTORE(gc, z);  // FOUND PTO-E2201
      });
}

// RUN: f32:32x64 f32:32x64
__global__ AICORE void ids_out_of_step(__gm__ float* a, __gm__ float* c) {
  Part x[2], z[2];
  for (int i = 0; i < 2; ++i) {
    TASSIGN(x[i], i * kBytes);
    TASSIGN(z[i], (2 + i) * kBytes);
    set_flag(PIPE_V, PIPE_MTE2, static_cast<event_t>(i));
    set_flag(PIPE_MTE3, PIPE_V, static_cast<event_t>(i));
  }
  for (int i = 0; i < 4; ++i) {
    const auto id = static_cast<event_t>(i % 2);
    const auto other = static_cast<event_t>((i + 1) % 2);  // bad
    Matrix ga(a + i * kCount), gc(c + i * kCount);
    wait_flag(PIPE_V, PIPE_MTE2, id);     // good
    wait_flag(PIPE_V, PIPE_MTE2, other);  // bad
    TLOAD(x[i % 2], ga);
    FLAG(PIPE_MTE2, PIPE_V, id);
    wait_flag(PIPE_MTE3, PIPE_V, id);
    TEXP(z[i % 2], x[i % 2]);
    set_flag(PIPE_V, PIPE_MTE2, id);  // FOUND PTO-E0804
    FLAG(PIPE_V, PIPE_MTE3, id);
    TSTORE(gc, z[i % 2]);
    set_flag(PIPE_MTE3, PIPE_V, id);
  }
  for (int i = 0; i < 2; ++i) {
    wait_flag(PIPE_V, PIPE_MTE2, static_cast<event_t>(i));
    wait_flag(PIPE_MTE3, PIPE_V, static_cast<event_t>(i));
  }
}

// RUN: f32:48x64 f32:48x64
__global__ AICORE void three_buffers_two_ids(__gm__ float* a, __gm__ float* c) {
  Part x[3];
  for (int i = 0; i < 3; ++i) TASSIGN(x[i], i * kBytes);
  for (int i = 0; i < 6; ++i) {
    Matrix ga(a + i * kCount), gc(c + i * kCount);
    if (i >= 3) wait_flag(PIPE_MTE3, PIPE_MTE2, static_cast<event_t>(i % 3));  // good
    if (i >= 4) wait_flag(PIPE_MTE3, PIPE_MTE2, static_cast<event_t>(i % 2));  // bad
    TLOAD(x[i % 3], ga);                                                       // FOUND PTO-E2201
    FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(x[i % 3], x[i % 3], 2.0f);
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gc, x[i % 3]);
    if (i < 3) set_flag(PIPE_MTE3, PIPE_MTE2, static_cast<event_t>(i % 3));  // good
    if (i < 2) set_flag(PIPE_MTE3, PIPE_MTE2, static_cast<event_t>(i % 2));  // bad
  }
}

// RUN: f32:8x64 f32:8x64 0
__global__ AICORE void returns_early(__gm__ float* a, __gm__ float* c, int32_t n) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);  // FOUND PTO-E0805
  if (n == 0) return;                      // bad
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  if (n == 0) return;                      // good
  TMULS(z, x, 2.0f);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:32x64 f32:32x64 4
__global__ AICORE void breaks_off(__gm__ float* a, __gm__ float* c, int32_t n) {
  Part x;
  TASSIGN(x, 0);
  for (int i = 0;; ++i) {
    if (i > 0) wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    if (i == n) break;
    Matrix ga(a + i * kCount), gc(c + i * kCount);
    TLOAD(x, ga);
    FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TEXP(x, x);
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gc, x);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);  // FOUND PTO-E0805
    if (i == n - 1) break;                      // bad
  }
}

// RUN: f32:16x64 f32:16x64 blocks=2
__global__ AICORE void only_the_first_block_waits(__gm__ float* a, __gm__ float* c) {
  const int64_t at = get_block_idx() * kCount;
  Matrix ga(a + at), gc(c + at);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TABS(z, x);
  if (get_block_idx() == 0) {            // bad
    FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  }                                      // bad
  TSTORE(gc, z);  // FOUND PTO-E2201
}

// RUN: f32:64x8 f32:64x8
__global__ AICORE void columns_first(__gm__ float* a, __gm__ float* c) {
  using Columns = GlobalTensor<float, Shape<1, 1, 1, kCols, kRows>, Stride<kCount, kCount, kCount, 1, kCols>, Layout::DN>;
  using Tall = Tile<TileType::Vec, float, kCols, kRows, BLayout::ColMajor>;
  Columns ga(a), gc(c);
  Tall x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  // good
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);     // bad
  TSTORE(gc, x);                          // FOUND PTO-E2201
}

// RUN: f32:8x64 f32:8x64 5 40
__global__ AICORE void more_than_was_loaded(__gm__ float* a, __gm__ float* c, int32_t rows, int32_t cols) {
  using Any = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, -1, -1>;
  using Window = GlobalTensor<float, Shape<1, 1, 1, -1, -1>, Stride<kCount, kCount, kCount, kCols, 1>>;
  Window ga(a, Shape<1, 1, 1, -1, -1>(rows, cols)), gc(c, Shape<1, 1, 1, -1, -1>(rows, cols));  // good
  Window ga(a, Shape<1, 1, 1, -1, -1>(rows, cols)), gc(c, Shape<1, 1, 1, -1, -1>(rows + 1, cols));  // bad
  Any x(rows, cols), z(rows, cols);      // good
  Any x(rows, cols), z(rows + 1, cols);  // bad
  Part y;
  TASSIGN(x, 0);
  TASSIGN(y, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TASSIGN(x, 0);
  Any of(rows, cols);      // good
  Any of(rows + 1, cols);  // bad
  TASSIGN(of, 0);
  TMULS(z, of, 2.0f);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);  // FOUND PTO-E2203
}

// RUN: f32:16x64 f32:8x64 blocks=2
__global__ AICORE void sums_not_atomic(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a + get_block_idx() * kCount), gc(c);
  Part x;
  TASSIGN(x, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE<Part, Matrix, AtomicType::AtomicAdd>(gc, x);  // good
  TSTORE(gc, x);  // bad FOUND PTO-E2202
}

// RUN: f32:16x64 f32:16x64 blocks=2
__global__ AICORE void rows_of_a_neighbour(__gm__ float* a, __gm__ float* c) {
  const int64_t at = get_block_idx() * kCount;               // good
  const int64_t at = get_block_idx() * (kRows - 1) * kCols;  // bad
  Matrix ga(a + at), gc(c + at);
  Part x;
  TASSIGN(x, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);  // FOUND PTO-E2202
}

// RUN: f32:8x64 f32:8x64
__global__ AICORE void waits_twice(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x;
  TASSIGN(x, 0);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  WITH(wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0))  // bad FOUND PTO-E2104
  TNEG(x, x);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
}

// RUN: f32:32x64 f32:8x64
__global__ AICORE void sum_over_turns(__gm__ float* a, __gm__ float* c) {
  Part x[4], sum;
  Matrix gc(c);
  TASSIGN(sum, 4 * kBytes);
  for (int i = 0; i < 4; ++i) {
    Matrix ga(a + i * kCount);
    TASSIGN(x[i], i * kBytes);
    TLOAD(x[i], ga);
  }
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TEXPANDS(sum, 0.0f);
  for (auto& part : x) {
    pipe_barrier(PIPE_V);   // good
    TADD(sum, sum, part);   // FOUND PTO-E2201
  }
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, sum);
}

// RUN: f32:8x64 f32:8x64
__global__ AICORE void barrier_of_another_pipe(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TNEG(z, x);
  pipe_barrier(PIPE_V);     // good
  pipe_barrier(PIPE_MTE3);  // bad
  TADD(x, z, z);            // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, x);
}

// RUN: f32:8x64 f16:8x64
__global__ AICORE void another_name_for_its_bytes(__gm__ float* a, __gm__ half* c) {
  using Halves = Tile<TileType::Vec, half, kRows, kCols>;
  using Narrow = GlobalTensor<half, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  Matrix ga(a);
  Narrow gc(c);
  Part x, y;
  Halves z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TMULS(y, x, 0.5f);
  pipe_barrier(PIPE_V);  // good
  Part again;
  TRESHAPE(again, y);
  TCVT(z, again, RoundMode::CAST_RINT);  // FOUND PTO-E2201
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}

// RUN: f32:16x64 f32:16x64
__global__ AICORE void set_twice(__gm__ float* a, __gm__ float* c) {
  Part x[2];
  for (int i = 0; i < 2; ++i) {
    Matrix ga(a + i * kCount);
    TASSIGN(x[i], i * kBytes);
    TLOAD(x[i], ga);
    set_flag(PIPE_MTE2, PIPE_MTE3, i ? EVENT_ID1 : EVENT_ID0);  // good
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);                  // bad FOUND PTO-E0804
  }
  for (int i = 0; i < 2; ++i) {
    Matrix gc(c + i * kCount);
    wait_flag(PIPE_MTE2, PIPE_MTE3, i ? EVENT_ID1 : EVENT_ID0);  // good
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);                  // bad
    TSTORE(gc, x[i]);
  }
}
