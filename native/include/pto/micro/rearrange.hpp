// Moves between lanes: interleaving, windows, compaction, permutation, and changes of lane width.
#pragma once

#include "pto/micro/lanes.hpp"

namespace pto::detail::micro {

template <class V>
inline void interleave_lanes(V& low, V& high, const V& a, const V& b) {
  V first, second;
  constexpr int half = V::kLanes / 2;
  for (int i = 0; i < half; ++i) {
    first.lane[2 * i] = a.lane[i];
    first.lane[2 * i + 1] = b.lane[i];
    second.lane[2 * i] = a.lane[half + i];
    second.lane[2 * i + 1] = b.lane[half + i];
  }
  low = first;
  high = second;
}
template <class V>
inline void separate_lanes(V& low, V& high, const V& a, const V& b) {
  V first, second;
  constexpr int half = V::kLanes / 2;
  for (int i = 0; i < half; ++i) {
    first.lane[i] = a.lane[2 * i];
    second.lane[i] = a.lane[2 * i + 1];
    first.lane[half + i] = b.lane[2 * i];
    second.lane[half + i] = b.lane[2 * i + 1];
  }
  low = first;
  high = second;
}
/// Take a register-wide window of the older register followed by the newer, `amount` lanes before the newer.
template <class V>
inline void slide(V& r, const V& newer, const V& older, int amount) {
  if (amount < 0 || amount > V::kLanes)
    failf("[PTO-E2102] vslide: expects amt to be between 0 and the lane count %d, got %d", V::kLanes, amount);
  V made;
  for (int i = 0; i < V::kLanes; ++i)
    made.lane[i] = i < amount ? older.lane[V::kLanes - amount + i] : newer.lane[i - amount];
  r = made;
}
template <bool Stored, class V>
inline void squeeze(V& r, const V& src, const vector_bool& mask) {
  using T = typename V::Element;
  V made;
  clear(made);
  int count = 0;
  for (int i = 0; i < V::kLanes; ++i)
    if (is_on<sizeof(T)>(mask, i)) made.lane[count++] = src.lane[i];
  r = made;
  if (Stored) core().squeeze.sqzn = count * static_cast<int64_t>(sizeof(T));
}
template <class V>
inline void count_below(V& r, const vector_bool& mask) {
  using T = typename V::Element;
  int count = 0;
  for (int i = 0; i < V::kLanes; ++i) {
    r.lane[i] = static_cast<T>(count);
    count += is_on<sizeof(T)>(mask, i);
  }
}
template <class V, class I>
inline void permute(V& r, const V& src, const I& index) {
  V made;
  for (int i = 0; i < V::kLanes; ++i) made.lane[i] = src.lane[index.lane[i] & (V::kLanes - 1)];
  r = made;
}
template <bool Higher, class N, class W>
inline void pack(N& r, const W& src) {
  N made;
  clear(made);
  for (int i = 0; i < W::kLanes; ++i)
    made.lane[(Higher ? W::kLanes : 0) + i] = static_cast<typename N::Element>(src.lane[i]);
  r = made;
}
template <bool Higher, class W, class N>
inline void unpack(W& r, const N& src) {
  W made;
  for (int i = 0; i < W::kLanes; ++i)
    made.lane[i] = static_cast<typename W::Element>(src.lane[(Higher ? W::kLanes : 0) + i]);
  r = made;
}

}  // namespace pto::detail::micro

