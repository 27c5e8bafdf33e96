// The fix-pipe on pointers: copies of a matrix in L0C to L1, global memory or UB.
//
// Each number is quantised, rectified, clipped and converted, in this order; the matrix is written by rows
// (nz2nd), by columns (nz2dn) or in blocks. Registers hold parameters that do not fit into the words of a
// call. Quantisation modes have the numbers of QuantMode_t; from 2 on, one mode of each pair has a parameter
// word in FB per column. With bit 60 of CTRL clear, overflow saturates if bit 48 is clear, and NaN then
// becomes 0 unless bit 50 is set. With bit 60 set, bit 48 makes results of f16 and bf16 finite.
#pragma once

#include "pto/ops/bursts.hpp"
#include "pto/ops/fixpipe.hpp"

namespace pto::detail {

struct FixWords {
  uint64_t n, m, to_stride, from_stride;
  int quant, relu;
  bool clips, splits, by_rows, by_columns;
  int halves = 0;       // to UB: split of rows (1) or columns (2) between both vector cores
  bool second = false;  // to UB: the second vector core
};

/// Convert a number of a column as a call requires.
template <class S, class T>
class Outgoing {
 public:
  explicit Outgoing(const FixWords& w) : quant_(w.quant), relu_(w.relu), clips_(w.clips) {
    const Core& me = core();
    told_ = (me.ctrl >> 60 & 1) == 0;
    saturate_ = told_ ? (me.ctrl >> 48 & 1) == 0 : saturates();
    keep_ = me.ctrl >> 50 & 1;
    by_column_ = quantises_by_column(quant_);
    word_ = me.quant_pre;
    if (by_column_) words_ = parameters(me.cube.parameters >> 8 << 7, w.n * 8);
    slope_ = __builtin_bit_cast(float, static_cast<uint32_t>(me.cube.relu_alpha));
    if (relu_ == 3) slopes_ = parameters((me.cube.parameters & 0xFF) << 6, w.n * 4);
    const auto code = static_cast<uint16_t>(me.cube.clip);
    clip_ = dtype_of<T> == DType::f16 ? static_cast<double>(static_cast<float>(half::FromRaw(code)))
                                      : static_cast<double>(static_cast<int16_t>(code));
  }
  bool is_plain() const { return std::is_same_v<S, T> && quant_ == 0 && relu_ == 0; }

  T operator()(S x, uint64_t column) const {
    double y = static_cast<double>(x);
    bool wide = !is_float_v<S>;  // no longer an f32
    if (quantises(quant_)) y = quantised(x, word(column), wide);
    if (relu_ == 1) y = y > 0 ? y : 0.0;
    if (relu_ > 1 && !(y >= 0)) {
      const float slope = relu_ == 3 ? slope_at(column) : slope_;
      y = wide ? y * static_cast<double>(slope) : static_cast<double>(static_cast<float>(y) * slope);
    }
    if (clips_) y = y != y || y < clip_ ? y : clip_;
    if constexpr (is_float_v<T>) return rounded(static_cast<float>(y));
    return whole(y);
  }

 private:
  static const char* parameters(uint64_t at, uint64_t bytes) {
    return on_chip_bytes("copy_matrix_cc", reinterpret_cast<const void*>(static_cast<uintptr_t>(at)),
                         TileType::Scaling, 0, static_cast<int64_t>(bytes));
  }
  uint64_t word(uint64_t column) const {
    uint64_t found = word_;
    if (by_column_) std::memcpy(&found, words_ + column * 8, sizeof found);
    return found;
  }
  float slope_at(uint64_t column) const {
    float found;
    std::memcpy(&found, slopes_ + column * 4, sizeof found);
    return found;
  }
  static constexpr double low() { return Element<T>::is_signed ? -limit() - 1 : 0.0; }
  static constexpr double limit() {
    return static_cast<double>((uint64_t{1} << (bits_of<T> - (Element<T>::is_signed ? 1 : 0))) - 1);
  }
  static double held(double y, double least, double most) {
    const double whole = __builtin_rint(y);
    return whole != whole ? 0.0 : whole < least ? least : whole > most ? most : whole;
  }

