// Common parts of all vector calls: active lanes of a mask, results in lanes, bytes of the unified buffer.
#pragma once

#include "pto/core/numbers.hpp"
#include "pto/micro/registers.hpp"
#include "pto/micro/tags.hpp"
#include "pto/ops/micro.hpp"

namespace pto::detail::micro {

template <int Size>
using uint_of = std::conditional_t<
    Size == 1, uint8_t,
    std::conditional_t<Size == 2, uint16_t, std::conditional_t<Size == 4, uint32_t, uint64_t>>>;

// --- masks -------------------------------------------------------------------------------------------------

/// The bits of a mask word that belong to lanes of `Size` bytes.
template <int Size>
inline constexpr uint64_t kLaneBits = Size == 1   ? ~uint64_t{0}
                                      : Size == 2 ? 0x5555555555555555
                                      : Size == 4 ? 0x1111111111111111
                                                  : 0x0101010101010101;

template <int Size>
PTO_INLINE bool is_on(const vector_bool& mask, int lane) {
  const int bit = lane * Size;
  return mask.word[bit / 64] >> (bit % 64) & 1;
}
template <int Size>
PTO_INLINE bool is_full(const vector_bool& mask) {
  return (mask.word[0] & mask.word[1] & mask.word[2] & mask.word[3] & kLaneBits<Size>) == kLaneBits<Size>;
}
/// One byte per lane, 1 if the lane is on.
template <int Size>
struct OnLanes {
  uint8_t on[kRegisterBytes / Size];
  PTO_INLINE explicit OnLanes(const vector_bool& mask) {
    for (int i = 0; i < kRegisterBytes / Size; ++i) on[i] = is_on<Size>(mask, i);
  }
};
/// Return the mask of the lanes of `Size` bytes for which `on` holds.
template <int Size, class On>
PTO_INLINE vector_bool mask_of(On&& on) {
  vector_bool made{};
  for (int i = 0; i < kRegisterBytes / Size; ++i)
    made.word[i * Size / 64] |= uint64_t{static_cast<bool>(on(i))} << (i * Size % 64);
  return made;
}
template <int Size>
inline vector_bool first_lanes(uint64_t count) {
  return mask_of<Size>([&](int i) { return static_cast<uint64_t>(i) < count; });
}

// --- lanes -------------------------------------------------------------------------------------------------

/// Convert an element to a number to compute with, and back: rounded to nearest even, or the low bits.
template <class T>
PTO_INLINE wide_t<T> number(const T& lane) {
  return static_cast<wide_t<T>>(decode<T>(__builtin_bit_cast(code_t<T>, lane)));
}
template <class T, class A>
PTO_INLINE T lane_of(A value) {
  return __builtin_bit_cast(T, encode<T>(result<T>(value)));
}

template <class M>
inline constexpr bool kMerges = M::value == ::__cce_simd::Mode::MODE_MERGING;

/// Write results to the lanes that are on; the other lanes become 0, or keep their value with MODE_MERGING.
template <class M, class V, class Make>
PTO_INLINE void put_lanes(V& r, const vector_bool& mask, Make&& make) {
  using T = typename V::Element;
  V made;
  for (int i = 0; i < V::kLanes; ++i) made.lane[i] = make(i);
  if (is_full<sizeof(T)>(mask)) {
    r = made;
    return;
  }
  using U = uint_of<sizeof(T)>;
  const OnLanes<sizeof(T)> lanes(mask);
  for (int i = 0; i < V::kLanes; ++i) {
    const U keep = kMerges<M> ? __builtin_bit_cast(U, r.lane[i]) : U{0};
    const U kept = static_cast<U>(-static_cast<U>(lanes.on[i]));
    made.lane[i] = __builtin_bit_cast(
        T, static_cast<U>((__builtin_bit_cast(U, made.lane[i]) & kept) | (keep & static_cast<U>(~kept))));
  }
  r = made;
}
template <class V>
PTO_INLINE void clear(V& r) {
  std::memset(static_cast<void*>(&r), 0, sizeof r);
}

/// Return lane i of an operand: of a register, or a number that is the same in every lane.
template <class V>
PTO_INLINE auto lane_number(const V& from, int i) {
  if constexpr (IsRegister<V>) {
    return number(from.lane[i]);
  } else {
    return from;
  }
}
template <class Meaning, class M, class V, class... From>
PTO_EXACT_LOOP void lanewise(V& r, const vector_bool& mask, const From&... from) {
  using T = typename V::Element;
  put_lanes<M>(r, mask, [&](int i) { return lane_of<T>(Meaning::template of<T>(lane_number(from, i)...)); });
}
/// Apply an operation to the bits of lanes; lanewise_truth writes its results to a mask.
template <class Meaning, class M, class V>
PTO_EXACT_LOOP void lanewise_bits(V& r, const vector_bool& mask, const V& a, const V& b) {
  using T = typename V::Element;
  using U = uint_of<sizeof(T)>;
  put_lanes<M>(r, mask, [&](int i) {
    return __builtin_bit_cast(T, static_cast<U>(Meaning::template of<U>(__builtin_bit_cast(U, a.lane[i]),
                                                                        __builtin_bit_cast(U, b.lane[i]))));
  });
}
template <class Meaning, class V, class... From>
PTO_EXACT_LOOP void lanewise_truth(vector_bool& m, const vector_bool& seed, const V& first,
                                   const From&... from) {
  using T = typename V::Element;
  const vector_bool gate = seed;
  uint8_t made[V::kLanes];
  for (int i = 0; i < V::kLanes; ++i)
    made[i] = Meaning::template of<T>(lane_number(first, i), lane_number(from, i)...);
  m = mask_of<sizeof(T)>([&](int i) { return made[i] & is_on<sizeof(T)>(gate, i); });
}
/// Convert a scalar operand to a number to compute with.
template <class T>
PTO_INLINE wide_t<T> scalar(T value) {
  return number(value);
}

// --- the unified buffer ------------------------------------------------------------------------------------

/// An address below this bound is an offset into its buffer.
inline constexpr int64_t kLowest = 1 << 22;

struct Place {
  char* base;  // start of the buffer; null for a pointer outside the buffer
  int64_t at;  // offset in the buffer, or the address
};
inline Place place(const volatile void* pointer) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
  Core& me = core();
  constexpr int space = static_cast<int>(TileType::Vec);
  char* base = me.space[space];
  if (address < kLowest) return {base, address};
  const int64_t offset = address - static_cast<int64_t>(reinterpret_cast<uintptr_t>(base));
  if (offset >= 0 && offset < static_cast<int64_t>(room(space))) return {base, offset};
  return {nullptr, address};
}

