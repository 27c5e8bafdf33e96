// Copies to the buffers of the cube unit: global memory to L1; L1 to L0A, L0B, the bias table, FB and UB.
//
// L1 holds operands in NZ: fractals of 16 rows of 32 bytes, column block after column block. L0A (A2 and A3:
// row block after row block) and L0B hold whole fractals; scales of MX operands are in separate buffers.
#pragma once

#include "pto/ops/bursts.hpp"

namespace pto::detail {

inline constexpr int64_t kFractal = 512;

// --- fractals out of matrices ------------------------------------------------------------------------------

/// Copy matrices of n rows and d columns to fractals; `across`: bytes between neighbours in a row.
template <class T>
inline void fractals_in(const char* name, const void* to, const void* from, uint64_t down, uint64_t across,
                        uint64_t n, uint64_t d, uint64_t outer, bool small) {
  constexpr uint64_t size = sizeof(T), lanes = 32 / size, narrow = 4;
  const uint64_t word = core().cube.fractals;
  const uint64_t groups = bits(word, 0, 16), row = bits(word, 16, 16), column = bits(word, 32, 16),
                 matrix = bits(word, 48, 16);
  PTO_TRACE(across == size
                ? "mte_gm_l1_frac src dst n_value d_value src_inner_stride src_outer_stride group_count "
                  "dst_loop2_stride dst_loop3_stride dst_loop4_stride l2_cache_ctrl smallc0_en: mode=nd2nz"
                : "mte_gm_l1_frac src dst n_value d_value src_inner_stride src_outer_stride group_count "
                  "dst_loop2_stride dst_loop3_stride dst_loop4_stride l2_cache_ctrl smallc0_en: mode=dn2nz",
            PTO_SAYS(), static_cast<const T*>(from), traced_pointer<T>(to, TileType::Mat), n, d,
            across == size ? down : across, outer, groups, row, column, matrix, 0, small);
  if (groups == 0 || n == 0 || d == 0) return;
  if (small && d > narrow)
    failf("[PTO-E2102] %s: expects at most 4 columns in small-C0 mode, got %llu", name,
          static_cast<unsigned long long>(d));
  const uint64_t tall = small ? (n * narrow + lanes - 1) / lanes * lanes / narrow : n;
  const uint64_t wide = small ? narrow : (d + lanes - 1) / lanes * lanes;
  const auto place = [&](uint64_t r, uint64_t c) {
    return small ? (r * narrow + c) * size : (c / lanes * column + r * row) * 32 + c % lanes * size;
  };
  const auto end = static_cast<int64_t>((groups - 1) * matrix * 32 + place(tall - 1, wide - 1) + size);
  char* const target = on_chip_bytes(name, to, TileType::Mat, 0, end);
  for (uint64_t g = 0; g < groups; ++g) {
    const char* const source = static_cast<const char*>(from) + g * outer;
    const bool by_rows = across == size;
    for (uint64_t line = 0; line < (by_rows ? n : d); ++line) {
      const auto at = static_cast<int64_t>(line * (by_rows ? down : across));
      touch(name, source, at, at + static_cast<int64_t>((by_rows ? d : n) * size), Use::read);
    }
    char* const out = target + g * matrix * 32;
    for (uint64_t r = 0; r < tall; ++r) {
      for (uint64_t c = 0; c < wide; ++c) {
        char* const at = out + place(r, c);
        if (r < n && c < d) {
          std::memcpy(at, source + r * down + c * across, size);
        } else {
          std::memset(at, 0, size);
        }
      }
    }
  }
}

// --- fractals into operand buffers -------------------------------------------------------------------------

struct Window {
  uint64_t row, col;    // the first fractal, in units of 16 rows and 32 bytes
  uint64_t rows, cols;  // the size, in the same units
  int64_t from, to;     // fractals of a column block
};

/// Return the offset of fractal (i, j) of an operand: in column blocks of `high` fractals; in L0A of A2 and
/// A3, in row blocks of `wide`.
inline int64_t fractal_at(TileType space, int64_t high, int64_t wide, int64_t i, int64_t j) {
  return space == TileType::Left && !left_by_columns() ? i * wide + j : j * high + i;
}

template <class T>
inline void load_operand(const char* name, TileType space, const void* to, const void* from, Window w,
                         bool transpose) {
  const auto rows = static_cast<int64_t>(w.rows), cols = static_cast<int64_t>(w.cols);
  if (rows == 0 || cols == 0) return;
  const auto at = [&](int64_t i, int64_t j) {
    return ((static_cast<int64_t>(w.col) + j) * w.from + static_cast<int64_t>(w.row) + i) * kFractal;
  };
  const char* const source = on_chip_bytes(name, from, TileType::Mat, 0, at(rows - 1, cols - 1) + kFractal);
  if (!transpose) {
    const int64_t end = (fractal_at(space, w.to, cols, rows - 1, cols - 1) + 1) * kFractal;
    char* const target = on_chip_bytes(name, to, space, 0, end);
    for (int64_t j = 0; j < cols; ++j)
      for (int64_t i = 0; i < rows; ++i)
        std::memcpy(target + fractal_at(space, w.to, cols, i, j) * kFractal, source + at(i, j), kFractal);
    return;
  }
  // Transpose the elements; rows for which the destination has no room are left out.
  constexpr int64_t lanes = 256 / bits_of<T>;
  const int64_t down = rows * 16, wide = (down + lanes - 1) / lanes;
  const int64_t across = cols * lanes < w.to * 16 ? cols * lanes : w.to * 16;
  const int64_t last = fractal_at(space, w.to, wide, (across - 1) / 16, wide - 1);
  T* const target = reinterpret_cast<T*>(on_chip_bytes(name, to, space, 0, (last + 1) * kFractal));
  constexpr int64_t each = kFractal * 8 / bits_of<T>;
  for (int64_t r = 0; r < down; ++r) {
    for (int64_t c = 0; c < across; ++c) {
      const T* const box = reinterpret_cast<const T*>(source + at(r / 16, c / lanes));
      const T element = element_at(box, static_cast<size_t>(r % 16 * lanes + c % lanes));
      const int64_t fractal = fractal_at(space, w.to, wide, c / 16, r / lanes);
      put_element(target, static_cast<size_t>(fractal * each + c % 16 * lanes + r % lanes), element);
    }
  }
}

/// Load scales: boxes of 16 rows (columns of L0B) and 2 groups, 32 bytes. The destination is a sixteenth of
/// the address of the operand, which may be a host address.
inline void load_scales(const char* name, TileType operands, TileType space, uint64_t to, const void* from,
                        uint64_t x, uint64_t y, uint64_t xs, uint64_t ys, uint64_t from_stride,
                        uint64_t to_stride) {
  const auto address = reinterpret_cast<uint64_t>(core().space[static_cast<int>(operands)]);
  const uint64_t apart = (to << 4) - address;
  if (to >= static_cast<uint64_t>(kOffsets) && apart < room(static_cast<int>(operands))) to = apart >> 4;
  PTO_TRACE(operands == TileType::Left ? "load_cbuf_to_ca_mx src dst x_start_position y_start_position "
                                         "x_step y_step src_stride dst_stride:"
                                       : "load_cbuf_to_cb_mx src dst x_start_position y_start_position "
                                         "x_step y_step src_stride dst_stride:",
            PTO_SAYS(), traced_pointer<uint8_t>(from, TileType::Mat),
            traced_pointer<uint8_t>(reinterpret_cast<const void*>(to << 4), operands), x, y, xs, ys,
            from_stride, to_stride);
  if (xs == 0 || ys == 0) return;
  const auto place = reinterpret_cast<const void*>(static_cast<uintptr_t>(to));
  const auto reach = [](uint64_t a, uint64_t b) { return static_cast<int64_t>((a + b + 1) * 32); };
  char* const target = on_chip_bytes(name, place, space, 0, reach((xs - 1) * to_stride, ys - 1));
  const char* const source =
      on_chip_bytes(name, from, TileType::Mat, 0, reach((x + xs - 1) * from_stride, y + ys - 1));
  for (uint64_t i = 0; i < xs; ++i)
    std::memcpy(target + i * to_stride * 32, source + ((x + i) * from_stride + y) * 32, ys * 32);
}

// --- bias --------------------------------------------------------------------------------------------------

/// Load the bias table: entries of 32 bits; `widen` converts 16-bit floats to f32.
template <class T>
inline void load_bias(uint64_t to, const T* from, bool widen, uint64_t count, uint64_t length,
                      uint64_t from_gap, uint64_t to_gap) {
  constexpr uint64_t each = 32 / sizeof(T);
  using Entry [[maybe_unused]] = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  PTO_TRACE("copy_cbuf_to_bt src dst conv_control n_burst len_burst source_gap dst_gap:", PTO_SAYS(),
            traced_pointer<std::remove_cv_t<T> >(from, TileType::Mat),
            traced_pointer<Entry>(reinterpret_cast<const void*>(static_cast<uintptr_t>(to)), TileType::Bias),
            widen, count, length, from_gap, to_gap);
  const Burst burst = blocks_of(count, length, from_gap, to_gap);
  const uint64_t grow = widen ? 4 / sizeof(T) : 1;
  const Burst there{count, burst.length * grow, 0, burst.to * grow};
  constexpr DmaLoops once{};
  const Reach here = reach_of(burst, burst.from, once, once.from, burst.length);
  const Reach reached = reach_of(there, there.to, once, once.to, there.length);
  const char* const source = on_chip_bytes("copy_cbuf_to_bt", from, TileType::Mat, here.low, here.high);
  char* const target = on_chip_bytes("copy_cbuf_to_bt", reinterpret_cast<void*>(static_cast<uintptr_t>(to)),
                                     TileType::Bias, reached.low, reached.high);
  for (uint64_t r = 0; r < count; ++r) {
    const char* at = source + r * burst.from;
    char* out = target + r * there.to;
    if (!widen) {
      std::memcpy(out, at, burst.length);
      continue;
    }
    for (uint64_t i = 0; i < length * each; ++i) {
      T element;
      std::memcpy(static_cast<void*>(&element), at + i * sizeof(T), sizeof(T));
      const float value = static_cast<float>(element);
      std::memcpy(out + i * sizeof value, &value, sizeof value);
    }
  }
}

}  // namespace pto::detail

