// Aligned loads and stores of registers with every distribution, gathers and scatters.
//
// A distribution is a grid of items: rows and columns of items in memory become the lanes of a register.
// Steps count items, and the distribution gives the width of an item. A load clears lanes without an item.
#pragma once

#include "pto/micro/lanes.hpp"

namespace pto::detail::micro {

/// A load widens every item to `slot` bytes; a store takes items from lanes of `slot` bytes.
struct Grid {
  int width, rows, cols, row_step, col_step, slot, align;
  constexpr int last() const { return (rows - 1) * row_step + (cols - 1) * col_step; }
};
constexpr Grid load_grid(::Dist dist, int size) {
  switch (static_cast<int>(dist)) {
    case 1: return {1, 1, 256, 0, 0, 1, 1};
    case 2: return {2, 1, 128, 0, 0, 2, 2};
    case 3: return {4, 1, 64, 0, 0, 4, 4};
    case 6: return {1, 128, 2, 1, 0, 1, 32};
    case 7: return {2, 64, 2, 1, 0, 2, 32};
    case 8: return {1, 1, 256, 0, 2, 1, 32};
    case 9: return {2, 1, 128, 0, 2, 2, 32};
    case 13: return {1, 1, 128, 0, 1, 2, 32};
    case 14: return {2, 1, 64, 0, 1, 4, 32};
    case 15: return {size, 8, 32 / size, 0, 1, size, 32};
    case 16: return {2, 8, 16, 1, 0, 2, 16};
    case 17: return {4, 8, 8, 1, 0, 4, 32};
    case 18: return {4, 1, 32, 0, 1, 8, 32};
    case 20: return {1, 1, 64, 0, 1, 4, 32};
    case 21: return {1, 1, 64, 0, 4, 1, 32};
    case 22: return {1, 1, 128, 0, 2, 1, 32};
    case 23: return {2, 1, 64, 0, 2, 2, 32};
    default: return {size, 1, 256 / size, 0, 1, size, 32};
  }
}
/// Return the grid of one of two registers: every other item, or every other block.
constexpr Grid pair_grid(::Dist dist, int size) {
  switch (static_cast<int>(dist)) {
    case 11: return {1, 1, 256, 0, 2, 1, 32};
    case 12: return {2, 1, 128, 0, 2, 2, 32};
    case 19: return {4, 1, 64, 0, 2, 4, 32};
    default: return {size, 8, 32 / size, 64 / size, 1, size, 32};
  }
}
constexpr Grid store_grid(::DistVST dist) {
  switch (static_cast<int>(dist)) {
    case 0: return {1, 1, 256, 0, 1, 1, 32};
    case 1: return {2, 1, 128, 0, 1, 2, 32};
    case 2: return {4, 1, 64, 0, 1, 4, 32};
    case 3: return {1, 1, 1, 0, 1, 1, 1};
    case 4: return {2, 1, 1, 0, 1, 2, 2};
    case 5: return {4, 1, 1, 0, 1, 4, 4};
    case 6: return {1, 1, 128, 0, 1, 2, 32};
    case 7: return {2, 1, 64, 0, 1, 4, 32};
    case 10: return {4, 1, 32, 0, 1, 8, 32};
    default: return {1, 1, 64, 0, 1, 4, 32};  // 12: PK4_B32
  }
}

template <class Grid_, class V>
inline void take_items(V& r, const char* from) {
  constexpr Grid g = Grid_::value;
  using Item = uint_of<g.width>;
  using Slot = uint_of<g.slot>;
  alignas(64) char out[kRegisterBytes] = {};
  for (int row = 0; row < g.rows; ++row)
    for (int col = 0; col < g.cols; ++col) {
      Item item;
      std::memcpy(&item, from + (row * g.row_step + col * g.col_step) * g.width, sizeof item);
      const Slot slot = item;
      std::memcpy(out + (row * g.cols + col) * g.slot, &slot, sizeof slot);
    }
  std::memcpy(static_cast<void*>(&r), out, sizeof out);
}
template <::Dist D, class V>
struct LoadGrid {
  static constexpr Grid value = load_grid(D, sizeof(typename V::Element));
};
template <::Dist D, class V>
struct PairGrid {
  static constexpr Grid value = pair_grid(D, sizeof(typename V::Element));
};

template <::Dist D, class V>
inline void load(V& r, const volatile void* base, int64_t offset) {
  constexpr Grid g = LoadGrid<D, V>::value;
  const char* from = bytes_at("vlds", base, offset, (g.last() + 1) * g.width, g.align);
  if constexpr (D == ::Dist::DIST_NORM) {
    std::memcpy(static_cast<void*>(&r), from, kRegisterBytes);
  } else {
    take_items<LoadGrid<D, V>>(r, from);
  }
}
template <::Dist D, class V>
inline void load_pair(V& low, V& high, const volatile void* base, int64_t offset) {
  constexpr Grid g = PairGrid<D, V>::value;
  const char* from = bytes_at("vlds", base, offset, 2 * kRegisterBytes, 32);
  take_items<PairGrid<D, V>>(low, from);
  take_items<PairGrid<D, V>>(high, from + (g.rows > 1 ? 32 : g.width));
}

/// Store MRG<n>CHN_B<w>: each block holds n planes of w-bit items; memory gets the first items of all planes,
/// then the second ones.
template <int Planes, int Width>
inline void merge_planes(const void* value, const volatile void* dest, int64_t offset,
                         const vector_bool& mask) {
  constexpr int size = Planes * Width, each = 32 / size;
  int last = kRegisterBytes / size;
  while (last > 0 && !is_on<size>(mask, last - 1)) --last;
  char* to = bytes_at("vsts", dest, offset, last > 0 ? last * size : 1, 32);
  for (int group = 0; group < last; ++group) {
    if (!is_on<size>(mask, group)) continue;
    for (int plane = 0; plane < Planes; ++plane)
      std::memcpy(to + (group * Planes + plane) * Width,
                  static_cast<const char*>(value) + group / each * 32 + (plane * each + group % each) * Width,
                  Width);
  }
}
template <::DistVST D>
inline void store(const void* value, const volatile void* dest, int64_t offset, const vector_bool& mask) {
  constexpr int number = static_cast<int>(D);
  if constexpr (number >= 13) {
    merge_planes<number == 13 ? 4 : 2, number == 15 ? 2 : 1>(value, dest, offset, mask);
  } else {
    constexpr Grid g = store_grid(D);
    constexpr bool one = g.cols == 1;
    const bool all = one || is_full<g.slot>(mask);
    int last = g.cols;
    if (!all)
      while (last > 0 && !is_on<g.slot>(mask, last - 1)) --last;
    char* to = bytes_at("vsts", dest, offset, last > 0 ? last * g.width : 1, g.align);
    const char* from = static_cast<const char*>(value);
    if (all && g.slot == g.width) {
      std::memcpy(to, from, static_cast<size_t>(g.cols) * g.width);
      return;
    }
    for (int i = 0; i < last; ++i)
      if (all || is_on<g.slot>(mask, i)) std::memcpy(to + i * g.width, from + i * g.slot, g.width);
  }
}
template <int Width>
inline void store_pair(const void* low, const void* high, const volatile void* dest, int64_t offset) {
  char* to = bytes_at("vsts", dest, offset, 2 * kRegisterBytes, 32);
  for (int i = 0; i < kRegisterBytes / Width; ++i) {
    std::memcpy(to + 2 * i * Width, static_cast<const char*>(low) + i * Width, Width);
    std::memcpy(to + (2 * i + 1) * Width, static_cast<const char*>(high) + i * Width, Width);
  }
}
template <::DistVST D>
inline constexpr int kPairWidth = static_cast<int>(D) == 8   ? 1
                                  : static_cast<int>(D) == 9 ? 2
                                                             : 4;

/// The strides of eight blocks. The high half of `ctl` is the stride between blocks, the low half the stride
/// between repeats, both in blocks.
struct BlockSteps {
  int64_t step, repeat;
  explicit BlockSteps(int32_t ctl)
      : step((static_cast<uint32_t>(ctl) >> 16) * 32), repeat((static_cast<uint32_t>(ctl) & 0xFFFF) * 32) {}
};
template <bool Stores>
inline void move_blocks(const char* name, void* value, const volatile void* base, int64_t offset,
                        int64_t step, const vector_bool& mask) {
  bytes_at(name, base, 0, 0, 32);
  for (int i = 0; i < 8; ++i) {
    char* mine = static_cast<char*>(value) + i * 32;
    if (!is_on<32>(mask, i)) {
      if (!Stores) std::memset(mine, 0, 32);
      continue;
    }
    char* there = bytes_at(name, base, offset + i * step, 32, 32);
    std::memcpy(Stores ? there : mine, Stores ? mine : there, 32);
  }
}

/// Gather elements at unsigned offsets into lanes.
template <class T, class V, class Offsets>
inline void gather(V& r, const volatile void* base, const Offsets& offsets, const vector_bool& mask) {
  using R = typename V::Element;
  constexpr int size = sizeof(typename Offsets::Element);
  V made;
  clear(made);
  for (int i = 0; i < Offsets::kLanes && i < V::kLanes; ++i) {
    if (!is_on<size>(mask, i)) continue;
    T found;
    std::memcpy(
        &found,
        bytes_at("vgather2", base, int64_t{offsets.lane[i]} * int64_t{sizeof(T)}, sizeof(T), sizeof(T)),
        sizeof(T));
    if constexpr (sizeof(T) == sizeof(R)) {
      made.lane[i] = __builtin_bit_cast(R, found);
    } else {
      made.lane[i] = static_cast<R>(__builtin_bit_cast(uint_of<sizeof(T)>, found));
    }
  }
  r = made;
}
template <class V, class Offsets>
inline void scatter(const V& value, const volatile void* base, const Offsets& offsets,
                    const vector_bool& mask) {
  using T = typename V::Element;
  constexpr int size = sizeof(typename Offsets::Element), every = V::kLanes / Offsets::kLanes;
  for (int i = Offsets::kLanes - 1; i >= 0; --i)  // for equal offsets, the lowest lane wins
    if (is_on<size>(mask, i))
      std::memcpy(
          bytes_at("vscatter", base, int64_t{offsets.lane[i]} * int64_t{sizeof(T)}, sizeof(T), sizeof(T)),
          &value.lane[i * every], sizeof(T));
}
inline void gather_blocks(void* r, const volatile void* base, const vector_u32& offsets,
                          const vector_bool& mask) {
  char made[kRegisterBytes] = {};
  for (int i = 0; i < 8; ++i)
    if (is_on<4>(mask, i))
      std::memcpy(made + i * 32, bytes_at("vgatherb", base, offsets.lane[i], 32, 32), 32);
  std::memcpy(r, made, sizeof made);
}

}  // namespace pto::detail::micro

