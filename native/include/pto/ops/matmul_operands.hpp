// Operands of matrix products: elements of a tile as floats, shortened under TF32, scaled by block.
#pragma once

#include "pto/core/access.hpp"
#include "pto/ops/gemm.hpp"

namespace pto::detail {

/// f32 with `Kept` bits behind the point, rounded to nearest: ties away from zero or to even.
template <int Kept>
inline float shortened(float x, bool away) {
  constexpr int cut = 23 - Kept;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t half = (1u << (cut - 1)) - (away ? 0 : 1u - (bits >> cut & 1));
  const uint32_t rounded = (bits + half) & ~((1u << cut) - 1);
  return (bits & 0x7F800000) == 0x7F800000 ? x : __builtin_bit_cast(float, rounded);
}

/// How elements of type T become numbers to multiply; TF32 mode shortens f32 on hardware.
template <class T>
struct Operand {
  bool tf32 = false, away = false;

  Operand() {
    if constexpr (std::is_same_v<T, float> && kIsa != Isa::cpu) {
      const uint64_t ctrl = core().ctrl;
      tf32 = ctrl >> MAD_MODE_BIT & 1;
      away = ctrl >> MAD_ROUND_MODE_BIT & 1;
    }
  }
  void adjust(float* x, ptrdiff_t n) const {
    if constexpr (std::is_same_v<T, float> && kIsa != Isa::cpu) {
      constexpr int kept = kIsa == Isa::a2a3 ? 11 : 10;
      if (tf32)
        for (ptrdiff_t i = 0; i < n; ++i) x[i] = shortened<kept>(x[i], away);
    }
  }
};

struct NoScale {
  static constexpr bool any = false;
  void apply(ptrdiff_t, ptrdiff_t, ptrdiff_t, float*) const {}
};

/// Scales of 32 elements of k each: of row i of a (`Left`), or of column i of b.
template <bool Left, class Scale>
struct MxScale {
  static constexpr bool any = true;
  static constexpr ptrdiff_t group = 32;
  using T = typename Scale::DType;
  /// Powers of two scale small numbers exactly in f32, unless they leave its range.
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

/// The same from four bytes per 64 elements: Ea, an e6m2 number; Eb, a doubling per 8; Ec, one per 4
/// elements.
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

/// A reader (gemm.hpp) of a tile whose lines along k, rows of a or columns of b, may be scaled.
template <bool Left, class TileT, class Scale>
struct TileReader {
  using T = typename TileT::DType;
  static constexpr bool inner_rows = TileT::isBoxedLayout ? TileT::isInnerRowMajor : TileT::form == Form::ND;
  static constexpr bool kRowLines = Scale::any ? Left : inner_rows;  // scales go along k
  Lines<TileT, kRowLines ? Along::row : Along::col> lines;
  Scale scale;
  Operand<T> operand;

  /// Squares inside a box, whose runs are the same distance apart.
  bool read_square(ptrdiff_t line, ptrdiff_t first, float (*out)[gemm::kLanes]) const {
    constexpr ptrdiff_t n = gemm::kLanes;
    constexpr ptrdiff_t run = kRowLines ? TileT::InnerCols : TileT::InnerRows;
    constexpr ptrdiff_t high = kRowLines ? TileT::InnerRows : TileT::InnerCols;
    if constexpr (std::is_same_v<T, half> && !Scale::any && kRowLines == inner_rows && run % n == 0 &&
                  high % n == 0) {
      if (line % n != 0 || first % n != 0) return false;
      const T* at = lines.data() + lines.at(line, first);
      for (ptrdiff_t l = 0; l < n; ++l) widen(at + l * run, out[l], n);
      return true;
    }
    return false;
  }

  void read(ptrdiff_t line, ptrdiff_t first, ptrdiff_t n, float* out) const {
    if constexpr (std::is_same_v<compute_t<T>, float>) {
      const float* found = lines.template read<float>(line, first, n, out);
      if (found != out) std::memcpy(out, found, static_cast<size_t>(n) * sizeof(float));
      operand.adjust(out, n);
      scale.apply(line, first, n, out);
    } else {
      Buffer<compute_t<T>> buffer;
      for (ptrdiff_t i = 0; i < n; i += kChunk) {
        const ptrdiff_t count = n - i < kChunk ? n - i : kChunk;
        const auto* found = lines.template read<compute_t<T>>(line, first + i, count, buffer.at);
        for (ptrdiff_t j = 0; j < count; ++j) out[i + j] = static_cast<float>(found[j]);
      }
    }
  }
};

}  // namespace pto::detail
