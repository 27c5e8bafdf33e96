// Copies between places in any two layouts, bit for bit.
//
// A copy moves the contiguous runs that both sides share. If one side has runs along rows and the other along
// columns, the copy transposes squares in registers.
//
//   copy(place(dst), place(src), rows, cols)           elements of equal size
//   fill(place, row, col, rows, cols, code)            fill_around(tile, rows, cols, code)
//   put_row(place, r, c, n, from), take_row(...)       runs of a row
#pragma once

#include "pto/ops/deferred_copies.hpp"
#include "pto/ops/place.hpp"
#include "pto/ops/transpose.hpp"

namespace pto::detail {

// --- squares in registers ---------------------------------------------------------------------------------

#ifdef __AVX__
inline constexpr int kLineBytes = 32;
#else
inline constexpr int kLineBytes = 16;
#endif
/// Side of a square of elements of `Bytes` bytes; each line of the square is a vector.
template <int Bytes>
inline constexpr int kSquare = kLineBytes / Bytes < 16 ? kLineBytes / Bytes : 16;

/// Copy N lines of N codes, `from_step` elements apart, to columns of `to`, `to_step` apart.
template <class Code>
PTO_INLINE void copy_square(void* to, ptrdiff_t to_step, const void* from, ptrdiff_t from_step) {
  constexpr int n = kSquare<sizeof(Code)>, part = 16 / static_cast<int>(sizeof(Code));
  PTO_UNROLL
  for (int first = 0; first < n; first += part) {
    typename Lane<Code, n>::Vec v[part];
    take_columns<n>(static_cast<const Code*>(from) + first, from_step, v);
    PTO_UNROLL
    for (int i = 0; i < part; ++i)
      std::memcpy(static_cast<Code*>(to) + (first + i) * to_step, &v[i], sizeof v[i]);
  }
}

// --- copies -----------------------------------------------------------------------------------------------

/// Copy n elements; each side has its own step.
template <class Code>
[[gnu::noinline]] void copy_line(void* to, ptrdiff_t to_step, const void* from, ptrdiff_t from_step,
                                 ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; ++i)
    std::memcpy(static_cast<Code*>(to) + i * to_step, static_cast<const Code*>(from) + i * from_step,
                sizeof(Code));
}

/// Copy a matrix that has runs along rows in `from` and along columns in `to`.
template <class Code>
[[gnu::noinline]] void copy_across(void* to, const Axis& to_rows, const Axis& to_cols, const void* from,
                                   const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows,
                                   ptrdiff_t cols) {
  constexpr ptrdiff_t side = kSquare<sizeof(Code)>, band = 16;  // boxes have 16 lines
  const ptrdiff_t to_step = to_cols.step[0], from_step = from_rows.step[0];
  Walk t_row(to_rows), f_row(from_rows);
  for (ptrdiff_t r = 0, high; r < rows; r += high, t_row.go(high), f_row.go(high)) {
    high = lesser(lesser(rows - r, band), lesser(t_row.left, f_row.left));
    const ptrdiff_t tall = high - high % side;
    Code* const to_row = static_cast<Code*>(to) + t_row.at;
    const Code* const from_row = static_cast<const Code*>(from) + f_row.at;
    Walk t(to_cols), f(from_cols);
    for (ptrdiff_t c = 0, wide; c < cols; c += wide, t.go(wide), f.go(wide)) {
      wide = lesser(cols - c, lesser(t.left, f.left));
      Code* out = to_row + t.at;
      const Code* in = from_row + f.at;
      const ptrdiff_t broad = wide - wide % side;
      for (ptrdiff_t j = 0; j < broad; j += side)
        for (ptrdiff_t i = 0; i < tall; i += side)
          copy_square<Code>(out + i + j * to_step, to_step, in + i * from_step + j, from_step);
      if (tall == high && broad == wide) continue;
      for (ptrdiff_t i = 0; i < high; ++i) {
        const ptrdiff_t done = i < tall ? broad : 0;
        copy_line<Code>(out + i + done * to_step, to_step, in + i * from_step + done, 1, wide - done);
      }
    }
  }
}

