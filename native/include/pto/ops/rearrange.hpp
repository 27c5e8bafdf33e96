// Rearrangement inside a core: transposition, concatenation, packing, interleaving.
#pragma once

#include "pto/ops/img2col.hpp"

namespace pto {

namespace detail {

/// Concatenate by a count per row: elements times the size of the index type, whatever the data type is.
template <class Dst, class Src0, class Src1, class Idx0, class Idx1, class Total>
inline void concat_counted(Dst& dst, Src0& src0, Src1& src1, Idx0& idx0, Idx1& idx1, Total total) {
  using Index = typename Idx0::DType;
  constexpr ptrdiff_t size = sizeof(Index);
  const Lines<Idx0> counts0(idx0);
  const Lines<Idx1> counts1(idx1);
  const auto to = place(dst);
  const auto from0 = place(src0);
  const auto from1 = place(src1);
  for (ptrdiff_t r = 0; r < static_cast<ptrdiff_t>(dst.GetValidRow()); ++r) {
    const auto b0 = counts0.get(r, 0);
    const auto b1 = counts1.get(r, 0);
    // Counts beyond a tile and negative counts are undefined: here they are clamped to the tile.
    const auto held = [](ptrdiff_t n, ptrdiff_t most) { return n < 0 ? 0 : lesser(n, most); };
    const ptrdiff_t n0 = held(floored(b0, size), lesser(src0.Cols, dst.Cols));
    const ptrdiff_t n1 = lesser(held(floored(b1, size), src1.Cols), dst.Cols - n0);
    Buffer<typename Dst::DType> line;
    for (ptrdiff_t c = 0; c < n0 + n1; c += kChunk) {
      const ptrdiff_t n = lesser(n0 + n1 - c, kChunk);
      for (ptrdiff_t i = 0; i < n; ++i) {
        const ptrdiff_t at = c + i < n0 ? from0.at(r, c + i) : from1.at(r, c + i - n0);
        line.at[i] =
            element_at<typename Dst::DType>(c + i < n0 ? from0.data : from1.data, static_cast<size_t>(at));
      }
      put_row(to, r, c, n, line.at);
    }
    total(r, kIsa == Isa::cpu ? static_cast<int64_t>(static_cast<Index>(b0 + b1)) : (n0 + n1) * size);
  }
}

struct Region {
  ptrdiff_t rows, cols;
};
template <class TileT>
inline Region valid_region(const TileT& tile) {
  return {static_cast<ptrdiff_t>(tile.GetValidRow()), static_cast<ptrdiff_t>(tile.GetValidCol())};
}

}  // namespace detail

/// Return the bytes of an element; 1 for 4-bit elements, of which two share a byte.
template <class T>
constexpr int GetTypeSize() {
  return static_cast<int>(sizeof(T));
}

// --- transposition ----------------------------------------------------------------------------------------

namespace detail {

template <class Dst, class Src>
inline void transposition(Dst& dst, Src& src) {
  if constexpr (is_conv_tile_v<Src>) {
    change_layout(dst, src);
  } else {
    const ptrdiff_t rows = src.GetValidRow(), cols = src.GetValidCol();
    copy(turned(place(dst)), place(src), rows, cols);
  }
}

}  // namespace detail

// --- concatenation ----------------------------------------------------------------------------------------

namespace detail {

template <class Dst, class Src0, class Src1>
inline void concatenation(Dst& dst, Src0& src0, Src1& src1) {
  const ptrdiff_t rows = dst.GetValidRow(), n0 = src0.GetValidCol(), n1 = src1.GetValidCol();
  copy(place(dst), place(src0), rows, n0);
  copy(place(dst, 0, n0), place(src1), rows, n1);
}

template <class Dst, class Src0, class Src1, class Idx0, class Idx1>
inline void concatenation(Dst& dst, Src0& src0, Src1& src1, Idx0& idx0, Idx1& idx1) {
  concat_counted(dst, src0, src1, idx0, idx1, [](ptrdiff_t, int64_t) {});
}

template <class Dst, class Src0, class Src1, class Idx, class Idx0, class Idx1>
inline void concatenation(Dst& dst, Src0& src0, Src1& src1, Idx& idx, Idx0& idx0, Idx1& idx1) {
  const Lines<Idx> counts(idx);
  concat_counted(dst, src0, src1, idx0, idx1, [&](ptrdiff_t r, int64_t bytes) {
    counts.set(r, 0, static_cast<typename Idx::DType>(bytes));
  });
}

}  // namespace detail

// --- packing and interleaving -----------------------------------------------------------------------------

namespace detail {

/// Copy the low bits of every element; to a wider type, integers are extended by the sign of the source type.
template <class Dst, class Src>
inline void low_bits(Dst& dst, Src& src) {
  using T = typename Dst::DType;
  using S = typename Src::DType;
  const Lines<Dst> to(dst);
  const Lines<Src> from(src);
  const ptrdiff_t rows = dst.GetValidRow(), cols = dst.GetValidCol();
  Buffer<S> in;
  Buffer<T> out;
  Buffer<code_t<S>> whole;
  Buffer<code_t<T>> low;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      // `unsigned`: g++ 12 warns about sizes computed from a signed count. Arrays of plain integers: g++ 12
      // fails on a loop over the elements themselves.
      const auto n = static_cast<unsigned>(lesser(cols - c, kChunk));
      std::memcpy(whole.at, from.template read<S>(r, c, n, in.at), n * sizeof(S));
      using Number = std::conditional_t<!is_float_v<S> && Element<S>::is_signed,
                                        std::make_signed_t<code_t<S>>, code_t<S>>;
      for (unsigned i = 0; i < n; ++i) low.at[i] = static_cast<code_t<T>>(static_cast<Number>(whole.at[i]));
      std::memcpy(static_cast<void*>(out.at), low.at, n * sizeof(T));
      to.template write<T>(r, c, n, out.at);
    }
  }
}

