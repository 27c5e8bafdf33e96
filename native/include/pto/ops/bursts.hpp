// Burst copies: bytes between global memory, UB and L1, with the registers of their loops and padding.
//
// An on-chip pointer is a byte address, or an offset into its buffer. Strides of copies with global memory
// are bytes from start to start. Two outer loops repeat these copies; their counts are 1 unless the program
// sets them. Copies within a core, and the older ones of A2 and A3, count blocks of 32 bytes and gaps.
#pragma once

#include <cstring>

#include "pto/core/access.hpp"
#include "pto/core/bounds.hpp"
#include "pto/core/events.hpp"
#include "pto/ops/load_store.hpp"

namespace pto::detail {

// --- on-chip pointers --------------------------------------------------------------------------------------

/// Smaller addresses are offsets into their buffer.
inline constexpr int64_t kOffsets = 1 << 22;

/// Return the offset of an address in its buffer, or -1 if the address lies outside the buffer.
inline int64_t on_chip_offset(const volatile void* pointer, TileType space) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
  if (address < kOffsets) return address;
  const int at = static_cast<int>(space);
  const int64_t offset = address - static_cast<int64_t>(reinterpret_cast<uintptr_t>(core().space[at]));
  return offset >= 0 && offset < static_cast<int64_t>(room(at)) ? offset : -1;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void outside_buffer(const char* name, TileType space,
                                                                  int64_t first, int64_t last) {
  failf("[PTO-E2101] %s: bytes %lld to %lld are outside the %lld bytes of %s", name,
        static_cast<long long>(first), static_cast<long long>(last - 1),
        static_cast<long long>(capacity(static_cast<int>(space))), kSpaceNames[static_cast<int>(space)]);
}

/// Return the address for an on-chip pointer. The call touches the bytes from `low` to `high`, counted from
/// the pointer. In plain programs, without a launch, buffers may be anywhere.
inline char* on_chip_bytes(const char* name, const volatile void* pointer, TileType space, int64_t low,
                           int64_t high) {
  PTO_UNTOLD(name);
  const int64_t offset = on_chip_offset(pointer, space);
  if (offset < 0) [[unlikely]] {
    if (core().host != nullptr)
      failf("[PTO-E2101] %s: the pointer is none into %s", name, kSpaceNames[static_cast<int>(space)]);
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(pointer));
  }
  const auto most = static_cast<int64_t>(capacity(static_cast<int>(space)));
  if (high != low && (high < low || low < -offset || high > most - offset)) [[unlikely]]
    outside_buffer(name, space, offset + low, offset + high);
  return on_chip(space, static_cast<size_t>(offset));
}

/// Return the same offset in the UB of vector core `which` if this is a cube core, otherwise `own`.
inline char* of_vector_core(char* own, int which) {
  const Core& me = core();
  if (me.kind != CoreKind::Cube || me.cluster == nullptr || me.cluster->vectors[which] == nullptr) return own;
  const ptrdiff_t at = own - me.space[0];
  return at >= 0 && at < static_cast<ptrdiff_t>(room(0)) ? in_memory_of(*me.cluster->vectors[which], 0, at)
                                                         : own;
}
/// Return the same offset in the L1 of the cube core if this is a vector core, otherwise `own`.
inline char* of_cube_core(char* own) {
  const Core& me = core();
  if (me.kind != CoreKind::Vector || me.cluster == nullptr || me.cluster->cube == nullptr) return own;
  const ptrdiff_t at = own - me.space[1];
  return at >= 0 && at < static_cast<ptrdiff_t>(room(1)) ? in_memory_of(*me.cluster->cube, 1, at) : own;
}

/// Return a reference to an element of the unified buffer.
template <class T, class Index>
inline T& element_of_ub(T* data, Index index) {
  const auto at = static_cast<int64_t>(index) * static_cast<int64_t>(sizeof(T));
  return *reinterpret_cast<T*>(
      on_chip_bytes("scalar access", data, TileType::Vec, at, at + static_cast<int64_t>(sizeof(T))) + at);
}

// --- bursts ------------------------------------------------------------------------------------------------

struct Burst {
  uint64_t count, length, from, to;  // length and strides in bytes
};

/// The padding of each burst: copies of `value` before the burst, and after it up to the next one. In bytes.
struct Padding {
  bool any = false;
  uint64_t size = 1, value = 0, left = 0, right = 0;
};

