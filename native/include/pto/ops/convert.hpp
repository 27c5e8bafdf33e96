// TCVT: convert every element to another type. The rules are those of src/pto/isa/encoding.py.
//
// Integers to floats, and floats to another float type, round to nearest even in every mode; a saturating
// conversion clamps values to the range of the destination first. Floats to integers round by the mode.
// Without saturation, a value that does not fit becomes the result of a C cast on x86; on hardware it becomes
// the low bits of an i32. f32 to f32 rounds to whole numbers by the mode.
#pragma once

#include "pto/ops/meanings.hpp"

namespace pto {

namespace detail {

/// Round x to a whole number. Compilers vectorise only rounding to nearest by default; the other modes are
/// computed from it.
template <Round R>
PTO_INLINE float rounded(float x) {
  const float near = __builtin_nearbyintf(x);
  if constexpr (R == Round::rint) return near;
  if constexpr (R == Round::floor) return near - math::select(near > x, 1.0f, 0.0f);
  if constexpr (R == Round::ceil) return __builtin_copysignf(near + math::select(near < x, 1.0f, 0.0f), x);
  const float size = __builtin_fabsf(x), even = __builtin_fabsf(near);
  const float whole = even - math::select(even > size, 1.0f, 0.0f);  // truncated
  const float rest = size - whole;
  float found = whole;
  if constexpr (R == Round::round) found = whole + math::select(rest >= 0.5f, 1.0f, 0.0f);
  if constexpr (R == Round::odd) found = math::select(rest == 0.5f, whole + whole + 1.0f - even, even);
  return __builtin_copysignf(found, x);
}

/// Convert a whole number, a NaN or an infinity to an integer.
template <class D, bool Saturate, bool Hardware>
PTO_INLINE compute_t<D> whole_to(float whole) {
  using I = compute_t<D>;
  constexpr int bits = bits_of<D>;
  constexpr bool is_signed = Element<D>::is_signed;
  if constexpr (bits <= 32 && !(bits == 32 && !is_signed)) {
    constexpr float top =
        is_signed ? static_cast<float>(uint64_t{1} << (bits - 1)) : static_cast<float>(uint64_t{1} << bits);
    constexpr int32_t max = static_cast<int32_t>((uint64_t{1} << (bits - is_signed)) - 1),
                      min = is_signed ? -max - 1 : 0;
    constexpr float low = Saturate ? static_cast<float>(min) : -0x1p31f, high = Saturate ? top : 0x1p31f;
    // Use masks: compilers do not vectorise loops with conditions on operations that may trap.
    const int32_t inside = -static_cast<int32_t>((whole >= low) & (whole < high));
    const int32_t kept = __builtin_bit_cast(int32_t, whole) & inside;
    const int32_t found = static_cast<int32_t>(__builtin_bit_cast(float, kept));
    const int32_t negative = -static_cast<int32_t>(whole < 0), positive = -static_cast<int32_t>(whole > 0);
    // The hardware clamps to i32 and keeps the low bits. On the cpu profile u8 keeps the low bits of an i64:
    // floats beyond i32 are multiples of 256, so these bits are zero.
    const int32_t beyond = Saturate                  ? (min & negative) | (max & ~negative)
                           : Hardware && bits < 32   ? (INT32_MAX & positive) | (INT32_MIN & ~positive)
                           : bits == 8 && !is_signed ? 0
                                                     : INT32_MIN;
    const int32_t all = (found & inside) | (beyond & ~inside);
    if constexpr (bits == 4) return static_cast<int8_t>(static_cast<int8_t>(all << 4) >> 4);
    return static_cast<I>(all);
  } else {
    return static_cast<I>(baseline::whole_to_int<bits, is_signed>(whole, Mode{Round::rint, Saturate, true}));
  }
}

/// Clamp an integer to the range of another type.
template <class D, class S>
PTO_INLINE constexpr compute_t<D> clamped(S value) {
  constexpr int bits = bits_of<D>;
  constexpr bool is_signed = Element<D>::is_signed;
  constexpr uint64_t max = ~uint64_t{0} >> (64 - bits + is_signed);
  if constexpr (std::is_signed_v<S>) {
    constexpr int64_t min = is_signed ? -static_cast<int64_t>(max) - 1 : 0;
    if (static_cast<int64_t>(value) < min) return static_cast<compute_t<D>>(min);
    if (value >= 0 && static_cast<uint64_t>(value) > max) return static_cast<compute_t<D>>(max);
  } else {
    if (static_cast<uint64_t>(value) > max) return static_cast<compute_t<D>>(max);
  }
  return static_cast<compute_t<D>>(value);
}

template <class D>
constexpr float largest() {
  if constexpr (std::is_same_v<D, float>) {
    return std::numeric_limits<float>::max();
  } else if constexpr (dtype_of<D> == DType::hif8) {
    return 32768.0f;
  } else if constexpr (dtype_of<D> == DType::f8e8m0) {
    return 0x1p127f;
  } else {
    return static_cast<float>(std::numeric_limits<D>::max());
  }
}
template <class D>
constexpr bool has_infinity() {
  if constexpr (std::is_same_v<D, float>) {
    return true;
  } else if constexpr (dtype_of<D> == DType::hif8 || dtype_of<D> == DType::f8e8m0) {
    return dtype_of<D> == DType::hif8;
  } else {
    return kFields<dtype_of<D>>.has_inf();
  }
}

/// Clamp a float to the range of another float type, as saturation does; on hardware infinities stay.
template <class D, class S, bool Hardware>
PTO_INLINE float held(float value) {
  constexpr float limit = largest<D>();
  if constexpr (has_infinity<D>() && limit >= largest<S>()) {
    return value;  // every value fits, and infinities stay
  } else {
    constexpr bool bounded = std::is_same_v<D, half> || std::is_same_v<D, bfloat16_t>;
    if constexpr (has_infinity<D>() && Hardware) {
      // The hardware clamps finite values only. Magnitudes of floats are ordered like their bits.
      constexpr uint32_t top = __builtin_bit_cast(uint32_t, limit), infinite = 0x7F800000;
      const uint32_t bits = __builtin_bit_cast(uint32_t, value), size = bits & 0x7FFFFFFF;
      const uint32_t kept = size - top - 1 < infinite - top - 1 ? top : size;
      return __builtin_bit_cast(float, kept | (bits ^ size));
    }
    float inside = math::bounded(value, -limit, limit);
    if constexpr (bounded) inside = value != value ? limit : inside;  // as the clamp of the simulator does
    return inside;
  }
}

template <Round R, bool Saturate, class Dst, class Src>
inline void to_integer(Dst& dst, const Src& src) {
  using D = typename Dst::DType;
  PTO_IF_TARGET(!Saturate && kIsa != Isa::cpu) {
    map(dst, [](float x) { return whole_to<D, Saturate, true>(rounded<R>(x)); }, src);
  }
  else {
    map(dst, [](float x) { return whole_to<D, Saturate, false>(rounded<R>(x)); }, src);
  }
}
template <Round R, class Dst, class Src>
inline void to_integer(Dst& dst, const Src& src, bool saturate) {
  if (saturate) {
    to_integer<R, true>(dst, src);
  } else {
    to_integer<R, false>(dst, src);
  }
}

/// Call `act` with the rounding that a mode stands for.
template <class Act>
PTO_INLINE void with_rounding(RoundMode mode, Act act) {
  switch (mode) {
    case RoundMode::CAST_RINT: return act(std::integral_constant<Round, Round::rint>());
    case RoundMode::CAST_ROUND: return act(std::integral_constant<Round, Round::round>());
    case RoundMode::CAST_FLOOR: return act(std::integral_constant<Round, Round::floor>());
    case RoundMode::CAST_CEIL: return act(std::integral_constant<Round, Round::ceil>());
    case RoundMode::CAST_ODD: return act(std::integral_constant<Round, Round::odd>());
    default: return act(std::integral_constant<Round, Round::trunc>());
  }
}

template <class Dst, class Src>
PTO_INLINE void convert(Dst& dst, const Src& src, RoundMode mode, bool saturate) {
  using D = typename Dst::DType;
  using S = typename Src::DType;
  const ptrdiff_t rows = dst.GetValidRow(), cols = dst.GetValidCol();
  if constexpr (std::is_same_v<D, S>) {
    if constexpr (std::is_same_v<D, float>) {
      if (mode != RoundMode::CAST_NONE) {
        return with_rounding(
            mode, [&](auto r) { map(dst, [](float x) { return rounded<decltype(r)::value>(x); }, src); });
      }
    }
    transfer<D>(rows, cols, dst, src);
  } else if constexpr (!is_float_v<D> && is_float_v<S>) {
    with_rounding(mode, [&](auto r) { to_integer<decltype(r)::value>(dst, src, saturate); });
  } else if constexpr (!is_float_v<D>) {
    if (saturate) {
      map(dst, [](compute_t<S> x) { return clamped<D>(x); }, src);
    } else {
      map(dst, [](compute_t<S> x) { return static_cast<compute_t<D>>(x); }, src);
    }
  } else if constexpr (!is_float_v<S>) {
    // Convert through double, which is exact up to 32 bits.
    const auto value = [](compute_t<S> x) {
      if constexpr (bits_of<S> <= 16) return static_cast<float>(x);
      return result<D>(static_cast<double>(x));
    };
    if (saturate && largest<D>() < 0x1p64f) {
      map(
          dst,
          [value](compute_t<S> x) {
            constexpr float limit = largest<D>();
            const float found = static_cast<float>(value(x));
            return found > limit ? limit : found < -limit ? -limit : found;
          },
          src);
    } else {
      map(dst, value, src);
    }
  } else {
    if (saturate && !(has_infinity<D>() && largest<D>() >= largest<S>())) {
      PTO_IF_TARGET(kIsa != Isa::cpu) {
        map(dst, [](float x) { return held<D, S, true>(x); }, src);
      }
      else {
        map(dst, [](float x) { return held<D, S, false>(x); }, src);
      }
    } else {
      transfer<float>(rows, cols, dst, src);
    }
  }
}

/// Return true for the few pairs that wrap by default; the hardware saturates all other pairs.
template <class D, class S>
constexpr bool wraps_by_default() {
  constexpr DType s = dtype_of<S>, d = dtype_of<D>;
  return (s == DType::f16 && (d == DType::u8 || d == DType::i8 || d == DType::i16)) ||
         (s == DType::f32 && d == DType::i16) || (s == DType::i64 && d == DType::i32) ||
         (s == DType::i32 && d == DType::i16);
}
template <class D, class S>
PTO_OF_TARGET bool saturates() {
  return kIsa != Isa::cpu && !wraps_by_default<D, S>();
}
template <class D, class S>
PTO_OF_TARGET bool saturates(SaturationMode asked) {
  if (asked == SaturationMode::ON) return true;
  return kIsa == Isa::a2a3 && !wraps_by_default<D, S>();  // A2/A3 switch it off for these pairs only
}

}  // namespace detail

/// Convert elements to another type.
template <bool NeedSetCtrl = true, class Dst, class Src, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TCVT(Dst& dst, Src& src, RoundMode mode, SaturationMode saturation, Events&... events) {
  PTO_LEGAL(check_tcvt_with_sat_mode<Dst, Src>(dst, src));
  detail::finish_call<0>(events...);
  PTO_TRACE("tcvt dst src: rmode sat_mode", PTO_SAYS(mode, saturation), dst, src);
  detail::convert(dst, src, mode, detail::saturates<typename Dst::DType, typename Src::DType>(saturation));
  return {};
}
template <bool NeedSetCtrl = true, class Dst, class Src, class... Events>
  requires(all_events_v<Events...>)
PTO_INST RecordEvent TCVT(Dst& dst, Src& src, RoundMode mode, Events&... events) {
  PTO_LEGAL(check_tcvt<Dst, Src>(dst, src));
  detail::finish_call<0>(events...);
  PTO_TRACE("tcvt dst src: rmode", PTO_SAYS(mode), dst, src);
  detail::convert(dst, src, mode, detail::saturates<typename Dst::DType, typename Src::DType>());
  return {};
}
/// Convert with a scratch tile, which some targets need.
template <bool NeedSetCtrl = true, class Dst, class Src, class Tmp, class... Events>
  requires(is_tile_data_v<Tmp> && all_events_v<Events...>)
PTO_INST RecordEvent TCVT(Dst& dst, Src& src, [[maybe_unused]] Tmp& tmp, RoundMode mode,
                          SaturationMode saturation, Events&... events) {
  PTO_TRACE_WAITS(events...);
  PTO_TRACE("tcvt dst src tmp: rmode sat_mode", PTO_SAYS(mode, saturation), dst, src, tmp);
  return TCVT<NeedSetCtrl>(dst, src, mode, saturation, events...);
}
template <bool NeedSetCtrl = true, class Dst, class Src, class Tmp, class... Events>
  requires(is_tile_data_v<Tmp> && all_events_v<Events...>)
PTO_INST RecordEvent TCVT(Dst& dst, Src& src, [[maybe_unused]] Tmp& tmp, RoundMode mode, Events&... events) {
  PTO_TRACE_WAITS(events...);
  PTO_TRACE("tcvt dst src tmp: rmode", PTO_SAYS(mode), dst, src, tmp);
  return TCVT<NeedSetCtrl>(dst, src, mode, events...);
}

}  // namespace pto
