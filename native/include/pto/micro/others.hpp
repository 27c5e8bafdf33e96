// Public calls on registers without a row in the instruction table.
#pragma once

#include "pto/micro/lanes.hpp"
#include "pto/micro/operators.hpp"

namespace pto::detail::micro {

/// Return the remainder with the sign of the divisor; 0 for a division by 0.
template <class T>
constexpr T floored_rest(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    const int64_t rest = int64_t{a} % int64_t{b};
    return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  } else {
    return static_cast<T>(a % b);
  }
}
/// Return the absolute difference of two numbers.
template <class T>
PTO_INLINE T distance(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(a < b ? static_cast<U>(b) - static_cast<U>(a)
                                : static_cast<U>(a) - static_cast<U>(b));
  } else {
    return lane_of<T>(magnitude(number(lane_of<T>(number(a) - number(b)))));
  }
}

}  // namespace pto::detail::micro

#define PTO_CALL_(V, T)                                                                                 \
  template <class M = decltype(MODE_UNKNOWN)>                                                           \
  PTO_INST void vmod(V& r, const V& lhs, const V& rhs, const vector_bool& mask, M = {}) {               \
    pto::detail::micro::put_lanes<M>(                                                                   \
        r, mask, [&](int i) { return pto::detail::micro::floored_rest<T>(lhs.lane[i], rhs.lane[i]); }); \
  }
PTO_B16_INTEGERS(PTO_CALL_)
PTO_B32_INTEGERS(PTO_CALL_)
#undef PTO_CALL_

#define PTO_CALL_(V, T)                                                                             \
  template <class M = decltype(MODE_UNKNOWN)>                                                       \
  PTO_INST void vabsdif(V& r, const V& lhs, const V& rhs, const vector_bool& mask, M = {}) {        \
    pto::detail::micro::put_lanes<M>(                                                               \
        r, mask, [&](int i) { return pto::detail::micro::distance<T>(lhs.lane[i], rhs.lane[i]); }); \
  }
PTO_B8_INTEGERS(PTO_CALL_)
PTO_B16_INTEGERS(PTO_CALL_)
PTO_B32_INTEGERS(PTO_CALL_)
PTO_CALL_(vector_f16, half)
PTO_CALL_(vector_f32, float)
#undef PTO_CALL_

/// Expand dense bits to a mask: lane i is bit i of the selected part, which has a bit per lane.
#define PTO_CALL_(V, T)                                                                                \
  PTO_INST void movvp(vector_bool& mask, const V& bits, int16_t part) {                                \
    const auto* bytes = reinterpret_cast<const unsigned char*>(&bits) + part * (V::kLanes / 8);        \
    mask = pto::detail::micro::mask_of<sizeof(T)>([&](int i) { return bytes[i / 8] >> (i % 8) & 1; }); \
  }
PTO_CALL_(vector_u16, uint16_t)
PTO_CALL_(vector_u32, uint32_t)
#undef PTO_CALL_
