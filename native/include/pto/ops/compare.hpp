// Packed predicates: comparisons write one bit per element, selections read them.
//
// Element (r, c) is bit c % B (least significant first) of word c / B of row r, where B is the number of bits
// of a word. In memory it is bit c % 8 of byte c / 8 of the row for every word size. On the cpu profile TCMPS
// writes and TSEL reads a stream of bytes instead, one byte in each element (`stream_on` of their rows).
#pragma once

#include "pto/ops/meanings.hpp"

namespace pto {

namespace detail {

/// A comparison: which of less, equal and greater count as true, and whether the result is inverted.
struct Comparison {
  bool less, equal, greater, inverted;

  template <class T>
  static Comparison of(CmpMode mode) {
    if (kIsa == Isa::a2a3 && std::is_same_v<T, int32_t>) mode = CmpMode::EQ;  // i32: equality only
    switch (mode) {
      case CmpMode::NE: return {false, true, false, true};
      case CmpMode::LT: return {true, false, false, false};
      case CmpMode::LE: return {true, true, false, false};
      case CmpMode::GT: return {false, false, true, false};
      case CmpMode::GE: return {false, true, true, false};
      default: return {false, true, false, false};
    }
  }
  template <class C>
  PTO_INLINE uint8_t operator()(C x, C y) const {
    const bool found = ((x < y) & less) | ((x == y) & equal) | ((x > y) & greater);
    return static_cast<uint8_t>(found ^ inverted);
  }
};

/// Pack n truth values into bits; fill the last byte with zeros.
inline void pack_bits(const uint8_t* truth, uint8_t* bytes, ptrdiff_t n) {
  for (; n >= 8; n -= 8, truth += 8) {
    uint64_t eight;
    std::memcpy(&eight, truth, 8);
    *bytes++ = static_cast<uint8_t>(eight * 0x0102040810204080 >> 56);
  }
  if (n > 0) {
    uint8_t last = 0;
    for (int k = 0; k < n; ++k) last |= static_cast<uint8_t>(truth[k] << k);
    *bytes = last;
  }
}

/// Unpack n bits into truth values; up to seven elements after them are overwritten.
inline void unpack_bits(const uint8_t* bytes, uint8_t* truth, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i += 8) {
    const uint64_t one_each = uint64_t{*bytes++} * 0x0101010101010101 & 0x8040201008040201;
    const uint64_t eight = (one_each + 0x7F7F7F7F7F7F7F7F) >> 7 & 0x0101010101010101;
    std::memcpy(truth + i, &eight, 8);
  }
}

/// Write the results of `test(x, ...)` for the valid region of src, and zeros to the rest of these rows of
/// dst. Each chunk is read before its bits are written, so dst may begin where src does.
template <class Dst, class Src, class Test, class... Other>
inline void compare(Dst& dst, const Src& src, Test test, const Other&... other) {
  using W = typename Dst::DType;
  using C = compute_t<typename Src::DType>;
  constexpr ptrdiff_t per_word = sizeof(W) * 8, chunk_words = kChunk / per_word;
  constexpr W zeros[chunk_words] = {};
  const ptrdiff_t rows = src.GetValidRow(), words = dst.GetValidCol();
  ptrdiff_t cols = src.GetValidCol();
  if (kIsa == Isa::cpu && cols > words * per_word) cols = words * per_word;  // hardware does not check
  const Lines<Dst> to(dst);
  for (ptrdiff_t r = 0; r < rows && r < dst.Rows; ++r) {
    ptrdiff_t done = 0;  // words of this row
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<uint8_t> truth;
      map_run(n, test, truth.at, Lines<Src>(src).template read<C>(r, c, n, Buffer<C>().at),
              Lines<Other>(other).template read<C>(r, c, n, Buffer<C>().at)...);
      W packed[chunk_words] = {};
      pack_bits(truth.at, reinterpret_cast<uint8_t*>(packed), n);
      to.write(r, done, (n + per_word - 1) / per_word, packed);
      done += (n + per_word - 1) / per_word;
    }
    for (ptrdiff_t n; done < words; done += n) {
      n = words - done < chunk_words ? words - done : chunk_words;
      to.write(r, done, n, zeros);
    }
  }
}

/// Write the same results as a stream of bytes, row by row through the valid region of dst. Each row of src
/// makes src.Cols / 8 bytes. All reads come before the first write: the stream may overtake src.
template <class Dst, class Src, class Test>
inline void compare_stream(Dst& dst, const Src& src, Test test) {
  using W = typename Dst::DType;
  using C = compute_t<typename Src::DType>;
  const ptrdiff_t row_bytes = src.Cols / 8;
  const Scratch<uint8_t> bytes(src.Rows * row_bytes + 1);
  std::memset(bytes.at, 0, static_cast<size_t>(src.Rows * row_bytes));
  const ptrdiff_t rows = src.GetValidRow();
  const ptrdiff_t cols = src.GetValidCol() < row_bytes * 8 ? src.GetValidCol() : row_bytes * 8;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<uint8_t> truth;
      map_run(n, test, truth.at, Lines<Src>(src).template read<C>(r, c, n, Buffer<C>().at));
      pack_bits(truth.at, bytes.at + r * row_bytes + c / 8, n);
    }
  }
  const ptrdiff_t to_rows = dst.GetValidRow(), to_cols = dst.GetValidCol();
  const Lines<Dst> to(dst);
  for (ptrdiff_t at = 0; at < to_rows * to_cols; ++at) {
    to.set(at / to_cols, at % to_cols, static_cast<W>(at < src.Rows * row_bytes ? bytes.at[at] : 0));
  }
}