/// Interleave: dst0 and dst1 are the two halves of src0[0], src1[0], src0[1], src1[1], ..
template <class Dst1, class Dst0, class Src1, class Src0>
inline void interleaving(Dst1& dst1, Dst0& dst0, Src1& src1, Src0& src0) {
  const Region region = valid_region(dst0);
  const ptrdiff_t rows = region.rows, cols = region.cols;
  const Lines<Src0> from0(src0);
  const Lines<Src1> from1(src1);
  const auto put = [&](const auto& to, ptrdiff_t first) {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      for (ptrdiff_t i = 0; i < cols; i += 2) {
        to.set(r, i, from0.get(r, (first + i) / 2));
        to.set(r, i + 1, from1.get(r, (first + i) / 2));
      }
    }
  };
  put(Lines<Dst0>(dst0), 0);
  put(Lines<Dst1>(dst1), cols);
}

/// Separate: dst0 gets the even elements of src0 followed by src1, dst1 the odd elements.
template <class Dst1, class Dst0, class Src1, class Src0>
inline void separation(Dst1& dst1, Dst0& dst0, Src1& src1, Src0& src0) {
  const Region region = valid_region(dst0);
  const ptrdiff_t rows = region.rows, cols = region.cols;
  const Lines<Dst0> even(dst0);
  const Lines<Dst1> odd(dst1);
  const auto take = [&](const auto& from, ptrdiff_t first) {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      for (ptrdiff_t i = 0; i < cols; i += 2) {
        even.set(r, (first + i) / 2, from.get(r, i));
        odd.set(r, (first + i) / 2, from.get(r, i + 1));
      }
    }
  };
  take(Lines<Src0>(src0), 0);
  take(Lines<Src1>(src1), cols);
}

/// Separate one source that is twice as wide.
template <class Dst1, class Dst0, class Src>
inline void separation(Dst1& dst1, Dst0& dst0, Src& src) {
  const Region region = valid_region(dst0);
  const ptrdiff_t rows = region.rows, cols = region.cols;
  const Lines<Dst0> even(dst0);
  const Lines<Dst1> odd(dst1);
  const Lines<Src> from(src);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t i = 0; i < cols; ++i) {
      even.set(r, i, from.get(r, 2 * i));
      odd.set(r, i, from.get(r, 2 * i + 1));
    }
  }
}

}  // namespace detail

}  // namespace pto