struct Reach {
  int64_t low, high;
};
/// Return the range of bytes that bursts touch on the side with these strides, counted from the pointer.
inline Reach reach_of(const Burst& burst, uint64_t stride, const DmaLoops& loops,
                      const uint64_t (&strides)[2], uint64_t length) {
  const uint64_t counts[3] = {burst.count, loops.size[0], loops.size[1]};
  const uint64_t steps[3] = {stride, strides[0], strides[1]};
  Reach found{0, static_cast<int64_t>(length)};
  if (length == 0) return found;
  for (int i = 0; i < 3; ++i) {
    if (counts[i] == 0) return {0, 0};
    const int64_t far = reach(static_cast<int64_t>(counts[i]), static_cast<int64_t>(steps[i]));
    (far < 0 ? found.low : found.high) += far;
  }
  return found;
}

inline void fill_bytes(char* to, uint64_t first, uint64_t last, const Padding& pad) {
  char bytes[8];
  std::memcpy(bytes, &pad.value, sizeof bytes);
  for (uint64_t i = first; i < last; ++i) to[i] = bytes[i % pad.size];
}

inline uint64_t row_of(const Burst& burst, const Padding& pad) {
  if (!pad.any) return burst.length;
  const uint64_t row = pad.left + burst.length + pad.right;
  return row > burst.to ? row : burst.to;
}

inline void copy_bursts(char* to, const char* from, const Burst& burst, const DmaLoops& loops,
                        const Padding& pad = {}) {
  const uint64_t row = row_of(burst, pad);
  for (uint64_t j = 0; j < loops.size[1]; ++j) {
    for (uint64_t k = 0; k < loops.size[0]; ++k) {
      for (uint64_t r = 0; r < burst.count; ++r) {
        char* at = to + j * loops.to[1] + k * loops.to[0] + r * burst.to;
        std::memmove(at + pad.left, from + j * loops.from[1] + k * loops.from[0] + r * burst.from,
                     burst.length);
        if (!pad.any) continue;
        fill_bytes(at, 0, pad.left, pad);
        fill_bytes(at, pad.left + burst.length, row, pad);
      }
    }
  }
}

/// Check and note the bytes of global memory that bursts touch on one side.
inline void touch_bursts(const char* name, const void* data, const Burst& burst, uint64_t stride,
                         const DmaLoops& loops, const uint64_t (&strides)[2], Use use) {
  const Reach reached = reach_of(burst, stride, loops, strides, burst.length);
  if (reached.high <= reached.low) return;
  stay_inside(name, data, reached.low, reached.high);
  if (current == nullptr || !is_noted(current)) return;
  for (uint64_t j = 0; j < loops.size[1]; ++j)
    for (uint64_t k = 0; k < loops.size[0]; ++k)
      for (uint64_t r = 0; r < burst.count; ++r) {
        const auto at = static_cast<int64_t>(j * strides[1] + k * strides[0] + r * stride);
        note(data, at, at + static_cast<int64_t>(burst.length), use);
      }
  settle();
}

#ifdef PTO_TRACED
/// Return the address that an on-chip pointer stands for.
template <class E>
inline const E* traced_pointer(const void* pointer, TileType space) {
  return reinterpret_cast<const E*>(core().space[static_cast<int>(space)] + on_chip_offset(pointer, space));
}
/// Call f with a value of the unsigned type that has `size` bytes.
template <class F>
inline void with_size(uint64_t size, F&& f) {
  if (size == 2) return f(uint16_t{});
  if (size == 4) return f(uint32_t{});
  if (size == 8) return f(uint64_t{});
  return f(uint8_t{});
}
#endif

