// The fix-pipe: operations on a number on its way out of the accumulator.
//
// The unit may apply ReLU, convert, or quantise by a 64-bit word: one for all columns or one per column.
//
//   bits 31..0   scale, an f32; a word per column has only its sign, exponent and upper 10 mantissa bits
//   bits 35..32  shift - 1, for i32 to i16
//   bits 45..37  offset, unsigned, for 8-bit results
//   bit  46      8-bit results are signed
//
// A word has no effect if the unit cannot quantise between the two types, for example from i32 to i32.
//
//   deliver<Relu>(to, src, row, col, rows, cols, words)       a window of a tile to a place, with NoWords,
//                                                             OneWord or ColumnWords
//   cast_to<T>(value)                                         the element that a store makes of a number
#pragma once

#include "pto/core/events.hpp"
#include "pto/ops/copy.hpp"
#include "pto/ops/legality.hpp"

namespace pto::detail {

// --- one number -------------------------------------------------------------------------------------------

/// Convert a number to an element: floats round to nearest even (hif8: ties away from zero), a float to an
/// integer type truncates like a cast on x86-64, integers wrap.
template <class T, class C>
constexpr T cast_to(C x) {
  if constexpr (std::is_same_v<T, C>) {
    return x;
  } else if constexpr (dtype_of<T> == DType::hif8) {
    const double exact = static_cast<double>(x);
    return T::FromRaw(baseline::encode_hif8(exact, baseline::Bias<uint64_t>(Round::round), Mode{}));
  } else if constexpr (is_small_float<T> && std::is_same_v<C, float>) {
    return T::FromRaw(static_cast<typename T::Code>(encode_code<dtype_of<T>>(x)));
  } else if constexpr (is_float_v<T>) {
    return T(x);
  } else if constexpr (is_float_v<C>) {
    const double whole = __builtin_trunc(static_cast<double>(x));
    return element_of<T>(static_cast<compute_t<T>>(
        baseline::whole_to_int<bits_of<T> == 4 ? 8 : bits_of<T>, Element<T>::is_signed>(whole, Mode{})));
  } else {
    return element_of<T>(static_cast<compute_t<T>>(x));
  }
}

template <class T>
constexpr float max_finite() {
  if constexpr (std::is_same_v<T, float>) return 0x1.fffffep127f;
  if constexpr (dtype_of<T> == DType::hif8) return 32768.0f;
  if constexpr (dtype_of<T> == DType::f8e8m0) return 0x1p127f;
  if constexpr (is_small_float<T> && dtype_of<T> != DType::hif8 && dtype_of<T> != DType::f8e8m0)
    return decode_code<dtype_of<T>>(kFields<dtype_of<T>>.max_code);
  return 0;
}

/// Return true if a word changes numbers of type S on their way to elements of type T.
template <class S, class T>
inline constexpr bool kQuantises =
    (std::is_same_v<S, float> &&
     (is_float_v<T> || std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>)) ||
    (std::is_same_v<S, int32_t> && (is_float_v<T> || std::is_same_v<T, int8_t> ||
                                    std::is_same_v<T, uint8_t> || std::is_same_v<T, int16_t>));

/// Return true if a mode (QuantMode_t) has words, or one per column; pairs of modes from 2 on differ in that.
constexpr bool quantises(int mode) { return mode > 1 && mode != 16; }
constexpr bool quantises_by_column(int mode) { return quantises(mode) && (mode < 16) == (mode % 2 == 0); }

// --- words ------------------------------------------------------------------------------------------------

/// Return true if infinities saturate and NaN becomes 0 in conversions to f16 and bf16. This is bit 48 of the
/// control register; programs for the CPU may also set it in the cookie of a task.
inline bool saturates() {
  const Core& me = core();
  return (me.ctrl | (kIsa == Isa::cpu ? me.task_cookie : 0)) >> 48 & 1;
}

inline constexpr uint64_t kSignedWord = uint64_t{1} << 46;

/// Return the scale of a word. In a word per column, every nonzero code has an implicit leading one: there
/// are no denormals, and only overflow makes an infinity.
constexpr float scale_of(uint64_t word, bool per_column) {
  const uint32_t low = static_cast<uint32_t>(word);
  if (!per_column) return __builtin_bit_cast(float, low);
  const uint64_t exponent = low >> 23 & 0xFF, mantissa = low >> 13 & 0x3FF;
  const uint64_t size = (exponent | mantissa) == 0 ? 0 : (exponent + 1023 - 127) << 52 | mantissa << 42;
  const bool negative = low >> 31 && size != 0;
  return static_cast<float>(__builtin_bit_cast(double, size | static_cast<uint64_t>(negative) << 63));
}

struct NoWords {
  static constexpr bool any = false;
};
struct OneWord {
  static constexpr bool any = true, per_column = false;
  uint64_t word;
  uint64_t at(ptrdiff_t) const { return word; }
};
/// The words of a tile from column `first` on; beyond its columns they are 0.
template <class Fp>
struct ColumnWords {
  static constexpr bool any = true, per_column = true;
  const Fp& tile;
  ptrdiff_t first = 0;
  uint64_t at(ptrdiff_t c) const {
    if (first + c >= tile.Cols) return 0;
    return __builtin_bit_cast(code_t<typename Fp::DType>, Lines<Fp, Along::row>(tile).get(0, first + c));
  }
};

// --- quantisation -----------------------------------------------------------------------------------------

/// The fields of a chunk of words.
struct Quantiser {
  alignas(64) float scale[kChunk], offset[kChunk], low[kChunk], high[kChunk];
  alignas(64) int32_t shift[kChunk];

