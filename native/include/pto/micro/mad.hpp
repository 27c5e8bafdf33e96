// Products of an L0A and an L0B operand into L0C, on pointers: mad and mad_mx.
//
// The sums are those of tiles (ops/matmul.hpp): a chain of fused multiply-adds with k rising from 0, and the
// old contents or the bias added at the end. CTRL selects the rounding of f32 operands. If bits 60 and 48 of
// CTRL are clear, infinities become the largest finite values, NaN becomes 0, and sums stay finite. A product
// with its own saturation option clears bit 60.
#pragma once

#include "pto/ops/bursts.hpp"
#include "pto/ops/matmul.hpp"

namespace pto::detail {

constexpr ptrdiff_t up_to(ptrdiff_t size, ptrdiff_t unit) { return (size + unit - 1) / unit * unit; }

/// Return the layout of a matrix in boxes.
template <class T>
inline Place<T> boxed(T* data, Form form, ptrdiff_t box_rows, ptrdiff_t box_cols, ptrdiff_t rows,
                      ptrdiff_t cols) {
  Place<T> found;
  found.data = data;
  describe_tile({form, static_cast<int32_t>(box_rows), static_cast<int32_t>(box_cols),
                 static_cast<int32_t>(up_to(cols, box_cols))},
                up_to(rows, box_rows), found.rows, found.cols);
  return found;
}

/// Return the layout at a pointer into a buffer, after a check of its extent.
template <class T>
inline Place<T> placed(const char* name, Place<T> found, TileType space, ptrdiff_t rows, ptrdiff_t cols) {
  const int64_t last = found.at(rows - 1, cols - 1);
  found.data =
      reinterpret_cast<T*>(on_chip_bytes(name, found.data, space, 0, ((last + 1) * bits_of<T> + 7) / 8));
  return found;
}

/// The MX scales of an operand, a byte per 32 elements: boxes of 16 lines and 2 groups.
struct Scales {
  const uint8_t* data = nullptr;
  ptrdiff_t pairs = 0;

  float of(ptrdiff_t line, ptrdiff_t k) const {
    const ptrdiff_t g = k / 32, box = line / 16 * pairs + g / 2;
    return decode_code<DType::f8e8m0>(data[box * 32 + line % 16 * 2 + g % 2]);
  }
  bool is_small(ptrdiff_t lines, ptrdiff_t depth) const {
    for (ptrdiff_t i = 0; i < lines; ++i)
      for (ptrdiff_t k = 0; k < depth; k += 32)
        if (const float f = of(i, k); f < 0x1p-100f || f > 0x1p100f) return false;
    return true;
  }
};
inline Scales scales_of(const char* name, TileType operands, TileType space, const void* operand,
                        ptrdiff_t lines, ptrdiff_t k) {
  const int64_t at = on_chip_offset(operand, operands);
  if (at < 0) failf("[PTO-E2101] %s: an operand outside its buffer has no scales", name);
  const ptrdiff_t pairs = k / 64;
  const auto pointer = reinterpret_cast<const void*>(static_cast<uintptr_t>(at / 16));
  const char* found = on_chip_bytes(name, pointer, space, 0, up_to(lines, 16) / 16 * pairs * 32);
  return {reinterpret_cast<const uint8_t*>(found), pairs};
}

/// An operand as lines of numbers along k: rows of the left operand, columns of the right operand.
template <class T>
struct MadOperand {
  Place<T> place;  // lines are rows
  Scales scales;
  bool ordinary;
  Operand<T> rounding;

  double get(ptrdiff_t line, ptrdiff_t k) const {
    const T element = element_at(place.data, static_cast<size_t>(place.at(line, k)));
    float x = static_cast<float>(value_of<compute_t<T>>(element));
    if (ordinary) {
      constexpr float top = max_finite<T>();
      x = x != x ? 0.0f : x < -top ? -top : x > top ? top : x;
    }
    rounding.adjust(&x, 1);
    if (scales.data == nullptr) return x;
    const double scaled = static_cast<double>(x) * static_cast<double>(scales.of(line, k));
    return ordinary && scaled != scaled ? 0.0 : scaled;
  }
};

/// The destination of sums, and the values to which they are added.
template <class C>
struct MadResult {
  C* acc;
  ptrdiff_t high;  // rows of a column block
  bool onto;
  const C* bias;

