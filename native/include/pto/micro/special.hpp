// Scalars and copies in registers, sums with carry, wide products; products and exponentials that convert.
#pragma once

#include "pto/micro/convert.hpp"
#include "pto/micro/operators.hpp"

#define PTO_MAKES_(V, T)                                                                                    \
  template <int = 0>                                                                                        \
  PTO_INST void vbr(V& r, T value) {                                                                        \
    for (int i = 0; i < V::kLanes; ++i) r.lane[i] = value;                                                  \
  }                                                                                                         \
  template <class M = decltype(MODE_UNKNOWN)>                                                               \
  PTO_INST void vdup(V& r, T value, const vector_bool& mask, M = {}) {                                      \
    pto::detail::micro::put_lanes<M>(r, mask, [&](int) { return value; });                                  \
  }                                                                                                         \
  template <class P, class M = decltype(MODE_UNKNOWN)>                                                      \
    requires(std::is_same_v<typename P::value_type, ::__cce_simd::Pos>)                                     \
  PTO_INST void vdup(V& r, const V& input, const vector_bool& mask, P, M = {}) {                            \
    const T value = input.lane[P::value == ::__cce_simd::Pos::POS_HIGHEST ? V::kLanes - 1 : 0];             \
    pto::detail::micro::put_lanes<M>(r, mask, [&](int) { return value; });                                  \
  }                                                                                                         \
  template <int = 0>                                                                                        \
  PTO_INST void vmov(V& r, const V& input) {                                                                \
    r = input;                                                                                              \
  }                                                                                                         \
  template <class M = decltype(MODE_UNKNOWN)>                                                               \
  PTO_INST void vmov(V& r, const V& input, const vector_bool& mask, M = {}) {                               \
    pto::detail::micro::put_lanes<M>(r, mask, [&](int i) { return input.lane[i]; });                        \
  }                                                                                                         \
  template <int = 0>                                                                                        \
  PTO_INST void vsel(V& r, const V& src0, const V& src1, const vector_bool& mask) {                         \
    V made = src1;                                                                                          \
    pto::detail::micro::put_lanes<decltype(MODE_MERGING)>(made, mask, [&](int i) { return src0.lane[i]; }); \
    r = made;                                                                                               \
  }
PTO_COMMON_REGISTERS(PTO_MAKES_)
PTO_MAKES_(vector_f8e4m3, float8_e4m3_t)
PTO_MAKES_(vector_f8e5m2, float8_e5m2_t)
PTO_MAKES_(vector_f8e8m0, float8_e8m0_t)
#undef PTO_MAKES_

/// Consecutive values: float sums are exact before they are rounded, integers wrap.
#define PTO_VCI_(V, T)                                                                   \
  template <class O = decltype(INC_ORDER)>                                               \
  PTO_INST void vci(V& r, T index, O = {}) {                                             \
    const auto first = pto::detail::micro::number(index);                                \
    for (int i = 0; i < V::kLanes; ++i) {                                                \
      const int step = O::value == ::__cce_simd::Order::DEC_ORDER ? -i : i;              \
      if constexpr (std::is_integral_v<T>) {                                             \
        r.lane[i] = static_cast<T>(pto::detail::add(first, static_cast<int32_t>(step))); \
      } else {                                                                           \
        const double sum = static_cast<double>(first) + step;                            \
        r.lane[i] = pto::detail::micro::lane_of<T>(sum);                                 \
      }                                                                                  \
    }                                                                                    \
  }
PTO_VCI_(vector_s8, int8_t)
PTO_VCI_(vector_s16, int16_t)
PTO_VCI_(vector_s32, int32_t)
PTO_VCI_(vector_f16, half)
PTO_VCI_(vector_f32, float)
#undef PTO_VCI_

namespace pto::detail::micro {

/// Compute 32-bit sums or differences with a flag per lane: carry for a sum, no borrow for a difference.
template <bool Subtracts, class V>
inline void carried(vector_bool& flag, V& r, const V& lhs, const V& rhs, const vector_bool* in,
                    const vector_bool& mask) {
  V made;
  clear(made);
  vector_bool flags{};
  for (int i = 0; i < V::kLanes; ++i) {
    if (!is_on<4>(mask, i)) continue;
    const auto a = static_cast<int64_t>(static_cast<uint32_t>(lhs.lane[i])),
               b = static_cast<int64_t>(static_cast<uint32_t>(rhs.lane[i]));
    const bool given = in != nullptr && is_on<4>(*in, i);
    const int64_t found = Subtracts ? a - b - (in != nullptr && !given) : a + b + given;
    made.lane[i] = static_cast<typename V::Element>(found);
    const bool on = Subtracts ? found >= 0 : found >> 32 != 0;
    flags.word[i / 16] |= uint64_t{on} << (i % 16 * 4);
  }
  r = made;
  flag = flags;
}
template <class V>
inline void wide_product(V& low, V& high, const V& lhs, const V& rhs, const vector_bool& mask) {
  using T = typename V::Element;
  using W = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  V first, second;
  clear(first);
  clear(second);
  for (int i = 0; i < V::kLanes; ++i) {
    if (!is_on<4>(mask, i)) continue;
    const W product = static_cast<W>(lhs.lane[i]) * static_cast<W>(rhs.lane[i]);
    first.lane[i] = static_cast<T>(product);
    second.lane[i] = static_cast<T>(product >> 32);
  }
  low = first;
  high = second;
}
/// Compute exp(input - maximum); narrower operands use one lane of each pair.
template <class S>
PTO_EXACT_LOOP void exp_difference(vector_f32& r, const S& input, const S& maximum, const vector_bool& mask,
                                   int part) {
  constexpr int every = S::kLanes / vector_f32::kLanes;
  vector_f32 made;
  for (int i = 0; i < vector_f32::kLanes; ++i) {
    const int at = i * every + (every > 1 ? part : 0);
    made.lane[i] =
        is_on<4 / every>(mask, at) ? math::exp(number(input.lane[at]) - number(maximum.lane[at])) : 0.0f;
  }
  r = made;
}

}  // namespace pto::detail::micro