// --- global memory to L1 -----------------------------------------------------------------------------------

template <class To, class From>
PTO_INST void copy_gm_to_cbuf_align_v2(__cbuf__ To* to, __gm__ From* from, uint64_t /*sid*/, uint64_t bursts,
                                       uint64_t length, uint64_t left, uint64_t right, bool pad,
                                       uint64_t /*cache*/, uint64_t from_stride, uint64_t to_stride) {
  using namespace pto::detail;
  const Core& me = core();
  bursts_in("copy_gm_to_cbuf_align_v2", to, pto::TileType::Mat, from,
            long_bursts(bursts, length, from_stride, to_stride), me.out_to_l1,
            padding_of<To>(pad, left, right, me.pad_value[1]));
}
template <class To, class From>
PTO_INST void copy_gm_to_cbuf_align_v2(__cbuf__ To* to, __gm__ From* from, uint64_t word, uint64_t strides) {
  using pto::detail::bits;
  copy_gm_to_cbuf_align_v2(to, from, bits(word, 0, 4), bits(word, 4, 21), bits(word, 25, 21),
                           bits(word, 46, 6), bits(word, 52, 6), bits(word, 58, 1) != 0, bits(word, 60, 4),
                           bits(strides, 0, 40), bits(strides, 40, 21));
}
/// The call of A2 and A3, in blocks and gaps.
template <class Pad>
PTO_INST void copy_gm_to_cbuf(__cbuf__ void* to, __gm__ const void* from, uint64_t /*sid*/, uint64_t bursts,
                              uint64_t blocks, uint64_t from_gap, uint64_t to_gap, Pad /*mode*/) {
  using namespace pto::detail;
  bursts_in("copy_gm_to_cbuf", to, pto::TileType::Mat, from, blocks_of(bursts, blocks, from_gap, to_gap),
            DmaLoops{});
}

