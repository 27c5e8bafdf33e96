// Kernels whose order is in events. See test_cpp.py for the comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 8, kCols = 64, kCount = kRows * kCols, kBytes = kCount * 4;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
using Part = Tile<TileType::Vec, float, kRows, kCols>;

// RUN: f32:8x64 f32:8x64
__global__ AICORE void event_not_passed(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  Event<Op::TLOAD, Op::TEXP> loaded;
  Event<Op::TEXP, Op::TSTORE_VEC> done;
  loaded = TLOAD(x, ga);
  done = TEXP(z, x, loaded);  // good
  done = TEXP(z, x);          // bad FOUND PTO-E2201
  TSTORE(gc, z, done);
}

// RUN: f32:8x64 f32:8x64
__global__ AICORE void event_not_recorded(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  Event<Op::TLOAD, Op::TABS> loaded;
  Event<Op::TABS, Op::TSTORE_VEC> done;
  loaded = TLOAD(x, ga);
  done = TABS(z, x, loaded);  // good
  TABS(z, x, loaded);         // bad
  TSTORE(gc, z, done);        // FOUND PTO-E2104
}

// RUN: f32:8x64 f32:8x64
__global__ AICORE void event_of_another_pair(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  Event<Op::TLOAD, Op::TEXP> loaded;        // good
  Event<Op::TLOAD, Op::TSTORE_VEC> loaded;  // bad
  Event<Op::TEXP, Op::TSTORE_VEC> done;
  loaded = TLOAD(x, ga);
  done = TEXP(z, x, loaded);  // FOUND PTO-E2201
  TSTORE(gc, z, done);
}

// RUN: f32:8x64 f32:8x64 f32:8x64
__global__ AICORE void one_of_two_events(__gm__ float* a, __gm__ float* b, __gm__ float* c) {
  Matrix ga(a), gb(b), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  Event<Op::TLOAD, Op::TADD> first, second;
  Event<Op::TADD, Op::TSTORE_VEC> done;
  first = TLOAD(x, ga);
  second = TLOAD(y, gb);
  TSYNC(first, second);  // good
  TSYNC(first);          // bad
  done = TADD(z, x, y);  // FOUND PTO-E2201
  TSTORE(gc, z, done);
}

// RUN: f32:8x64 f32:8x64
__global__ AICORE void no_wait_in_the_pipe(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  Event<Op::TLOAD, Op::TEXP> loaded;
  Event<Op::TEXP, Op::TADD> half_way;
  Event<Op::TADD, Op::TSTORE_VEC> done;
  loaded = TLOAD(x, ga);
  half_way = TEXP(y, x, loaded);
  done = TADD(z, y, y, half_way);  // good
  done = TADD(z, y, y);            // bad FOUND PTO-E2201
  TSTORE(gc, z, done);
}

// RUN: f32:8x64 f32:8x64
__global__ AICORE void event_left(__gm__ float* a, __gm__ float* c) {
  Matrix ga(a), gc(c);
  Part x, z;
  TASSIGN(x, 0);
  TASSIGN(z, kBytes);
  Event<Op::TLOAD, Op::TEXP> loaded;
  Event<Op::TEXP, Op::TLOAD> again;
  Event<Op::TEXP, Op::TSTORE_VEC> done;
  loaded = TLOAD(x, ga);
  done = TEXP(z, x, loaded);
  again.Record();  // bad FOUND PTO-E0805
  TSTORE(gc, z, done);
}