/// The functions that depend on the element size; all sizes share the loops over memory.
struct Copier {
  ptrdiff_t size;
  void (*across)(void* to, const Axis& to_rows, const Axis& to_cols, const void* from, const Axis& from_rows,
                 const Axis& from_cols, ptrdiff_t rows, ptrdiff_t cols);
  void (*line)(void* to, ptrdiff_t to_step, const void* from, ptrdiff_t from_step, ptrdiff_t n);
};
template <class Code>
inline constexpr Copier kCopier{sizeof(Code), copy_across<Code>, copy_line<Code>};

PTO_COMMON void copy_matrix(const Copier& copier, void* to_data, const Axis& to_rows, const Axis& to_cols,
                            const void* from_data, const Axis& from_rows, const Axis& from_cols,
                            ptrdiff_t rows, ptrdiff_t cols);

/// Copy elements of 4 bits.
PTO_COMMON void copy_nibbles(void* to, const Axis& to_rows, const Axis& to_cols, const void* from,
                             const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows, ptrdiff_t cols);

/// Copy the first rows x cols elements. The places must not overlap, unless they are the same.
template <class T, class S>
inline void copy(const Place<T>& to, const Place<S>& from, ptrdiff_t rows, ptrdiff_t cols) {
  static_assert(bits_of<T> == bits_of<S>);
  if (rows <= 0 || cols <= 0) return;
  if constexpr (bits_of<T> == 4) {
    copy_nibbles(to.data, to.rows, to.cols, from.data, from.rows, from.cols, rows, cols);
  } else {
    copy_matrix(kCopier<code_t<T>>, to.data, to.rows, to.cols, from.data, from.rows, from.cols, rows, cols);
  }
}

/// Fill rows x cols elements from (row, col) on with a bit pattern.
template <class T>
[[gnu::noinline]] void fill_codes(T* data, const Axis& to_rows, const Axis& to_cols, ptrdiff_t row,
                                  ptrdiff_t col, ptrdiff_t rows, ptrdiff_t cols, T value) {
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const ptrdiff_t to_row = to_rows.at(row + r);
    Walk t(to_cols, col);
    for (ptrdiff_t c = 0, n; c < cols; c += n, t.go(n)) {
      n = lesser(cols - c, t.left);
      if (bits_of<T> != 4 && to_cols.side_by_side()) {
        T* at = data + to_row + t.at;
        for (ptrdiff_t i = 0; i < n; ++i) at[i] = value;
      } else {
        for (ptrdiff_t i = 0; i < n; ++i)
          put_element(data, static_cast<size_t>(to_row + t.at + i * to_cols.step[0]), value);
      }
    }
  }
}
template <class T>
inline void fill(const Place<T>& to, ptrdiff_t row, ptrdiff_t col, ptrdiff_t rows, ptrdiff_t cols,
                 code_t<T> code) {
  using Code = std::conditional_t<bits_of<T> == 4, int4b_t, code_t<T>>;
#ifdef PTO_CPU_OPEN
  if (DeferredCopies* deferred = deferred_copies();
      deferred != nullptr && bits_of<T> >= 8 && rows > 0 && cols > 0)
    make_way(*deferred, {reinterpret_cast<char*>(to.data), to.rows, to.cols}, bits_of<T> / 8, row + rows,
             col + cols);
#endif
  const auto value = __builtin_bit_cast(Code, code);
  auto* data = reinterpret_cast<Code*>(to.data);
  if (to.rows.side_by_side()) return fill_codes(data, to.cols, to.rows, col, row, cols, rows, value);
  fill_codes(data, to.rows, to.cols, row, col, rows, cols, value);
}

/// Rows and columns of the tile itself; lines of a window are as far apart as those of the tile around it.
template <class TileT>
inline ptrdiff_t own_rows(const TileT& tile) {
  if constexpr (!TileT::isRowMajor) return tile.Line != 0 ? tile.Line : tile.Rows;
  return tile.Rows;
}
template <class TileT>
inline ptrdiff_t own_cols(const TileT& tile) {
  if constexpr (TileT::isRowMajor) return tile.Line != 0 ? tile.Line : tile.Cols;
  return tile.Cols;
}

/// Fill a whole tile except its first rows x cols elements.
template <class TileT>
inline void fill_around(const TileT& tile, ptrdiff_t rows, ptrdiff_t cols,
                        code_t<typename TileT::DType> code) {
  // The column blocks of a compact tile have only the valid rows, rounded up to 16.
  const ptrdiff_t whole = own_rows(tile), width = own_cols(tile);
  const ptrdiff_t height = TileT::Compact == CompactMode::Null
                               ? whole
                               : lesser(whole, (static_cast<ptrdiff_t>(tile.GetValidRow()) + 15) / 16 * 16);
  const auto to = place(tile);
  if (rows > 0 && cols < width) fill(to, 0, cols, rows, width - cols, code);
  if (rows < height) fill(to, rows, 0, height - rows, width, code);
}