inline void set_mte2_nz_para(uint64_t word) { pto::detail::core().cube.fractals = word; }

template <class T>
PTO_INST void copy_gm_to_cbuf_multi_nd2nz(__cbuf__ T* to, __gm__ T* from, uint64_t /*sid*/, uint64_t stride,
                                          uint64_t /*cache*/, uint64_t n, uint64_t d, uint64_t outer,
                                          bool small) {
  pto::detail::fractals_in<T>("copy_gm_to_cbuf_multi_nd2nz", to, from, stride, sizeof(T), n, d, outer, small);
}
template <class T>
PTO_INST void copy_gm_to_cbuf_multi_dn2nz(__cbuf__ T* to, __gm__ T* from, uint64_t /*sid*/, uint64_t stride,
                                          uint64_t /*cache*/, uint64_t n, uint64_t d, uint64_t outer,
                                          bool small) {
  pto::detail::fractals_in<T>("copy_gm_to_cbuf_multi_dn2nz", to, from, sizeof(T), stride, n, d, outer, small);
}
template <class T>
PTO_INST void copy_gm_to_cbuf_multi_nd2nz(__cbuf__ T* to, __gm__ T* from, uint64_t word, uint64_t more) {
  using pto::detail::bits;
  copy_gm_to_cbuf_multi_nd2nz(to, from, 0, bits(word, 4, 40), 0, bits(word, 48, 16), bits(more, 0, 21),
                              bits(more, 21, 40), bits(more, 61, 1) != 0);
}
template <class T>
PTO_INST void copy_gm_to_cbuf_multi_dn2nz(__cbuf__ T* to, __gm__ T* from, uint64_t word, uint64_t more) {
  using pto::detail::bits;
  copy_gm_to_cbuf_multi_dn2nz(to, from, 0, bits(word, 4, 40), 0, bits(word, 48, 16), bits(more, 0, 21),
                              bits(more, 21, 40), bits(more, 61, 1) != 0);
}

