// Matrix products in registers, on one thread: f32 numbers in, f32 sums out.
//
//     multiply(m, n, k, part, pack_a, pack_b, sink)
//
// The caller packs operands as floats by their layout (matmul_operands.hpp). The sums leave through the sink,
// a few short lines at a time.
//
// Every sum is a single chain of fused multiply-adds acc = a[i, k] * b[k, j] + acc with k rising from 0, as
// in the reference engine, bit for bit. On machines without FMA, the C library computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "pto/core/indices.hpp"
#include "pto/core/macros.hpp"
#include "pto/ops/gemm_neon.hpp"
#include "pto/ops/transpose.hpp"

namespace pto::detail::gemm {

// ---------------------------------------------------------------------------------------------------------
// Vectors of the widest kind the target has

#if defined(__AVX512F__)
inline constexpr int kLanes = 16, kHeight = 8;  // 16 vector sums: a step loads two vectors of b
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
#if defined(__FMA__) && __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);  // the newest clang has no builtin of the instruction
#elif defined(__AVX512F__) && defined(__clang__)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, 0xFFFF, 4);  // 4: the rounding mode in force
#elif defined(__AVX512F__)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);  // g++ takes a signed mask
#elif defined(__FMA__)
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));  // its builtin is not in every clang
  return c;
#elif defined(__aarch64__)
  __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));  // <arm_neon.h> takes long to parse
  return c;