#define PTO_LOADS_(V, T)                                                                            \
  template <class D>                                                                                \
  PTO_INST void vlds(V& r, __ubuf__ T* base, int32_t offset, D) {                                   \
    PTO_TRACE("vlds >r source offset: dist@Dist", PTO_SAYS(D::value), PTO_RESULT(r),                \
              pto::detail::traced_pointer<T>(base, pto::TileType::Vec), offset);                    \
    pto::detail::micro::load<D::value>(r, base, int64_t{offset} * int64_t{sizeof(T)});              \
  }                                                                                                 \
  template <class D, class P>                                                                       \
  PTO_INST void vlds(V& r, __ubuf__ T*& base, int32_t offset, D, P) {                               \
    PTO_TRACE("vlds >r source offset: dist@Dist", PTO_SAYS(D::value), PTO_RESULT(r),                \
              pto::detail::traced_pointer<T>(base, pto::TileType::Vec), 0);                         \
    pto::detail::micro::load<D::value>(r, base, 0);                                                 \
    base += offset;                                                                                 \
  }                                                                                                 \
  template <class D>                                                                                \
  PTO_INST void vlds(V& low, V& high, __ubuf__ T* base, int32_t offset, D) {                        \
    PTO_TRACE("vldsx2 >low >high source offset: dist@Dist", PTO_SAYS(D::value), PTO_RESULT(low),    \
              PTO_RESULT(high), pto::detail::traced_pointer<T>(base, pto::TileType::Vec), offset);  \
    pto::detail::micro::load_pair<D::value>(low, high, base, int64_t{offset} * int64_t{sizeof(T)}); \
  }                                                                                                 \
  template <class D, class P>                                                                       \
  PTO_INST void vlds(V& low, V& high, __ubuf__ T*& base, int32_t offset, D, P) {                    \
    PTO_TRACE("vldsx2 >low >high source offset: dist@Dist", PTO_SAYS(D::value), PTO_RESULT(low),    \
              PTO_RESULT(high), pto::detail::traced_pointer<T>(base, pto::TileType::Vec), 0);       \
    pto::detail::micro::load_pair<D::value>(low, high, base, 0);                                    \
    base += offset;                                                                                 \
  }                                                                                                 \
  template <class D>                                                                                \
  PTO_INST void vsts(const V& value, __ubuf__ T* dest, int32_t offset, D, vector_bool mask) {       \
    PTO_TRACE("vsts value dest offset mask: dist@DistVST", PTO_SAYS(D::value), value,               \
              pto::detail::traced_pointer<T>(dest, pto::TileType::Vec), offset, mask);              \
    pto::detail::micro::store<D::value>(&value, dest, int64_t{offset} * int64_t{sizeof(T)}, mask);  \
  }                                                                                                 \
  template <class D, class P>                                                                       \
  PTO_INST void vsts(const V& value, __ubuf__ T*& dest, int32_t offset, D, vector_bool mask, P) {   \
    PTO_TRACE("vsts value dest offset mask: dist@DistVST", PTO_SAYS(D::value), value,               \
              pto::detail::traced_pointer<T>(dest, pto::TileType::Vec), 0, mask);                   \
    pto::detail::micro::store<D::value>(&value, dest, 0, mask);                                     \
    dest += offset;                                                                                 \
  }                                                                                                 \
  template <class D>                                                                                \
  PTO_INST void vsts(const V& low, const V& high, __ubuf__ T* dest, int32_t offset, D,              \
                     [[maybe_unused]] vector_bool mask) {                                           \
    PTO_TRACE("vstsx2 low high dest offset mask: dist@DistVST", PTO_SAYS(D::value), low, high,      \
              pto::detail::traced_pointer<T>(dest, pto::TileType::Vec), offset, mask);              \
    pto::detail::micro::store_pair<pto::detail::micro::kPairWidth<D::value>>(                       \
        &low, &high, dest, int64_t{offset} * int64_t{sizeof(T)});                                   \
  }                                                                                                 \
  template <int = 0>                                                                                \
  PTO_INST void vsldb(V& r, __ubuf__ T* base, int32_t ctl, vector_bool mask) {                      \
    PTO_TRACE("vsldb >r source ctl mask:", PTO_SAYS(), PTO_RESULT(r),                               \
              pto::detail::traced_pointer<T>(base, pto::TileType::Vec), ctl, mask);                 \
    const pto::detail::micro::BlockSteps steps(ctl);                                                \
    pto::detail::micro::move_blocks<false>("vsldb", &r, base, steps.repeat, steps.step, mask);      \
  }                                                                                                 \
  template <class P>                                                                                \
  PTO_INST void vsldb(V& r, __ubuf__ T*& base, int32_t ctl, vector_bool mask, P) {                  \
    const pto::detail::micro::BlockSteps steps(ctl);                                                \
    pto::detail::micro::move_blocks<false>("vsldb", &r, base, 0, steps.step, mask);                 \
    base += steps.repeat / static_cast<int64_t>(sizeof(T));                                         \
  }                                                                                                 \
  template <int = 0>                                                                                \
  PTO_INST void vsstb(V value, __ubuf__ T* dest, int32_t ctl, vector_bool mask) {                   \
    PTO_TRACE("vsstb value dest ctl mask:", PTO_SAYS(), value,                                      \
              pto::detail::traced_pointer<T>(dest, pto::TileType::Vec), ctl, mask);                 \
    const pto::detail::micro::BlockSteps steps(ctl);                                                \
    pto::detail::micro::move_blocks<true>("vsstb", &value, dest, steps.repeat, steps.step, mask);   \
  }                                                                                                 \
  template <class P>                                                                                \
  PTO_INST void vsstb(V value, __ubuf__ T*& dest, int32_t ctl, vector_bool mask, P) {               \
    const pto::detail::micro::BlockSteps steps(ctl);                                                \
    pto::detail::micro::move_blocks<true>("vsstb", &value, dest, 0, steps.step, mask);              \
    dest += steps.repeat / static_cast<int64_t>(sizeof(T));                                         \
  }                                                                                                 \
  template <int = 0>                                                                                \
  PTO_INST void vgatherb(V& r, __ubuf__ T* base, vector_u32 offsets, vector_bool mask) {            \
    PTO_TRACE("vgatherb >r source offsets mask:", PTO_SAYS(), PTO_RESULT(r),                        \
              pto::detail::traced_pointer<T>(base, pto::TileType::Vec), offsets, mask);             \
    pto::detail::micro::gather_blocks(&r, base, offsets, mask);                                     \
  }                                                                                                 \
  template <int = 0>                                                                                \
  PTO_INST void vgatherb(V& r, __ubuf__ T* base, vector_u32 offsets) {                              \
    pto::detail::micro::gather_blocks(&r, base, offsets, pto::detail::micro::first_lanes<4>(8));    \
  }