#define PTO_CARRY_(V, T)                                                                                \
  template <int = 0>                                                                                    \
  PTO_INST void vaddc(vector_bool& carry, V& r, const V& lhs, const V& rhs, const vector_bool& mask) {  \
    pto::detail::micro::carried<false>(carry, r, lhs, rhs, nullptr, mask);                              \
  }                                                                                                     \
  template <int = 0>                                                                                    \
  PTO_INST void vsubc(vector_bool& borrow, V& r, const V& lhs, const V& rhs, const vector_bool& mask) { \
    pto::detail::micro::carried<true>(borrow, r, lhs, rhs, nullptr, mask);                              \
  }                                                                                                     \
  template <int = 0>                                                                                    \
  PTO_INST void vaddcs(vector_bool& carry, V& r, const V& lhs, const V& rhs, vector_bool in,            \
                       vector_bool mask) {                                                              \
    pto::detail::micro::carried<false>(carry, r, lhs, rhs, &in, mask);                                  \
  }                                                                                                     \
  template <int = 0>                                                                                    \
  PTO_INST void vsubcs(vector_bool& borrow, V& r, const V& lhs, const V& rhs, vector_bool in,           \
                       vector_bool mask) {                                                              \
    pto::detail::micro::carried<true>(borrow, r, lhs, rhs, &in, mask);                                  \
  }                                                                                                     \
  template <int = 0>                                                                                    \
  PTO_INST void vmull(V& low, V& high, const V& lhs, const V& rhs, const vector_bool& mask) {           \
    pto::detail::micro::wide_product(low, high, lhs, rhs, mask);                                        \
  }
PTO_B32_INTEGERS(PTO_CARRY_)
#undef PTO_CARRY_

#define PTO_VEXPDIF_(S)                                                                                \
  template <class P>                                                                                   \
  PTO_INST void vexpdif(vector_f32& r, const S& input, const S& maximum, const vector_bool& mask, P) { \
    pto::detail::micro::exp_difference(r, input, maximum, mask, static_cast<int>(P::value));           \
  }
PTO_VEXPDIF_(vector_f32)
PTO_VEXPDIF_(vector_f16)
#undef PTO_VEXPDIF_
/// Multiply in f32 and convert to f16: ties round away from zero, and the result does not saturate.
template <class P>
PTO_INST void vmulscvt(vector_f16& r, const vector_f32& input, float scalar, const vector_bool& mask, P) {
  vector_f16 made;
  pto::detail::micro::clear(made);
  for (int i = 0; i < vector_f32::kLanes; ++i)
    if (pto::detail::micro::is_on<4>(mask, i))
      made.lane[2 * i + static_cast<int>(P::value)] =
          pto::detail::micro::converted<half>(input.lane[i] * scalar, {::ROUND::ROUND_A, false});
  r = made;
}

namespace pto::detail::micro {

template <::ROUND R>
struct integral {
  template <class T>
  static PTO_INLINE float of(float a) {
    if constexpr (R == ::ROUND::ROUND_A) return away_of(a);
    if constexpr (R == ::ROUND::ROUND_F) return floor_of(a);
    if constexpr (R == ::ROUND::ROUND_C) return ceil_of(a);
    if constexpr (R == ::ROUND::ROUND_Z) return trunc_of(a);
    return rint_of(a);
  }
};

}  // namespace pto::detail::micro

#define PTO_VTRC_(V, T)                                                                      \
  template <class R, class M = decltype(MODE_UNKNOWN)>                                       \
  PTO_INST void vtrc(V& r, const V& input, R, const vector_bool& mask, M = {}) {             \
    pto::detail::micro::lanewise<pto::detail::micro::integral<R::value>, M>(r, mask, input); \
  }
PTO_B16_FLOATS(PTO_VTRC_)
PTO_B32_FLOATS(PTO_VTRC_)
#undef PTO_VTRC_
