// vcvt: conversion of lanes to other element types, with rounding and saturation.
//
// If the width changes, a conversion uses one lane of each group that shares the wider element: the part.
// With bit 60 of CTRL set, values that do not fit saturate, unless bit 59 (to integers) or 48 (to floats) is
// set. With bit 60 clear, the tag decides.
#pragma once

#include "pto/micro/lanes.hpp"

namespace pto::detail::micro {

struct Conversion {
  ::ROUND round = ::ROUND::ROUND_R;
  bool saturate = false;
};

constexpr Round rule_of(::ROUND round) {
  switch (static_cast<int>(round)) {
    case 1:
    case 6: return Round::round;
    case 2: return Round::floor;
    case 3: return Round::ceil;
    case 4:
    case 5: return Round::trunc;  // to odd: the last bit is set afterwards
    default: return Round::rint;
  }
}
inline double whole_of(double x, ::ROUND round) {
  switch (rule_of(round)) {
    case Round::round: return baseline::round_integral<Round::round>(x);
    case Round::floor: return __builtin_floor(x);
    case Round::ceil: return __builtin_ceil(x);
    case Round::rint: return __builtin_nearbyint(x);
    default: break;
  }
  const double whole = __builtin_trunc(x);
  if (round != ::ROUND::ROUND_O) return whole;
  return whole != x && __builtin_fmod(whole, 2) == 0 ? whole + __builtin_copysign(1.0, x) : whole;
}

/// Return a number as D. Rounding to odd truncates, and sets the last bit if the result is inexact.
template <class D>
inline D float_of(double value, Conversion how) {
  const Mode mode{rule_of(how.round), how.saturate, true};
  const baseline::Bias<uint64_t> bias(mode.round);
  uint64_t code;
  if constexpr (std::is_same_v<D, hifloat8_t>) {
    code = baseline::encode_hif8(value, bias, mode);
  } else if constexpr (std::is_same_v<D, float8_e8m0_t>) {
    code = baseline::encode_e8m0(value, bias, mode);
  } else {
    code = baseline::encode_fields<kFields<dtype_of<D>>>(value, bias, mode);
    const D made = __builtin_bit_cast(D, static_cast<uint_of<sizeof(D)>>(code));
    const bool finite = __builtin_fabs(value) < __builtin_inf();
    if (how.round == ::ROUND::ROUND_O && finite && static_cast<double>(static_cast<float>(made)) != value)
      code |= 1;
  }
  return __builtin_bit_cast(D, static_cast<uint_of<sizeof(D)>>(code));
}
template <class D, class S>
inline D converted(S from, Conversion how) {
  if constexpr (std::is_integral_v<S> && std::is_integral_v<D>) {
    if (!how.saturate || sizeof(D) > sizeof(S)) return static_cast<D>(from);
    constexpr auto low = static_cast<__int128>(std::numeric_limits<D>::min()),
                   high = static_cast<__int128>(std::numeric_limits<D>::max());
    const auto wide = static_cast<__int128>(from);
    return static_cast<D>(wide < low ? low : wide > high ? high : wide);
  } else if constexpr (std::is_integral_v<S>) {
    const bool negative = from < 0;
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(from) : static_cast<uint64_t>(from);
    const double magnitude = baseline::round_to_odd(size);
    return float_of<D>(negative ? -magnitude : magnitude, {how.round, false});
  } else if constexpr (std::is_integral_v<D>) {
    const double whole = whole_of(static_cast<double>(static_cast<float>(from)), how.round);
    if (how.saturate)
      return static_cast<D>(
          baseline::whole_to_int<8 * sizeof(D), std::is_signed_v<D>>(whole, {Round::trunc, true, false}));
    if (whole != whole || whole == -__builtin_inf()) return 0;
    if (whole == __builtin_inf()) return static_cast<D>(~uint64_t{0});
    const auto size = static_cast<uint64_t>(__builtin_fmod(__builtin_fabs(whole), 0x1p64));
    return static_cast<D>(whole < 0 ? 0 - size : size);
  } else {
    const float x = static_cast<float>(from);
    if constexpr (std::is_same_v<D, float>) return x;  // exact for all narrower floats: a NaN keeps its sign
    if (x != x && how.saturate) return __builtin_bit_cast(D, uint_of<sizeof(D)>{0});
    return float_of<D>(x, how);
  }
}

/// Return true if a conversion saturates: for some pairs of types always or never, else by CTRL or the tag.
template <class D, class S>
inline bool saturates(bool told) {
  constexpr bool from_int = std::is_integral_v<S>, to_int = std::is_integral_v<D>;
  if constexpr (std::is_same_v<S, half> && std::is_same_v<D, int32_t>) return true;
  if constexpr (from_int ? !to_int || sizeof(D) >= sizeof(S) : !to_int && sizeof(D) > sizeof(S)) return false;
  if constexpr (std::is_same_v<S, half> && std::is_same_v<D, bfloat16_t>) return false;
  const uint64_t ctrl = core().ctrl;
  return ctrl >> 60 & 1 ? !(ctrl >> (to_int ? 59 : 48) & 1) : told;
}

template <class D, class Tag>
constexpr void read_tag(Conversion& how, int& part, bool& merges, Tag) {
  using E = typename Tag::value_type;
  if constexpr (std::is_same_v<E, ::ROUND>) how.round = Tag::value;
  if constexpr (std::is_same_v<E, ::__cce_simd::RoundingSaturation>)
    how.saturate = Tag::value == ::__cce_simd::RoundingSaturation::RS_ENABLE;
  if constexpr (std::is_same_v<E, ::__cce_simd::Part> || std::is_same_v<E, ::__cce_simd::Part_T>)
    part = static_cast<int>(Tag::value);
  if constexpr (std::is_same_v<E, ::__cce_simd::Mode>)
    merges = Tag::value == ::__cce_simd::Mode::MODE_MERGING;
}
template <class RD, class RS, class... Tags>
inline void convert(RD& r, const RS& input, const vector_bool& mask, Tags... tags) {
  using D = typename RD::Element;
  using S = typename RS::Element;
  Conversion how;
  int part = 0;
  bool merges = false;
  (read_tag<D>(how, part, merges, tags), ...);
  how.saturate = saturates<D, S>(how.saturate);
  constexpr int narrow = sizeof(D) < sizeof(S) ? sizeof(S) / sizeof(D) : 1;
  constexpr int wide = sizeof(D) > sizeof(S) ? sizeof(D) / sizeof(S) : 1;
  RD made = r;
  if (!merges) clear(made);
  for (int i = 0; i < RS::kLanes / wide; ++i) {
    const int from = wide > 1 ? i * wide + part : i, to = narrow > 1 ? i * narrow + part : i;
    if (is_on<sizeof(S)>(mask, from)) made.lane[to] = converted<D>(input.lane[from], how);
  }
  r = made;
}
/// Convert two lanes of bf16 to two 4-bit floats in a byte: each pair of lanes writes one byte of four.
template <class D, class S>
inline D pair_of(S a, S b, Conversion how) {
  const auto code = [&](S x) { return __builtin_bit_cast(uint8_t, converted<D>(x, how)) & 0xF; };
  return __builtin_bit_cast(D, static_cast<uint8_t>(code(a) | code(b) << 4));
}
template <class RD, class... Tags>
inline void convert_pairs(RD& r, const vector_bf16& input, const vector_bool& mask, Tags... tags) {
  Conversion how;
  int part = 0;
  bool merges = false;
  (read_tag<typename RD::Element>(how, part, merges, tags), ...);
  how.saturate = true;
  RD made = r;
  if (!merges) clear(made);
  for (int i = 0; i < vector_bf16::kLanes / 2; ++i)
    if (is_on<2>(mask, 2 * i))
      made.lane[4 * i + part] = pair_of<typename RD::Element>(input.lane[2 * i], input.lane[2 * i + 1], how);
  r = made;
}
template <class RS, class... Tags>
inline void convert_from_pairs(vector_bf16& r, const RS& input, const vector_bool& mask, Tags... tags) {
  Conversion how;
  int part = 0;
  bool merges = false;
  (read_tag<bfloat16_t>(how, part, merges, tags), ...);
  vector_bf16 made = r;
  if (!merges) clear(made);
  for (int i = 0; i < vector_bf16::kLanes; ++i) {
    if (!is_on<1>(mask, i / 2 * 4 + part)) continue;
    using E = typename RS::Element;
    const auto byte = __builtin_bit_cast(uint8_t, input.lane[i / 2 * 4 + part]);
    made.lane[i] =
        bfloat16_t(static_cast<float>(E::FromRaw(static_cast<uint8_t>(byte >> (i % 2 * 4) & 0xF))));
  }
  r = made;
}

}  // namespace pto::detail::micro