inline void bursts_in(const char* name, const void* to, TileType space, const void* from, const Burst& burst,
                      const DmaLoops& loops, const Padding& pad = {}) {
#ifdef PTO_TRACED
  with_size(pad.size, [&](auto element) {
    using E = decltype(element);
    const E* const source = static_cast<const E*>(from);
    const E* const target = traced_pointer<E>(to, space);
    if (space == TileType::Mat) {
      PTO_TRACE("mte_gm_l1 src dst len_burst count src_stride dst_stride loop loop loop loop loop loop:",
                PTO_SAYS(), source, target, burst.length, burst.count, burst.from, burst.to, loops.size[1],
                loops.from[1], loops.to[1], loops.size[0], loops.from[0], loops.to[0]);
    } else if (pad.any) {
      PTO_TRACE(
          "mte_gm_ub gm_src ub_dst l2_cache_ctl len_burst n_burst src_stride dst_stride loop loop loop loop "
          "loop loop pad_value left_padding right_padding:",
          PTO_SAYS(), source, target, 0, burst.length, burst.count, burst.from, burst.to, loops.size[1],
          loops.from[1], loops.to[1], loops.size[0], loops.from[0], loops.to[0], static_cast<E>(pad.value),
          pad.left / sizeof(E), pad.right / sizeof(E));
    } else {
      PTO_TRACE(
          "mte_gm_ub gm_src ub_dst l2_cache_ctl len_burst n_burst src_stride dst_stride loop loop loop loop "
          "loop loop:",
          PTO_SAYS(), source, target, 0, burst.length, burst.count, burst.from, burst.to, loops.size[1],
          loops.from[1], loops.to[1], loops.size[0], loops.from[0], loops.to[0]);
    }
  });
#endif
  PTO_UNTRACED;
  const Reach reached = reach_of(burst, burst.to, loops, loops.to, row_of(burst, pad));
  char* const target = on_chip_bytes(name, to, space, reached.low, reached.high);
  touch_bursts(name, from, burst, burst.from, loops, loops.from, Use::read);
  copy_bursts(target, static_cast<const char*>(from), burst, loops, pad);
}

// --- atomic updates of global memory -----------------------------------------------------------------------

/// The bits of CTRL for stores to global memory. Bits 8..6: the element type, 0 for plain stores. Bits 10..9:
/// the operation, which is add, max or min.
inline int atomic_type() { return static_cast<int>(core().ctrl >> 6 & 7); }
inline AtomicType atomic_operation() {
  constexpr AtomicType all[] = {AtomicType::AtomicAdd, AtomicType::AtomicMax, AtomicType::AtomicMin,
                                AtomicType::AtomicAdd};
  return all[core().ctrl >> 9 & 3];
}
template <class T>
inline void update_element(void* at, const void* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof value);
  T* const place = static_cast<T*>(at);
  switch (atomic_operation()) {
    case AtomicType::AtomicMax: return store_atomic<AtomicType::AtomicMax>(place, value);
    case AtomicType::AtomicMin: return store_atomic<AtomicType::AtomicMin>(place, value);
    default: return store_atomic<AtomicType::AtomicAdd>(place, value);
  }
}
struct Update {
  size_t size;
  DType type;
  void (*one)(void* at, const void* from);
};
inline Update update_of(int type) {
  constexpr Update all[] = {
      {4, DType::f32, update_element<float>},      {4, DType::f32, update_element<float>},
      {2, DType::f16, update_element<half>},       {2, DType::i16, update_element<int16_t>},
      {4, DType::i32, update_element<int32_t>},    {1, DType::i8, update_element<int8_t>},
      {2, DType::bf16, update_element<bfloat16_t>}};
  return all[type < 7 ? type : 0];
}
inline Use use_of_stores() {
  const int type = atomic_type();
  return type == 0 ? Use::write : use_of(atomic_operation(), update_of(type).type);
}

/// Check that the sizes, addresses and strides of updates are multiples of the element size.
inline void whole_elements(const char* name, const void* to, const void* from, const Burst& burst,
                           const DmaLoops& loops, size_t size) {
  uint64_t all = burst.length | reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  if (burst.count > 1) all |= burst.from | burst.to;
  for (int i = 0; i < 2; ++i)
    if (loops.size[i] > 1) all |= loops.from[i] | loops.to[i];
  if (all % size != 0)
    failf("[PTO-E2102] %s: expects bursts of whole elements of the atomic type, which have %d bytes", name,
          static_cast<int>(size));
}

inline void bursts_out(const char* name, void* to, const void* from, TileType space, const Burst& burst,
                       const DmaLoops& loops) {
  // A copy out of L1 is traced as the same instruction, which programs can write for UB only.
  PTO_TRACE("mte_ub_gm ub_src gm_dst len_burst n_burst src_stride dst_stride loop loop loop loop loop loop:",
            PTO_SAYS(), traced_pointer<uint8_t>(from, space), static_cast<const uint8_t*>(to), burst.length,
            burst.count, burst.from, burst.to, loops.size[1], loops.from[1], loops.to[1], loops.size[0],
            loops.from[0], loops.to[0]);
  const Reach reached = reach_of(burst, burst.from, loops, loops.from, burst.length);
  const char* const source = on_chip_bytes(name, from, space, reached.low, reached.high);
  touch_bursts(name, to, burst, burst.to, loops, loops.to, use_of_stores());
  const int type = atomic_type();
  if (type == 0) return copy_bursts(static_cast<char*>(to), source, burst, loops);
  const Update update = update_of(type);
  whole_elements(name, to, source, burst, loops, update.size);
  for (uint64_t j = 0; j < loops.size[1]; ++j)
    for (uint64_t k = 0; k < loops.size[0]; ++k)
      for (uint64_t r = 0; r < burst.count; ++r) {
        char* at = static_cast<char*>(to) + j * loops.to[1] + k * loops.to[0] + r * burst.to;
        const char* of = source + j * loops.from[1] + k * loops.from[0] + r * burst.from;
        for (uint64_t i = 0; i + update.size <= burst.length; i += update.size) update.one(at + i, of + i);
      }
}

