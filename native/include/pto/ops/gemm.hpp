// Matrix products in registers, on one thread: f32 numbers in, f32 sums out.
//
//     multiply(m, n, k, a, b, store)
//
// Both operands come through readers, which give runs of their elements as floats, so that any element type
// in any layout is converted while it is packed; the sums leave through `store`, one short line at a time.
//
// Order and bound: every sum is acc = a[i, k] * b[k, j] + acc with k rising from 0, a single chain. On
// machines with fused multiply-add that is bit for bit the order of the reference engine. Without it a step
// rounds twice, unless the product is exact in f32, as those of f16, bf16 and smaller types are; for f32
// operands the result is then within k 2^-23 sum |a b| of the exact one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "pto/ops/transpose.hpp"

namespace pto::detail::gemm {

// ---------------------------------------------------------------------------------------------------------
// Vectors of the widest kind the target has

#if defined(__AVX512F__)
inline constexpr int kLanes = 16, kHeight = 8;  // 16 sums, each with two loads in eight multiplications
#elif defined(__AVX__)
inline constexpr int kLanes = 8, kHeight = 6;
#else
inline constexpr int kLanes = 4, kHeight = 4;
#endif
inline constexpr int kVectors = 2, kWidth = kVectors * kLanes;

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef float LooseVec __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

inline Vec load(const float* p) { return *reinterpret_cast<const LooseVec*>(p); }
inline void save(float* p, Vec v) { *reinterpret_cast<LooseVec*>(p) = v; }

template <std::size_t... I>
inline Vec splat(float x, std::index_sequence<I...>) {
  return Vec{((void)I, x)...};
}
inline Vec splat(float x) { return splat(x, std::make_index_sequence<kLanes>{}); }

inline Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);  // 4: the rounding mode in force
#elif defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  return a * b + c;
#endif
}

// ---------------------------------------------------------------------------------------------------------
// Packing

// A reader gives runs of a matrix: read(line, start, count, out). If `kRowLines` a line is a row and the run
// lies along it; otherwise a line is a column. read_square(line, start, out) gives kLanes runs of kLanes
// elements, or false if it does not know a way that is better.
template <bool RowLines, class Function>
struct Reader {
  static constexpr bool kRowLines = RowLines;
  Function read;
  bool read_square(int, int, float (*)[kLanes]) const { return false; }
};
template <bool RowLines, class Function>
Reader<RowLines, Function> reader(Function f) {
  return {f};
}

// The transpose of a square to rows of `to`.
[[gnu::noinline]] inline void put_turned(const float (*square)[kLanes], float* to, std::ptrdiff_t pitch) {
  Vec v[kLanes];
  PTO_UNROLL
  for (int l = 0; l < kLanes; ++l) v[l] = load(square[l]);
  transpose<kLanes>(v);
  PTO_UNROLL
  for (int l = 0; l < kLanes; ++l) save(to + l * pitch, v[l]);
}

// Squares of a matrix whose lines are columns, as rows of `to`. Readers that can give a whole square do.
template <class Source>
inline void turn(float* to, std::ptrdiff_t pitch, int row, int high, int col, int wide, const Source& from) {
  alignas(sizeof(Vec)) float square[kLanes][kLanes];
  const bool whole = high == kLanes && wide == kLanes;
  if (!whole || !from.read_square(col, row, square)) {
    if (!whole) std::memset(square, 0, sizeof square);
    for (int l = 0; l < wide; ++l) from.read(col + l, row, high, square[l]);
  }
  if (whole) return put_turned(square, to, pitch);
  put_turned(square, square[0], kLanes);
  for (int l = 0; l < high; ++l)
    std::memcpy(to + l * pitch, square[l], static_cast<std::size_t>(wide) * sizeof(float));
}

// Rows 0 .. rows, columns first .. first + cols of a matrix, as rows of `to`, which are `pitch` floats apart.
template <class Source>
inline void pack(float* to, std::ptrdiff_t pitch, int rows, int first, int cols, const Source& from) {
  if constexpr (Source::kRowLines) {
    for (int r = 0; r < rows; ++r) from.read(r, first, cols, to + r * pitch);
  } else {
    for (int r = 0; r < rows; r += kLanes) {
      const int high = rows - r < kLanes ? rows - r : kLanes;
      for (int c = 0; c < cols; c += kLanes) {
        const int wide = cols - c < kLanes ? cols - c : kLanes;
        turn(to + r * pitch + c, pitch, r, high, first + c, wide, from);
      }
    }
  }
}

