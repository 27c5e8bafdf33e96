// Matrix products in registers, on one thread: f32 numbers in, f32 sums out.
//
//     multiply(m, n, k, part, pack_a, pack_b, sink)
//
// Operands are packed as floats by whoever knows their layout (matmul_operands.hpp); the sums leave through
// the sink, one short line at a time.
//
// Every sum is acc = a[i, k] * b[k, j] + acc with k rising from 0, a single chain of steps that round once: bit
// for bit what the reference engine computes. Where the machine has no such step, the C library has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "pto/core/indices.hpp"
#include "pto/core/macros.hpp"
#include "pto/ops/transpose.hpp"

namespace pto::detail::gemm {

// ---------------------------------------------------------------------------------------------------------
// Vectors of the widest kind the target has

#if defined(__AVX512F__)
inline constexpr int kLanes = 16, kHeight = 8;  // 16 sums, each with two loads in eight multiplications
#elif defined(__AVX__)
inline constexpr int kLanes = 8, kHeight = 6;
#elif defined(__aarch64__)
inline constexpr int kLanes = 4, kHeight = 8;
#else
inline constexpr int kLanes = 4, kHeight = 4;
#endif
inline constexpr int kVectors = 2, kWidth = kVectors * kLanes;

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef float LooseVec __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

inline Vec load(const float* p) { return *reinterpret_cast<const LooseVec*>(p); }
inline void save(float* p, Vec v) { *reinterpret_cast<LooseVec*>(p) = v; }

template <std::size_t... I>
inline Vec splat(float x, Indices<I...>) {
  return Vec{((void)I, x)...};
}
inline Vec splat(float x) { return splat(x, IndicesTo<kLanes>{}); }

inline Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__) && defined(__clang__)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, 0xFFFF, 4);  // 4: the rounding mode in force
#elif defined(__AVX512F__)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);  // g++ takes a signed mask
#elif defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#elif defined(__aarch64__)
  __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));  // <arm_neon.h> takes long to parse
  return c;
#else
  for (int i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

#ifdef __aarch64__
// a[lane] * b + c; of two NaNs it may keep the other than `fma` does.
inline Vec fma_lane(Vec a, int lane, Vec b, Vec c) {
  switch (lane) {
    case 0: __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(c) : "w"(b), "w"(a)); break;
    case 1: __asm__("fmla %0.4s, %1.4s, %2.s[1]" : "+w"(c) : "w"(b), "w"(a)); break;
    case 2: __asm__("fmla %0.4s, %1.4s, %2.s[2]" : "+w"(c) : "w"(b), "w"(a)); break;
    default: __asm__("fmla %0.4s, %1.4s, %2.s[3]" : "+w"(c) : "w"(b), "w"(a)); break;
  }
  return c;
}
#endif

// ---------------------------------------------------------------------------------------------------------
// Packing

// The transpose of a square to rows of `to`.
PTO_COMMON void put_turned(const float (*square)[kLanes], float* to, std::ptrdiff_t pitch);

// Memory for packed operands, kept by the thread. Nothing that uses it may wait for another core.
PTO_COMMON float* scratch(std::size_t count);

// ---------------------------------------------------------------------------------------------------------
// Products

// Takes `count` <= kWidth sums of a row; col is a multiple of kWidth. `first`: they begin a result.
struct Sink {
  void (*take)(const void* context, bool first, int row, int col, const float* sums, int count);
  const void* context;
};

// Products of packed operands: rows of `a` are `pitch` floats apart, panels of `b` are `panel` floats apart.
PTO_COMMON void multiply_packed(int m, int n, int k, const float* a, std::ptrdiff_t pitch, const float* b,
                                std::ptrdiff_t panel, bool first, const Sink& sink);

// Chains of more than this many products of 8-bit integers may leave the whole numbers that f32 has.
inline constexpr int kExactDepth = 256;