PTO_ALL_REGISTERS(PTO_LOADS_)
#undef PTO_LOADS_

#define PTO_GATHER_(V, T, U)                                                            \
  template <int = 0>                                                                    \
  PTO_INST void vgather2(V& r, __ubuf__ T* base, const U& offsets, vector_bool mask) {  \
    PTO_TRACE("vgather2 >r source offsets mask:", PTO_SAYS(), PTO_RESULT(r),            \
              pto::detail::traced_pointer<T>(base, pto::TileType::Vec), offsets, mask); \
    pto::detail::micro::gather<T>(r, base, offsets, mask);                              \
  }
#define PTO_GATHER_B16_(V, T) PTO_GATHER_(V, T, vector_u16)
#define PTO_GATHER_B32_(V, T) PTO_GATHER_(V, T, vector_u32)
PTO_GATHER_(vector_s16, int8_t, vector_u16)
PTO_GATHER_(vector_u16, uint8_t, vector_u16)
PTO_GATHER_B16_(vector_f8e4m3, float8_e4m3_t)
PTO_GATHER_B16_(vector_f8e5m2, float8_e5m2_t)
PTO_B16_INTEGERS(PTO_GATHER_B16_)
PTO_B16_FLOATS(PTO_GATHER_B16_)
PTO_B32_INTEGERS(PTO_GATHER_B32_)
PTO_B32_FLOATS(PTO_GATHER_B32_)
#undef PTO_GATHER_
#undef PTO_GATHER_B16_
#undef PTO_GATHER_B32_

