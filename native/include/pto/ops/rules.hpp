// What the checks of ops/legality.hpp and the calls of ops/calls.hpp are written with.
#pragma once

#include "pto/core/numbers.hpp"

namespace pto::detail {

/// Kinds of an algorithm, as rows name them.
enum class Kind { largest, smallest };

/// No, but only once T is known.
template <class T>
inline constexpr bool never = sizeof(T) == 0;

/// Whether elements of two types are copied bit for bit.
template <class A, class B>
inline constexpr bool same_kind =
    bits_of<A> == bits_of<B> && is_float_v<A> == is_float_v<B> && (!is_float_v<A> || std::is_same_v<A, B>);

/// Whether the element type of an operand is in a set, a bit for each DType.
template <class Operand>
constexpr bool is_among(uint32_t types) {
  return types >> static_cast<int>(dtype_of<typename Operand::DType>) & 1;
}

/// Valid regions that types say: extents that are known at run time only fit everything.
template <class A, class B>
constexpr bool same_valid() {
  return (A::ValidRow == DYNAMIC || B::ValidRow == DYNAMIC || A::ValidRow == B::ValidRow) &&
         (A::ValidCol == DYNAMIC || B::ValidCol == DYNAMIC || A::ValidCol == B::ValidCol);
}
template <class A, class B>
constexpr bool fitting_valid() {
  return (A::ValidRow == DYNAMIC || B::ValidRow == DYNAMIC || A::ValidRow <= B::ValidRow) &&
         (A::ValidCol == DYNAMIC || B::ValidCol == DYNAMIC || A::ValidCol <= B::ValidCol);
}

constexpr int rounded_up(int a, int b) { return (a + b - 1) / b; }
constexpr int lesser_of(int a, int b) { return a < b ? a : b; }
constexpr int larger_of(int a, int b) { return a > b ? a : b; }

}  // namespace pto::detail