  C* at(ptrdiff_t r, ptrdiff_t c) const { return acc + (c / 16 * high + r) * 16 + c % 16; }
  /// Return the destination of f32 sums for direct access; `joining` returns the old values to add.
  gemm::Floats floats() const {
    if constexpr (std::is_same_v<C, float>) return {acc, 16, high * 16, 4};
    return {};
  }
  gemm::Floats joining() const {
    if constexpr (std::is_same_v<C, float>)
      if (!onto && bias != nullptr) return {const_cast<float*>(bias), 0, 0, 62};
    return onto ? floats() : gemm::Floats{};
  }
  void put(bool first, ptrdiff_t r, ptrdiff_t c, float sum) const {
    C* const to = at(r, c);
    const bool adds = !first || onto || bias != nullptr;
    const C old = adds ? (first && !onto ? bias[c] : *to) : C(0);
    *to = adds ? joined(old, sum) : static_cast<C>(sum);
  }
};

template <class C, class A, class B>
inline void mad_one_by_one(const MadResult<C>& result, const MadOperand<A>& a, const MadOperand<B>& b,
                           ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, bool finite) {
  constexpr float top = 0x1.fffffep127f;
  const auto held = [&](float x) { return !finite ? x : x < -top ? -top : x > top ? top : x; };
  for (ptrdiff_t i = 0; i < m; ++i) {
    for (ptrdiff_t j = 0; j < n; ++j) {
      float sum = 0;
      for (ptrdiff_t l = 0; l < k; ++l) sum = held(fused_step(sum, a.get(i, l) * b.get(j, l)));
      result.put(true, i, j, sum);
      if (finite) *result.at(i, j) = static_cast<C>(held(static_cast<float>(*result.at(i, j))));
    }
  }
}

template <class C, class A, class B>
inline void mad_scaled(const MadResult<C>& result, const MadOperand<A>& a, const MadOperand<B>& b, int m,
                       int n, int k, const gemm::Sink& sink) {
  if (!a.scales.is_small(m, k) || !b.scales.is_small(n, k))
    return mad_one_by_one(result, a, b, m, n, k, false);
  gemm::multiply(
      m, n, k, k,
      [&](float* to) {
        for (ptrdiff_t r = 0; r < m; ++r)
          for (ptrdiff_t l = 0; l < k; ++l) to[r * k + l] = static_cast<float>(a.get(r, l));
      },
      [&](float* first, ptrdiff_t panel) {
        gemm::by_panels(first, panel, n, [&](float* to, ptrdiff_t pitch, int col, int cols) {
          for (ptrdiff_t l = 0; l < k; ++l)
            for (ptrdiff_t c = 0; c < cols; ++c) to[l * pitch + c] = static_cast<float>(b.get(col + c, l));
        });
      },
      sink);
}

/// Return the full address for the lower 32 bits that a call has.
inline const void* from_half(uint64_t low, TileType space) {
  const auto base = reinterpret_cast<uint64_t>(core().space[static_cast<int>(space)]);
  if (low < static_cast<uint64_t>(kOffsets)) return reinterpret_cast<const void*>(low);
  const uint64_t at = base + ((low - base) & 0xFFFFFFFF);
  return reinterpret_cast<const void*>(at);
}

inline void check_extent(const char* name, const char* what, uint64_t value) {
  if (value < 1 || value > 4095)
    failf("[PTO-E2102] %s: expects %s to be 1..4095, got %lld", name, what, static_cast<long long>(value));
}

template <bool Scaled, class C, class A, class B>
inline void micro_product(const char* name, C* dst, A* lhs, B* rhs, uint64_t rows, uint64_t depth,
                          uint64_t cols, bool fractals, bool from_bias, bool from_zero) {
  check_extent(name, "m", rows);
  check_extent(name, "k", depth);
  check_extent(name, "n", cols);
  if (Scaled && depth % 64 != 0)
    failf("[PTO-E2102] %s: expects k to be a multiple of 64, got %d", name, static_cast<int>(depth));
  const int m = static_cast<int>(rows), n = static_cast<int>(cols), k = static_cast<int>(depth);
  constexpr ptrdiff_t left_block = 256 / bits_of<A>, right_block = 256 / bits_of<B>;
  const Form left_form = left_by_columns() ? Form::NZ : Form::ZZ;
  const void* bias = nullptr;
  if (from_bias) {
    const auto both = reinterpret_cast<uint64_t>(dst);
    bias = from_half(both >> 32, TileType::Bias);
    dst = static_cast<C*>(const_cast<void*>(from_half(both & 0xFFFFFFFF, TileType::Acc)));
  }
#ifdef PTO_TRACED
  const A* const traced_lhs = traced_pointer<A>(lhs, TileType::Left);
  const B* const traced_rhs = traced_pointer<B>(rhs, TileType::Right);
  const C* const traced_dst = traced_pointer<C>(dst, TileType::Acc);
  const C* const traced_bias = traced_pointer<C>(bias, TileType::Bias);
  const char* const plain = Scaled
                                ? (from_zero ? "mad_mx lhs rhs dst m n k:" : "mad_mx_acc lhs rhs dst m n k:")
                                : (from_zero ? "mad lhs rhs dst m n k:" : "mad_acc lhs rhs dst m n k:");
  const char* const biased =
      Scaled ? "mad_mx_bias lhs rhs dst bias m n k:" : "mad_bias lhs rhs dst bias m n k:";
  PTO_TRACE_EITHER(from_bias,
                   (biased, PTO_SAYS(), traced_lhs, traced_rhs, traced_dst, traced_bias, rows, cols, depth),
                   (plain, PTO_SAYS(), traced_lhs, traced_rhs, traced_dst, rows, cols, depth));
#endif
  if (from_bias) {
    bias = on_chip_bytes(name, bias, TileType::Bias, 0, n * static_cast<int64_t>(sizeof(C)));
  }
  const Place<A> a = placed(
      name, m == 1 && !fractals ? dense_place(lhs, k, 0, 0) : boxed(lhs, left_form, 16, left_block, m, k),
      TileType::Left, m, k);
  const Place<B> b = placed(name, boxed(rhs, Form::ZN, right_block, 16, k, n), TileType::Right, k, n);
  const Place<C> acc = placed(name, boxed(dst, Form::NZ, 16, 16, m, n), TileType::Acc, m, n);
  const MadResult<C> result{acc.data, up_to(m, 16), !from_bias && !from_zero, static_cast<const C*>(bias)};
  const gemm::Sink sink{[](const void* context, bool first, int row, int rows, int col,
                           const float (*sums)[gemm::kWidth], int count) {
                          const auto& to = *static_cast<const MadResult<C>*>(context);
                          for (int r = 0; r < rows; ++r)
                            for (int i = 0; i < count; ++i) to.put(first, row + r, col + i, sums[r][i]);
                        },
                        &result, result.floats(), result.joining()};
  const uint64_t ctrl = core().ctrl;
  const bool finite = is_float_v<C> && (ctrl >> 60 & 1) == 0 && (ctrl >> 48 & 1) == 0;
  if constexpr (Scaled || is_float_v<C>) {
    MadOperand<A> left{a, {}, finite, {}};
    MadOperand<B> right{turned(b), {}, finite, {}};
    if constexpr (Scaled) {
      left.scales = scales_of(name, TileType::Left, TileType::ScaleLeft, lhs, m, k);
      right.scales = scales_of(name, TileType::Right, TileType::ScaleRight, rhs, n, k);
    }
    if (finite) return mad_one_by_one(result, left, right, m, n, k, true);
    if constexpr (Scaled) return mad_scaled(result, left, right, m, n, k, sink);
  }
  if constexpr (!Scaled) multiply_places(m, n, k, a, b, sink);
}

}  // namespace pto::detail

