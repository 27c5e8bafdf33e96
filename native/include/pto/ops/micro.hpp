// What lies below tiles: burst copies between global memory and on-chip buffers, buffer tokens, and printf.
//
// On-chip pointers are addresses of bytes, or offsets into their buffer as a program has them from TASSIGN.
// Burst copies between global memory and UB count bytes from start to start; those within UB count blocks of
// 32 bytes and the gaps between bursts. The older forms take two outer loops from registers.
#pragma once

#include <cstring>

#include "pto/core/access.hpp"
#include "pto/core/bounds.hpp"
#include "pto/core/events.hpp"

namespace pto::detail {

/// The bytes behind an on-chip pointer.
template <class T>
inline char* on_chip_bytes(T* pointer, TileType space) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address < room(static_cast<int>(space)) ? on_chip(space, address) : reinterpret_cast<char*>(address);
}

/// An element of the unified buffer.
template <class T, class Index>
inline T& element_of_ub(T* data, Index index) {
  return *reinterpret_cast<T*>(on_chip_bytes(data + static_cast<int64_t>(index), TileType::Vec));
}

struct Burst {
  uint64_t count, length, from, to;  // strides in bytes
};

inline void copy_bursts(char* to, const char* from, const Burst& burst, const DmaLoops& loops,
                        bool pad = false) {
  for (uint64_t j = 0; j < loops.size[1]; ++j) {
    for (uint64_t k = 0; k < loops.size[0]; ++k) {
      for (uint64_t r = 0; r < burst.count; ++r) {
        char* row = to + j * loops.to[1] + k * loops.to[0] + r * burst.to;
        std::memmove(row, from + j * loops.from[1] + k * loops.from[0] + r * burst.from, burst.length);
        if (pad && burst.to > burst.length) std::memset(row + burst.length, 0, burst.to - burst.length);
      }
    }
  }
}

/// The bytes of global memory that bursts touch, on one side of them.
inline void touch_bursts(const char* name, const void* data, const Burst& burst, uint64_t stride,
                         const DmaLoops& loops, const uint64_t (&strides)[2], Use use) {
  const uint64_t counts[3] = {burst.count, loops.size[0], loops.size[1]};
  const uint64_t steps[3] = {stride, strides[0], strides[1]};
  int64_t low = 0, high = static_cast<int64_t>(burst.length);
  if (high == 0) return;
  for (int i = 0; i < 3; ++i) {
    if (counts[i] == 0) return;
    const int64_t far = reach(static_cast<int64_t>(counts[i]), static_cast<int64_t>(steps[i]));
    (far < 0 ? low : high) += far;
  }
  stay_inside(name, data, low, high);
  if (current == nullptr || !is_noted(current)) return;
  for (uint64_t j = 0; j < counts[2]; ++j)
    for (uint64_t k = 0; k < counts[1]; ++k)
      for (uint64_t r = 0; r < counts[0]; ++r) {
        const auto at = static_cast<int64_t>(j * steps[2] + k * steps[1] + r * steps[0]);
        note(data, at, at + static_cast<int64_t>(burst.length), use);
      }
}
inline void bursts_in(const char* name, char* to, const void* from, const Burst& burst, const DmaLoops& loops,
                      bool pad = false) {
  touch_bursts(name, from, burst, burst.from, loops, loops.from, Use::read);
  copy_bursts(to, static_cast<const char*>(from), burst, loops, pad);
}
inline void bursts_out(const char* name, void* to, const char* from, const Burst& burst,
                       const DmaLoops& loops) {
  touch_bursts(name, to, burst, burst.to, loops, loops.to, Use::write);
  copy_bursts(static_cast<char*>(to), from, burst, loops);
}

inline uint64_t dma_field(const char* name, uint64_t value, int bits) {
  if (value >> bits != 0) {
    failf("[PTO-E2102] expects %s to fit %d bits without a sign, got %lld", name, bits,
          static_cast<long long>(value));
  }
  return value;
}

}  // namespace pto::detail

// --- burst copies ------------------------------------------------------------------------------------------

inline void set_loop_size_outtoub(uint64_t loop1, uint64_t loop2) {
  pto::detail::core().out_to_ub.set_size(loop1, loop2);
}
inline void set_loop1_stride_outtoub(uint64_t from, uint64_t to) {
  pto::detail::core().out_to_ub.set_stride(0, from, to);
}
inline void set_loop2_stride_outtoub(uint64_t from, uint64_t to) {
  pto::detail::core().out_to_ub.set_stride(1, from, to);
}
inline void set_loop_size_ubtoout(uint64_t loop1, uint64_t loop2) {
  pto::detail::core().ub_to_out.set_size(loop1, loop2);
}
inline void set_loop1_stride_ubtoout(uint64_t from, uint64_t to) {
  pto::detail::core().ub_to_out.set_stride(0, from, to);
}
inline void set_loop2_stride_ubtoout(uint64_t from, uint64_t to) {
  pto::detail::core().ub_to_out.set_stride(1, from, to);
}