  template <class Words>
  void take(const Words& words, ptrdiff_t first, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
      const uint64_t word = words.at(first + i);
      scale[i] = scale_of(word, Words::per_column);
      offset[i] = static_cast<float>(word >> 37 & 0x1FF);
      low[i] = word & kSignedWord ? -128.0f : 0.0f;
      high[i] = word & kSignedWord ? 127.0f : 255.0f;
      shift[i] = static_cast<int32_t>(word >> 32 & 15) + 1;
    }
  }

  /// Quantise n numbers of a row, ReLU last. If `Fixed`, word `only` applies to all of them.
  template <bool Relu, bool Fixed, class S, class T>
  void apply(const S* x, T* out, ptrdiff_t n, ptrdiff_t only) const {
    [[maybe_unused]] const bool saturate = saturates();
    for (ptrdiff_t i = 0; i < n; ++i) {
      const ptrdiff_t w = Fixed ? only : i;
      if constexpr (std::is_same_v<T, int16_t>) {
        const int16_t y = static_cast<int16_t>(x[i] >> shift[w]);
        out[i] = Relu && y < 0 ? int16_t{0} : y;
      } else {
        const float y = static_cast<float>(x[i]) * scale[w];
        if constexpr (!is_float_v<T>) {
          // The sign bit of the word sets the range; an element of the other signedness keeps the low 8 bits.
          float whole = __builtin_rintf(y + offset[w]);
          whole = whole < low[w] ? low[w] : whole > high[w] ? high[w] : whole;
          whole = whole == whole ? whole : 0.0f;
          if (Relu) whole = whole > 0 ? whole : 0.0f;
          out[i] = static_cast<T>(static_cast<int32_t>(whole));
        } else {
          float z = y;
          if constexpr (!std::is_same_v<T, float>) {
            constexpr float limit = max_finite<T>();
            const float held = y < -limit ? -limit : y > limit ? limit : y;
            const bool infinite = __builtin_fabsf(y) > 0x1.fffffep127f;
            constexpr bool sixteen = dtype_of<T> == DType::f16 || dtype_of<T> == DType::bf16;
            z = infinite ? y : held;
            if constexpr (std::is_same_v<S, int32_t> && dtype_of<T> == DType::f16) z = held;
            if constexpr (sixteen) z = saturate ? (y == y ? held : 0.0f) : z;
          }
          if (Relu) z = z > 0 ? z : 0.0f;
          out[i] = cast_to<T>(z);
        }
      }
    }
  }
};

// --- delivery ---------------------------------------------------------------------------------------------

template <class T, class C>
constexpr T rectified_cast(C x) {
  return cast_to<T>(x > 0 ? x : C{0});  // NaN gives 0
}

/// Convert n numbers to elements, without words.
template <bool Relu, class S, class T>
inline void cast_line(const S* x, T* out, ptrdiff_t n) {
  if constexpr (!Relu && std::is_same_v<S, float> && is_small_float<T> && dtype_of<T> != DType::hif8) {
    narrow(x, out, n);
  } else {
    loop(n, [=](ptrdiff_t i) { out[i] = Relu ? rectified_cast<T>(x[i]) : cast_to<T>(x[i]); });
  }
}

/// Deliver the window of `src` at (row, col) to `to`. With words per row (`ByRow`), word r is for row r.
template <bool Relu, bool ByRow = false, class To, class Src, class Words>
inline void deliver(const To& to, const Src& src, ptrdiff_t row, ptrdiff_t col, ptrdiff_t rows,
                    ptrdiff_t cols, const Words& words) {
  using T = typename To::T;
  using S = compute_t<typename Src::DType>;
  constexpr bool quantise = Words::any && kQuantises<typename Src::DType, T>;
  if constexpr (!quantise && !Relu && std::is_same_v<T, typename Src::DType>) {
    copy(to, place(src, row, col), rows, cols);
  } else {
    check_window(src, row, col);
    const Lines<Src, Along::row> from(src);
    Buffer<S> in;
    Buffer<T> out;
    [[maybe_unused]] Quantiser quantiser;
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = lesser(cols - c, kChunk);
      if constexpr (quantise && !ByRow) quantiser.take(words, c, n);
      for (ptrdiff_t r = 0; r < rows; ++r) {
        const S* x = from.template read<S>(row + r, col + c, n, in.at);
        if constexpr (quantise && ByRow) {
          quantiser.take(words, r, 1);
          quantiser.apply<Relu, true>(x, out.at, n, 0);
        } else if constexpr (quantise) {
          quantiser.apply<Relu, false>(x, out.at, n, 0);
        } else {
          cast_line<Relu>(x, out.at, n);
        }
        put_row(to, r, c, n, out.at);
      }
    }
  }
}

}  // namespace pto::detail

namespace pto {

// --- quantisation registers of a FIFO ---------------------------------------------------------------------

/// Set the word for a plain scale; for i8 results the word also has the sign bit.
template <class OutType, class... Events>
PTO_INST RecordEvent SET_QUANT_SCALAR(float scale, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("set_quant_scalar preQuantScalar: out_type", PTO_SAYS(detail::dtype_of<OutType>), scale);
  const uint64_t word = __builtin_bit_cast(uint32_t, scale);
  detail::core().quant_pre = std::is_same_v<OutType, int8_t> ? word | detail::kSignedWord : word;
  return {};
}

namespace detail {

template <class Fp>
inline void quantisation_vector(Fp& fp) {
  core().fpc = detail::as_const(fp).data();
}

}  // namespace detail

}  // namespace pto
