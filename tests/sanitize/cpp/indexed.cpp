// target: a5
// Gathers from global memory and scatters to it: the headers do them on the vector pipe. See test_cpp.py for the
// comments at the end of lines.
#include "pto/pto-inst.hpp"

using namespace pto;

constexpr int kRows = 16, kCols = 64, kCount = kRows * kCols, kBytes = kCount * 4;
template <class T>
using Matrix = GlobalTensor<T, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
using Line = GlobalTensor<float, Shape<1, 1, 1, 1, kCount>, Stride<kCount, kCount, kCount, kCount, 1>>;
template <class T>
using Part = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, kRows, kCols>;

#define FLAG(from, to, id) \
  set_flag(from, to, id);  \
  wait_flag(from, to, id)

// RUN: f32:16x64 i32:16x64 f32:16x64
__global__ AICORE void scattered(__gm__ float* a, __gm__ int32_t* i, __gm__ float* c) {
  Matrix<float> ga(a);
  Matrix<int32_t> gi(i);
  Line gc(c);
  Part<float> x;
  Part<int32_t> at;
  TASSIGN(x, 0);
  TASSIGN(at, kBytes);
  TLOAD(at, gi);
  TLOAD(x, ga);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);                                            // good
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);                                         // bad
  MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Skip>(gc, x, at);  // FOUND PTO-E2201
}

// RUN: f32:16x64 i32:16x64 f32:16x64
__global__ AICORE void gathered(__gm__ float* a, __gm__ int32_t* i, __gm__ float* c) {
  Matrix<float> gc(c);
  Matrix<int32_t> gi(i);
  Line ga(a);
  Part<float> x;
  Part<int32_t> at;
  TASSIGN(x, 0);
  TASSIGN(at, kBytes);
  TLOAD(at, gi);
  FLAG(PIPE_MTE2, PIPE_V, EVENT_ID0);
  MGATHER<Coalesce::Elem, GatherOOB::Clamp>(x, ga, at);
  FLAG(PIPE_V, PIPE_MTE3, EVENT_ID0);     // good
  FLAG(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);  // bad
  TSTORE(gc, x);                          // FOUND PTO-E2201
}