// Unit flags pass a matrix from pipe to pipe; a core with one flow of control does not need them.
template <class C, class A, class B>
PTO_INST void mad(__cc__ C* dst, __ca__ A* lhs, __cb__ B* rhs, uint64_t m, uint64_t k, uint64_t n,
                  uint64_t /*unit_flag*/, bool fractals, bool from_bias, bool from_zero) {
  pto::detail::micro_product<false>("mad", dst, lhs, rhs, m, k, n, fractals, from_bias, from_zero);
}
template <class C, class A, class B>
PTO_INST void mad_mx(__cc__ C* dst, __ca__ A* lhs, __cb__ B* rhs, uint64_t m, uint64_t k, uint64_t n,
                     uint64_t /*unit_flag*/, bool fractals, bool from_bias, bool from_zero) {
  pto::detail::micro_product<true>("mad_mx", dst, lhs, rhs, m, k, n, fractals, from_bias, from_zero);
}
// The same calls with one word.
template <class C, class A, class B>
PTO_INST void mad(__cc__ C* dst, __ca__ A* lhs, __cb__ B* rhs, uint64_t word) {
  using pto::detail::bits;
  mad(dst, lhs, rhs, bits(word, 0, 12), bits(word, 12, 12), bits(word, 24, 12), bits(word, 55, 2),
      bits(word, 61, 1) != 0, bits(word, 62, 1) != 0, bits(word, 63, 1) != 0);
}
template <class C, class A, class B>
PTO_INST void mad_mx(__cc__ C* dst, __ca__ A* lhs, __cb__ B* rhs, uint64_t word) {
  using pto::detail::bits;
  mad_mx(dst, lhs, rhs, bits(word, 0, 12), bits(word, 12, 12), bits(word, 24, 12), bits(word, 55, 2),
         bits(word, 61, 1) != 0, bits(word, 62, 1) != 0, bits(word, 63, 1) != 0);
}