// Memory for packed operands, kept by the thread. Nothing that uses it may wait for another core.
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
inline Scratch& scratch() {
  static thread_local Scratch kept;
  return kept;
}

// ---------------------------------------------------------------------------------------------------------
// Products

// sums[Rows][Columns vectors] of Rows lines of a (`pitch` apart) and one packed panel of b.
template <int Rows, int Columns>
[[gnu::noinline]] void block(const float* a, std::ptrdiff_t pitch, const float* b, int k,
                             float (*out)[kWidth]) {
  Vec sum[Rows][Columns] = {};
  for (int step = 0; step < k; ++step, b += kWidth) {
    Vec right[Columns];
    PTO_UNROLL
    for (int v = 0; v < Columns; ++v) right[v] = load(b + v * kLanes);
    PTO_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vec left = splat(a[r * pitch + step]);
      PTO_UNROLL
      for (int v = 0; v < Columns; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
  }
  PTO_UNROLL
  for (int r = 0; r < Rows; ++r) {
    PTO_UNROLL
    for (int v = 0; v < Columns; ++v) save(out[r] + v * kLanes, sum[r][v]);
  }
}

template <int Rows, class Store>
inline void rows(const float* a, std::ptrdiff_t pitch, const float* b, int k, int row, int col, int wide,
                 Store& store) {
  alignas(64) float out[Rows][kWidth];
  if (wide > kLanes) {
    block<Rows, kVectors>(a, pitch, b, k, out);
  } else {
    block<Rows, 1>(a, pitch, b, k, out);
  }
  for (int r = 0; r < Rows; ++r) store(row + r, col, static_cast<const float*>(out[r]), wide);
}

// Products of packed operands: rows of `a` are `pitch` floats apart, panels of `b` are `panel` floats apart.
// store(row, col, line, count) takes `count` <= kWidth sums; col is a multiple of kWidth.
template <class Store>
inline void multiply_packed(int m, int n, int k, const float* a, std::ptrdiff_t pitch, const float* b,
                            std::ptrdiff_t panel, Store&& store) {
  for (int col = 0; col < n; col += kWidth, b += panel) {
    const int wide = n - col < kWidth ? n - col : kWidth;
    int row = 0;
    for (; row + kHeight <= m; row += kHeight)
      rows<kHeight>(a + row * pitch, pitch, b, k, row, col, wide, store);
    for (; row + 2 <= m; row += 2) rows<2>(a + row * pitch, pitch, b, k, row, col, wide, store);
    if (row < m) rows<1>(a + row * pitch, pitch, b, k, row, col, wide, store);
  }
}

// Chains of more than this many products of 8-bit integers may leave the whole numbers that f32 has.
inline constexpr int kExactDepth = 256;

// store(first, row, col, line, count): sums of a x b. Where both are 8-bit integers (`Whole`), `k` comes in
// parts whose sums are whole numbers exact in f32, and `first` says which call begins a result.
template <bool Whole = false, class A, class B, class Store>
inline void multiply(int m, int n, int k, const A& a, const B& b, Store&& store) {
  const std::ptrdiff_t panel = static_cast<std::ptrdiff_t>(k) * kWidth, pitch = k;
  const int panels = (n + kWidth - 1) / kWidth;
  const std::size_t left = (static_cast<std::size_t>(m) * k + 15) / 16 * 16;
  float* const pa = scratch().reserve(left + static_cast<std::size_t>(panels * panel) + kWidth);
  float* const pb = pa + left;
  pack(pa, pitch, m, 0, k, a);
  for (int p = 0; p < panels; ++p) {
    const int cols = n - p * kWidth < kWidth ? n - p * kWidth : kWidth;
    if (cols < kWidth) std::memset(pb + p * panel, 0, static_cast<std::size_t>(panel) * sizeof(float));
    pack(pb + p * panel, kWidth, k, p * kWidth, cols, b);
  }
  const int part = Whole ? kExactDepth : k;
  int from = 0;
  do {
    const int depth = k - from < part ? k - from : part;
    const auto hand_over = [&store, first = from == 0](int row, int col, const float* line, int count) {
      store(first, row, col, line, count);
    };
    multiply_packed(m, n, depth, pa + from, pitch, pb + static_cast<std::ptrdiff_t>(from) * kWidth, panel,
                    hand_over);
    from += part;
  } while (from < k);
}

}  // namespace pto::detail::gemm
