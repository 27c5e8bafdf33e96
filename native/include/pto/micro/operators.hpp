// Operators for the vector rows of the instruction table, besides those of core/numbers.hpp.
#pragma once

#include "pto/micro/lanes.hpp"

namespace pto::detail {

template <class A>
PTO_INLINE A magnitude(A a) {
  if constexpr (std::is_integral_v<A>) {
    return a < 0 ? neg(a) : a;
  } else {
    return __builtin_bit_cast(A, __builtin_bit_cast(uint32_t, a) & 0x7FFFFFFF);
  }
}
/// Return the larger or the smaller operand; NaN propagates, and -0 is below +0.
template <class A, class B>
PTO_INLINE common_t<A, B> larger(A left, B right) {
  using C = common_t<A, B>;
  const C a = static_cast<C>(left), b = static_cast<C>(right);
  if constexpr (std::is_integral_v<C>) {
    return a > b ? a : b;
  } else {
    const C zero = __builtin_bit_cast(C, __builtin_bit_cast(uint32_t, a) & __builtin_bit_cast(uint32_t, b));
    const C found = a == b ? zero : a > b ? a : b;
    return a != a ? a : found;
  }
}
template <class A, class B>
PTO_INLINE common_t<A, B> lesser(A left, B right) {
  using C = common_t<A, B>;
  const C a = static_cast<C>(left), b = static_cast<C>(right);
  if constexpr (std::is_integral_v<C>) {
    return a < b ? a : b;
  } else {
    const C zero = __builtin_bit_cast(C, __builtin_bit_cast(uint32_t, a) | __builtin_bit_cast(uint32_t, b));
    const C found = a == b ? zero : a < b ? a : b;
    return a != a ? a : found;
  }
}
/// Return a * b + c, rounded once: for narrow elements, in double with a sticky last bit.
template <class T, class A, class B, class C>
PTO_INLINE auto fused(A a, B b, C c) {
  if constexpr (std::is_integral_v<A>) {
    return add(mul(a, b), c);
  } else if constexpr (std::is_same_v<T, float>) {
    return __builtin_fmaf(a, b, c);
  } else {
    const double product = static_cast<double>(a) * static_cast<double>(b), other = c,
                 total = product + other;
    const double part = total - product, lost = (product - (total - part)) + (other - part);
    const auto bits = __builtin_bit_cast(uint64_t, total);
    if (!(__builtin_fabs(total) < __builtin_inf()) || lost == 0 || (bits & 1) != 0) return total;
    return __builtin_bit_cast(double, (lost > 0) == (total > 0) ? bits + 1 : bits - 1);
  }
}
template <class T, class A>
PTO_INLINE A ones(A a) {
  return static_cast<A>(__builtin_popcountll(static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(a))));
}
/// Return the number of leading bits equal to the sign bit, without the sign bit itself.
template <class T, class A>
PTO_INLINE A sign_bits(A a) {
  const auto size = static_cast<uint64_t>(static_cast<int64_t>(a < 0 ? ~a : a));
  return static_cast<A>(8 * static_cast<int>(sizeof(T)) - 1 - (size == 0 ? 0 : 64 - __builtin_clzll(size)));
}
template <class A>
PTO_INLINE A rint_of(A a) {
  return __builtin_rintf(a);
}
template <class A>
PTO_INLINE A away_of(A a) {
  return __builtin_roundf(a);
}
template <class A>
PTO_INLINE A floor_of(A a) {
  return __builtin_floorf(a);
}
template <class A>
PTO_INLINE A ceil_of(A a) {
  return __builtin_ceilf(a);
}
template <class A>
PTO_INLINE A trunc_of(A a) {
  return __builtin_truncf(a);
}

}  // namespace pto::detail