  double quantised(S x, uint64_t word, bool& wide) const {
    if constexpr (std::is_same_v<S, int32_t> && std::is_same_v<T, int16_t>) {
      if (quant_ == 12 || quant_ == 13) {
        wide = true;
        return static_cast<int16_t>(x >> (static_cast<int>(word >> 32 & 15) + 1));
      }
    }
    const float y = static_cast<float>(x) * scale_of(word, by_column_);
    if constexpr (is_float_v<T>) {
      wide = false;
      return y;
    } else {
      wide = true;
      const float moved = y + static_cast<float>(word >> 37 & 0x1FF);
      constexpr bool byte = std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>;
      if (byte && quant_ != 6 && quant_ != 7) {
        const bool negative = word & kSignedWord;
        return held(moved, negative ? -128 : 0, negative ? 127 : 255);
      }
      return held(moved, low(), limit());
    }
  }

  T whole(double y) const {
    constexpr bool byte = std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>;
    const double found = held(y, byte ? -128 : low(), byte ? 255 : limit());
    return element_of<T>(static_cast<compute_t<T>>(static_cast<int64_t>(found)));
  }

  T rounded(float y) const {
    if constexpr (!std::is_same_v<T, float>) {
      constexpr float top = max_finite<T>();
      constexpr bool sixteen = dtype_of<T> == DType::f16 || dtype_of<T> == DType::bf16;
      const float inside = y < -top ? -top : y > top ? top : y;
      if (told_) {
        if (saturate_) y = y != y ? (keep_ ? y : 0.0f) : inside;
      } else if (quant_ != 0 || saturate_) {
        const bool infinite = __builtin_fabsf(y) > 0x1.fffffep127f;
        const bool clamp = quant_ == 10 || quant_ == 11;
        if (saturate_ && sixteen) {
          y = y != y ? 0.0f : inside;
        } else {
          y = infinite && !clamp ? y : inside;
        }
      }
    }
    return cast_to<T>(y);
  }