// pack_a(to, pitch) writes the m x k elements of a, pack_b(to, pitch, col, cols) the k x cols ones of b from
// column col on. Where both are 8-bit integers, k comes in parts of kExactDepth whose sums are whole numbers.
template <class PackA, class PackB>
inline void multiply(int m, int n, int k, int part, const PackA& pack_a, const PackB& pack_b,
                     const Sink& sink) {
  const std::ptrdiff_t panel = static_cast<std::ptrdiff_t>(k) * kWidth, pitch = k;
  const int panels = (n + kWidth - 1) / kWidth;
  const std::size_t left = (static_cast<std::size_t>(m) * static_cast<std::size_t>(k) + 15) / 16 * 16;
  float* const pa = scratch(left + static_cast<std::size_t>(panels * panel) + kWidth);
  float* const pb = pa + left;
  pack_a(pa, pitch);
  for (int p = 0; p < panels; ++p) {
    const int cols = n - p * kWidth < kWidth ? n - p * kWidth : kWidth;
    if (cols < kWidth) std::memset(pb + p * panel, 0, static_cast<std::size_t>(panel) * sizeof(float));
    pack_b(pb + p * panel, kWidth, p * kWidth, cols);
  }
  int from = 0;
  do {
    const int depth = k - from < part ? k - from : part;
    multiply_packed(m, n, depth, pa + from, pitch, pb + static_cast<std::ptrdiff_t>(from) * kWidth, panel,
                    from == 0, sink);
    from += part;
  } while (from < k);
}

#ifdef PTO_BODY
struct Scratch {
  float* data = nullptr;
  std::size_t size = 0;

  float* reserve(std::size_t count) {
    if (count > size) {
      release();
      data = static_cast<float*>(::operator new(count * sizeof(float), std::align_val_t{64}));
      size = count;
    }
    return data;
  }
  void release() { ::operator delete(data, std::align_val_t{64}); }
  ~Scratch() { release(); }
};
PTO_BODY float* scratch(std::size_t count) {
  static thread_local Scratch kept;
  return kept.reserve(count);
}

PTO_BODY void put_turned(const float (*square)[kLanes], float* to, std::ptrdiff_t pitch) {
  Vec v[kLanes];
  PTO_UNROLL
  for (int l = 0; l < kLanes; ++l) v[l] = load(square[l]);
  transpose<kLanes>(v);
  PTO_UNROLL
  for (int l = 0; l < kLanes; ++l) save(to + l * pitch, v[l]);
}

// sums[Rows][kWidth] of Rows lines of a (`pitch` apart) and one packed panel of b.
template <int Rows>
[[gnu::noinline]] void block(const float* a, std::ptrdiff_t pitch, const float* b, int k,
                             float (*out)[kWidth]) {
  Vec sum[Rows][kVectors] = {};
  int step = 0;
#ifdef __aarch64__
  // Four steps of a line in one register, each multiplied from there: copies to all lanes would take the
  // units that multiply.
  for (; step + 4 <= k; step += 4, b += 4 * kWidth) {
    Vec left[Rows];
    PTO_UNROLL
    for (int r = 0; r < Rows; ++r) left[r] = load(a + r * pitch + step);
    PTO_UNROLL
    for (int lane = 0; lane < 4; ++lane) {
      Vec right[kVectors];
      PTO_UNROLL
      for (int v = 0; v < kVectors; ++v) right[v] = load(b + lane * kWidth + v * kLanes);
      PTO_UNROLL
      for (int r = 0; r < Rows; ++r) {
        PTO_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[r][v] = fma_lane(left[r], lane, right[v], sum[r][v]);
      }
    }
  }
#endif
  for (; step < k; ++step, b += kWidth) {
    Vec right[kVectors];
    PTO_UNROLL
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
    PTO_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vec left = splat(a[r * pitch + step]);
      PTO_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
  }
  PTO_UNROLL
  for (int r = 0; r < Rows; ++r) {
    PTO_UNROLL
    for (int v = 0; v < kVectors; ++v) save(out[r] + v * kLanes, sum[r][v]);
  }
}

template <int Rows>
inline void rows(const float* a, std::ptrdiff_t pitch, const float* b, int k, bool first, int row, int col,
                 int wide, const Sink& sink) {
  alignas(64) float out[Rows][kWidth];
  block<Rows>(a, pitch, b, k, out);
  for (int r = 0; r < Rows; ++r) sink.take(sink.context, first, row + r, col, out[r], wide);
}

PTO_BODY void multiply_packed(int m, int n, int k, const float* a, std::ptrdiff_t pitch, const float* b,
                              std::ptrdiff_t panel, bool first, const Sink& sink) {
  for (int col = 0; col < n; col += kWidth, b += panel) {
    const int wide = n - col < kWidth ? n - col : kWidth;
    int row = 0;
    for (; row + kHeight <= m; row += kHeight)
      rows<kHeight>(a + row * pitch, pitch, b, k, first, row, col, wide, sink);
    for (; row + 2 <= m; row += 2) rows<2>(a + row * pitch, pitch, b, k, first, row, col, wide, sink);
    if (row < m) rows<1>(a + row * pitch, pitch, b, k, first, row, col, wide, sink);
  }
}
#endif

}  // namespace pto::detail::gemm