/// Return the bytes of row r of a packed mask from element `first` on, in place or in `buffer`.
template <class Mask>
inline const uint8_t* mask_row(const Lines<Mask>& mask, ptrdiff_t r, ptrdiff_t first, ptrdiff_t n,
                               typename Mask::DType* buffer) {
  using W = typename Mask::DType;
  constexpr ptrdiff_t per_word = sizeof(W) * 8;
  return reinterpret_cast<const uint8_t*>(
      mask.template read<W>(r, first / per_word, (n + per_word - 1) / per_word, buffer));
}

/// Unpack n truth values, from element `first` on, of a stream of bytes in the valid region of a mask.
template <class Mask>
inline void unpack_stream(const Lines<Mask>& mask, ptrdiff_t width, ptrdiff_t first, ptrdiff_t n,
                          uint8_t* truth) {
  for (ptrdiff_t k = 0; k < n; ++k) {
    const ptrdiff_t byte = (first + k) / 8;
    truth[k] = static_cast<uint64_t>(mask.get(byte / width, byte % width)) >> (first + k) % 8 & 1;
  }
}

/// Set dst = where(bit, src, other), bit for bit; `other` returns a part of a row of the second operand.
template <class Dst, class Mask, class Src, class Other>
inline void select(Dst& dst, const Mask& mask, const Src& src, Other other, bool stream = false) {
  using T = typename Dst::DType;
  const ptrdiff_t rows = dst.GetValidRow(), cols = dst.GetValidCol();
  const Lines<Mask> bits(mask);
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<T> first, second, result;
      Buffer<uint8_t> chosen;
      if (stream && (sizeof(typename Mask::DType) > 1 || mask.GetValidCol() * 8 != cols)) {
        unpack_stream(bits, mask.GetValidCol(), r * cols + c, n, chosen.at);
      } else {
        Buffer<typename Mask::DType> words;
        unpack_bits(mask_row(bits, r, c, n, words.at), chosen.at, n);
      }
      const T* x = in.template read<T>(r, c, n, first.at);
      const T* y = other(r, c, n, second.at);
      T* to = out.template spot<T>(r, c, result.at);
      map_run(
          n,
          [](T a, T b, uint8_t bit) {
            const auto all = static_cast<code_t<T>>(0 - static_cast<code_t<T>>(bit));
            const auto one = __builtin_bit_cast(code_t<T>, a), two = __builtin_bit_cast(code_t<T>, b);
            return __builtin_bit_cast(T, static_cast<code_t<T>>((one & all) | (two & ~all)));
          },
          to, x, y, static_cast<const uint8_t*>(chosen.at));
      out.write(r, c, n, static_cast<const T*>(to));
    }
  }
}

/// Compare two tiles element by element into a packed predicate tile.
template <class Dst, class Src0, class Src1>
inline void tcmp(Dst& dst, Src0& src0, Src1& src1, CmpMode cmpMode) {
  compare(dst, src0, Comparison::of<typename Src0::DType>(cmpMode), src1);
}

/// Compare every element with a scalar into a packed predicate tile.
template <class Dst, class Src>
inline void tcmps(Dst& dst, Src& src, typename Src::DType scalar, CmpMode cmpMode) {
  using C = compute_t<typename Src::DType>;
  const auto mode = Comparison::of<typename Src::DType>(cmpMode);
  const C s = value_of<C>(scalar);
  const auto test = [mode, s](C x) { return mode(x, s); };
  PTO_IF_TARGET(kIsa == Isa::cpu) { compare_stream(dst, src, test); }
  else {
    compare(dst, src, test);
  }
}
/// Compare every element with the first element of a tile.
template <class Dst, class Src, class Scalar>
  requires(is_tile_data_v<Scalar>)
inline void tcmps(Dst& dst, Src& src, Scalar& scalar, CmpMode cmpMode) {
  tcmps(dst, src, Lines<Scalar>(scalar).get(0, 0), cmpMode);
}

/// Select elements of two tiles by a packed predicate.
template <class Dst, class Mask, class Src0, class Src1>
inline void tsel(Dst& dst, Mask& selMask, Src0& src0, Src1& src1) {
  using T = typename Dst::DType;
  const Lines<Src1> second(src1);
  const auto other = [&](ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, T* buffer) {
    return second.template read<T>(r, c, n, buffer);
  };
  select(dst, selMask, src0, other, kIsa == Isa::cpu);
}

/// Select tile elements or a scalar by a packed predicate.
template <class Dst, class Mask, class Src>
inline void tsels(Dst& dst, Mask& mask, Src& src, typename Src::DType scalar) {
  using T = typename Dst::DType;
  select(dst, mask, src, [scalar](ptrdiff_t, ptrdiff_t, ptrdiff_t n, T* buffer) {
    for (ptrdiff_t i = 0; i < n; ++i) buffer[i] = scalar;
    return static_cast<const T*>(buffer);
  });
}

}  // namespace detail

}  // namespace pto
