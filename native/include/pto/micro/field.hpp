// Names that the headers of pto-isa use besides the calls: sizes, traits, enumerations.
//
// They serve code that uses the helpers of pto-isa headers, and these headers themselves, which compile with
// ours under -DPTO_CPU_BARE_REGISTERS.
#pragma once

#include <type_traits>

#include "pto/core/events.hpp"
#include "pto/core/tile.hpp"
#include "pto/ops/bursts.hpp"

namespace pto {

template <class T, class... Types>
inline constexpr bool isSupportType = (std::is_same_v<T, Types> || ...);

/// The unsigned type for moves of elements of up to 32 bits.
template <class T>
using LoadTypeBySize_t =
    std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;

/// A float and its bits.
template <class T>
union FloatIntUnion {
  using UIntegerType = std::conditional_t<sizeof(T) == sizeof(float), uint32_t, uint16_t>;
  UIntegerType i;
  T f;
  constexpr FloatIntUnion() : i(0) {}
  constexpr FloatIntUnion(UIntegerType bits) : i(bits) {}
};
using FloatUnion = FloatIntUnion<float>;
using HalfUnion = FloatIntUnion<half>;

inline int32_t CeilDivision(int32_t a, int32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
inline uint32_t CeilAlignment(uint32_t a, uint32_t b) { return b == 0 ? 0 : (a + b - 1) / b * b; }

inline constexpr int TROW_PROD_LOOP_B16 = 7, TROW_PROD_LOOP_B32 = 6, PAD_SHIFT_LENGTH = 32;
inline constexpr uint16_t PTO_TIME_1 = 1, PTO_TIME_2 = 2, PTO_TIME_4 = 4, PTO_IDX_0 = 0, PTO_IDX_1 = 1,
                          PTO_IDX_2 = 2, PTO_IDX_3 = 3;

/// Return the number of elements per set bit of a mask pattern, and the row offset for the i-th of them.
template <MaskPattern Mask>
constexpr int GetTimesByMask() {
  return Mask == MaskPattern::P1111 ? 1 : Mask == MaskPattern::P0101 || Mask == MaskPattern::P1010 ? 2 : 4;
}
template <MaskPattern Mask, uint16_t RowStride>
constexpr int GetStrideByMask(int i) {
  constexpr int first = Mask == MaskPattern::P1010 || Mask == MaskPattern::P0010 ? 1
                        : Mask == MaskPattern::P0100                             ? 2
                        : Mask == MaskPattern::P1000                             ? 3
                                                                                 : 0;
  return (GetTimesByMask<Mask>() * i + first) * RowStride;
}

#ifdef PTO_CPU_BARE_REGISTERS  // elsewhere these names mean those of the standard library
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
#endif

#ifndef PTO_CPU_BARE_REGISTERS
/// Copies under the names that all cores share.
template <class... Arguments>
inline void pto_copy_gm_to_ubuf_align_v2(Arguments... arguments) {
  copy_gm_to_ubuf_align_v2(arguments...);
}
template <class... Arguments>
inline void pto_copy_ubuf_to_gm_align_v2(Arguments... arguments) {
  copy_ubuf_to_gm_align_v2(arguments...);
}
template <class... Arguments>
inline void pto_copy_ubuf_to_ubuf(Arguments... arguments) {
  copy_ubuf_to_ubuf(arguments...);
}
#endif

/// The pipe of a kind of instruction.
template <Op Kind>
struct OpPipeEntry {
  static constexpr pipe_t pipe = pipe_of(Kind);
};

}  // namespace pto

enum class atomic_type_t : uint8_t {
  ATOMIC_NONE = 0,
  ATOMIC_F32 = 1,
  ATOMIC_F16 = 2,
  ATOMIC_S16 = 3,
  ATOMIC_S32 = 4,
  ATOMIC_S8 = 5,
  ATOMIC_BF16 = 6,
};
enum class atomic_op_t : uint8_t { ATOMIC_SUM = 0, ATOMIC_MAX = 1, ATOMIC_MIN = 2 };
