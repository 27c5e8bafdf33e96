// Matrix products of the cube unit: Left x Right into Acc, plain, accumulating, biased, block-scaled.
//
// A float result is a chain of fused multiply-adds in f32 with k rising from 0 (gemm.hpp); the addend, an
// accumulator or a bias, is added once at the end. Integers accumulate in i32 and wrap.
#pragma once

#include "pto/core/access.hpp"
#include "pto/core/events.hpp"
#include "pto/ops/deferred_copies.hpp"
#include "pto/ops/legality.hpp"
#include "pto/ops/matmul_operands.hpp"

namespace pto {

namespace detail {

// --- results ----------------------------------------------------------------------------------------------

struct NoAddend {
  static constexpr bool any = false;
};
/// The addend of a sum: an element of the accumulator, or of the only row of the bias.
template <class TileT, bool OneRow>
struct Addend {
  static constexpr bool any = true;
  using T = typename TileT::DType;
  /// True if 16 columns are contiguous.
  static constexpr bool in_runs =
      TileT::form == Form::ND || (TileT::form == Form::NZ && TileT::InnerCols == 16);
  Lines<TileT> lines;
  ptrdiff_t row(ptrdiff_t r) const { return OneRow ? 0 : r; }
  const T* run(ptrdiff_t r, ptrdiff_t c) const { return lines.data() + lines.at(row(r), c); }
  template <class C>
  C get(ptrdiff_t r, ptrdiff_t c) const {
    return static_cast<C>(lines.template get<compute_t<T>>(row(r), c));
  }
};

/// Return in + sum, in f32 or in integers that wrap.
template <class T>
inline T joined(T in, float sum) {
  if constexpr (is_float_v<T>) return static_cast<T>(in + sum);
  return static_cast<T>(static_cast<uint32_t>(in) + static_cast<uint32_t>(static_cast<int32_t>(sum)));
}

/// The number of sums that are contiguous in every layout with boxes of 16 columns.
inline constexpr ptrdiff_t kRun = gemm::kWidth < 16 ? gemm::kWidth : 16;

/// Store n sums, usually kRun; add the values at `in` unless it is null.
template <class T>
PTO_INLINE void put_run(T* out, const T* in, const float* sums, ptrdiff_t n) {
  if (n == kRun) {
    T line[kRun];
    if (in == nullptr) {
      for (int j = 0; j < kRun; ++j) line[j] = static_cast<T>(sums[j]);
    } else {
      for (int j = 0; j < kRun; ++j) line[j] = joined(in[j], sums[j]);
    }
    std::memcpy(out, line, sizeof line);
  } else {
    for (ptrdiff_t j = 0; j < n; ++j)
      out[j] = in == nullptr ? static_cast<T>(sums[j]) : joined(in[j], sums[j]);
  }
}

/// Store `count` sums in a row of dst. `first`: they begin a result, so the addend is added.
template <class Dst, class Add>
inline void put_sums(const Lines<Dst>& to, const Add& addend, bool first, ptrdiff_t r, ptrdiff_t c,
                     const float* sums, ptrdiff_t count) {
  using T = typename Dst::DType;
  constexpr bool runs = [] {
    if constexpr (!Addend<Dst, false>::in_runs) return false;
    if constexpr (Add::any) return Add::in_runs && std::is_same_v<typename Add::T, T>;
    return true;
  }();
  if constexpr (runs) {
    for (ptrdiff_t i = 0; i < count; i += kRun) {
      T* out = to.data() + to.at(r, c + i);
      const T* in = first ? nullptr : out;
      if constexpr (Add::any) in = first ? addend.run(r, c + i) : out;
      put_run(out, in, sums + i, count - i < kRun ? count - i : kRun);
    }
  } else {
    for (ptrdiff_t i = 0; i < count; ++i) {
      T in = first ? T(0) : to.get(r, c + i);
      if constexpr (Add::any) in = first ? addend.template get<T>(r, c + i) : in;
      to.set(r, c + i, Add::any || !first ? joined(in, sums[i]) : static_cast<T>(sums[i]));
    }
  }
}

/// Return the elements of a tile as a matrix of floats, if they are f32 in rows or in boxes of 16 columns.
template <class TileT>
inline gemm::Floats floats_of(const Lines<TileT>& lines, bool one_row = false) {
  if constexpr (!std::is_same_v<typename TileT::DType, float> || !Addend<TileT, false>::in_runs) {
    return {};
  } else {
    const bool flat = TileT::form == Form::ND;
    const ptrdiff_t row = flat ? lines.cols() : 16;
    return {lines.data(), one_row ? 0 : row, flat ? 0 : lines.pitch() * 16, flat ? 62 : 4};
  }
}
template <class TileT, bool OneRow>
inline gemm::Floats floats_of(const Addend<TileT, OneRow>& addend) {
  return floats_of(addend.lines, OneRow);
}
inline gemm::Floats floats_of(NoAddend) { return {}; }

// --- products ---------------------------------------------------------------------------------------------

/// Return f32(acc + product), rounded once: the sum in double is rounded to odd first.
inline float fused_step(float acc, double product) {
  const double sum = acc + product, part = sum - acc;
  const double lost = (acc - (sum - part)) + (product - part);
  uint64_t bits = __builtin_bit_cast(uint64_t, sum);
  if (lost != 0 && lost == lost && (bits & 1) == 0) bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
  return static_cast<float>(__builtin_bit_cast(double, bits));
}

/// Multiply operands whose scaled elements f32 cannot hold: one by one, in double.
template <class Dst, class A, class B, class Add>
inline void product_in_double(Dst& dst, const A& a, const B& b, int m, int n, int k, const Add& addend) {
  const Lines<Dst> to(dst);
  for (ptrdiff_t i = 0; i < m; ++i) {
    for (ptrdiff_t j = 0; j < n; ++j) {
      float sum = 0;
      for (ptrdiff_t l = 0; l < k; ++l) {
        const double x = static_cast<double>(a.lines.template get<float>(i, l)) * a.scale.factor(i, l);
        const double y = static_cast<double>(b.lines.template get<float>(j, l)) * b.scale.factor(j, l);
        sum = fused_step(sum, x * y);
      }
      put_sums(to, addend, true, i, j, &sum, 1);
    }
  }
}

/// Multiply operands without scales.
template <class TA, class TB>
[[gnu::noinline]] void multiply_places(int m, int n, int k, const Place<TA>& lhs, const Place<TB>& rhs,
                                       const gemm::Sink& sink) {
  const Place<TA> a = readable(lhs, m, k);
  const Place<TB> b = readable(rhs, k, n);
  const Operand<TA> left;
  const Operand<TB> right;
  gemm::multiply(
      m, n, k, is_float_v<TA> ? k : gemm::kExactDepth,
      [&](float* to) {
        pack(to, k, a, m, 0, k);
        left.adjust(to, static_cast<ptrdiff_t>(m) * k);
      },
      [&](float* to, ptrdiff_t panel) {
        pack_all(to, panel, b, k, n);
        right.adjust(to, (n + gemm::kWidth - 1) / gemm::kWidth * panel);
      },
      sink);
}

template <class Dst, class A, class B, class ScaleA, class ScaleB, class Add>
inline void product(Dst& dst, A& a, B& b, const ScaleA& scale_a, const ScaleB& scale_b, const Add& addend) {
  const int m = static_cast<int>(a.GetValidRow()), k = static_cast<int>(a.GetValidCol());
  const int n = static_cast<int>(b.GetValidCol());
  const struct Result {
    Lines<Dst> to;
    const Add& addend;
  } result{Lines<Dst>(dst), addend};
  const gemm::Floats joins = floats_of(addend);
  const gemm::Sink sink{[](const void* context, bool first, int row, int rows, int col,
                           const float (*sums)[gemm::kWidth], int count) {
                          const Result r = *static_cast<const Result*>(context);
                          for (int i = 0; i < rows; ++i)
                            put_sums(r.to, r.addend, first, row + i, col, sums[i], count);
                        },
                        &result, Add::any && joins.data == nullptr ? gemm::Floats{} : floats_of(result.to),
                        joins};
  if constexpr (ScaleA::any) {
    const ScaledOperand<true, A, ScaleA> left{decltype(ScaledOperand<true, A, ScaleA>::lines)(a), scale_a};
    const ScaledOperand<false, B, ScaleB> right{decltype(ScaledOperand<false, B, ScaleB>::lines)(b), scale_b};
    if (!scale_a.is_small(m, k) || !scale_b.is_small(n, k))
      return product_in_double(dst, left, right, m, n, k, addend);
    gemm::multiply(
        m, n, k, k,
        [&](float* to) {
          for (ptrdiff_t r = 0; r < m; ++r)
            for (ptrdiff_t i = 0; i < k; i += kChunk) left.read(r, i, lesser(k - i, kChunk), to + r * k + i);
        },
        [&](float* first, ptrdiff_t panel) {
          gemm::by_panels(first, panel, n, [&](float* to, ptrdiff_t pitch, int col, int cols) {
            float line[kChunk];
            for (ptrdiff_t c = 0; c < cols; ++c) {
              for (ptrdiff_t i = 0; i < k; i += kChunk) {
                const ptrdiff_t count = lesser(k - i, kChunk);
                right.read(col + c, i, count, line);
                for (ptrdiff_t j = 0; j < count; ++j) to[(i + j) * pitch + c] = line[j];
              }
            }
          });
        },
        sink);
  } else {
    multiply_places(m, n, k, place(a), place(b), sink);
  }
}

template <class Dst, class A, class B, class Add>
inline void plain_product(Dst& dst, A& a, B& b, const Add& addend) {
  product(dst, a, b, NoScale{}, NoScale{}, addend);
}

template <class A, class Scale>
inline constexpr bool kIsHif4 =
    dtype_of<typename A::DType> == DType::f4e1m2 && std::is_same_v<typename Scale::DType, uint8_t> &&
    (Scale::Loc == TileType::ScaleLeft || Scale::Loc == TileType::ScaleRight);

template <class Dst, class A, class SA, class B, class SB, class Add>
inline void scaled_product(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, const Add& addend) {
  if constexpr (kIsHif4<A, SA>) {
    product(dst, a, b, Hif4Scale<true, SA>(a_scale), Hif4Scale<false, SB>(b_scale), addend);
  } else {
    product(dst, a, b, MxScale<true, SA>(a_scale), MxScale<false, SB>(b_scale), addend);
  }
}

template <class T>
concept AccTile = T::Loc == TileType::Acc;

template <class Bias>
inline auto bias_of(Bias& bias) {
  return Addend<Bias, true>{Lines<Bias>(bias)};
}
template <class Acc>
inline auto addend_of(Acc& acc) {
  return Addend<Acc, false>{Lines<Acc>(acc)};
}

template <class Dst, class A, class B>
inline void matrix_product(Dst& dst, A& a, B& b) {
  plain_product(dst, a, b, NoAddend{});
}
template <class Dst, class A, class B, class Bias>
inline void matrix_product(Dst& dst, A& a, B& b, Bias& bias) {
  plain_product(dst, a, b, bias_of(bias));
}

}  // namespace detail

// --- modes ------------------------------------------------------------------------------------------------

/// Set HF32 mode: f32 operands of products are rounded to 11 bits after the point.
template <bool Enable, RoundMode Mode = RoundMode::CAST_ROUND, class... Events>
PTO_INST RecordEvent SETHF32MODE(Events&... events) {
  TSYNC(events...);
  PTO_TRACE("sethf32mode: enable mode", PTO_SAYS(Enable, Mode));
  detail::core().hf32 = Enable ? static_cast<int8_t>(Mode) : int8_t{-1};
  return {};
}
/// Set TF32 mode: f32 operands of products are rounded to TF32, ties away from zero or to even.
template <bool Enable, RoundMode Mode = RoundMode::CAST_ROUND, class... Events>
PTO_INST RecordEvent SETTF32MODE(Events&... events) {
  static_assert(Mode == RoundMode::CAST_ROUND || Mode == RoundMode::CAST_RINT,
                "[PTO] SETTF32MODE: the mode is CAST_ROUND or CAST_RINT");
  TSYNC(events...);
  PTO_TRACE("settf32mode: enable mode", PTO_SAYS(Enable, Mode));
  const uint64_t on = uint64_t{1} << MAD_MODE_BIT, away = uint64_t{1} << MAD_ROUND_MODE_BIT;
  uint64_t& ctrl = detail::core().ctrl;
  ctrl = Enable ? (ctrl & ~away) | on | (Mode == RoundMode::CAST_ROUND ? away : 0) : ctrl & ~on;
  return {};
}

// --- instructions; the phase of the accumulator has no effect on the result -------------------------------

template <class Dst, detail::AccTile In, class A, class B, class... Events>
PTO_INST RecordEvent TMATMUL_ACC(Dst& dst, In& in, A& a, B& b, Events&... events) {
  PTO_LEGAL(check_tmatmul_acc<Dst, In, A, B>(dst, in, a, b));
  TSYNC(events...);
  PTO_TRACE("tmatmul.acc dst acc_in lhs rhs: phase", PTO_SAYS(detail::traced_phase()), dst, in, a, b);
  detail::plain_product(dst, a, b, detail::addend_of(in));
  return {};
}
template <class Dst, class A, class B, class... Events>
  requires(!detail::AccTile<A> && all_events_v<Events...>)
PTO_INST RecordEvent TMATMUL_ACC(Dst& dst, A& a, B& b, Events&... events) {
  return TMATMUL_ACC(dst, dst, a, b, events...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TMATMUL_ACC(Operands&... operands) {
  PTO_TRACE_PHASE(Phase);
  return TMATMUL_ACC(operands...);
}

template <class Dst, class A, class SA, class B, class SB, class... Events>
  requires(!detail::AccTile<A> && all_events_v<Events...>)
PTO_INST RecordEvent TMATMUL_MX(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, Events&... events) {
  if constexpr (detail::kIsHif4<A, SA>) {
    PTO_LEGAL(check_tmatmul_mx_hif4<Dst, A, SA, B, SB>(a, a_scale, b, b_scale));
  } else {
    PTO_LEGAL(check_tmatmul_mx<Dst, A, SA, B, SB>(a, a_scale, b, b_scale));
  }
  TSYNC(events...);
  PTO_TRACE((detail::kIsHif4<A, SA>) ? "tmatmul_mx_hif4 dst a a_scale b b_scale: phase"
                                     : "tmatmul.mx dst a a_scale b b_scale: phase",
            PTO_SAYS(detail::traced_phase()), dst, a, a_scale, b, b_scale);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::NoAddend{});
  return {};
}
template <class Dst, detail::AccTile In, class A, class SA, class B, class SB, class... Events>
PTO_INST RecordEvent TMATMUL_MX(Dst& dst, In& in, A& a, SA& a_scale, B& b, SB& b_scale, Events&... events) {
  PTO_LEGAL(check_tmatmul_mx_acc<Dst, In, A, SA, B, SB>(dst, in, a, a_scale, b, b_scale));
  TSYNC(events...);
  PTO_TRACE("tmatmul.mx.acc dst c_in a a_scale b b_scale: phase", PTO_SAYS(detail::traced_phase()), dst, in,
            a, a_scale, b, b_scale);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::addend_of(in));
  return {};
}
template <class Dst, class A, class SA, class B, class SB, class Bias, class... Events>
  requires(!detail::AccTile<A> && is_tile_data_v<Bias>)
PTO_INST RecordEvent TMATMUL_MX(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, Bias& bias,
                                Events&... events) {
  PTO_LEGAL(check_tmatmul_mx_bias<Dst, A, SA, B, SB, Bias>(dst, a, a_scale, b, b_scale, bias));
  TSYNC(events...);
  PTO_TRACE("tmatmul.mx.bias dst a a_scale b b_scale bias: phase", PTO_SAYS(detail::traced_phase()), dst, a,
            a_scale, b, b_scale, bias);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::bias_of(bias));
  return {};
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TMATMUL_MX(Operands&... operands) {
  PTO_TRACE_PHASE(Phase);
  return TMATMUL_MX(operands...);
}

// --- with one row -----------------------------------------------------------------------------------------

template <class Dst, detail::AccTile In, class A, class B, class... Events>
PTO_INST RecordEvent TGEMV_ACC(Dst& dst, In& in, A& a, B& b, Events&... events) {
  PTO_LEGAL(check_tgemv_acc<Dst, In, A, B>(dst, in, a, b));
  TSYNC(events...);
  PTO_TRACE("tgemv.acc dst acc_in lhs rhs: phase", PTO_SAYS(detail::traced_phase()), dst, in, a, b);
  detail::plain_product(dst, a, b, detail::addend_of(in));
  return {};
}
template <class Dst, class A, class B, class... Events>
  requires(!detail::AccTile<A> && all_events_v<Events...>)
PTO_INST RecordEvent TGEMV_ACC(Dst& dst, A& a, B& b, Events&... events) {
  return TGEMV_ACC(dst, dst, a, b, events...);
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TGEMV_ACC(Operands&... operands) {
  PTO_TRACE_PHASE(Phase);
  return TGEMV_ACC(operands...);
}

template <class Dst, class A, class SA, class B, class SB, class... Events>
  requires(!detail::AccTile<A> && all_events_v<Events...>)
PTO_INST RecordEvent TGEMV_MX(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, Events&... events) {
  PTO_LEGAL(check_tgemv_mx<Dst, A, SA, B, SB>(dst, a, a_scale, b, b_scale));
  TSYNC(events...);
  PTO_TRACE("tgemv.mx dst a a_scale b b_scale: phase", PTO_SAYS(detail::traced_phase()), dst, a, a_scale, b,
            b_scale);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::NoAddend{});
  return {};
}
template <class Dst, detail::AccTile In, class A, class SA, class B, class SB, class... Events>
PTO_INST RecordEvent TGEMV_MX(Dst& dst, In& in, A& a, SA& a_scale, B& b, SB& b_scale, Events&... events) {
  PTO_LEGAL(check_tgemv_mx_acc<Dst, In, A, SA, B, SB>(dst, in, a, a_scale, b, b_scale));
  TSYNC(events...);
  PTO_TRACE("tgemv.mx.acc dst c_in a a_scale b b_scale: phase", PTO_SAYS(detail::traced_phase()), dst, in, a,
            a_scale, b, b_scale);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::addend_of(in));
  return {};
}
template <class Dst, class A, class SA, class B, class SB, class Bias, class... Events>
  requires(!detail::AccTile<A> && is_tile_data_v<Bias>)
PTO_INST RecordEvent TGEMV_MX(Dst& dst, A& a, SA& a_scale, B& b, SB& b_scale, Bias& bias, Events&... events) {
  PTO_LEGAL(check_tgemv_mx_bias<Dst, A, SA, B, SB, Bias>(dst, a, a_scale, b, b_scale, bias));
  TSYNC(events...);
  PTO_TRACE("tgemv.mx.bias dst a a_scale b b_scale bias: phase", PTO_SAYS(detail::traced_phase()), dst, a,
            a_scale, b, b_scale, bias);
  detail::scaled_product(dst, a, a_scale, b, b_scale, detail::bias_of(bias));
  return {};
}
template <AccPhase Phase, class... Operands>
PTO_INST RecordEvent TGEMV_MX(Operands&... operands) {
  PTO_TRACE_PHASE(Phase);
  return TGEMV_MX(operands...);
}

}  // namespace pto