// X(result, source)
// clang-format off
#define PTO_CONVERSIONS(X) \
  X(vector_f32, vector_f16) X(vector_f32, vector_bf16) X(vector_f16, vector_hif8) \
  X(vector_f16, vector_s8) X(vector_f16, vector_u8) X(vector_s16, vector_s8) X(vector_u16, vector_u8) \
  X(vector_f32, vector_s16) X(vector_s32, vector_s16) X(vector_u32, vector_s16) \
  X(vector_u32, vector_u16) X(vector_s64, vector_s32) X(vector_s32, vector_s8) X(vector_u32, vector_u8) \
  X(vector_f32, vector_f8e4m3) X(vector_f32, vector_f8e5m2) X(vector_f32, vector_hif8) \
  X(vector_u8, vector_s16) X(vector_u8, vector_u16) X(vector_s16, vector_s32) X(vector_u16, vector_s32) \
  X(vector_u16, vector_u32) X(vector_s16, vector_u32) X(vector_s32, vector_s64) \
  X(vector_u8, vector_s32) X(vector_u8, vector_u32) X(vector_f32, vector_s32) X(vector_f16, vector_s16) \
  X(vector_bf16, vector_f16) X(vector_s32, vector_f32) X(vector_s16, vector_f16) \
  X(vector_f16, vector_bf16) X(vector_s32, vector_f16) X(vector_f32, vector_s64) \
  X(vector_f16, vector_f32) X(vector_bf16, vector_f32) X(vector_s16, vector_f32) \
  X(vector_s64, vector_f32) X(vector_s32, vector_bf16) X(vector_s8, vector_f16) \
  X(vector_u8, vector_f16) X(vector_hif8, vector_f16) X(vector_f8e4m3, vector_f32) \
  X(vector_f8e5m2, vector_f32) X(vector_hif8, vector_f32)
// clang-format on
#define PTO_VCVT_(D, S)                                                             \
  template <class... Tags>                                                          \
  PTO_INST void vcvt(D& r, const S& input, const vector_bool& mask, Tags... tags) { \
    pto::detail::micro::convert(r, input, mask, tags...);                           \
  }
PTO_CONVERSIONS(PTO_VCVT_)
#undef PTO_VCVT_
#define PTO_VCVT_PAIRS_(V, T)                                                                 \
  template <class... Tags>                                                                    \
  PTO_INST void vcvt(V& r, const vector_bf16& input, const vector_bool& mask, Tags... tags) { \
    pto::detail::micro::convert_pairs(r, input, mask, tags...);                               \
  }                                                                                           \
  template <class... Tags>                                                                    \
  PTO_INST void vcvt(vector_bf16& r, const V& input, const vector_bool& mask, Tags... tags) { \
    pto::detail::micro::convert_from_pairs(r, input, mask, tags...);                          \
  }
PTO_B4_PAIRS(PTO_VCVT_PAIRS_)
#undef PTO_VCVT_PAIRS_