  int quant_, relu_;
  bool clips_, told_, saturate_, keep_, by_column_;
  uint64_t word_;
  float slope_;
  double clip_;
  const char* words_ = nullptr;
  const char* slopes_ = nullptr;
};

/// Strides in elements, of L0C and of the destination.
template <class T>
struct FixPlaces {
  uint64_t from_row, from_block, row, column, block, width;  // blocks of 16 columns in L0C, `width` in dst
  explicit FixPlaces(const FixWords& w) {
    const uint64_t step = core().cube.channel >> 48;
    from_row = (w.by_columns ? step : 1) * 16;
    from_block = w.from_stride * 16;
    constexpr uint64_t lanes = 256 / bits_of<T>;
    const bool boxes = !w.by_rows && !w.by_columns;
    width = boxes ? (w.splits || lanes > 16 ? lanes : 16) : 1;
    row = boxes ? width : w.by_rows ? w.to_stride : 1;
    column = 1;
    block = w.by_rows ? 1 : w.to_stride;
  }
  uint64_t from(uint64_t i, uint64_t j) const { return j / 16 * from_block + i * from_row + j % 16; }
  uint64_t to(uint64_t i, uint64_t j) const { return j / width * block + i * row + j % width; }
};

/// A part of a matrix: its destination, its start and its size.
struct FixPart {
  char* to;
  uint64_t row, col, rows, cols;
};

template <class T, class S>
inline void write_part(const FixWords& w, const Outgoing<S, T>& outgoing, const char* source,
                       const FixPart& part, int update) {
  const FixPlaces<T> places(w);
  const S* const from = reinterpret_cast<const S*>(source);
  for (uint64_t i = 0; i < part.rows; ++i) {
    for (uint64_t j = 0; j < part.cols; ++j) {
      S x;
      std::memcpy(&x, from + places.from(part.row + i, part.col + j), sizeof x);
      T element;
      if (outgoing.is_plain()) {
        std::memcpy(static_cast<void*>(&element), &x, sizeof element);
      } else {
        element = outgoing(x, part.col + j);
      }
      const uint64_t at = places.to(i, j);
      if (update != 0) {
        if constexpr (bits_of<T> >= 8) update_of(update).one(part.to + at * sizeof(T), &element);
      } else {
        put_element(reinterpret_cast<T*>(part.to), at, element);
      }
    }
  }
}

template <class T>
inline void touch_rows(const char* name, const char* to, const FixWords& w, Use use) {
  if (!is_watched(current)) return;
  const FixPlaces<T> places(w);
  for (uint64_t i = 0; i < w.m; ++i) {
    for (uint64_t j = 0, n; j < w.n; j += n) {
      n = w.by_rows ? w.n : w.by_columns ? 1 : places.width - j % places.width;
      if (n > w.n - j) n = w.n - j;
      const auto at = static_cast<int64_t>(places.to(i, j)),
                 last = static_cast<int64_t>(places.to(i, j + n - 1));
      const Bytes bytes = bytes_of(bits_of<T>, at, last);
      stay_inside(name, to, bytes.low, bytes.high);
      if (is_noted(current)) note(to, bytes.low, bytes.high, use);
    }
  }
  if (is_noted(current)) settle();
}

/// Compute the destinations of the parts of a matrix: one, or a half for the UB of each vector core.
template <class T>
inline int fix_parts(const char* name, TileType space, const void* dst, const FixWords& w, int64_t skip,
                     FixPart (&parts)[2]) {
  const FixPlaces<T> places(w);
  const uint64_t rows = w.halves == 1 ? w.m / 2 : w.m, cols = w.halves == 2 ? w.n / 2 : w.n;
  if (rows == 0 || cols == 0) return 0;
  const auto bytes = [](uint64_t elements) { return static_cast<int64_t>((elements * bits_of<T> + 7) / 8); };
  uint64_t last = places.to(rows - 1, cols - 1);
  if (!w.by_rows && !w.by_columns && cols > places.width)  // the last block may be narrow
    last = places.to(rows - 1, cols / places.width * places.width - 1) > last
               ? places.to(rows - 1, cols / places.width * places.width - 1)
               : last;
  char* own = on_chip_bytes(name, dst, space, skip, skip + bytes(last + 1)) + skip;
  if (space == TileType::Mat) {
    parts[0] = {own, 0, 0, rows, cols};
    return 1;
  }
  char* const first = of_vector_core(own, w.second ? 1 : 0);
  parts[0] = {first, 0, 0, rows, cols};
  if (w.halves == 0 || first == own || core().cluster->vectors[1] == nullptr) return 1;
  parts[1] = {of_vector_core(own, 1), w.halves == 1 ? rows : 0, w.halves == 2 ? cols : 0, rows, cols};
  return 2;
}

/// Write a matrix to dst. `space` is the buffer of dst; Acc stands for global memory.
template <class T, class S>
[[gnu::noinline]] void write_back(const char* name, TileType space, T* dst, const S* src, const FixWords& w) {
  if (w.m == 0 || w.n == 0) return;
  if ((w.m | w.n | w.from_stride) >> 16 != 0 || w.to_stride >> 32 != 0)  // larger products would overflow
    failf(
        "[PTO-E2102] %s: expects sizes and strides that fit 16 bits, and the stride of dst 32, got "
        "%llux%llu, "
        "%llu and %llu",
        name, static_cast<unsigned long long>(w.m), static_cast<unsigned long long>(w.n),
        static_cast<unsigned long long>(w.from_stride), static_cast<unsigned long long>(w.to_stride));
  if (const int update = atomic_type(); space == TileType::Acc && update != 0) {
    const int bits = 8 * static_cast<int>(update_of(update).size);
    if (bits != bits_of<T>)
      failf("[PTO-E2102] %s: expects an atomic type of %d bits, got one of %d", name, bits_of<T>, bits);
  }
  const uint64_t loop = core().cube.loop3, count = bits(loop, 0, 16);
  const auto far = static_cast<int64_t>(bits(loop, 16, 16)) * 16 * static_cast<int64_t>(sizeof(S));
  const Outgoing<S, T> outgoing(w);
  const FixPlaces<T> places(w);
  const auto end = static_cast<int64_t>((places.from(w.m - 1, w.n - 1) + 1) * sizeof(S));
  for (uint64_t r = 0; r < count; ++r) {
    const int64_t at = static_cast<int64_t>(r) * far;
    const char* const source = on_chip_bytes(name, src, TileType::Acc, at, at + end) + at;
    const auto skip = static_cast<int64_t>(r * (loop >> 32) * bits_of<T> / 8);
    if (space == TileType::Acc) {
      char* const to = const_cast<char*>(reinterpret_cast<const volatile char*>(dst)) + skip;
      touch_rows<T>(name, to, w, use_of_stores());
      write_part<T, S>(w, outgoing, source, {to, 0, 0, w.m, w.n}, atomic_type());
      continue;
    }
    FixPart parts[2];
    const int n = fix_parts<T>(name, space, const_cast<const void*>(static_cast<const volatile void*>(dst)),
                               w, skip, parts);
    for (int p = 0; p < n; ++p) write_part<T, S>(w, outgoing, source, parts[p], 0);
  }
}

/// Decode the two words of a call.
constexpr FixWords fix_words(uint64_t sizes, uint64_t how, bool to_ub) {
  FixWords w{bits(sizes, 4, 12),
             bits(sizes, 16, 16),
             bits(sizes, 32, 32),
             bits(how, 0, 16),
             static_cast<int>(bits(how, 34, 5) | bits(how, 29, 1) << 5),
             static_cast<int>(bits(how, 39, 3)),
             bits(how, 30, 2) != 0,
             bits(how, 42, 1) != 0,
             bits(how, 43, 1) != 0,
             bits(how, 62, 1) != 0};
  if (to_ub) {
    w.halves = static_cast<int>(bits(how, 16, 2));
    w.second = bits(how, 18, 1) != 0;
  }
  return w;
}

}  // namespace pto::detail

