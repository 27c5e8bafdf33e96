// Places: tiles, windows of tiles and views of global memory as matrices of elements in memory.
//
// The offset of element (r, c) is a part of r plus a part of c, and elements lie side by side in runs along
// rows or along columns. All places answer the same questions; see copy.hpp for what asks them.
//
//   place(tile), place(tile, row, col), place(tensor), turned(place)
#pragma once

#include <initializer_list>

#include "pto/core/access.hpp"
#include "pto/core/conv_tile.hpp"

namespace pto::detail {

// --- runs -------------------------------------------------------------------------------------------------

/// Whether elements lie side by side in one direction: never, always, or as the strides say.
enum class Runs : uint8_t { no, yes, maybe };

constexpr ptrdiff_t lesser(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

// --- tiles ------------------------------------------------------------------------------------------------

/// A tile, or the window of one that starts at (row, col).
template <class TileT>
struct TilePlace {
  using T = typename TileT::DType;
  static constexpr Runs row_runs =
      TileT::form == Form::ND || (TileT::isBoxedLayout && TileT::isInnerRowMajor) ? Runs::yes : Runs::no;
  static constexpr Runs col_runs =
      TileT::form == Form::DN || (TileT::isBoxedLayout && !TileT::isInnerRowMajor) ? Runs::yes : Runs::no;

  T* data;
  ptrdiff_t pitch, row = 0, col = 0;

  ptrdiff_t at(ptrdiff_t r, ptrdiff_t c) const {
    return offset<TileT::form, TileT::InnerRows, TileT::InnerCols>(TileT::Cols, pitch, row + r, col + c);
  }
  constexpr bool runs_in_rows() const { return row_runs == Runs::yes; }
  constexpr bool runs_in_cols() const { return col_runs == Runs::yes; }
  /// Of n elements from column c (row r) on, how many lie side by side.
  ptrdiff_t row_run(ptrdiff_t c, ptrdiff_t n) const {
    if constexpr (!TileT::isBoxedLayout) return n;
    return lesser(n, TileT::InnerCols - (col + c) % TileT::InnerCols);
  }
  ptrdiff_t col_run(ptrdiff_t r, ptrdiff_t n) const {
    if constexpr (!TileT::isBoxedLayout) return n;
    return lesser(n, TileT::InnerRows - (row + r) % TileT::InnerRows);
  }
  /// Elements from a row to the next, if that is the same for the first n rows; else 0. Likewise columns.
  ptrdiff_t row_step(ptrdiff_t n) const {
    if constexpr (TileT::form == Form::ND) return TileT::Cols;
    if constexpr (TileT::form == Form::DN) return 1;
    return n <= 1 || row_run_is(n) ? at(1, 0) - at(0, 0) : 0;
  }
  ptrdiff_t col_step(ptrdiff_t n) const {
    if constexpr (TileT::form == Form::ND) return 1;
    if constexpr (TileT::form == Form::DN) return pitch;
    return n <= 1 || col % TileT::InnerCols + n <= TileT::InnerCols ? at(0, 1) - at(0, 0) : 0;
  }

 private:
  bool row_run_is(ptrdiff_t n) const {  // column blocks of NZ and NN are dense over all their rows
    if constexpr (TileT::form == Form::NZ) return true;
    return row % TileT::InnerRows + n <= TileT::InnerRows;
  }
};

template <class TileT>
  requires(is_tile_data_v<TileT>)
inline TilePlace<TileT> place(const TileT& tile, ptrdiff_t row = 0, ptrdiff_t col = 0) {
  return {tile.data(), tile.pitch(), row, col};
}

// --- views of global memory -------------------------------------------------------------------------------

constexpr bool one_of(Layout l, std::initializer_list<Layout> list) {
  for (Layout x : list)
    if (x == l) return true;
  return false;
}

/// The layout whose element order a layout has.
constexpr Layout order_of(Layout l) {
  if (l == Layout::NHWC || l == Layout::SCALE) return Layout::ND;
  if (l == Layout::GNCHW) return Layout::NCHW;
  if (l == Layout::GNC1HWC0) return Layout::NC1HWC0;
  if (l == Layout::FRACTAL_Z_3D || l == Layout::FRACTAL_Z_S16S8) return Layout::FRACTAL_Z;
  return l;
}

/// A view of five dimensions as the matrix that its layout says (src/pto/isa/view.py has the maps). Hints
/// tell which strides are known to be 1.
template <class Element, Layout L_, int64_t Stride3 = DYNAMIC, int64_t Stride4 = DYNAMIC>
struct ViewPlace {
  using T = Element;
  static constexpr Layout L = order_of(L_);
  static constexpr ptrdiff_t c0 = 256 / bits_of<T>;
  // The dimension that consecutive columns (rows) step through first.
  static constexpr int inner_col = L == Layout::FRACTAL_Z                          ? 3
                                   : one_of(L, {Layout::NCHW})                     ? 2
                                   : one_of(L, {Layout::NCDHW})                    ? 1
                                   : one_of(L, {Layout::MX_B_NN, Layout::MX_B_ND}) ? 3
                                   : one_of(L, {Layout::MX_B_DN})                  ? 2
                                                                                   : 4;
  static constexpr int inner_row =
      one_of(L, {Layout::ND, Layout::DN, Layout::NZ, Layout::NC1HWC0, Layout::MX_A_ZZ, Layout::MX_A_DN}) ? 3
      : L == Layout::MX_A_ND                                                                             ? 2
                                                                                                         : 4;
  /// Runs are looked for at run time in the direction that a layout is meant to have them in; in the other
  /// one only a stride in the type tells.
  static constexpr bool by_rows = inner_col == 4;
  static constexpr Runs hint(int dim, bool natural) {
    const int64_t known = dim == 3 ? Stride3 : dim == 4 ? Stride4 : DYNAMIC;
    return known == 1 ? Runs::yes : known == DYNAMIC && natural ? Runs::maybe : Runs::no;
  }
  static constexpr Runs row_runs =
      L == Layout::NDC1HWC0 ? Runs::yes : hint(inner_col, by_rows&& L != Layout::DN);
  static constexpr Runs col_runs =
      L == Layout::NDC1HWC0 ? Runs::no : hint(inner_row, !by_rows || L == Layout::DN);

  T* data;
  int64_t s[5], st[5];

  int64_t rows() const {
    switch (L) {
      case Layout::DN: return s[3];
      case Layout::NZ: return s[2] * s[3];
      case Layout::NC1HWC0: return s[0] * s[2] * s[3];
      case Layout::NDC1HWC0: return s[0] * s[3] * s[4];
      case Layout::FRACTAL_Z: return s[0] * s[1] * s[2] * s[4];
      case Layout::NCHW: return s[0] * s[1] * s[3] * s[4];
      case Layout::NCDHW: return s[0] * s[2] * s[3] * s[4];
      case Layout::MX_A_ZZ: return s[1] * s[3];
      case Layout::MX_A_ND: return s[2];
      case Layout::MX_A_DN: return s[3];
      case Layout::MX_B_NN:
      case Layout::MX_B_ND: return s[2] * s[4];
      case Layout::MX_B_DN: return s[3] * s[4];
      default: return s[0] * s[1] * s[2] * s[3];
    }
  }
  int64_t cols() const {
    switch (L) {
      case Layout::DN: return s[0] * s[1] * s[2] * s[4];
      case Layout::NZ: return s[0] * s[1] * s[4];
      case Layout::NC1HWC0: return s[1] * s[4];
      case Layout::NDC1HWC0: return s[1] * s[2] * c0;
      case Layout::FRACTAL_Z: return s[3];
      case Layout::NCHW: return s[2];
      case Layout::NCDHW: return s[1];
      case Layout::MX_A_ZZ:
      case Layout::MX_A_DN: return s[2] * s[4];
      case Layout::MX_A_ND: return s[3] * s[4];
      case Layout::MX_B_NN: return s[1] * s[3];
      case Layout::MX_B_ND: return s[3];
      case Layout::MX_B_DN: return s[2];
      default: return s[4];
    }
  }

  ptrdiff_t row_part(ptrdiff_t r) const {
    switch (L) {
      case Layout::DN: return r * st[3];
      case Layout::NZ: return r / s[3] * st[2] + r % s[3] * st[3];
      case Layout::NC1HWC0: return mixed(r, 0, 2, 3);
      case Layout::NDC1HWC0: return mixed(r, 0, 3, 4);
      case Layout::FRACTAL_Z:
        return r < s[4] ? r * st[4]
                        : r / s[4] / s[2] / s[1] * st[0] + r / s[4] / s[2] % s[1] * st[1] +
                              r / s[4] % s[2] * st[2] + r % s[4] * st[4];
      case Layout::NCHW:
        return r < s[4] ? r * st[4]
                        : r / s[4] / s[3] / s[1] * st[0] + r / s[4] / s[3] % s[1] * st[1] +
                              r / s[4] % s[3] * st[3] + r % s[4] * st[4];
      case Layout::NCDHW:
        return r < s[4] ? r * st[4]
                        : r / s[4] / s[3] / s[2] * st[0] + r / s[4] / s[3] % s[2] * st[2] +
                              r / s[4] % s[3] * st[3] + r % s[4] * st[4];
      case Layout::MX_A_ZZ: return r / 16 * st[1] + r % 16 * st[3];
      case Layout::MX_A_ND: return r * st[2];
      case Layout::MX_A_DN: return r * st[3];
      case Layout::MX_B_NN:
      case Layout::MX_B_ND: return r / 2 * st[2] + r % 2 * st[4];
      case Layout::MX_B_DN: return r / 2 * st[3] + r % 2 * st[4];
      default:
        if (r < s[3]) return r * st[3];
        return r / s[3] / s[2] / s[1] * st[0] + r / s[3] / s[2] % s[1] * st[1] + r / s[3] % s[2] * st[2] +
               r % s[3] * st[3];
    }
  }
  ptrdiff_t col_part(ptrdiff_t c) const {
    switch (L) {
      case Layout::DN:
        if (c < s[4]) return c * st[4];
        return c / s[4] / s[2] / s[1] * st[0] + c / s[4] / s[2] % s[1] * st[1] + c / s[4] % s[2] * st[2] +
               c % s[4] * st[4];
      case Layout::NZ: return c / s[4] / s[1] * st[0] + c / s[4] % s[1] * st[1] + c % s[4] * st[4];
      case Layout::NC1HWC0: return c / s[4] * st[1] + c % s[4] * st[4];
      case Layout::NDC1HWC0: return c / c0 / s[2] * st[1] + c / c0 % s[2] * st[2] + c % c0;
      case Layout::FRACTAL_Z: return c * st[3];
      case Layout::NCHW: return c * st[2];
      case Layout::NCDHW: return c * st[1];
      case Layout::MX_A_ZZ:
      case Layout::MX_A_DN: return c / 2 * st[2] + c % 2 * st[4];
      case Layout::MX_A_ND: return c / 2 * st[3] + c % 2 * st[4];
      case Layout::MX_B_NN: return c / 16 * st[1] + c % 16 * st[3];
      case Layout::MX_B_ND: return c * st[3];
      case Layout::MX_B_DN: return c * st[2];
      default: return c * st[4];
    }
  }
  ptrdiff_t at(ptrdiff_t r, ptrdiff_t c) const { return row_part(r) + col_part(c); }

  bool runs_in_rows() const { return row_runs == Runs::maybe ? st[inner_col] == 1 : row_runs == Runs::yes; }
  bool runs_in_cols() const { return col_runs == Runs::maybe ? st[inner_row] == 1 : col_runs == Runs::yes; }
  ptrdiff_t row_run(ptrdiff_t c, ptrdiff_t n) const { return group(c, n, col_group()); }
  ptrdiff_t col_run(ptrdiff_t r, ptrdiff_t n) const { return group(r, n, row_group()); }
  ptrdiff_t row_step(ptrdiff_t n) const { return n <= row_group() ? st[inner_row] : 0; }
  ptrdiff_t col_step(ptrdiff_t n) const { return n <= col_group() ? row_runs_inside() : 0; }

 private:
  ptrdiff_t row_runs_inside() const { return L == Layout::NDC1HWC0 ? 1 : st[inner_col]; }
  /// Columns (rows) that are the same step apart.
  ptrdiff_t col_group() const {
    if constexpr (L == Layout::NDC1HWC0) return c0;
    if constexpr (L == Layout::MX_B_NN) return 16;
    if constexpr (one_of(L, {Layout::MX_A_ZZ, Layout::MX_A_DN, Layout::MX_A_ND})) return 2;
    return s[inner_col];
  }
  ptrdiff_t row_group() const {
    if constexpr (L == Layout::MX_A_ZZ) return 16;
    if constexpr (one_of(L, {Layout::MX_B_NN, Layout::MX_B_ND, Layout::MX_B_DN})) return 2;
    return s[inner_row];
  }
  static ptrdiff_t group(ptrdiff_t i, ptrdiff_t n, ptrdiff_t size) {
    return i + n <= size ? n : lesser(n, size - i % size);
  }
  /// r counted in dimensions a, b and c, c innermost.
  ptrdiff_t mixed(ptrdiff_t r, int a, int b, int c) const {
    return r / s[c] / s[b] * st[a] + r / s[c] % s[b] * st[b] + r % s[c] * st[c];
  }
};

template <class Global>
  requires(is_global_data_v<Global>)
inline auto place(const Global& tensor) {
  ViewPlace<typename Global::DType, Global::layout, Global::staticStride[3], Global::staticStride[4]> found;
  found.data = tensor.data();
  for (int d = 0; d < 5; ++d) {
    found.s[d] = tensor.GetShape(d);
    found.st[d] = tensor.GetStride(d);
  }
  return found;
}

/// The storage of a convolution tile, dense, described like global memory of the same layout.
template <class Conv>
  requires(is_conv_tile_v<Conv>)
inline auto place(const Conv& tile) {
  using T = typename Conv::DType;
  ViewPlace<T, Conv::layout> found;
  constexpr int64_t c0 = 256 / bits_of<T>;
  constexpr bool blocks = Conv::layout == Layout::NDC1HWC0;  // the last dimension is C0, and inside the map
  int64_t dims[7] = {};
  int count = 0;
  for (int d = 0; d < Conv::totalDimCount; ++d) dims[count++] = tile.GetShape(d);
  if (Conv::layout == Layout::NC1HWC0 && count == 4) dims[count++] = c0;
  if (count == 6 && blocks) --count;
  if (count == 6) {  // groups count like images
    dims[1] *= dims[0];
    for (int d = 0; d < 5; ++d) dims[d] = dims[d + 1];
    count = 5;
  }
  int64_t step = blocks ? c0 : 1;
  for (int d = 4; d >= 0; --d) {
    const int from = d - (5 - count);
    found.s[d] = from >= 0 ? dims[from] : 1;
    found.st[d] = step;
    step *= found.s[d];
  }
  found.data = tile.data();
  return found;
}

/// The transpose of a place.
template <class Place>
struct Turned {
  using T = typename Place::T;
  static constexpr Runs row_runs = Place::col_runs, col_runs = Place::row_runs;
  Place of;
  T* data = of.data;

  ptrdiff_t at(ptrdiff_t r, ptrdiff_t c) const { return of.at(c, r); }
  constexpr bool runs_in_rows() const { return of.runs_in_cols(); }
  constexpr bool runs_in_cols() const { return of.runs_in_rows(); }
  ptrdiff_t row_run(ptrdiff_t c, ptrdiff_t n) const { return of.col_run(c, n); }
  ptrdiff_t col_run(ptrdiff_t r, ptrdiff_t n) const { return of.row_run(r, n); }
  ptrdiff_t row_step(ptrdiff_t n) const { return of.col_step(n); }
  ptrdiff_t col_step(ptrdiff_t n) const { return of.row_step(n); }
};
template <class Place>
inline Turned<Place> turned(const Place& place) {
  return {place};
}

}  // namespace pto::detail
