// Operands of matrix products: elements of a tile as floats, rounded in HF32 or TF32 mode, scaled by block.
#pragma once

#include "pto/core/access.hpp"
#include "pto/ops/gemm.hpp"
#include "pto/ops/place.hpp"

namespace pto::detail {

/// Round an f32 to nearest with `Kept` bits after the point; ties go away from zero or to even.
template <int Kept>
inline float shortened(float x, bool away) {
  constexpr int cut = 23 - Kept;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t half = (1u << (cut - 1)) - (away ? 0 : 1u - (bits >> cut & 1));
  const uint32_t rounded = (bits + half) & ~((1u << cut) - 1);
  return (bits & 0x7F800000) == 0x7F800000 ? x : __builtin_bit_cast(float, rounded);
}

/// Round an f32 to `kept` bits after the point in any rounding mode.
inline float shortened_by(float x, int kept, RoundMode mode) {
  const float size = __builtin_fabsf(x);
  if (!(size > 0 && size <= 0x1.fffffep127f)) return x;
  const int power = __builtin_ilogbf(x), unit = (power < -126 ? -126 : power) - kept;
  const double y = __builtin_ldexp(static_cast<double>(x), -unit), whole = __builtin_trunc(y);
  const double rest = __builtin_fabs(y - whole);
  double made = whole;
  switch (mode) {
    case RoundMode::CAST_RINT: made = __builtin_rint(y); break;
    case RoundMode::CAST_FLOOR: made = __builtin_floor(y); break;
    case RoundMode::CAST_CEIL: made = __builtin_ceil(y); break;
    case RoundMode::CAST_ROUND: made = rest >= 0.5 ? whole + __builtin_copysign(1.0, y) : whole; break;
    case RoundMode::CAST_ODD: made = rest == 0.5 ? 2 * __builtin_floor(y / 2) + 1 : __builtin_rint(y); break;
    default: break;
  }
  return static_cast<float>(__builtin_ldexp(made, unit));
}

/// The rounding of f32 operands. HF32 mode is for hardware only. While bit 60 of CTRL is set, the cpu profile
/// ignores TF32 mode; while it is clear, TF32 mode switches HF32 mode off.
template <class T>
struct Operand {
  bool tf32 = false, away = false;
  int8_t hf32 = -1;

  Operand() {
    if constexpr (std::is_same_v<T, float>) {
      const uint64_t ctrl = core().ctrl;
      tf32 = ctrl >> MAD_MODE_BIT & 1 && (kIsa != Isa::cpu || (ctrl >> 60 & 1) == 0);
      away = ctrl >> MAD_ROUND_MODE_BIT & 1;
      if (kIsa != Isa::cpu && (!tf32 || (ctrl >> 60 & 1) != 0)) hf32 = core().hf32;
    }
  }
  void adjust(float* x, ptrdiff_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (hf32 >= 0)
        for (ptrdiff_t i = 0; i < n; ++i) x[i] = shortened_by(x[i], 11, static_cast<RoundMode>(hf32));
      if (tf32 && kIsa == Isa::a2a3)
        for (ptrdiff_t i = 0; i < n; ++i) x[i] = shortened<11>(x[i], away);
      else if (tf32)
        for (ptrdiff_t i = 0; i < n; ++i) x[i] = shortened<10>(x[i], away);
    }
  }
};

struct NoScale {
  static constexpr bool any = false;
  void apply(ptrdiff_t, ptrdiff_t, ptrdiff_t, float*) const {}
};

/// Scales of 32 elements each along k: of row i of a (`Left`), or of column i of b.
template <bool Left, class Scale>
struct MxScale {
  static constexpr bool any = true;
  static constexpr ptrdiff_t group = 32;
  using T = typename Scale::DType;
  /// Powers of two scale small numbers exactly in f32, unless the result leaves the range of f32.
  static constexpr bool is_power = sizeof(T) == 1 && (dtype_of<T> == DType::f8e8m0 || !is_float_v<T>);
  Lines<Scale, Left ? Along::row : Along::col> lines;