#else
  for (int i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

#ifdef __aarch64__
// Return a[lane] * b + c. Of two NaNs it may return the one that `fma` does not.
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

// Transpose a square into rows of `to`.
inline void put_turned(const float (*square)[kLanes], float* to, std::ptrdiff_t pitch) {
  Vec v[kLanes];
  PTO_UNROLL
  for (int l = 0; l < kLanes; ++l) v[l] = load(square[l]);
  transpose<kLanes>(v);
  PTO_UNROLL
  for (int l = 0; l < kLanes; ++l) save(to + l * pitch, v[l]);
}

// Return the thread's memory for packed operands. Code that uses it must not wait for another core.
PTO_COMMON float* scratch(std::size_t count);

// ---------------------------------------------------------------------------------------------------------
// Products

// A matrix of floats. Columns are contiguous in boxes of 2^bits columns, which are at least kLanes.
struct Floats {
  float* data = nullptr;
  std::ptrdiff_t row = 0, across = 0;
  int bits = 0;
  float* at(std::ptrdiff_t r, std::ptrdiff_t c) const {
    return data + r * row + (c >> bits) * across + (c & ((std::ptrdiff_t{1} << bits) - 1));
  }
};

// Takes `count` <= kWidth sums of each row; col is a multiple of kWidth. `first`: they begin a result.
struct Sink {
  void (*take)(const void* context, bool first, int row, int rows, int col, const float (*sums)[kWidth],
               int count);
  const void* context;
  // The direct destination of whole blocks, if known, and the values that they are added to.
  Floats out{}, in{};
};

// Multiply packed operands: lines of `a` are `pitch` floats apart, panels of `b` are `panel` floats apart.
// Lines of `a` are read from step `from` on.
PTO_COMMON void multiply_packed(int m, int n, int k, const float* a, std::ptrdiff_t pitch, const float* b,
                                std::ptrdiff_t panel, int from, const Sink& sink);

// Longer chains of products of 8-bit integers may exceed the whole numbers that f32 can represent.
inline constexpr int kExactDepth = 256;

// Call pack(to, pitch, col, cols) for every panel of b: it packs the k x cols elements from column col on.
template <class Pack>
inline void by_panels(float* to, std::ptrdiff_t panel, int n, const Pack& pack) {
  for (int col = 0; col < n; col += kWidth, to += panel)
    pack(to, kWidth, col, n - col < kWidth ? n - col : kWidth);
}

// Multiply. pack_a(to) writes the lines of a, k floats each; pack_b(to, panel) the panels of b, `panel`
// floats apart. k is cut into parts of `part` steps: for 8-bit integers kExactDepth, so that sums are exact.
template <class PackA, class PackB>
inline void multiply(int m, int n, int k, int part, const PackA& pack_a, const PackB& pack_b,
                     const Sink& sink) {
  const std::ptrdiff_t panel = static_cast<std::ptrdiff_t>(k) * kWidth, pitch = k;
  const int panels = (n + kWidth - 1) / kWidth;
  const std::size_t left = (static_cast<std::size_t>(m) * static_cast<std::size_t>(k) + 15) / 16 * 16;
  float* const pa = scratch(left + static_cast<std::size_t>(panels * panel) + kWidth);
  float* const pb = pa + left;
  pack_a(pa);
  if (n % kWidth != 0)
    std::memset(pb + (panels - 1) * panel, 0, static_cast<std::size_t>(panel) * sizeof(float));
  pack_b(pb, panel);
  int from = 0;
  do {
    const int depth = k - from < part ? k - from : part;
    multiply_packed(m, n, depth, pa, pitch, pb + static_cast<std::ptrdiff_t>(from) * kWidth, panel, from,
                    sink);
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

// Sum the products of Rows lines of a (`pitch` apart) and one packed panel of b.
template <int Rows>
PTO_INLINE void sum_up(const float* a, std::ptrdiff_t pitch, const float* b, int k,
                       Vec (&sum)[Rows][kVectors]) {
  int step = 0;
#ifdef __aarch64__
  // Keep four steps of a line in one register and multiply by lane: broadcasts would occupy the units that
  // multiply.
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
  PTO_TWICE
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
}

// The addresses of the lines of a block, `row` floats apart. A line is cut into runs of columns that are
// contiguous in every layout.
inline constexpr int kRuns = kWidth > 16 ? kWidth / 16 : 1, kInRun = kVectors / kRuns;
struct Spot {
  float* at[kRuns];
  std::ptrdiff_t row;
  Spot(float (*lines)[kWidth]) : row(kWidth) {
    for (int i = 0; i < kRuns; ++i) at[i] = *lines + i * kInRun * kLanes;
  }
  Spot(const Floats& to, int r, int c) : row(to.row) {
    for (int i = 0; i < kRuns; ++i) at[i] = to.at(r, c + i * kInRun * kLanes);
  }
  void go(int rows) {
    for (int i = 0; i < kRuns; ++i) at[i] += rows * row;
  }
};

// Store the sums of a block at `out`; if Joins, add the values at `in`.
template <int Rows, bool Joins>
PTO_INLINE void block(const float* a, std::ptrdiff_t pitch, const float* b, int k, const Spot& out,
                      const Spot& in) {
#ifdef __aarch64__
  if constexpr (Rows == kHeight) {
    if (k % 4 == 0 && k > 0) return neon_block<Joins>(a, pitch, b, k, out.at[0], out.row, in.at[0], in.row);
  }
#endif
  Vec sum[Rows][kVectors] = {};
  sum_up<Rows>(a, pitch, b, k, sum);
  PTO_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    float* to = out.at[v / kInRun] + v % kInRun * kLanes;
    const float* from = in.at[v / kInRun] + v % kInRun * kLanes;
    PTO_UNROLL
    for (int r = 0; r < Rows; ++r, to += out.row, from += in.row) {
      if constexpr (Joins) {
        save(to, load(from) + sum[r][v]);
      } else {
        save(to, sum[r][v]);
      }
    }
  }
}

// A panel of b, which stays in the cache, and `lines` lines of a to multiply it with, from `row` on.
struct Strip {
  const float* a;
  std::ptrdiff_t pitch;
  const float* b;
  int k, row, lines, col;
};

template <int Rows, bool Joins>
[[gnu::noinline]] void straight(Strip s, const Floats& to, const Floats& joins) {
  Spot out(to, s.row, s.col), in = Joins ? Spot(joins, s.row, s.col) : out;
  for (; s.lines > 0; s.lines -= Rows, s.a += Rows * s.pitch) {
    block<Rows, Joins>(s.a, s.pitch, s.b, s.k, out, in);
    out.go(Rows);
    in.go(Rows);
  }
}

// Compute a strip and pass `wide` columns of its sums to the sink.
template <int Rows>
[[gnu::noinline]] void sunk(Strip s, bool first, int wide, const Sink& sink) {
  alignas(64) float sums[Rows][kWidth];
  const Spot out(sums);
  for (; s.lines > 0; s.lines -= Rows, s.row += Rows, s.a += Rows * s.pitch) {
    block<Rows, false>(s.a, s.pitch, s.b, s.k, out, out);
    sink.take(sink.context, first, s.row, Rows, s.col, sums, wide);
  }
}

// Compute as many rows as fill blocks of Rows; return the first row that is left.
template <int Rows>
inline int down(int row, int m, int n, int k, const float* a, std::ptrdiff_t pitch, const float* b,
                std::ptrdiff_t panel, int from, const Sink& sink) {
  const int lines = (m - row) / Rows * Rows;
  for (int col = 0; col < n && lines > 0; col += kWidth, b += panel) {
    const Strip strip{a + row * pitch + from, pitch, b, k, row, lines, col};
    const int wide = n - col < kWidth ? n - col : kWidth;
    if (sink.out.data == nullptr || from > 0 || wide < kWidth) {
      sunk<Rows>(strip, from == 0, wide, sink);
    } else if (sink.in.data != nullptr) {
      straight<Rows, true>(strip, sink.out, sink.in);
    } else {
      straight<Rows, false>(strip, sink.out, {});
    }
  }
  return row + lines;
}

PTO_BODY void multiply_packed(int m, int n, int k, const float* a, std::ptrdiff_t pitch, const float* b,
                              std::ptrdiff_t panel, int from, const Sink& sink) {
  int row = down<kHeight>(0, m, n, k, a, pitch, b, panel, from, sink);
  row = down<2>(row, m, n, k, a, pitch, b, panel, from, sink);
  down<1>(row, m, n, k, a, pitch, b, panel, from, sink);
}
#endif

}  // namespace pto::detail::gemm