/// Fill L1. Bits 0..15 of `config` have the number of bursts, bits 16..31 their length, and the bits from 32
/// on the gap between them, both in blocks of 32 bytes.
template <class T, class Value>
PTO_INST void create_cbuf_matrix(__cbuf__ T* to, int64_t config, Value value) {
  using namespace pto::detail;
  const auto word = static_cast<uint64_t>(config);
  uint64_t code = 0;
  if constexpr (std::is_integral_v<Value>) {
    code = static_cast<uint64_t>(value);
  } else {
    std::memcpy(&code, &value, sizeof value < sizeof code ? sizeof value : sizeof code);
  }
  const Burst burst = blocks_of(bits(word, 0, 16), bits(word, 16, 16), 0, word >> 32);
  constexpr DmaLoops once{};
#ifdef PTO_TRACED
  // PTO programs have no such instruction: the trace shows a copy of padding only.
  with_size(sizeof(T), [&](auto element) {
    using E = decltype(element);
    PTO_TRACE(
        "mte_gm_ub gm_src ub_dst l2_cache_ctl len_burst n_burst src_stride dst_stride loop loop loop "
        "pad_value "
        "left_padding right_padding:",
        PTO_SAYS(), static_cast<const E*>(nullptr), traced_pointer<E>(to, pto::TileType::Mat), 0, 0, 1, 0,
        burst.length, burst.count, 0, burst.to, static_cast<E>(code), 0, 0);
  });
#endif
  PTO_UNTRACED;
  const Reach reached = reach_of(burst, burst.to, once, once.to, burst.length);
  char* const target = on_chip_bytes("create_cbuf_matrix", to, pto::TileType::Mat, reached.low, reached.high);
  const Padding pad{true, sizeof(T), code};
  for (uint64_t r = 0; r < burst.count; ++r) fill_bytes(target + r * burst.to, 0, burst.length, pad);
}
template <class T, class Value>
PTO_INST void create_cbuf_matrix_bf16(__cbuf__ T* to, int64_t config, Value value) {
  create_cbuf_matrix(to, config, value);
}

// --- out of L1 ---------------------------------------------------------------------------------------------

