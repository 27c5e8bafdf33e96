// Building blocks of the checks of ops/legality.hpp and the calls of ops/calls.hpp.
#pragma once

#include "pto/core/numbers.hpp"

// Check a call by the rules of its row: PTO_LEGAL(check_tadd<Dst, Src0, Src1>(dst, src0, src1)). Emitted code
// has been verified and is compiled with -DPTO_CPU_VERIFIED, which removes these checks.
#ifdef PTO_CHECKED
#undef PTO_CPU_VERIFIED
#endif
#ifdef PTO_CPU_VERIFIED
#define PTO_LEGAL(...) ((void)0)
#else
#define PTO_LEGAL(...) ::pto::detail::__VA_ARGS__
#endif

namespace pto::detail {

/// Variants of an algorithm, as named in rows.
enum class Kind { largest, smallest };

/// False, but only once T is known.
template <class T>
inline constexpr bool never = sizeof(T) == 0;

/// True if elements of two types are copied bit for bit.
template <class A, class B>
inline constexpr bool same_kind =
    bits_of<A> == bits_of<B> && is_float_v<A> == is_float_v<B> && (!is_float_v<A> || std::is_same_v<A, B>);

/// Return true if the element type of an operand is in `types`, a set with one bit per DType.
template <class Operand>
constexpr bool is_among(uint32_t types) {
  return types >> static_cast<int>(dtype_of<typename Operand::DType>) & 1;
}

/// Compare the valid regions of two types; an extent known only at run time fits every extent.
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

/// Compare the valid regions of tiles at run time, and compute other values that rules use.
template <class TileT>
constexpr int v_row(const TileT& tile) {
  return static_cast<int>(tile.GetValidRow());
}
template <class TileT>
constexpr int v_col(const TileT& tile) {
  return static_cast<int>(tile.GetValidCol());
}
template <class A, class B>
constexpr bool same_valid(const A& a, const B& b) {
  return v_row(a) == v_row(b) && v_col(a) == v_col(b);
}
template <class A, class B>
constexpr bool fitting_valid(const A& a, const B& b) {
  return v_row(a) <= v_row(b) && v_col(a) <= v_col(b);
}

/// An instruction with several tiles is a no-op if all of them are empty (`idle`), whatever its rules
/// require.
template <class T>
inline constexpr bool is_tile = requires(const T& tile) { tile.GetValidRow(); };
template <class T>
constexpr bool filled_tile(const T& operand) {
  if constexpr (is_tile<T>) return v_row(operand) != 0 && v_col(operand) != 0;
  return false;
}
template <class... Operands>
constexpr bool idle(const Operands&... operands) {
  return (0 + ... + int(is_tile<Operands>)) > 1 && !(filled_tile(operands) || ...);
}

template <class Global>
constexpr long long elems(const Global& tensor) {
  long long count = 1;
  for (int i = 0; i < 5; ++i) count *= tensor.GetShape(i);
  return count;
}
template <class T>
constexpr long long as_number(const T& value) {
  return static_cast<long long>(value);
}

/// A pattern selects every `period`-th position from `first` on.
constexpr ptrdiff_t period(MaskPattern p) { return kMaskPatterns[static_cast<int>(p)].period; }
constexpr ptrdiff_t first_of(MaskPattern p) { return kMaskPatterns[static_cast<int>(p)].first; }
constexpr ptrdiff_t selected(MaskPattern p, ptrdiff_t size) {
  return size <= first_of(p) ? 0 : (size - first_of(p) + period(p) - 1) / period(p);
}

constexpr int rounded_up(int a, int b) { return (a + b - 1) / b; }
constexpr int lesser_of(int a, int b) { return a < b ? a : b; }
constexpr int larger_of(int a, int b) { return a > b ? a : b; }

}  // namespace pto::detail