/// Fill the rest of the 32-byte blocks that hold the first rows x cols elements: a transfer pads no more.
template <class TileT>
inline void fill_blocks(const TileT& tile, ptrdiff_t rows, ptrdiff_t cols,
                        code_t<typename TileT::DType> code) {
  constexpr bool boxed = TileT::form != Form::ND && TileT::form != Form::DN;
  constexpr bool by_row = TileT::form == Form::ND || TileT::form == Form::NZ || TileT::form == Form::ZZ;
  constexpr ptrdiff_t size = !boxed   ? 256 / bits_of<typename TileT::DType>
                             : by_row ? TileT::InnerCols
                                      : TileT::InnerRows;
  const auto to = place(tile);
  if (rows <= 0 || cols <= 0) return;
  if constexpr (by_row) {
    const ptrdiff_t end = lesser((cols + size - 1) / size * size, own_cols(tile));
    if (end > cols) fill(to, 0, cols, rows, end - cols, code);
  } else {
    const ptrdiff_t end = lesser((rows + size - 1) / size * size, own_rows(tile));
    if (end > rows) fill(to, rows, 0, end - rows, cols, code);
  }
}

// --- lines of a place -------------------------------------------------------------------------------------

/// Put n elements into a row.
template <class T>
[[gnu::noinline]] void put_row(const Place<T>& to, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, const T* from) {
  T* const data = to.data;
  const ptrdiff_t row = to.rows.at(r);
  Walk t(to.cols, c);
  for (ptrdiff_t done = 0, k; done < n; done += k, t.go(k)) {
    k = lesser(n - done, t.left);
    if (bits_of<T> != 4 && to.cols.side_by_side()) {
      std::memcpy(data + row + t.at, from + done, static_cast<size_t>(k) * sizeof(T));
    } else {
      for (ptrdiff_t i = 0; i < k; ++i)
        put_element(data, static_cast<size_t>(row + t.at + i * to.cols.step[0]), from[done + i]);
    }
  }
}

/// Take n elements of a row.
template <class T>
[[gnu::noinline]] void take_row(const Place<T>& from, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, T* to) {
  const T* const data = from.data;
  const ptrdiff_t row = from.rows.at(r);
  Walk f(from.cols, c);
  for (ptrdiff_t done = 0, k; done < n; done += k, f.go(k)) {
    k = lesser(n - done, f.left);
    if (bits_of<T> != 4 && from.cols.side_by_side()) {
      std::memcpy(to + done, data + row + f.at, static_cast<size_t>(k) * sizeof(T));
    } else {
      for (ptrdiff_t i = 0; i < k; ++i)
        to[done + i] = element_at(data, static_cast<size_t>(row + f.at + i * from.cols.step[0]));
    }
  }
}

#ifdef PTO_BODY
/// Copy `rows` pieces of equal size; each side has a constant step. 32 or 64 bytes take few instructions.
template <size_t Bytes>
PTO_INLINE void copy_pieces(char* to, ptrdiff_t to_step, const char* from, ptrdiff_t from_step,
                            ptrdiff_t rows) {
  for (ptrdiff_t r = 0; r < rows; ++r) std::memcpy(to + r * to_step, from + r * from_step, Bytes);
}
inline void copy_pieces(char* to, ptrdiff_t to_step, const char* from, ptrdiff_t from_step, ptrdiff_t rows,
                        size_t bytes) {
  const ptrdiff_t length = static_cast<ptrdiff_t>(bytes);
  if (to_step == length && from_step == length) {
    std::memcpy(to, from, bytes * static_cast<size_t>(rows));
  } else if (bytes == 32) {
    copy_pieces<32>(to, to_step, from, from_step, rows);
  } else if (bytes == 64) {
    copy_pieces<64>(to, to_step, from, from_step, rows);
  } else {
    for (ptrdiff_t r = 0; r < rows; ++r) std::memcpy(to + r * to_step, from + r * from_step, bytes);
  }
}