[[noreturn, gnu::cold, gnu::noinline]] inline void misaligned(const char* name, int64_t at, int align) {
  failf("[PTO-E2102] %s: expects an effective address that is a multiple of %d bytes, got %lld", name, align,
        static_cast<long long>(at));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void outside(const char* name, int64_t first, int64_t last) {
  failf("[PTO-E2101] %s: bytes %lld to %lld are outside the unified buffer of %lld bytes", name,
        static_cast<long long>(first), static_cast<long long>(last - 1),
        static_cast<long long>(capacity(static_cast<int>(TileType::Vec))));
}

[[noreturn, gnu::cold, gnu::noinline]] inline void elsewhere(const char* name) {
  failf("[PTO-E2101] %s: the pointer is none into %s", name, kSpaceNames[static_cast<int>(TileType::Vec)]);
}

/// Return the address of `size` accessed bytes, `offset` bytes after a pointer. In plain programs, without a
/// launch, buffers may be anywhere.
inline char* bytes_at(const char* name, const volatile void* pointer, int64_t offset, int64_t size,
                      int align) {
  PTO_UNTOLD(name);
  Place found = place(pointer);
  found.at += offset;
  if (found.at % align != 0) [[unlikely]]
    misaligned(name, found.at, align);
  if (found.base == nullptr) [[unlikely]] {
    if (core().host != nullptr) elsewhere(name);
    return reinterpret_cast<char*>(static_cast<uintptr_t>(found.at));
  }
  const int64_t end = found.at + size;
  if (found.at < 0 || end > static_cast<int64_t>(capacity(static_cast<int>(TileType::Vec)))) [[unlikely]]
    outside(name, found.at, end);
  use_space(core(), static_cast<int>(TileType::Vec), static_cast<size_t>(end) + kRegisterBytes);
  return found.base + found.at;
}

}  // namespace pto::detail::micro