/// Return the bursts of a copy that counts blocks and gaps of `unit` bytes.
inline Burst blocks_of(uint64_t count, uint64_t length, uint64_t from_gap, uint64_t to_gap,
                       uint64_t unit = 32) {
  return {count, length * unit, (length + from_gap) * unit, (length + to_gap) * unit};
}
struct Ends {
  char* to;
  const char* from;
};
inline Ends ends_of(const char* name, const void* to, TileType to_space, const void* from,
                    TileType from_space, const Burst& burst) {
  constexpr DmaLoops once{};
  const Reach there = reach_of(burst, burst.to, once, once.to, burst.length);
  const Reach here = reach_of(burst, burst.from, once, once.from, burst.length);
  return {on_chip_bytes(name, to, to_space, there.low, there.high),
          on_chip_bytes(name, from, from_space, here.low, here.high)};
}

inline uint64_t dma_field(const char* name, uint64_t value, int bits) {
  if (value >> bits != 0) {
    failf("[PTO-E2102] expects %s to fit %d bits without a sign, got %lld", name, bits,
          static_cast<long long>(value));
  }
  return value;
}
inline Burst long_bursts(uint64_t count, uint64_t length, uint64_t from, uint64_t to) {
  return {dma_field("n_burst", count, kBurstBits), dma_field("len_burst", length, kBurstBits), from, to};
}

/// Return the padding for counts of elements of type T.
template <class T>
inline Padding padding_of(bool any, uint64_t left, uint64_t right, uint64_t value) {
  constexpr uint64_t size = sizeof(T) < 8 ? sizeof(T) : 8;
  if (!any && left == 0 && right == 0) return {};
  return {true, size, value, left * size, right * size};
}

constexpr uint64_t bits(uint64_t word, int first, int count) {
  return word >> first & ((uint64_t{1} << count) - 1);
}

}  // namespace pto::detail

// --- registers ---------------------------------------------------------------------------------------------

// The inner count is in bits 20..0, the stride of global memory in bits 39..0.
#define PTO_LOOPS_IN_(way, loops)                                             \
  inline void set_loop_size_##way(uint64_t word) {                            \
    pto::detail::core().loops.set_size(word & 0x1FFFFF, word >> 21);          \
  }                                                                           \
  inline void set_loop1_stride_##way(uint64_t word) {                         \
    pto::detail::core().loops.set_stride(0, word & 0xFFFFFFFFFF, word >> 40); \
  }                                                                           \
  inline void set_loop2_stride_##way(uint64_t word) {                         \
    pto::detail::core().loops.set_stride(1, word & 0xFFFFFFFFFF, word >> 40); \
  }
PTO_LOOPS_IN_(outtoub, out_to_ub)
PTO_LOOPS_IN_(outtol1, out_to_l1)
#undef PTO_LOOPS_IN_
inline void set_loop_size_ubtoout(uint64_t word) {
  pto::detail::core().ub_to_out.set_size(word & 0x1FFFFF, word >> 21);
}
inline void set_loop1_stride_ubtoout(uint64_t word) {
  pto::detail::core().ub_to_out.set_stride(0, word >> 40, word & 0xFFFFFFFFFF);
}
inline void set_loop2_stride_ubtoout(uint64_t word) {
  pto::detail::core().ub_to_out.set_stride(1, word >> 40, word & 0xFFFFFFFFFF);
}

inline void set_mov_pad_val(uint64_t value) { pto::detail::core().pad_value[0] = value; }
inline void set_pad_val_outtoub(uint64_t value) { pto::detail::core().pad_value[0] = value; }
inline void set_pad_val_outtol1(uint64_t value) { pto::detail::core().pad_value[1] = value; }