// The same as one word: the inner count below bit 21; the stride in global memory below bit 40.
inline void set_loop_size_outtoub(uint64_t word) { set_loop_size_outtoub(word & 0x1FFFFF, word >> 21); }
inline void set_loop_size_ubtoout(uint64_t word) { set_loop_size_ubtoout(word & 0x1FFFFF, word >> 21); }
inline void set_loop1_stride_outtoub(uint64_t word) {
  set_loop1_stride_outtoub(word & 0xFFFFFFFFFF, word >> 40);
}
inline void set_loop2_stride_outtoub(uint64_t word) {
  set_loop2_stride_outtoub(word & 0xFFFFFFFFFF, word >> 40);
}
inline void set_loop1_stride_ubtoout(uint64_t word) {
  set_loop1_stride_ubtoout(word >> 40, word & 0xFFFFFFFFFF);
}
inline void set_loop2_stride_ubtoout(uint64_t word) {
  set_loop2_stride_ubtoout(word >> 40, word & 0xFFFFFFFFFF);
}

template <class To, class From>
inline void copy_gm_to_ubuf(__ubuf__ To* to, __gm__ From* from, uint64_t /*sid*/, uint64_t bursts,
                            uint64_t length, uint64_t to_stride, uint64_t from_stride) {
  using namespace pto::detail;
  bursts_in("copy_gm_to_ubuf", on_chip_bytes(to, pto::TileType::Vec), from,
            {dma_field("n_burst", bursts, 16), dma_field("len_burst", length, 16), from_stride, to_stride},
            core().out_to_ub);
}
template <class To, class From>
inline void copy_ubuf_to_gm(__gm__ To* to, __ubuf__ From* from, uint64_t /*sid*/, uint64_t bursts,
                            uint64_t length, uint64_t /*reserved*/, uint64_t to_stride,
                            uint64_t from_stride) {
  using namespace pto::detail;
  bursts_out("copy_ubuf_to_gm", to, on_chip_bytes(from, pto::TileType::Vec),
             {dma_field("n_burst", bursts, 16), dma_field("len_burst", length, 16), from_stride, to_stride},
             core().ub_to_out);
}

/// Grouped forms: their loops are not those of the registers.
template <class To, class From>
inline void copy_gm_to_ubuf_align_v2(__ubuf__ To* to, __gm__ From* from, uint64_t /*sid*/, uint64_t bursts,
                                     uint64_t length, uint64_t /*left*/, uint64_t /*right*/, bool pad,
                                     uint64_t /*cache*/, uint64_t from_stride, uint64_t to_stride) {
  using namespace pto::detail;
  bursts_in("copy_gm_to_ubuf_align_v2", on_chip_bytes(to, pto::TileType::Vec), from,
            {dma_field("n_burst", bursts, 16), dma_field("len_burst", length, 16), from_stride, to_stride},
            DmaLoops{}, pad);
}
template <class To, class From>
inline void copy_ubuf_to_gm_align_v2(__gm__ To* to, __ubuf__ From* from, uint64_t /*sid*/, uint64_t bursts,
                                     uint64_t length, uint64_t /*cache*/, uint64_t to_stride,
                                     uint64_t from_stride) {
  using namespace pto::detail;
  bursts_out("copy_ubuf_to_gm_align_v2", to, on_chip_bytes(from, pto::TileType::Vec),
             {dma_field("n_burst", bursts, 16), dma_field("len_burst", length, 16), from_stride, to_stride},
             DmaLoops{});
}

/// Within UB, in blocks of 32 bytes.
template <class To, class From>
inline void copy_ubuf_to_ubuf(__ubuf__ To* to, __ubuf__ From* from, uint64_t /*sid*/, uint64_t bursts,
                              uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  copy_bursts(on_chip_bytes(to, pto::TileType::Vec), on_chip_bytes(from, pto::TileType::Vec),
              {dma_field("n_burst", bursts, 16), dma_field("len_burst", blocks, 16) * 32,
               (blocks + from_gap) * 32, (blocks + to_gap) * 32},
              DmaLoops{});
}

// --- order within a core: that of the program --------------------------------------------------------------