/// Gather into 32-bit slots: narrower elements are in the low half.
#define PTO_GATHER_BC_(V, T)                                                                       \
  template <int = 0>                                                                               \
  PTO_INST void vgather2_bc(V& r, __ubuf__ T* base, const vector_u32& offsets, vector_bool mask) { \
    vector_u32 made;                                                                               \
    pto::detail::micro::gather<T>(made, base, offsets, mask);                                      \
    r = V(made);                                                                                   \
  }
#define PTO_GATHER_BC32_(V, T)                                                                     \
  template <int = 0>                                                                               \
  PTO_INST void vgather2_bc(V& r, __ubuf__ T* base, const vector_u32& offsets, vector_bool mask) { \
    pto::detail::micro::gather<T>(r, base, offsets, mask);                                         \
  }
PTO_B16_INTEGERS(PTO_GATHER_BC_)
PTO_B16_FLOATS(PTO_GATHER_BC_)
PTO_B32_INTEGERS(PTO_GATHER_BC32_)
PTO_B32_FLOATS(PTO_GATHER_BC32_)
#undef PTO_GATHER_BC_
#undef PTO_GATHER_BC32_

#define PTO_SCATTER_(V, T)                                                                          \
  template <int = 0>                                                                                \
  PTO_INST void vscatter(const V& value, __ubuf__ T* dest,                                          \
                         const std::conditional_t<sizeof(T) == 4, vector_u32, vector_u16>& offsets, \
                         vector_bool mask) {                                                        \
    PTO_TRACE("vscatter value dest offsets mask:", PTO_SAYS(), value,                               \
              pto::detail::traced_pointer<T>(dest, pto::TileType::Vec), offsets, mask);             \
    pto::detail::micro::scatter(value, dest, offsets, mask);                                        \
  }
PTO_COMMON_REGISTERS(PTO_SCATTER_)
#undef PTO_SCATTER_