#define PTO_ATOMIC_(name, first, count, value)                                           \
  inline void set_atomic_##name() {                                                      \
    uint64_t& ctrl = pto::detail::core().ctrl;                                           \
    ctrl = (ctrl & ~(((uint64_t{1} << count) - 1) << first)) | uint64_t{value} << first; \
  }
PTO_ATOMIC_(none, 6, 3, 0)
PTO_ATOMIC_(f32, 6, 3, 1)
PTO_ATOMIC_(f16, 6, 3, 2)
PTO_ATOMIC_(s16, 6, 3, 3)
PTO_ATOMIC_(s32, 6, 3, 4)
PTO_ATOMIC_(s8, 6, 3, 5)
PTO_ATOMIC_(bf16, 6, 3, 6)
PTO_ATOMIC_(add, 9, 2, 0)
PTO_ATOMIC_(max, 9, 2, 1)
PTO_ATOMIC_(min, 9, 2, 2)
#undef PTO_ATOMIC_

// --- global memory and UB ----------------------------------------------------------------------------------

template <class To, class From>
PTO_INST void copy_gm_to_ubuf_align_v2(__ubuf__ To* to, __gm__ From* from, uint64_t /*sid*/, uint64_t bursts,
                                       uint64_t length, uint64_t left, uint64_t right, bool pad,
                                       uint64_t /*cache*/, uint64_t from_stride, uint64_t to_stride) {
  using namespace pto::detail;
  const Core& me = core();
  bursts_in("copy_gm_to_ubuf_align_v2", to, pto::TileType::Vec, from,
            long_bursts(bursts, length, from_stride, to_stride), me.out_to_ub,
            padding_of<To>(pad, left, right, me.pad_value[0]));
}
template <class To, class From>
PTO_INST void copy_gm_to_ubuf_align_v2(__ubuf__ To* to, __gm__ From* from, uint64_t word, uint64_t strides) {
  using pto::detail::bits;
  copy_gm_to_ubuf_align_v2(to, from, bits(word, 0, 4), bits(word, 4, 21), bits(word, 25, 21),
                           bits(word, 46, 6), bits(word, 52, 6), bits(word, 58, 1) != 0, bits(word, 60, 4),
                           bits(strides, 0, 40), bits(strides, 40, 21));
}
PTO_INST void copy_ubuf_to_gm_align_v2(__gm__ void* to, __ubuf__ const void* from, uint64_t /*sid*/,
                                       uint64_t bursts, uint64_t length, uint64_t /*cache*/,
                                       uint64_t to_stride, uint64_t from_stride) {
  using namespace pto::detail;
  bursts_out("copy_ubuf_to_gm_align_v2", to, from, pto::TileType::Vec,
             long_bursts(bursts, length, from_stride, to_stride), core().ub_to_out);
}
PTO_INST void copy_ubuf_to_gm_align_v2(__gm__ void* to, __ubuf__ const void* from, uint64_t word,
                                       uint64_t strides) {
  using pto::detail::bits;
  copy_ubuf_to_gm_align_v2(to, from, bits(word, 0, 4), bits(word, 4, 21), bits(word, 25, 21),
                           bits(word, 60, 4), bits(strides, 0, 40), bits(strides, 40, 21));
}