inline void get_buf(pipe_t, uint64_t, uint64_t = 0) {}
inline void rls_buf(pipe_t, uint64_t, uint64_t = 0) {}
#define mem_bar(...) ((void)0)
#define __VEC_SCOPE__

// --- printf ------------------------------------------------------------------------------------------------

namespace pto::detail {

/// A number to be printed: a float, or an integer of some bits.
struct Printed {
  bool is_float;
  int bits;
  double number;
  long long whole;
};

template <class T>
inline Printed printed(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return {false, 64, 0, static_cast<long long>(reinterpret_cast<uintptr_t>(value))};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {false, static_cast<int>(sizeof(T) * 8), 0, static_cast<long long>(value)};
  } else {
    return {true, 64, static_cast<double>(static_cast<float>(value)), 0};
  }
}
inline Printed printed(double value) { return {true, 64, value, 0}; }

/// One number under a conversion: `flags` are what stands between % and the length, `kind` ends it. A
/// conversion for the other kind of number shows the number in its own way.
inline int print_one(char* out, size_t size, const char* flags, int flags_size, int short_bits, char kind,
                     const Printed& value) {
  char format[48];
  const bool for_float = std::strchr("eEfFgG", kind) != nullptr;
  if (value.is_float || for_float || kind == 'a' || kind == 'A') {
    const char* dot = static_cast<const char*>(std::memchr(flags, '.', static_cast<size_t>(flags_size)));
    const bool own = value.is_float && !for_float;
    if (own && dot != nullptr) flags_size = static_cast<int>(dot - flags);
    std::snprintf(format, sizeof format, "%%%.*s%c", flags_size, flags, for_float ? kind : 'f');
    return std::snprintf(out, size, format, value.is_float ? value.number : static_cast<double>(value.whole));
  }
  long long whole = value.whole;
  if (kind == 'c') {
    std::snprintf(format, sizeof format, "%%%.*sc", flags_size, flags);
    return std::snprintf(out, size, format, static_cast<int>(whole & 0xFF));
  }
  if (kind == 's' || kind == 'p') kind = 'd';
  const bool is_signed = kind == 'd' || kind == 'i';
  const int bits = short_bits != 0 ? short_bits : is_signed ? 64 : value.bits < 32 ? 32 : value.bits;
  if (bits < 64) {
    const unsigned long long mask = (1ULL << bits) - 1;
    whole = static_cast<long long>(static_cast<unsigned long long>(whole) & mask);
    if (is_signed && (whole >> (bits - 1) & 1) != 0) whole -= static_cast<long long>(mask) + 1;
  }
  std::snprintf(format, sizeof format, "%%%.*sll%c", flags_size, flags, kind);
  return std::snprintf(out, size, format, whole);
}

/// A text with numbers in it; conversions beyond the last number are text.
[[gnu::noinline]] inline int print_numbers(const char* format, const Printed* values, int count) {
  char text[1024];
  size_t at = 0;
  int taken = 0;
  const auto put = [&](char c) {
    if (at + 1 < sizeof text) text[at++] = c;
  };
  while (*format != 0) {
    if (*format == '\\' && (format[1] == 'n' || format[1] == 't')) {
      put(format[1] == 'n' ? '\n' : '\t');
      format += 2;
      continue;
    }
    if (*format != '%') {
      put(*format++);
      continue;
    }
    if (format[1] == '%') {
      put('%');
      format += 2;
      continue;
    }
    const char* flags = format + 1;
    const char* end = flags + std::strspn(flags, "-+ #0123456789.");
    const char* kind = end + std::strspn(end, "hlLjzt");
    if (taken == count || *kind == 0 || std::strchr("diouxXeEfFgGaAcsp", *kind) == nullptr ||
        end - flags > 24) {
      put(*format++);
      continue;
    }
    const int short_bits = end[0] == 'h' ? (end[1] == 'h' ? 8 : 16) : 0;
    const int made = print_one(text + at, sizeof text - at, flags, static_cast<int>(end - flags), short_bits,
                               *kind, values[taken++]);
    at += made > 0 ? static_cast<size_t>(made) : 0;
    if (at >= sizeof text) at = sizeof text - 1;
    format = kind + 1;
  }
  text[at] = 0;
  return print("%s", text);
}

}  // namespace pto::detail

namespace cce {

template <class... Values>
inline int printf(const char* format, Values... values) {
  const pto::detail::Printed all[sizeof...(Values) + 1] = {pto::detail::printed(values)...};
  return pto::detail::print_numbers(format, all, sizeof...(Values));
}

}  // namespace cce
