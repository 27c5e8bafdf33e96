// Places: tiles, windows of tiles, slots and views of global memory as matrices of elements in memory.
//
// The offset of element (r, c) is a function of r plus a function of c. Each function is a sum over digits,
// such as r % 16 steps of one size and r / 16 steps of another. Digits are run-time data, so code that works
// on places is compiled once per element type and not once per tile type; see copy.hpp.
//
//   place(tile), place(tile, row, col), place(tensor), turned(place)
#pragma once

#include "pto/core/access.hpp"
#include "pto/core/bounds.hpp"
#include "pto/core/conv_tile.hpp"

namespace pto::detail {

constexpr ptrdiff_t lesser(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/// One direction of a place.
struct Axis {
  int digits;
  ptrdiff_t size[4], step[4];  // of the digits, the fastest one first; the last one has no end
  ptrdiff_t first;             // where a window starts
  ptrdiff_t count;             // the number of rows or columns

  void begin() {
    digits = 0;
    first = 0;
    count = 1;
  }

  /// Add a digit; a digit that continues the last one is merged into it.
  void add(ptrdiff_t n, ptrdiff_t s);

  ptrdiff_t at(ptrdiff_t i) const;
  /// Return the number of elements from the i-th on that are one step apart.
  ptrdiff_t left(ptrdiff_t i) const;
  bool side_by_side() const { return step[0] == 1; }

  /// Set `low` and `high` to the least and greatest of at(0), ..., at(n - 1) of an axis without a window.
  void span(ptrdiff_t n, int64_t& low, int64_t& high) const;
};

/// An iterator along an axis; `left` is the number of elements left in the present run of the first digit.
struct Walk {
  const Axis& axis;
  ptrdiff_t i, at, left;

  explicit Walk(const Axis& a, ptrdiff_t from = 0) : axis(a), i(from), at(a.at(from)), left(a.left(from)) {}
  void go(ptrdiff_t n) {
    i += n;
    left -= n;
    at += n * axis.step[0];
    if (left > 0) return;
    if (axis.digits == 2) {
      at += axis.step[1] - axis.size[0] * axis.step[0];
      left = axis.size[0];
    } else {
      at = axis.at(i);
      left = axis.left(i);
    }
  }
};

template <class Element>
struct Place {
  using T = Element;
  T* data;
  Axis rows, cols;
  ptrdiff_t at(ptrdiff_t r, ptrdiff_t c) const { return rows.at(r) + cols.at(c); }
};

/// Return the transpose of a place.
template <class T>
inline Place<T> turned(const Place<T>& place) {
  return {place.data, place.cols, place.rows};
}

// --- tiles ------------------------------------------------------------------------------------------------

/// The layout of a tile that follows from its type.
struct TileFacts {
  Form form;
  int32_t box_rows, box_cols, width;
};

/// Describe the axes of a tile: see `offset` in core/tile.hpp. Not inline, to keep instructions small.
PTO_COMMON void describe_tile(TileFacts facts, ptrdiff_t pitch, Axis& rows, Axis& cols);

template <class TileT>
  requires(is_tile_data_v<TileT>)
inline auto place(const TileT& tile) {
  const TileFacts facts{TileT::form, static_cast<int32_t>(TileT::InnerRows),
                        static_cast<int32_t>(TileT::InnerCols), static_cast<int32_t>(tile.Cols)};
  Place<typename TileT::DType> found;
  found.data = tile.data();
  describe_tile(facts, tile.pitch(), found.rows, found.cols);
  return found;
}
[[noreturn, gnu::cold]] PTO_COMMON void no_window(ptrdiff_t row, ptrdiff_t col, ptrdiff_t rows,
                                                  ptrdiff_t cols);
/// Check that a window begins inside its tile. Guards of a core's memory catch a window that only ends
/// outside; one that begins far away would lie behind them.
template <class TileT>
inline void check_window(const TileT& tile, ptrdiff_t row, ptrdiff_t col) {
  if (row < 0 || col < 0 || row > tile.Rows || col > tile.Cols) [[unlikely]]
    no_window(row, col, tile.Rows, tile.Cols);
}

template <class TileT>
  requires(is_tile_data_v<TileT>)
inline auto place(const TileT& tile, ptrdiff_t row, ptrdiff_t col) {
  check_window(tile, row, col);
  auto found = place(tile);
  found.rows.first = row;
  found.cols.first = col;
  return found;
}

PTO_COMMON void describe_dense(ptrdiff_t width, ptrdiff_t row, ptrdiff_t col, Axis& rows, Axis& cols);

/// Return a dense, row-major matrix, or the window of it that starts at (row, col).
template <class T>
inline Place<T> dense_place(T* data, ptrdiff_t width, ptrdiff_t row, ptrdiff_t col) {
  Place<T> found;
  found.data = data;
  describe_dense(width, row, col, found.rows, found.cols);
  return found;
}

// --- views of global memory -------------------------------------------------------------------------------

/// The dimensions that rows and columns of a view step through, as octal digits: 1 + the dimension, the
/// fastest one in the lowest digit (src/pto/isa/view.py has the maps). With a group, the first dimension
/// takes only so many steps before the second one steps.
struct ViewMap {
  uint16_t rows, cols;
  uint8_t row_group = 0, col_group = 0;
};
constexpr ViewMap view_map(Layout layout) {
  switch (layout) {
    case Layout::DN: return {04, 01235};
    case Layout::NZ: return {034, 0125};
    case Layout::NC1HWC0:
    case Layout::GNC1HWC0: return {0134, 025};
    case Layout::NDC1HWC0: return {0145, 023};  // and C0, which is not a dimension
    case Layout::FRACTAL_Z:
    case Layout::FRACTAL_Z_3D:
    case Layout::FRACTAL_Z_S16S8: return {01235, 04};
    case Layout::NCHW:
    case Layout::GNCHW: return {01245, 03};
    case Layout::NCDHW: return {01345, 02};
    case Layout::MX_A_ZZ: return {024, 035, 16, 2};
    case Layout::MX_A_ND: return {03, 045, 0, 2};
    case Layout::MX_A_DN: return {04, 035, 0, 2};
    case Layout::MX_B_NN: return {035, 024, 2, 16};
    case Layout::MX_B_ND: return {035, 04, 2, 0};
    case Layout::MX_B_DN: return {045, 03, 2, 0};
    default: return {01234, 05};
  }
}

/// Describe the axes of a view of five dimensions; `inner`: contiguous elements that are not a dimension.
PTO_COMMON void describe_view(ViewMap map, ptrdiff_t inner, const int64_t* sizes, const int64_t* steps,
                              Axis& rows, Axis& cols);

/// Return a view of five dimensions as the matrix of its layout.
template <Layout L, class T>
inline Place<T> view_place(T* data, const int64_t (&sizes)[5], const int64_t (&steps)[5]) {
  Place<T> found;
  found.data = data;
  describe_view(view_map(L), L == Layout::NDC1HWC0 ? 256 / bits_of<T> : 0, sizes, steps, found.rows,
                found.cols);
  return found;
}

template <class Global>
  requires(is_global_data_v<Global>)
inline auto place(const Global& tensor) {
  return view_place<Global::layout>(tensor.data(), tensor.sizes(), tensor.strides());
}

/// Announce an access to the first rows x cols elements of a place in global memory.
PTO_COMMON void touch_matrix(const char* name, const volatile void* data, int bits, const Axis& down,
                             const Axis& across, ptrdiff_t rows, ptrdiff_t cols, Use use);
template <class T>
inline void touch(const char* name, const Place<T>& place, ptrdiff_t rows, ptrdiff_t cols, Use use) {
  touch_matrix(name, place.data, bits_of<T>, place.rows, place.cols, rows, cols, use);
}

/// Return the dense storage of a convolution tile, described like global memory of the same layout.
template <class Conv>
  requires(is_conv_tile_v<Conv>)
inline auto place(const Conv& tile) {
  using T = typename Conv::DType;
  constexpr int64_t c0 = 256 / bits_of<T>;
  constexpr bool blocks = Conv::layout == Layout::NDC1HWC0;  // the last dimension is C0, which is `inner`
  int64_t dims[7] = {};
  int count = 0;
  for (int d = 0; d < Conv::totalDimCount; ++d) dims[count++] = tile.GetShape(d);
  if (Conv::layout == Layout::NC1HWC0 && count == 4) dims[count++] = c0;
  if (count == 6 && blocks) --count;
  if (count == 6) {  // groups are treated as images
    dims[1] *= dims[0];
    for (int d = 0; d < 5; ++d) dims[d] = dims[d + 1];
    count = 5;
  }
  int64_t s[5], t[5];
  int64_t step = blocks ? c0 : 1;
  for (int d = 4; d >= 0; --d) {
    const int from = d - (5 - count);
    s[d] = from >= 0 ? dims[from] : 1;
    t[d] = step;
    step *= s[d];
  }
  return view_place<Conv::layout>(tile.data(), s, t);
}

#ifdef PTO_BODY
[[gnu::cold]] PTO_BODY void no_window(ptrdiff_t row, ptrdiff_t col, ptrdiff_t rows, ptrdiff_t cols) {
  failf("[PTO-E2101] a window at (%td, %td) begins outside its tile of %tdx%td", row, col, rows, cols);
}

PTO_BODY void Axis::add(ptrdiff_t n, ptrdiff_t s) {
  count *= n;
  if (digits > 0 && (n == 1 || s == size[digits - 1] * step[digits - 1])) {
    size[digits - 1] *= n;
  } else if (digits == 1 && size[0] == 1) {
    size[0] = n;
    step[0] = s;
  } else {
    size[digits] = n;
    step[digits++] = s;
  }
}

PTO_BODY ptrdiff_t Axis::at(ptrdiff_t i) const {
  i += first;
  ptrdiff_t sum = 0;
  for (int d = 0;; ++d) {
    if (d + 1 == digits || i < size[d]) return sum + i * step[d];
    sum += i % size[d] * step[d];
    i /= size[d];
  }
}

PTO_BODY ptrdiff_t Axis::left(ptrdiff_t i) const {
  return digits == 1           ? PTRDIFF_MAX
         : i + first < size[0] ? size[0] - i - first
                               : size[0] - (i + first) % size[0];
}

PTO_BODY void Axis::span(ptrdiff_t n, int64_t& low, int64_t& high) const {
  int64_t left = n - 1, all_low = 0, all_high = 0;  // all_: over all values of the digits so far
  low = high = 0;                                   // over the values up to n - 1
  for (int d = 0; d < digits && (d + 1 == digits || size[d] != 0); ++d) {
    const int64_t here = d + 1 == digits ? left : left % size[d];
    if (d + 1 < digits) left /= size[d];
    const int64_t to_here = reach(here + 1, step[d]), before = reach(here, step[d]);
    low += to_here;
    high += to_here;
    if (here > 0) {
      const int64_t least = all_low + (before < 0 ? before : 0), most = all_high + (before > 0 ? before : 0);
      low = least < low ? least : low;
      high = most > high ? most : high;
    }
    const int64_t whole = reach(size[d], step[d]);
    (whole < 0 ? all_low : all_high) += whole;
  }
}

PTO_BODY void describe_tile(TileFacts facts, ptrdiff_t pitch, Axis& rows, Axis& cols) {
  const auto [form, box_rows, box_cols, width] = facts;
  rows.begin();
  cols.begin();
  if (form == Form::ND || form == Form::DN) {
    rows.add(1, form == Form::ND ? width : 1);
    cols.add(1, form == Form::ND ? 1 : pitch);
    return;
  }
  const bool columns_inside = form == Form::ZN || form == Form::NN,
             rows_outside = form == Form::ZN || form == Form::ZZ;
  const ptrdiff_t box = ptrdiff_t{box_rows} * box_cols;
  rows.add(box_rows, columns_inside ? 1 : box_cols);
  cols.add(box_cols, columns_inside ? box_rows : 1);
  // the last digit has no end: its size does not matter
  rows.add(2, rows_outside ? ptrdiff_t{width} * box_rows : box);
  cols.add(2, rows_outside ? box : pitch * box_cols);
}

PTO_BODY void describe_dense(ptrdiff_t width, ptrdiff_t row, ptrdiff_t col, Axis& rows, Axis& cols) {
  rows.begin();
  cols.begin();
  rows.add(1, width);
  cols.add(1, 1);
  rows.first = row;
  cols.first = col;
}

inline void describe_axis(Axis& axis, unsigned dims, ptrdiff_t group, const int64_t* sizes,
                          const int64_t* steps) {
  ptrdiff_t count = axis.count, elements = 1;
  for (; dims != 0; dims >>= 3, group = 0) {
    const unsigned d = dims % 8 - 1;
    const bool far =
        __builtin_mul_overflow(elements, sizes[d] != 0 ? sizes[d] : 1, &elements) || elements > kFar;
    if (sizes[d] < 0 || far) [[unlikely]]  // digits and later checks would be wrong
      failf("[PTO-E2102] expects the sizes of a tensor to be at least 0 and no array larger, got %lld",
            static_cast<long long>(sizes[d]));
    count *= sizes[d];
    axis.add(group != 0 ? group : sizes[d], steps[d]);
  }
  axis.count = count;
}

PTO_BODY void describe_view(ViewMap map, ptrdiff_t inner, const int64_t* sizes, const int64_t* steps,
                            Axis& rows, Axis& cols) {
  rows.begin();
  cols.begin();
  describe_axis(rows, map.rows, map.row_group, sizes, steps);
  if (inner != 0) cols.add(inner, 1);
  describe_axis(cols, map.cols, map.col_group, sizes, steps);
}

PTO_BODY void touch_matrix(const char* name, const volatile void* data, int bits, const Axis& down,
                           const Axis& across, ptrdiff_t rows, ptrdiff_t cols, Use use) {
  if (rows <= 0 || cols <= 0 || !is_watched(current)) return;
  int64_t low, high, left, right;
  down.span(rows, low, high);
  across.span(cols, left, right);
  const Bytes all = bytes_of(bits, low + left, high + right);
  stay_inside(name, data, all.low, all.high);
  if (!is_noted(current)) return;
  // Note runs of contiguous elements, along rows or along columns.
  const bool by_rows = across.side_by_side() || !down.side_by_side();
  const Axis &lines = by_rows ? down : across, &along = by_rows ? across : down;
  const ptrdiff_t count = by_rows ? rows : cols, length = by_rows ? cols : rows;
  for (ptrdiff_t l = 0; l < count; ++l) {
    const ptrdiff_t line = lines.at(l);
    Walk w(along);
    for (ptrdiff_t i = 0, n; i < length; i += n, w.go(n)) {
      n = along.side_by_side() ? lesser(length - i, w.left) : 1;
      const Bytes bytes = bytes_of(bits, line + w.at, line + w.at + n - 1);
      note(data, bytes.low, bytes.high, use);
    }
  }
  settle();
}
#endif

}  // namespace pto::detail
