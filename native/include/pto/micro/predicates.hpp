// Masks: patterns and tails, logic, packing, loads and stores.
#pragma once

#include "pto/micro/streams.hpp"

namespace pto::detail::micro {

template <int Size>
inline vector_bool pattern(::__cce_simd::Pat which) {
  constexpr uint64_t lanes = kRegisterBytes / Size;
  constexpr uint8_t counts[] = {1, 2, 3, 4, 8, 16, 32, 64, 128};
  const int number = static_cast<int>(which);
  if (number >= 1 && number <= 9) return first_lanes<Size>(counts[number - 1]);
  if (which == ::__cce_simd::Pat::PAT_M3) return mask_of<Size>([](int i) { return i % 3 == 0; });
  if (which == ::__cce_simd::Pat::PAT_M4) return mask_of<Size>([](int i) { return i % 4 == 0; });
  if (which == ::__cce_simd::Pat::PAT_H) return first_lanes<Size>(lanes / 2);
  if (which == ::__cce_simd::Pat::PAT_Q) return first_lanes<Size>(lanes / 4);
  return first_lanes<Size>(which == ::__cce_simd::Pat::PAT_ALL ? lanes : 0);
}
template <int Size>
inline vector_bool tail(uint32_t& count) {
  constexpr uint32_t lanes = kRegisterBytes / Size;
  const vector_bool made = first_lanes<Size>(count);
  count = count < lanes ? 0 : count - lanes;
  return made;
}
inline bool bit_of(const vector_bool& mask, int bit) { return mask.word[bit / 64] >> (bit % 64) & 1; }
template <class Bit>
inline vector_bool image_of(Bit&& bit) {
  return mask_of<1>(bit);
}
template <int Size>
inline void interleave(vector_bool& low, vector_bool& high, const vector_bool& a, const vector_bool& b) {
  constexpr int lanes = kRegisterBytes / Size;
  const auto at = [&](int bit) {
    const int lane = bit / Size;
    return bit_of(lane % 2 ? b : a, lane / 2 * Size + bit % Size);
  };
  const vector_bool first = image_of(at), second = image_of([&](int bit) { return at(bit + lanes * Size); });
  low = first;
  high = second;
}
template <int Size>
inline void separate(vector_bool& low, vector_bool& high, const vector_bool& a, const vector_bool& b) {
  const auto at = [&](int lane, int bit) {
    const int from = lane * Size + bit;
    return bit_of(from < kRegisterBytes ? a : b, from % kRegisterBytes);
  };
  const vector_bool first = image_of([&](int bit) { return at(bit / Size * 2, bit % Size); });
  const vector_bool second = image_of([&](int bit) { return at(bit / Size * 2 + 1, bit % Size); });
  low = first;
  high = second;
}

inline void load_mask(vector_bool& mask, const volatile void* from, int64_t offset, int dist) {
  const int size = dist == 1 ? 16 : dist == 2 ? 64 : 32;
  unsigned char found[64];
  std::memcpy(found, bytes_at("plds", from, offset, size, 8), static_cast<size_t>(size));
  mask = image_of([&](int bit) {
    const int at = dist == 1 ? bit / 2 : dist == 2 ? bit * 2 : bit;
    return found[at / 8] >> (at % 8) & 1;
  });
}
inline void store_mask(const vector_bool& mask, const volatile void* to, int64_t offset, int dist) {
  unsigned char made[32] = {};
  const int bits = dist == 1 ? 128 : 256;
  for (int bit = 0; bit < bits; ++bit)
    made[bit / 8] |= static_cast<unsigned char>(bit_of(mask, dist == 1 ? bit * 2 : bit) << (bit % 8));
  std::memcpy(bytes_at("psts", to, offset, bits / 8, 8), made, static_cast<size_t>(bits / 8));
}
template <class T>
inline void move_bytes(T*& pointer, int64_t bytes) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + static_cast<uintptr_t>(bytes));
}

}  // namespace pto::detail::micro

#define PTO_MASKS_(width, size)                                                                             \
  template <class P>                                                                                        \
  PTO_INST vector_bool pset_b##width(P) {                                                                   \
    const vector_bool made = pto::detail::micro::pattern<size>(P::value);                                   \
    PTO_TRACE("pset_b" #width " >mask: pattern@Pat", PTO_SAYS(P::value), PTO_RESULT(made));                 \
    return made;                                                                                            \
  }                                                                                                         \
  template <class P>                                                                                        \
  PTO_INST vector_bool pge_b##width(P) {                                                                    \
    const vector_bool made = pto::detail::micro::pattern<size>(P::value);                                   \
    PTO_TRACE("pge_b" #width " >mask: pattern@Pat", PTO_SAYS(P::value), PTO_RESULT(made));                  \
    return made;                                                                                            \
  }                                                                                                         \
  template <class P>                                                                                        \
  PTO_INST vector_bool plt_b##width(uint32_t& count, P) {                                                   \
    [[maybe_unused]] const uint32_t before = count;                                                         \
    const vector_bool made = pto::detail::micro::tail<size>(count);                                         \
    PTO_TRACE("plt_b" #width " >mask scalar:", PTO_SAYS(), PTO_RESULT(made), before);                       \
    return made;                                                                                            \
  }                                                                                                         \
  PTO_INST void pintlv_b##width(vector_bool& low, vector_bool& high, vector_bool src0, vector_bool src1) {  \
    pto::detail::micro::interleave<size>(low, high, src0, src1);                                            \
  }                                                                                                         \
  PTO_INST void pdintlv_b##width(vector_bool& low, vector_bool& high, vector_bool src0, vector_bool src1) { \
    pto::detail::micro::separate<size>(low, high, src0, src1);                                              \
  }
