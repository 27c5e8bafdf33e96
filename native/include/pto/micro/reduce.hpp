// Reductions over the lanes of a register or of each of its eight groups of 32 bytes, and histograms.
//
// Lanes that are off count as the identity. A float sum adds neighbours, then neighbouring sums; every step
// rounds to the element type. -0 is below +0, and a NaN is both the largest and the smallest.
#pragma once

#include "pto/micro/operators.hpp"

namespace pto::detail::micro {

/// Write the sums of `Groups` parts of a register to the first lanes.
template <int Groups, class RD, class RS>
PTO_EXACT_LOOP void sums(RD& r, const RS& input, const vector_bool& mask) {
  using D = typename RD::Element;
  using S = typename RS::Element;
  constexpr int each = RS::kLanes / Groups;
  RD made;
  clear(made);
  for (int g = 0; g < Groups; ++g) {
    if constexpr (std::is_integral_v<S>) {
      uint64_t total = 0;
      for (int i = 0; i < each; ++i)
        if (is_on<sizeof(S)>(mask, g * each + i)) total += static_cast<uint64_t>(input.lane[g * each + i]);
      made.lane[g] = static_cast<D>(total);
    } else {
      S part[each];
      for (int i = 0; i < each; ++i)
        part[i] = is_on<sizeof(S)>(mask, g * each + i) ? input.lane[g * each + i] : S(0.0f);
      for (int left = each / 2; left > 0; left /= 2)
        for (int i = 0; i < left; ++i) part[i] = lane_of<S>(number(part[2 * i]) + number(part[2 * i + 1]));
      made.lane[g] = part[0];
    }
  }
  r = made;
}
template <class V>
PTO_EXACT_LOOP void pair_sums(V& r, const V& input, const vector_bool& mask) {
  using T = typename V::Element;
  V made;
  clear(made);
  const auto at = [&](int i) { return is_on<sizeof(T)>(mask, i) ? number(input.lane[i]) : 0.0f; };
  for (int i = 0; i < V::kLanes / 2; ++i) made.lane[i] = lane_of<T>(at(2 * i) + at(2 * i + 1));
  r = made;
}

template <bool Largest, class T>
inline T identity() {
  if constexpr (std::is_integral_v<T>) {
    return Largest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  } else {
    return T(Largest ? -__builtin_inff() : __builtin_inff());
  }
}
/// Return true if a replaces b as the extreme.
template <bool Largest, class A>
inline bool beats(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    if (b != b) return false;
    if (a != a) return true;
    if (a == 0 && b == 0)
      return Largest ? __builtin_signbit(b) && !__builtin_signbit(a)
                     : __builtin_signbit(a) && !__builtin_signbit(b);
  }
  return Largest ? a > b : a < b;
}
/// Return the first lane from `first` on that holds the extreme; -1 if no lane is on.
template <bool Largest, class V>
inline int extreme_lane(const V& input, const vector_bool& mask, int first, int count) {
  int at = -1;
  for (int i = first; i < first + count; ++i)
    if (is_on<sizeof(typename V::Element)>(mask, i) &&
        (at < 0 || beats<Largest>(number(input.lane[i]), number(input.lane[at]))))
      at = i;
  return at;
}
template <bool Largest, class V>
inline void extreme(V& r, const V& input, const vector_bool& mask) {
  using T = typename V::Element;
  const int at = extreme_lane<Largest>(input, mask, 0, V::kLanes);
  V made;
  clear(made);
  made.lane[0] = at < 0 ? identity<Largest, T>() : input.lane[at];
  made.lane[1] = __builtin_bit_cast(T, static_cast<uint_of<sizeof(T)>>(at < 0 ? 0 : at));
  r = made;
}
template <bool Largest, class V>
inline void extremes(V& r, const V& input, const vector_bool& mask) {
  using T = typename V::Element;
  constexpr int each = V::kLanes / 8;
  V made;
  clear(made);
  for (int g = 0; g < 8; ++g) {
    const int at = extreme_lane<Largest>(input, mask, g * each, each);
    made.lane[g] = at < 0 ? identity<Largest, T>() : input.lane[at];
  }
  r = made;
}
template <bool Largest, class V>
inline void extreme_and_mask(V& r, vector_bool& p, const V& input, const vector_bool& mask) {
  using T = typename V::Element;
  const int at = extreme_lane<Largest>(input, mask, 0, V::kLanes);
  const T found = at < 0 ? identity<Largest, T>() : input.lane[at];
  const vector_bool gate = mask;
  p = mask_of<sizeof(T)>(
      [&](int i) { return is_on<sizeof(T)>(gate, i) && number(input.lane[i]) == number(found); });
  V made;
  clear(made);
  made.lane[0] = found;
  r = made;
}
template <bool Cumulative>
inline void histogram(vector_u16& r, const vector_u8& source, const vector_bool& mask, int half) {
  uint16_t counts[256] = {};
  for (int i = 0; i < 256; ++i)
    counts[source.lane[i]] = static_cast<uint16_t>(counts[source.lane[i]] + is_on<1>(mask, i));
  if (Cumulative)
    for (int i = 1; i < 256; ++i) counts[i] = static_cast<uint16_t>(counts[i] + counts[i - 1]);
  for (int i = 0; i < 128; ++i) r.lane[i] = static_cast<uint16_t>(r.lane[i] + counts[128 * half + i]);
}

}  // namespace pto::detail::micro