  explicit MxScale(const Scale& tile) : lines(tile) {}
  auto factor(ptrdiff_t i, ptrdiff_t k) const {
    if constexpr (is_power) {
      return decode_code<DType::f8e8m0>(__builtin_bit_cast(uint8_t, lines.get(i, k / group)));
    } else {
      return static_cast<double>(lines.template get<compute_t<T>>(i, k / group));
    }
  }
  bool is_small(ptrdiff_t size, ptrdiff_t depth) const {
    if constexpr (!is_power) return false;
    for (ptrdiff_t i = 0; i < size; ++i) {
      for (ptrdiff_t k = 0; k < depth; k += group)
        if (const auto f = factor(i, k); f < 0x1p-100f || f > 0x1p100f) return false;
    }
    return true;
  }
  void apply(ptrdiff_t i, ptrdiff_t k, ptrdiff_t n, float* x) const {
    for (ptrdiff_t done = 0, step; done < n; done += step) {
      step = group - (k + done) % group;
      if (step > n - done) step = n - done;
      const float f = static_cast<float>(factor(i, k + done));
      for (ptrdiff_t j = 0; j < step; ++j) x[done + j] *= f;
    }
  }
};

/// HiFloat4 scales of four bytes per 64 elements: Ea is an e6m2 number, Eb has a doubling bit per 8 elements,
/// Ec one per 4 elements.
template <bool Left, class Scale>
struct Hif4Scale {
  static constexpr bool any = true;
  Lines<Scale, Left ? Along::row : Along::col> lines;

  explicit Hif4Scale(const Scale& tile) : lines(tile) {}
  float factor(ptrdiff_t i, ptrdiff_t k) const {
    const ptrdiff_t cell = k / 64 * 4, t = k % 64;
    const uint32_t ea = lines.get(i, cell), eb = lines.get(i, cell + 1);
    const uint32_t ec =
        static_cast<uint32_t>(lines.get(i, cell + 2)) | static_cast<uint32_t>(lines.get(i, cell + 3)) << 8;
    if (ea == 0xFF) return __builtin_nanf("");
    const uint32_t power = (ea >> 2) - 48 + 127 + (eb >> (t / 8) & 1) + (ec >> (t / 4) & 1);
    return __builtin_bit_cast(float, power << 23 | (ea & 3) << 21);
  }
  bool is_small(ptrdiff_t, ptrdiff_t) const { return true; }
  void apply(ptrdiff_t i, ptrdiff_t k, ptrdiff_t n, float* x) const {
    for (ptrdiff_t j = 0; j < n; ++j) x[j] *= factor(i, k + j);
  }
};

// --- packing ----------------------------------------------------------------------------------------------

/// Lines to prefetch ahead, for lines this many bytes apart (global memory): processors do not predict them.
inline constexpr ptrdiff_t kAhead = 8, kFarApart = 512;

/// Convert lines of n contiguous elements, `step` elements apart, to lines of floats, `pitch` apart.
template <class T>
[[gnu::noinline]] void read_lines(const T* from, ptrdiff_t step, float* to, ptrdiff_t pitch, ptrdiff_t lines,
                                  ptrdiff_t n) {
  const bool far = step * static_cast<ptrdiff_t>(sizeof(T)) >= kFarApart;
  for (ptrdiff_t l = 0; l < lines; ++l, from += step, to += pitch) {
    if (far)
      for (ptrdiff_t i = 0; i < n; i += 64 / static_cast<ptrdiff_t>(sizeof(T)))
        __builtin_prefetch(from + kAhead * step + i);
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
      continue;
    }
#ifdef PTO_CONVERTS_HALVES
    if constexpr (std::is_same_v<T, half>) {
      if (n == 16) {  // the width of a box
        PTO_UNROLL
        for (int i = 0; i < 16; i += kHalves) widen_halves(from + i, to + i);
        continue;
      }
      if (n == gemm::kWidth) {  // and of a panel
        PTO_UNROLL
        for (int i = 0; i < gemm::kWidth; i += kHalves) widen_halves(from + i, to + i);
        continue;
      }
      if (n == kHalves) {  // and of a square
        widen_halves(from, to);
        continue;
      }
    }
#endif
    if constexpr (!std::is_same_v<T, float>) widen(from, to, n);
  }
}

/// Two-byte codes that are transposed together: as many as widen to a vector of floats, at least eight.
inline constexpr int kCodes = gemm::kLanes < 8 ? 8 : gemm::kLanes;
using Codes = Lane<uint16_t, kCodes>::Vec;