PTO_INST void copy_cbuf_to_ubuf(__ubuf__ void* to, __cbuf__ const void* from, bool second, uint64_t bursts,
                                uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  PTO_TRACE("copy_cbuf_to_ubuf src dst sid n_burst len_burst src_stride dst_stride:", PTO_SAYS(),
            traced_pointer<uint8_t>(from, pto::TileType::Mat),
            traced_pointer<uint8_t>(to, pto::TileType::Vec), uint64_t{second}, bursts, blocks, from_gap,
            to_gap);
  const Burst burst = blocks_of(bursts, blocks, from_gap, to_gap);
  const Ends ends = ends_of("copy_cbuf_to_ubuf", to, pto::TileType::Vec, from, pto::TileType::Mat, burst);
  copy_bursts(of_vector_core(ends.to, second ? 1 : 0), ends.from, burst, DmaLoops{});
}
PTO_INST void copy_cbuf_to_ubuf(__ubuf__ void* to, __cbuf__ const void* from, uint64_t word) {
  using pto::detail::bits;
  copy_cbuf_to_ubuf(to, from, bits(word, 0, 1) != 0, bits(word, 4, 12), bits(word, 16, 16),
                    bits(word, 32, 16), bits(word, 48, 16));
}
template <class T>
PTO_INST void copy_cbuf_to_bt(uint64_t to, __cbuf__ T* from, uint64_t convert, uint64_t bursts,
                              uint64_t blocks, uint64_t from_gap, uint64_t to_gap) {
  const bool widen = std::is_same_v<std::remove_cv_t<T>, bfloat16_t> ||
                     (std::is_same_v<std::remove_cv_t<T>, half> && convert != 0);
  pto::detail::load_bias(to, from, widen, bursts, blocks, from_gap, to_gap);
}
PTO_INST void copy_cbuf_to_fbuf(__fbuf__ void* to, __cbuf__ const void* from, uint64_t bursts, uint64_t units,
                                uint64_t from_gap, uint64_t to_gap) {
  using namespace pto::detail;
  PTO_TRACE("copy_cbuf_to_fbuf src dst n_burst len_burst source_gap dst_gap:", PTO_SAYS(),
            traced_pointer<uint8_t>(from, pto::TileType::Mat),
            traced_pointer<uint8_t>(to, pto::TileType::Scaling), bursts, units, from_gap, to_gap);
  const Burst burst = blocks_of(bursts, units, from_gap, to_gap, kIsa == Isa::a2a3 ? 128 : 64);
  const Ends ends = ends_of("copy_cbuf_to_fbuf", to, pto::TileType::Scaling, from, pto::TileType::Mat, burst);
  copy_bursts(ends.to, ends.from, burst, DmaLoops{});
}

// The window is in units of 16 rows and 32 bytes; `_s4` is for elements of 4 bits.
#define PTO_FEEDS_(name, qualifier, space)                                                                  \
  template <class To, class From>                                                                           \
  PTO_INST void name(qualifier To* to, __cbuf__ From* from, uint64_t row, uint64_t col, uint64_t rows,      \
                     uint64_t cols, int64_t from_stride, uint64_t to_stride, bool transpose) {              \
    PTO_TRACE(#name " src dst m_start k_start m_step k_step src_stride dst_stride: transpose",              \
              PTO_SAYS(transpose), pto::detail::traced_pointer<From>(from, pto::TileType::Mat),             \
              pto::detail::traced_pointer<To>(to, pto::TileType::space), row, col, rows, cols, from_stride, \
              to_stride);                                                                                   \
    pto::detail::load_operand<To>(#name, pto::TileType::space, to, from,                                    \
                                  {row, col, rows, cols, from_stride, static_cast<int64_t>(to_stride)},     \
                                  transpose);                                                               \
  }
PTO_FEEDS_(load_cbuf_to_ca, __ca__, Left)
PTO_FEEDS_(load_cbuf_to_ca_s4, __ca__, Left)
PTO_FEEDS_(load_cbuf_to_cb, __cb__, Right)
PTO_FEEDS_(load_cbuf_to_cb_s4, __cb__, Right)
#undef PTO_FEEDS_

PTO_INST void load_cbuf_to_ca_mx(uint64_t to, __cbuf__ const void* from, uint64_t x, uint64_t y, uint64_t xs,
                                 uint64_t ys, uint64_t from_stride, uint64_t to_stride) {
  pto::detail::load_scales("load_cbuf_to_ca_mx", pto::TileType::Left, pto::TileType::ScaleLeft, to, from, x,
                           y, xs, ys, from_stride, to_stride);
}
PTO_INST void load_cbuf_to_cb_mx(uint64_t to, __cbuf__ const void* from, uint64_t x, uint64_t y, uint64_t xs,
                                 uint64_t ys, uint64_t from_stride, uint64_t to_stride) {
  pto::detail::load_scales("load_cbuf_to_cb_mx", pto::TileType::Right, pto::TileType::ScaleRight, to, from, x,
                           y, xs, ys, from_stride, to_stride);
}