// --- registers ---------------------------------------------------------------------------------------------

inline void set_loop3_para(uint64_t word) { pto::detail::core().cube.loop3 = word; }
inline void set_channel_para(uint64_t word) { pto::detail::core().cube.channel = word; }
inline void set_relu_alpha(uint64_t word) { pto::detail::core().cube.relu_alpha = word; }
inline void set_fix_clip_relu(uint64_t word) { pto::detail::core().cube.clip = word; }
inline void set_quant_pre(uint64_t word) { pto::detail::core().quant_pre = word; }
inline void set_quant_post(uint64_t) {}
inline void set_fpc(uint64_t word) { pto::detail::core().cube.parameters = word; }

// --- calls -------------------------------------------------------------------------------------------------

// The arguments after the layout are for units that are not modelled here: a second quantisation, sums with
// another matrix, broadcast.
#define PTO_FIX_REST_ uint64_t, uint64_t, bool, bool, uint64_t, bool, bool, bool, bool, bool, bool by_columns
#define PTO_FIX_CALLS_(name, qualifier, space)                                                               \
  template <class T, class S>                                                                                \
  PTO_INST void name(qualifier T* dst, __cc__ S* src, uint64_t sizes, uint64_t how) {                        \
    pto::detail::write_back(#name, pto::TileType::space, dst, src,                                           \
                            pto::detail::fix_words(sizes, how, pto::TileType::space == pto::TileType::Vec)); \
  }                                                                                                          \
  template <class T, class S>                                                                                \
  PTO_INST void name(qualifier T* dst, __cc__ S* src, uint64_t, uint64_t n, uint64_t m, uint64_t to_stride,  \
                     uint64_t from_stride, uint64_t, uint64_t clips, uint64_t, uint64_t quant,               \
                     uint64_t relu, bool splits, bool by_rows, PTO_FIX_REST_) {                              \
    pto::detail::write_back(#name, pto::TileType::space, dst, src,                                           \
                            {n, m, to_stride, from_stride, static_cast<int>(quant), static_cast<int>(relu),  \
                             clips != 0, splits, by_rows, by_columns});                                      \
  }
PTO_FIX_CALLS_(copy_matrix_cc_to_gm, __gm__, Acc)
PTO_FIX_CALLS_(copy_matrix_cc_to_gm_s4, __gm__, Acc)
PTO_FIX_CALLS_(copy_matrix_cc_to_cbuf, __cbuf__, Mat)
PTO_FIX_CALLS_(copy_matrix_cc_to_cbuf_s4, __cbuf__, Mat)
#undef PTO_FIX_CALLS_

// A call to UB selects a vector core, or a split over both.
#define PTO_FIX_CALLS_(name)                                                                                \
  template <class T, class S>                                                                               \
  PTO_INST void name(__ubuf__ T* dst, __cc__ S* src, uint64_t sizes, uint64_t how) {                        \
    pto::detail::write_back(#name, pto::TileType::Vec, dst, src, pto::detail::fix_words(sizes, how, true)); \
  }                                                                                                         \
  template <class T, class S>                                                                               \
  PTO_INST void name(__ubuf__ T* dst, __cc__ S* src, uint64_t, uint64_t n, uint64_t m, uint64_t to_stride,  \
                     uint64_t from_stride, uint64_t halves, bool second, uint64_t clips, uint64_t,          \
                     uint64_t quant, uint64_t relu, bool splits, bool by_rows, PTO_FIX_REST_) {             \
    pto::detail::write_back(#name, pto::TileType::Vec, dst, src,                                            \
                            {n, m, to_stride, from_stride, static_cast<int>(quant), static_cast<int>(relu), \
                             clips != 0, splits, by_rows, by_columns, static_cast<int>(halves), second});   \
  }
PTO_FIX_CALLS_(copy_matrix_cc_to_ub)
PTO_FIX_CALLS_(copy_matrix_cc_to_ub_s4)
#undef PTO_FIX_CALLS_
#undef PTO_FIX_REST_