/// Widen codes of f16 or bf16 to floats.
template <class T>
PTO_INLINE void widen_codes(Codes codes, float* to) {
#if defined(__aarch64__)
  if constexpr (std::is_same_v<T, half>) {
    Floats low, high;
    __asm__("fcvtl %0.4s, %1.4h" : "=w"(low) : "w"(codes));
    __asm__("fcvtl2 %0.4s, %1.8h" : "=w"(high) : "w"(codes));
    std::memcpy(to, &low, sizeof low);
    std::memcpy(to + 4, &high, sizeof high);
    return;
  }
#endif
  if constexpr (std::is_same_v<T, bfloat16_t>) {
    typedef uint32_t Wide __attribute__((vector_size(kCodes * sizeof(uint32_t))));
    const Wide bits = __builtin_convertvector(codes, Wide) << 16;
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, half>) {
    typedef short Shorts __attribute__((vector_size(32)));
    gemm::save(to, __builtin_ia32_vcvtph2ps512_mask(__builtin_bit_cast(Shorts, codes), gemm::Vec{}, -1, 4));
    return;
  }
#endif
  T elements[kCodes];
  std::memcpy(static_cast<void*>(elements), &codes, sizeof codes);
#ifdef PTO_CONVERTS_HALVES
  if constexpr (std::is_same_v<T, half>) {
    PTO_UNROLL
    for (int i = 0; i < kCodes; i += kHalves) widen_halves(elements + i, to + i);
    return;
  }
#endif
  read_lines(elements, kCodes, to, kCodes, 1, kCodes);
}

#ifdef __aarch64__
/// Widen eight vectors of halves and store them one after the other: this order is faster than the one that
/// compilers choose.
PTO_INLINE void widen_eight(const Codes (&v)[8], float* to) {
  Floats low, high;
#define PTO_WIDEN_(n, at) \
  "fcvtl %0.4s, %" #n ".4h\n\tfcvtl2 %1.4s, %" #n ".8h\n\tstp %q0, %q1, [%2, #" #at "]\n\t"
  __asm__ volatile(PTO_WIDEN_(3, 0) PTO_WIDEN_(4, 32) PTO_WIDEN_(5, 64) PTO_WIDEN_(6, 96) PTO_WIDEN_(7, 128)
                       PTO_WIDEN_(8, 160) PTO_WIDEN_(9, 192) PTO_WIDEN_(10, 224)
                   : "=&w"(low), "=&w"(high)
                   : "r"(to), "w"(v[0]), "w"(v[1]), "w"(v[2]), "w"(v[3]), "w"(v[4]), "w"(v[5]), "w"(v[6]),
                     "w"(v[7])
                   : "memory");
#undef PTO_WIDEN_
}
#endif

/// Transpose and widen kCodes lines of 8 two-byte elements, `step` apart.
template <class T, ptrdiff_t Pitch = 0>
PTO_INLINE void put_square(const T* from, ptrdiff_t step, float* to, ptrdiff_t pitch = Pitch) {
  Codes v[8];
  take_columns<kCodes>(reinterpret_cast<const uint16_t*>(from), step, v);
#ifdef __aarch64__
  if constexpr (std::is_same_v<T, half> && Pitch == 8) return widen_eight(v, to);
#endif
  PTO_UNROLL
  for (int i = 0; i < 8; ++i) widen_codes<T>(v[i], to + i * pitch);
}

/// Pack panels from 16 x 16 boxes with contiguous columns, the common case: steps are constants here.
template <class T>
inline bool pack_boxes(float* to, ptrdiff_t pitch, const Place<T>& from, int rows, int first, int cols) {
  constexpr ptrdiff_t box = 16, width = gemm::kWidth;
  const Axis &down = from.rows, &across = from.cols;
  const bool together = across.digits == 1 || (across.size[0] == box && (across.first + first) % kCodes == 0);
  if (pitch != width || cols != width || rows % box != 0 || across.step[0] != box || !together ||
      down.digits != 2 || down.size[0] != box || down.first % box != 0)
    return false;
  for (ptrdiff_t c = 0; c < width; c += kCodes) {
    const T* at = from.data + across.at(first + c) + down.at(0);
    float* out = to + c;
    for (ptrdiff_t r = 0; r < rows; r += box, at += down.step[1], out += box * width) {
      put_square<T, width>(at, box, out);
      put_square<T, width>(at + 8, box, out + 8 * width);
    }
  }
  return true;
}