PTO_MASKS_(8, 1)
PTO_MASKS_(16, 2)
PTO_MASKS_(32, 4)
#undef PTO_MASKS_

#define PTO_ALGEBRA_(name, expression)                                                         \
  PTO_INST void name(vector_bool& dst, vector_bool src0, vector_bool src1, vector_bool mask) { \
    for (int i = 0; i < 4; ++i) {                                                              \
      const uint64_t a = src0.word[i], b = src1.word[i], c = mask.word[i];                     \
      dst.word[i] = expression;                                                                \
    }                                                                                          \
  }
PTO_ALGEBRA_(pand, a & b & c)
PTO_ALGEBRA_(por, (a | b) & c)
PTO_ALGEBRA_(pxor, (a ^ b) & c)
PTO_ALGEBRA_(psel, (a & c) | (b & ~c))
#undef PTO_ALGEBRA_
PTO_INST void pnot(vector_bool& dst, vector_bool src, vector_bool mask) {
  for (int i = 0; i < 4; ++i) dst.word[i] = ~src.word[i] & mask.word[i];
}
PTO_INST void pmov(vector_bool& dst, vector_bool src) { dst = src; }
PTO_INST void pmov(vector_bool& dst, vector_bool src, vector_bool mask) { pand(dst, src, src, mask); }

template <class H>
PTO_INST void ppack(vector_bool& dst, vector_bool src, H) {
  constexpr int first = H::value == ::__cce_simd::HiloPart::HIGHER ? 128 : 0;
  dst = pto::detail::micro::image_of([&](int bit) {
    return bit >= first && bit < first + 128 && pto::detail::micro::bit_of(src, (bit - first) * 2);
  });
}
template <class H>
PTO_INST void punpack(vector_bool& dst, vector_bool src, H) {
  constexpr int first = H::value == ::__cce_simd::HiloPart::HIGHER ? 128 : 0;
  dst = pto::detail::micro::image_of(
      [&](int bit) { return bit % 2 == 0 && pto::detail::micro::bit_of(src, first + bit / 2); });
}

// Offsets count bytes.
template <class D>
PTO_INST void plds(vector_bool& mask, __ubuf__ uint32_t* source, int32_t offset, D) {
  pto::detail::micro::load_mask(mask, source, offset, static_cast<int>(D::value));
}
template <class D, class P>
PTO_INST void plds(vector_bool& mask, __ubuf__ uint32_t*& source, int32_t offset, D, P) {
  pto::detail::micro::load_mask(mask, source, 0, static_cast<int>(D::value));
  pto::detail::micro::move_bytes(source, offset);
}
template <class D>
PTO_INST void psts(vector_bool mask, __ubuf__ uint32_t* dest, int32_t offset, D) {
  pto::detail::micro::store_mask(mask, dest, offset, static_cast<int>(D::value));
}
template <class D, class P>
PTO_INST void psts(vector_bool mask, __ubuf__ uint32_t*& dest, int32_t offset, D, P) {
  pto::detail::micro::store_mask(mask, dest, 0, static_cast<int>(D::value));
  pto::detail::micro::move_bytes(dest, offset);
}

/// Append the lanes of a mask to a store stream, as dense bits.
#define PTO_PSTU_(T)                                                                                  \
  PTO_INST void pstu(vector_align& state, vector_bool mask, __ubuf__ T*& base) {                      \
    constexpr int size = sizeof(T), lanes = 256 / size;                                               \
    unsigned char bits[lanes / 8] = {};                                                               \
    for (int i = 0; i < lanes; ++i)                                                                   \
      bits[i / 8] |= static_cast<unsigned char>(pto::detail::micro::is_on<size>(mask, i) << (i % 8)); \
    pto::detail::micro::append("pstu", state, base, 0, bits, sizeof bits, 1);                         \
    pto::detail::micro::move_bytes(base, sizeof bits);                                                \
  }
PTO_PSTU_(uint16_t)
PTO_PSTU_(uint32_t)
#undef PTO_PSTU_

#ifndef PTO_CPU_BARE_REGISTERS
namespace pto {

template <class T>
PTO_INST MaskReg CreatePredicate(uint32_t& count) {
  if constexpr (sizeof(T) == 1) {
    return plt_b8(count, POST_UPDATE);
  } else if constexpr (sizeof(T) == 2) {
    return plt_b16(count, POST_UPDATE);
  } else {
    return plt_b32(count, POST_UPDATE);
  }
}
template <class T, class P>
PTO_INST MaskReg PSetWithType(P which) {
  if constexpr (sizeof(T) == 1) {
    return pset_b8(which);
  } else if constexpr (sizeof(T) == 2) {
    return pset_b16(which);
  } else {
    return pset_b32(which);
  }
}

}  // namespace pto
#endif
