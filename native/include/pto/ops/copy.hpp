// Copies between places in any two layouts, bit for bit.
//
// A copy moves the runs that both sides have; if one has them along rows and the other along columns, it
// transposes squares in registers.
//
//   copy(place(dst), place(src), rows, cols)           elements of one size
//   fill(place, row, col, rows, cols, code)            fill_around(tile, rows, cols, code)
//   put_row(place, r, c, n, from), take_row(...)       runs of a row
#pragma once

#include "pto/ops/place.hpp"
#include "pto/ops/transpose.hpp"

namespace pto::detail {

// --- squares in registers ---------------------------------------------------------------------------------

#ifdef __AVX__
inline constexpr int kLineBytes = 32;
#else
inline constexpr int kLineBytes = 16;
#endif
/// Side of a square of elements of some bytes each: its lines are vectors.
template <int Bytes>
inline constexpr int kSquare = kLineBytes / Bytes < 16 ? kLineBytes / Bytes : 16;

template <class Code, int N>
struct Lane {
  typedef Code Vec __attribute__((vector_size(N * sizeof(Code))));
};

/// N lines of N codes, `from_step` elements apart, to columns of `to`, `to_step` apart.
template <class Code>
[[gnu::noinline]] void copy_square(void* to, ptrdiff_t to_step, const void* from, ptrdiff_t from_step) {
  constexpr int n = kSquare<sizeof(Code)>;
  using Vec = typename Lane<Code, n>::Vec;
  Vec v[n];
  PTO_UNROLL
  for (int i = 0; i < n; ++i) std::memcpy(&v[i], static_cast<const Code*>(from) + i * from_step, sizeof(Vec));
  transpose<n>(v);
  PTO_UNROLL
  for (int i = 0; i < n; ++i) std::memcpy(static_cast<Code*>(to) + i * to_step, &v[i], sizeof(Vec));
}

// --- copies -----------------------------------------------------------------------------------------------

/// `rows` pieces of some bytes, each side at equal steps. Blocks of 32 and 64 bytes are a few instructions.
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

/// Both sides have runs along rows.
template <class To, class From>
inline void copy_rows(const To& to, const From& from, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr ptrdiff_t size = sizeof(typename To::T);
  const ptrdiff_t to_step = to.row_step(rows) * size, from_step = from.row_step(rows) * size;
  // A band of rows at a time, so that a long line of memory serves all its blocks while it is in the cache.
  constexpr ptrdiff_t band = 16;
  for (ptrdiff_t r = 0, high; r < rows; r += high) {
    high = from.row_run(0, cols) == cols && to.row_run(0, cols) == cols ? rows : lesser(band, rows - r);
    for (ptrdiff_t c = 0, n; c < cols; c += n) {
      n = lesser(to.row_run(c, cols - c), from.row_run(c, cols - c));
      const size_t bytes = static_cast<size_t>(n * size);
      if (to_step != 0 && from_step != 0) {
        copy_pieces(reinterpret_cast<char*>(to.data + to.at(r, c)), to_step,
                    reinterpret_cast<const char*>(from.data + from.at(r, c)), from_step, high, bytes);
      } else {
        for (ptrdiff_t i = r; i < r + high; ++i)
          std::memcpy(to.data + to.at(i, c), from.data + from.at(i, c), bytes);
      }
    }
  }
}

/// `from` has runs along rows and `to` along columns.
template <class To, class From>
inline void copy_across(const To& to, const From& from, ptrdiff_t rows, ptrdiff_t cols) {
  using Code = code_t<typename To::T>;
  constexpr ptrdiff_t side = kSquare<sizeof(Code)>;
  for (ptrdiff_t r = 0, high; r < rows; r += high) {
    high = lesser(to.col_run(r, rows - r), side);
    for (ptrdiff_t c = 0, wide; c < cols; c += wide) {
      wide = lesser(from.row_run(c, cols - c), side);
      const ptrdiff_t t = to.at(r, c), f = from.at(r, c);
      if (high == side && wide == side) {
        const ptrdiff_t to_step = to.at(r, c + 1) - t, from_step = from.at(r + 1, c) - f;
        if (to.at(r, c + side - 1) - t == (side - 1) * to_step &&
            from.at(r + side - 1, c) - f == (side - 1) * from_step) {
          copy_square<Code>(to.data + t, to_step, from.data + f, from_step);
          continue;
        }
      }
      for (ptrdiff_t i = 0; i < high; ++i)
        for (ptrdiff_t j = 0; j < wide; ++j)
          std::memcpy(to.data + to.at(r + i, c + j), from.data + from.at(r + i, c + j), sizeof(Code));
    }
  }
}

template <class To, class From>
inline void copy_elements(const To& to, const From& from, ptrdiff_t rows, ptrdiff_t cols) {
  using T = typename To::T;
  using S = typename From::T;
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const S found = element_at<S>(from.data, static_cast<size_t>(from.at(r, c)));
      put_element<T>(to.data, static_cast<size_t>(to.at(r, c)), __builtin_bit_cast(T, found));
    }
  }
}