#define PTO_REDUCE_(name, D, S, call)                                         \
  template <class M = decltype(MODE_UNKNOWN)>                                 \
  PTO_INST void name(D& r, const S& input, const vector_bool& mask, M = {}) { \
    pto::detail::micro::call(r, input, mask);                                 \
  }
#define PTO_SUMS_(D, S) PTO_REDUCE_(vcadd, D, S, sums<1>) PTO_REDUCE_(vcgadd, D, S, sums<8>)
PTO_SUMS_(vector_f32, vector_f32)
PTO_SUMS_(vector_f16, vector_f16)
PTO_SUMS_(vector_s32, vector_s32)
PTO_SUMS_(vector_u32, vector_u32)
PTO_SUMS_(vector_s32, vector_s16)
PTO_SUMS_(vector_u32, vector_u16)
#undef PTO_SUMS_
PTO_REDUCE_(vcpadd, vector_f32, vector_f32, pair_sums)
PTO_REDUCE_(vcpadd, vector_f16, vector_f16, pair_sums)
#define PTO_EXTREMES_(V, T)                 \
  PTO_REDUCE_(vcmax, V, V, extreme<true>)   \
  PTO_REDUCE_(vcmin, V, V, extreme<false>)  \
  PTO_REDUCE_(vcgmax, V, V, extremes<true>) \
  PTO_REDUCE_(vcgmin, V, V, extremes<false>)
PTO_B16_INTEGERS(PTO_EXTREMES_)
PTO_B32_INTEGERS(PTO_EXTREMES_)
PTO_EXTREMES_(vector_f16, half)
PTO_EXTREMES_(vector_f32, float)
#undef PTO_EXTREMES_
#undef PTO_REDUCE_
#define PTO_BIT_EXTREMES_(V, T)                                                                 \
  template <class M = decltype(MODE_UNKNOWN)>                                                   \
  PTO_INST void vcbmax(V& r, vector_bool& p, const V& input, const vector_bool& mask, M = {}) { \
    pto::detail::micro::extreme_and_mask<true>(r, p, input, mask);                              \
  }                                                                                             \
  template <class M = decltype(MODE_UNKNOWN)>                                                   \
  PTO_INST void vcbmin(V& r, vector_bool& p, const V& input, const vector_bool& mask, M = {}) { \
    pto::detail::micro::extreme_and_mask<false>(r, p, input, mask);                             \
  }
PTO_COMMON_REGISTERS(PTO_BIT_EXTREMES_)
#undef PTO_BIT_EXTREMES_
template <class B>
PTO_INST void chistv2(vector_u16& r, const vector_u8& source, const vector_bool& mask, B) {
  pto::detail::micro::histogram<true>(r, source, mask, static_cast<int>(B::value));
}
template <class B>
PTO_INST void dhistv2(vector_u16& r, const vector_u8& source, const vector_bool& mask, B) {
  pto::detail::micro::histogram<false>(r, source, mask, static_cast<int>(B::value));
}