#define PTO_MOVES_(V, T)                                                                         \
  template <int = 0>                                                                             \
  PTO_INST void vintlv(V& low, V& high, const V& lhs, const V& rhs) {                            \
    pto::detail::micro::interleave_lanes(low, high, lhs, rhs);                                   \
  }                                                                                              \
  template <int = 0>                                                                             \
  PTO_INST void vdintlv(V& low, V& high, const V& lhs, const V& rhs) {                           \
    pto::detail::micro::separate_lanes(low, high, lhs, rhs);                                     \
  }                                                                                              \
  template <class H>                                                                             \
  PTO_INST void vdintlvv2(V& r, const V& lhs, const V& rhs, H) {                                 \
    V other;                                                                                     \
    if constexpr (H::value == ::__cce_simd::HiloPart::HIGHER) {                                  \
      vdintlv(other, r, lhs, rhs);                                                               \
    } else {                                                                                     \
      vdintlv(r, other, lhs, rhs);                                                               \
    }                                                                                            \
  }                                                                                              \
  template <int = 0>                                                                             \
  PTO_INST void vslide(V& r, const V& src0, const V& src1, uint16_t amt) {                       \
    pto::detail::micro::slide(r, src0, src1, static_cast<int16_t>(amt));                         \
  }                                                                                              \
  template <class S>                                                                             \
  PTO_INST void vsqz(V& r, const V& src, const vector_bool& mask, S) {                           \
    pto::detail::micro::squeeze<S::value == ::__cce_simd::StoreMode::MODE_STORED>(r, src, mask); \
  }
PTO_COMMON_REGISTERS(PTO_MOVES_)
PTO_B8_FLOATS(PTO_MOVES_)
#undef PTO_MOVES_
#define PTO_VUSQZ_(V, T)                               \
  template <int = 0>                                   \
  PTO_INST void vusqz(V& r, const vector_bool& mask) { \
    pto::detail::micro::count_below(r, mask);          \
  }
PTO_B8_INTEGERS(PTO_VUSQZ_)
PTO_B16_INTEGERS(PTO_VUSQZ_)
PTO_B32_INTEGERS(PTO_VUSQZ_)
#undef PTO_VUSQZ_
#define PTO_VSELR_(V, I)                                  \
  template <int = 0>                                      \
  PTO_INST void vselr(V& r, const V& src, const I& idx) { \
    pto::detail::micro::permute(r, src, idx);             \
  }
#define PTO_VSELR_B8_(V, T) PTO_VSELR_(V, vector_u8)
#define PTO_VSELR_B16_(V, T) PTO_VSELR_(V, vector_u16)
#define PTO_VSELR_B32_(V, T) PTO_VSELR_(V, vector_u32)
PTO_B8_INTEGERS(PTO_VSELR_B8_)
PTO_B8_FLOATS(PTO_VSELR_B8_)
PTO_B16_INTEGERS(PTO_VSELR_B16_)
PTO_B16_FLOATS(PTO_VSELR_B16_)
PTO_B32_INTEGERS(PTO_VSELR_B32_)
PTO_B32_FLOATS(PTO_VSELR_B32_)
#undef PTO_VSELR_
#undef PTO_VSELR_B8_
#undef PTO_VSELR_B16_
#undef PTO_VSELR_B32_
#define PTO_VPACK_(N, W)                                                          \
  template <class H, class M = decltype(MODE_UNKNOWN)>                            \
  PTO_INST void vpack(N& r, const W& src, H, M = {}) {                            \
    pto::detail::micro::pack<H::value == ::__cce_simd::HiloPart::HIGHER>(r, src); \
  }
PTO_VPACK_(vector_u8, vector_s16)
PTO_VPACK_(vector_u8, vector_u16)
PTO_VPACK_(vector_u16, vector_s32)
PTO_VPACK_(vector_u16, vector_u32)
#undef PTO_VPACK_
#define PTO_VUNPACK_(W, N)                                                          \
  template <class H>                                                                \
  PTO_INST void vunpack(W& r, const N& src, H) {                                    \
    pto::detail::micro::unpack<H::value == ::__cce_simd::HiloPart::HIGHER>(r, src); \
  }
PTO_VUNPACK_(vector_s16, vector_s8)
PTO_VUNPACK_(vector_s32, vector_s16)
PTO_VUNPACK_(vector_u16, vector_u8)
PTO_VUNPACK_(vector_u32, vector_u16)
#undef PTO_VUNPACK_