// Copies of A2 and A3 count blocks and gaps. The aligned copies count bytes on the side of global memory.
PTO_INST void copy_gm_to_ubuf(__ubuf__ void* to, __gm__ const void* from, uint64_t /*sid*/, uint64_t bursts,
                              uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  bursts_in("copy_gm_to_ubuf", to, pto::TileType::Vec, from, blocks_of(bursts, blocks, from_gap, to_gap),
            DmaLoops{});
}
PTO_INST void copy_ubuf_to_gm(__gm__ void* to, __ubuf__ const void* from, uint64_t /*sid*/, uint64_t bursts,
                              uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  bursts_out("copy_ubuf_to_gm", to, from, pto::TileType::Vec, blocks_of(bursts, blocks, from_gap, to_gap),
             DmaLoops{});
}
PTO_INST void copy_cbuf_to_gm(__gm__ void* to, __cbuf__ const void* from, uint64_t /*sid*/, uint64_t bursts,
                              uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  bursts_out("copy_cbuf_to_gm", to, from, pto::TileType::Mat, blocks_of(bursts, blocks, from_gap, to_gap),
             DmaLoops{});
}
#define PTO_ALIGNED_COPIES_(width, element)                                                         \
  PTO_INST void copy_gm_to_ubuf_align_##width(__ubuf__ void* to, __gm__ const void* from, uint64_t, \
                                              uint64_t bursts, uint64_t length, uint64_t left,      \
                                              uint64_t right, uint64_t from_gap, uint64_t to_gap) { \
    using namespace pto::detail;                                                                    \
    const Padding pad = padding_of<element>(false, left, right, core().pad_value[0]);               \
    const uint64_t row = (pad.left + length + pad.right + 31) / 32 * 32;                            \
    bursts_in("copy_gm_to_ubuf_align_" #width, to, pto::TileType::Vec, from,                        \
              {bursts, length, length + from_gap, row + to_gap * 32}, DmaLoops{}, pad);             \
  }                                                                                                 \
  PTO_INST void copy_ubuf_to_gm_align_##width(__gm__ void* to, __ubuf__ const void* from, uint64_t, \
                                              uint64_t bursts, uint64_t length, uint64_t, uint64_t, \
                                              uint64_t from_gap, uint64_t to_gap) {                 \
    using namespace pto::detail;                                                                    \
    const uint64_t row = (length + 31) / 32 * 32 + from_gap * 32;                                   \
    bursts_out("copy_ubuf_to_gm_align_" #width, to, from, pto::TileType::Vec,                       \
               {bursts, length, row, length + to_gap}, DmaLoops{});                                 \
  }
PTO_ALIGNED_COPIES_(b8, uint8_t)
PTO_ALIGNED_COPIES_(b16, uint16_t)
PTO_ALIGNED_COPIES_(b32, uint32_t)
#undef PTO_ALIGNED_COPIES_

// --- within a block ----------------------------------------------------------------------------------------

PTO_INST void copy_ubuf_to_ubuf(__ubuf__ void* to, __ubuf__ const void* from, uint64_t /*sid*/,
                                uint64_t bursts, uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  PTO_TRACE("mte_ub_ub ub_src ub_dst len_burst n_burst src_gap dst_gap:", PTO_SAYS(),
            traced_pointer<uint8_t>(from, pto::TileType::Vec),
            traced_pointer<uint8_t>(to, pto::TileType::Vec), blocks, bursts, from_gap, to_gap);
  const Burst burst =
      blocks_of(dma_field("n_burst", bursts, 16), dma_field("len_burst", blocks, 16), from_gap, to_gap);
  const Ends ends = ends_of("copy_ubuf_to_ubuf", to, pto::TileType::Vec, from, pto::TileType::Vec, burst);
  copy_bursts(ends.to, ends.from, burst, DmaLoops{});
}
PTO_INST void copy_ubuf_to_ubuf(__ubuf__ void* to, __ubuf__ const void* from, uint64_t bursts,
                                uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  copy_ubuf_to_ubuf(to, from, 0, bursts, blocks, from_gap, to_gap);
}
PTO_INST void copy_ubuf_to_ubuf(__ubuf__ void* to, __ubuf__ const void* from, uint64_t word) {
  using pto::detail::bits;
  copy_ubuf_to_ubuf(to, from, 0, bits(word, 0, 16), bits(word, 16, 16), bits(word, 32, 16),
                    bits(word, 48, 16));
}

PTO_INST void copy_ubuf_to_cbuf(__cbuf__ void* to, __ubuf__ const void* from, uint64_t /*sid*/,
                                uint64_t bursts, uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  PTO_TRACE("mte_ub_l1 ub_src l1_dst len_burst n_burst src_gap dst_gap:", PTO_SAYS(),
            traced_pointer<uint8_t>(from, pto::TileType::Vec),
            traced_pointer<uint8_t>(to, pto::TileType::Mat), blocks, bursts, from_gap, to_gap);
  const Burst burst =
      blocks_of(dma_field("n_burst", bursts, 16), dma_field("len_burst", blocks, 16), from_gap, to_gap);
  const Ends ends = ends_of("copy_ubuf_to_cbuf", to, pto::TileType::Mat, from, pto::TileType::Vec, burst);
  copy_bursts(of_cube_core(ends.to), ends.from, burst, DmaLoops{});
}
PTO_INST void copy_ubuf_to_cbuf(__cbuf__ void* to, __ubuf__ const void* from, uint64_t word) {
  using pto::detail::bits;
  copy_ubuf_to_cbuf(to, from, 0, bits(word, 4, 12), bits(word, 16, 16), bits(word, 32, 16),
                    bits(word, 48, 16));
}