/// The first rows x cols elements. The places do not overlap, or are the same.
template <class To, class From>
inline void copy(const To& to, const From& from, ptrdiff_t rows, ptrdiff_t cols) {
  static_assert(bits_of<typename To::T> == bits_of<typename From::T>);
  if (rows <= 0 || cols <= 0) return;
  if constexpr (bits_of<typename To::T> != 4) {
    if constexpr (To::row_runs != Runs::no && From::row_runs != Runs::no) {
      if (to.runs_in_rows() && from.runs_in_rows()) return copy_rows(to, from, rows, cols);
    }
    if constexpr (To::col_runs != Runs::no && From::col_runs != Runs::no) {
      if (to.runs_in_cols() && from.runs_in_cols()) return copy_rows(turned(to), turned(from), cols, rows);
    }
    if constexpr (To::col_runs != Runs::no && From::row_runs != Runs::no) {
      if (to.runs_in_cols() && from.runs_in_rows()) return copy_across(to, from, rows, cols);
    }
    if constexpr (To::row_runs != Runs::no && From::col_runs != Runs::no) {
      if (to.runs_in_rows() && from.runs_in_cols()) return copy_across(turned(to), turned(from), cols, rows);
    }
  }
  copy_elements(to, from, rows, cols);
}

/// Fill rows x cols elements from (row, col) on with a bit pattern.
template <class Place>
inline void fill(const Place& to, ptrdiff_t row, ptrdiff_t col, ptrdiff_t rows, ptrdiff_t cols,
                 code_t<typename Place::T> code) {
  using T = typename Place::T;
  const T value = __builtin_bit_cast(T, code);
  if constexpr (bits_of<T> != 4 && Place::row_runs == Runs::yes) {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      for (ptrdiff_t c = 0, n; c < cols; c += n) {
        n = to.row_run(col + c, cols - c);
        T* at = to.data + to.at(row + r, col + c);
        for (ptrdiff_t i = 0; i < n; ++i) at[i] = value;
      }
    }
  } else if constexpr (bits_of<T> != 4 && Place::col_runs == Runs::yes) {
    fill(turned(to), col, row, cols, rows, code);
  } else {
    for (ptrdiff_t r = 0; r < rows; ++r)
      for (ptrdiff_t c = 0; c < cols; ++c)
        put_element<T>(to.data, static_cast<size_t>(to.at(row + r, col + c)), value);
  }
}

/// Fill a whole tile but its first rows x cols elements.
template <class TileT>
inline void fill_around(const TileT& tile, ptrdiff_t rows, ptrdiff_t cols,
                        code_t<typename TileT::DType> code) {
  // Compact tiles have no more rows between their column blocks.
  const ptrdiff_t height =
      TileT::Compact == CompactMode::Null
          ? TileT::Rows
          : lesser(TileT::Rows, (static_cast<ptrdiff_t>(tile.GetValidRow()) + 15) / 16 * 16);
  const auto to = place(tile);
  if (rows > 0 && cols < TileT::Cols) fill(to, 0, cols, rows, TileT::Cols - cols, code);
  if (rows < height) fill(to, rows, 0, height - rows, TileT::Cols, code);
}

// --- lines of a place -------------------------------------------------------------------------------------

/// Put n elements into a row.
template <class Place>
inline void put_row(const Place& to, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, const typename Place::T* from) {
  using T = typename Place::T;
  if constexpr (bits_of<T> != 4 && Place::row_runs != Runs::no) {
    if (to.runs_in_rows()) {
      for (ptrdiff_t done = 0, k; done < n; done += k) {
        k = to.row_run(c + done, n - done);
        std::memcpy(to.data + to.at(r, c + done), from + done, static_cast<size_t>(k) * sizeof(T));
      }
      return;
    }
  }
  for (ptrdiff_t i = 0; i < n; ++i) put_element<T>(to.data, static_cast<size_t>(to.at(r, c + i)), from[i]);
}

/// Take n elements of a row.
template <class Place>
inline void take_row(const Place& from, ptrdiff_t r, ptrdiff_t c, ptrdiff_t n, typename Place::T* to) {
  using T = typename Place::T;
  if constexpr (bits_of<T> != 4 && Place::row_runs != Runs::no) {
    if (from.runs_in_rows()) {
      for (ptrdiff_t done = 0, k; done < n; done += k) {
        k = from.row_run(c + done, n - done);
        std::memcpy(to + done, from.data + from.at(r, c + done), static_cast<size_t>(k) * sizeof(T));
      }
      return;
    }
  }
  for (ptrdiff_t i = 0; i < n; ++i) to[i] = element_at<T>(from.data, static_cast<size_t>(from.at(r, c + i)));
}

}  // namespace pto::detail