/// Copy if both sides have runs along rows. Axes count elements of `size` bytes.
PTO_BODY void copy_rows(ptrdiff_t size, char* to, const Axis& to_rows, const Axis& to_cols, const char* from,
                        const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows, ptrdiff_t cols) {
  const ptrdiff_t to_step = to_rows.step[0] * size, from_step = from_rows.step[0] * size;
  // Copy a band of rows at a time: all blocks of a long memory line are copied while it is in the cache.
  const bool whole = cols <= to_cols.left(0) && cols <= from_cols.left(0);
  const ptrdiff_t band = whole ? rows : 16;
  for (ptrdiff_t r = 0, high; r < rows; r += high) {
    high = lesser(lesser(rows - r, band), lesser(to_rows.left(r), from_rows.left(r)));
    char* const to_row = to + to_rows.at(r) * size;
    const char* const from_row = from + from_rows.at(r) * size;
    Walk t(to_cols), f(from_cols);
    for (ptrdiff_t c = 0, n; c < cols; c += n, t.go(n), f.go(n)) {
      n = lesser(cols - c, lesser(t.left, f.left));
      copy_pieces(to_row + t.at * size, to_step, from_row + f.at * size, from_step, high,
                  static_cast<size_t>(n * size));
    }
  }
}

PTO_BODY ptrdiff_t size_of(const Copier& copier) { return copier.size; }

PTO_BODY void copy_matrix(const Copier& copier, void* to_data, const Axis& to_rows, const Axis& to_cols,
                          const void* from_data, const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows,
                          ptrdiff_t cols) {
#ifdef PTO_CPU_OPEN
  if (DeferredCopies* deferred = deferred_copies(); deferred != nullptr) {
    const AnyPlace to{static_cast<char*>(to_data), to_rows, to_cols};
    const AnyPlace from{static_cast<char*>(const_cast<void*>(from_data)), from_rows, from_cols};
    if (defer_copy(*deferred, copier, to, from, rows, cols)) return;
  }
#endif
  copy_now(copier, to_data, to_rows, to_cols, from_data, from_rows, from_cols, rows, cols);
}

PTO_BODY void copy_now(const Copier& copier, void* to_data, const Axis& to_rows, const Axis& to_cols,
                       const void* from_data, const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows,
                       ptrdiff_t cols) {
  const ptrdiff_t size = copier.size;
  char* const to = static_cast<char*>(to_data);
  const char* const from = static_cast<const char*>(from_data);
  if (to_cols.side_by_side() && from_cols.side_by_side()) {
    copy_rows(size, to, to_rows, to_cols, from, from_rows, from_cols, rows, cols);
  } else if (to_rows.side_by_side() && from_rows.side_by_side()) {
    copy_rows(size, to, to_cols, to_rows, from, from_cols, from_rows, cols, rows);
  } else if (to_rows.side_by_side() && from_cols.side_by_side()) {
    copier.across(to, to_rows, to_cols, from, from_rows, from_cols, rows, cols);
  } else if (to_cols.side_by_side() && from_rows.side_by_side()) {
    copier.across(to, to_cols, to_rows, from, from_cols, from_rows, cols, rows);
  } else {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      Walk t(to_cols), f(from_cols);
      char* const to_row = to + to_rows.at(r) * size;
      const char* const from_row = from + from_rows.at(r) * size;
      for (ptrdiff_t c = 0, n; c < cols; c += n, t.go(n), f.go(n)) {
        n = lesser(cols - c, lesser(t.left, f.left));
        copier.line(to_row + t.at * size, to_cols.step[0], from_row + f.at * size, from_cols.step[0], n);
      }
    }
  }
}

PTO_BODY void copy_nibbles(void* to, const Axis& to_rows, const Axis& to_cols, const void* from,
                           const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows, ptrdiff_t cols) {
  for (ptrdiff_t r = 0; r < rows; ++r) {
    Walk t(to_cols), f(from_cols);
    const ptrdiff_t to_row = to_rows.at(r), from_row = from_rows.at(r);
    for (ptrdiff_t c = 0; c < cols; ++c, t.go(1), f.go(1)) {
      const auto found = element_at(static_cast<const int4b_t*>(from), static_cast<size_t>(from_row + f.at));
      put_element(static_cast<int4b_t*>(to), static_cast<size_t>(to_row + t.at), found);
    }
  }
}
#endif

}  // namespace pto::detail