/// Pack `rows` rows and `cols` columns of a place, from column `first` on, to rows of `to`, `pitch` apart.
template <class T>
[[gnu::noinline]] void pack(float* to, ptrdiff_t pitch, const Place<T>& from, int rows, int first, int cols) {
  constexpr int lanes = gemm::kLanes;
  if (bits_of<T> == 4 || !(from.cols.side_by_side() || from.rows.side_by_side())) {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      const ptrdiff_t row = from.rows.at(r);
      Walk f(from.cols, first);
      for (ptrdiff_t c = 0; c < cols; ++c, f.go(1)) {
        const T element = element_at(from.data, static_cast<size_t>(row + f.at));
        to[r * pitch + c] = static_cast<float>(value_of<compute_t<T>>(element));
      }
    }
    return;
  }
  if (from.cols.side_by_side()) {
    for (ptrdiff_t r = 0, high; r < rows; r += high) {
      high = lesser(rows - r, from.rows.left(r));
      const T* const row = from.data + from.rows.at(r);
      Walk f(from.cols, first);
      for (ptrdiff_t c = 0, wide; c < cols; c += wide, f.go(wide)) {
        wide = lesser(cols - c, f.left);
        read_lines(row + f.at, from.rows.step[0], to + r * pitch + c, pitch, high, wide);
      }
    }
    return;
  }
  // Elements that are contiguous along columns are transposed in squares.
  constexpr bool in_eights = sizeof(T) == 2 && is_small_float<T>;
  if constexpr (in_eights) {
    if (pack_boxes(to, pitch, from, rows, first, cols)) return;
  }
  constexpr ptrdiff_t side = in_eights ? 8 : lanes, broad = in_eights ? kCodes : lanes;
  const ptrdiff_t step = from.cols.step[0];
  alignas(64) float square[broad][side];
  Walk f(from.cols, first);
  for (ptrdiff_t c = 0, wide; c < cols; c += wide, f.go(wide)) {
    wide = lesser(lesser(cols - c, broad), f.left);
    const T* const col = from.data + f.at;
    Walk g(from.rows);
    for (ptrdiff_t r = 0, high; r < rows; r += high, g.go(high)) {
      float* const at = to + r * pitch + c;
      if constexpr (in_eights) {
        high = lesser(rows - r, g.left) / side * side;
        if (wide == broad && high > 0) {
          for (ptrdiff_t i = 0; i < high; i += side) put_square(col + g.at + i, step, at + i * pitch, pitch);
          continue;
        }
      }
      high = lesser(lesser(rows - r, side), g.left);
      const bool whole = high == side && wide == broad;
      read_lines(col + g.at, step, square[0], side, wide, high);
      if constexpr (!in_eights) {
        if (whole) {
          gemm::put_turned(square, at, pitch);
          continue;
        }
      }
      for (ptrdiff_t i = 0; i < high; ++i)
        for (ptrdiff_t l = 0; l < wide; ++l) at[i * pitch + l] = square[l][i];
    }
  }
}

/// Pack all panels of a place. If its rows are contiguous, pack a few rows of all panels at a time: a long
/// memory line serves all panels while it is in the cache.
template <class T>
[[gnu::noinline]] void pack_all(float* to, ptrdiff_t panel, const Place<T>& from, int rows, int cols) {
  constexpr ptrdiff_t width = gemm::kWidth, band = 8;
  if (bits_of<T> == 4 || !from.cols.side_by_side()) {
    gemm::by_panels(to, panel, cols, [&](float* at, ptrdiff_t pitch, int first, int count) {
      pack(at, pitch, from, rows, first, count);
    });
    return;
  }
  for (ptrdiff_t r = 0, high; r < rows; r += high) {
    high = lesser(lesser(rows - r, band), from.rows.left(r));
    const T* const row = from.data + from.rows.at(r);
    Walk f(from.cols);
    for (ptrdiff_t c = 0, wide; c < cols; c += wide, f.go(wide)) {
      wide = lesser(lesser(cols - c, width - c % width), f.left);
      read_lines(row + f.at, from.rows.step[0], to + c / width * panel + r * width + c % width, width, high,
                 wide);
    }
  }
}

/// An operand with scales, read by lines along k: rows of a or columns of b.
template <bool Left, class TileT, class Scale>
struct ScaledOperand {
  Lines<TileT, Left ? Along::row : Along::col> lines;
  Scale scale;

  void read(ptrdiff_t line, ptrdiff_t first, ptrdiff_t n, float* out) const {
    const float* found = lines.template read<float>(line, first, n, out);
    if (found != out) std::memcpy(out, found, static_cast<size_t>(n) * sizeof(float));
    scale.apply(line, first, n, out);
  }
};

}  // namespace pto::detail
