// GlobalTensor: a five-dimensional view of global memory, with Shape, Stride and the helpers that make them
// for a matrix. Sizes and strides count elements. Each is part of the type or, if the type has -1, given at
// run time.
#pragma once

#include "pto/core/tile.hpp"

namespace pto {

namespace detail {

/// Five numbers, each static or given at run time.
template <int64_t... N>
struct Dims {
  static constexpr int64_t fixed[5] = {N...};
  static constexpr int open = ((N == DYNAMIC) + ...);

  /// Fill the dynamic dimensions: with 1 if `values` is null, else from `values`, by position or in order.
  static constexpr void fill(int64_t (&at)[5], const int64_t* values, bool by_position) {
    int next = 0;
    for (int d = 0; d < 5; ++d) {
      at[d] = fixed[d] != DYNAMIC ? fixed[d] : values == nullptr ? 1 : values[by_position ? d : next];
      next += fixed[d] == DYNAMIC;
    }
  }
};

#define PTO_DIMS_CONSTRUCTORS(Name, member)                                              \
  constexpr Name() { detail::Dims<N1, N2, N3, N4, N5>::fill(member, nullptr, true); }    \
  constexpr Name(int64_t a) {                                                            \
    static_assert(open == 1, "[PTO][SA-0001] " #Name                                     \
                             ": one argument needs exactly one dynamic dimension; "      \
                             "fix: give one value per -1, in order");                    \
    const int64_t values[] = {a};                                                        \
    detail::Dims<N1, N2, N3, N4, N5>::fill(member, values, false);                       \
  }                                                                                      \
  constexpr Name(int64_t a, int64_t b) {                                                 \
    static_assert(open == 2, "[PTO][SA-0002] " #Name                                     \
                             ": two arguments need exactly two dynamic dimensions; "     \
                             "fix: give one value per -1, in order");                    \
    const int64_t values[] = {a, b};                                                     \
    detail::Dims<N1, N2, N3, N4, N5>::fill(member, values, false);                       \
  }                                                                                      \
  constexpr Name(int64_t a, int64_t b, int64_t c) {                                      \
    static_assert(open == 3, "[PTO][SA-0003] " #Name                                     \
                             ": three arguments need exactly three dynamic dimensions; " \
                             "fix: give one value per -1, in order");                    \
    const int64_t values[] = {a, b, c};                                                  \
    detail::Dims<N1, N2, N3, N4, N5>::fill(member, values, false);                       \
  }                                                                                      \
  constexpr Name(int64_t a, int64_t b, int64_t c, int64_t d) {                           \
    static_assert(open == 4, "[PTO][SA-0004] " #Name                                     \
                             ": four arguments need exactly four dynamic dimensions; "   \
                             "fix: give one value per -1, in order");                    \
    const int64_t values[] = {a, b, c, d};                                               \
    detail::Dims<N1, N2, N3, N4, N5>::fill(member, values, false);                       \
  }                                                                                      \
  constexpr Name(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) {                \
    const int64_t values[] = {a, b, c, d, e};                                            \
    detail::Dims<N1, N2, N3, N4, N5>::fill(member, values, true);                        \
  }

}  // namespace detail

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape {
  static constexpr int64_t staticShape[5] = {N1, N2, N3, N4, N5};
  static constexpr int open = detail::Dims<N1, N2, N3, N4, N5>::open;
  int64_t shape[5];
  PTO_DIMS_CONSTRUCTORS(Shape, shape)
};

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Stride {
  static constexpr int64_t staticStride[5] = {N1, N2, N3, N4, N5};
  static constexpr int open = detail::Dims<N1, N2, N3, N4, N5>::open;
  int64_t stride[5];
  PTO_DIMS_CONSTRUCTORS(Stride, stride)
};
#undef PTO_DIMS_CONSTRUCTORS

namespace detail {

/// The shape of a GlobalTensor<T>: loads and stores use the shape of the tile.
struct OfTile : pto::Shape<> {};

/// Return a stride of a dense tensor; -1 if the stride depends on run-time sizes.
template <class Shape>
constexpr int64_t dense(int dim) {
  int64_t stride = 1;
  for (int d = 4; d > dim; --d) {
    if (Shape::staticShape[d] == DYNAMIC) return DYNAMIC;
    stride *= Shape::staticShape[d];
  }
  return stride;
}
/// The default strides: a dense tensor in row-major order.
template <class Shape>
struct Dense : Stride<dense<Shape>(0), dense<Shape>(1), dense<Shape>(2), dense<Shape>(3), 1> {};

}  // namespace detail

template <class Element_, class Shape_ = detail::OfTile, class Stride_ = detail::Dense<Shape_>,
          Layout Layout_ = Layout::ND>
struct GlobalTensor {
  using Shape = Shape_;
  using Stride = Stride_;
  using RawDType = std::remove_cv_t<Element_>;
  using DType = RawDType;
  static constexpr Layout layout = Layout_;
  /// False for GlobalTensor<T>: TLOAD and TSTORE take the shape of the tile.
  static constexpr bool has_shape = !std::is_same_v<Shape, detail::OfTile>;
  static constexpr bool is_dense = std::is_same_v<Stride, detail::Dense<Shape>>;
  static_assert(!is_dense || Layout_ == Layout::ND,
                "[PTO] GlobalTensor: the default strides are row-major; fix: give a Stride for this layout");
  static constexpr int64_t staticShape[5] = {Shape::staticShape[0], Shape::staticShape[1],
                                             Shape::staticShape[2], Shape::staticShape[3],
                                             Shape::staticShape[4]};
  static constexpr int64_t staticStride[5] = {Stride::staticStride[0], Stride::staticStride[1],
                                              Stride::staticStride[2], Stride::staticStride[3],
                                              Stride::staticStride[4]};

  GlobalTensor() = default;
  GlobalTensor(DType* data, const Shape& shape = Shape(), const Stride& stride = Stride()) : data_(data) {
    for (int d = 0; d < 5; ++d) {
      if (staticShape[d] == DYNAMIC) shape_.shape[d] = shape.shape[d];
      if (staticStride[d] == DYNAMIC) stride_.stride[d] = stride.stride[d];
    }
    if constexpr (is_dense && has_shape)
      for (int d = 3; d >= 0; --d) stride_.stride[d] = stride_.stride[d + 1] * shape_.shape[d + 1];
  }
  GlobalTensor(const DType* data, const Shape& shape = Shape(), const Stride& stride = Stride())
      : GlobalTensor(const_cast<DType*>(data), shape, stride) {}
  GlobalTensor(std::nullptr_t) {}

  /// Return the size or stride of a dimension; -1 if `dim` is not in 0..4.
  int64_t GetShape(int dim) const { return dim < 0 || dim > 4 ? -1 : sizes()[dim]; }
  int64_t GetStride(int dim) const { return dim < 0 || dim > 4 ? -1 : strides()[dim]; }

  const int64_t (&sizes() const)[5] {
    static_assert(has_shape,
                  "[PTO] GlobalTensor<T> has no shape; fix: GlobalTensor<T, Shape<..>, Stride<..>>");
    return shape_.shape;
  }
  const int64_t (&strides() const)[5] {
    static_assert(has_shape,
                  "[PTO] GlobalTensor<T> has no shape; fix: GlobalTensor<T, Shape<..>, Stride<..>>");
    return stride_.stride;
  }

  template <int Dim>
  static constexpr int64_t GetShape() {
    static_assert(Dim >= 0 && Dim < 5, "[PTO][SA-0086] GetShape: dimensions are 0..4");
    static_assert(Dim < 0 || Dim > 4 || staticShape[Dim] != DYNAMIC,
                  "[PTO][SA-0015] GetShape: this dimension is dynamic; fix: ask the object, GetShape(dim)");
    return staticShape[Dim];
  }
  template <int Dim>
  static constexpr int64_t GetStride() {
    static_assert(Dim >= 0 && Dim < 5, "[PTO][SA-0086] GetStride: dimensions are 0..4");
    static_assert(Dim < 0 || Dim > 4 || staticStride[Dim] != DYNAMIC,
                  "[PTO][SA-0015] GetStride: this dimension is dynamic; fix: ask the object, GetStride(dim)");
    return staticStride[Dim];
  }

  /// Set the sizes of the dimensions `Dim`; static sizes do not change.
  template <int... Dim, class... Size>
  void SetShape(Size... sizes) {
    static_assert(sizeof...(Dim) == sizeof...(Size), "[PTO][SA-0086] SetShape: one size per dimension");
    (set<Dim>(shape_.shape, staticShape, static_cast<int64_t>(sizes)), ...);
  }
  template <int... Dim, class... Size>
  void SetStride(Size... sizes) {
    static_assert(sizeof...(Dim) == sizeof...(Size), "[PTO][SA-0086] SetStride: one stride per dimension");
    (set<Dim>(stride_.stride, staticStride, static_cast<int64_t>(sizes)), ...);
  }

  DType* data() { return data_; }
  DType* data() const { return data_; }

  DType GetElement(size_t at) const { return detail::element_at<DType>(data_, at); }
  DType GetElement(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4) const {
    return GetElement(offset(i0, i1, i2, i3, i4));
  }
  void SetElement(size_t at, DType value) { detail::put_element(data_, at, value); }
  void SetElement(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, DType value) {
    SetElement(offset(i0, i1, i2, i3, i4), value);
  }

 private:
  template <class>
  friend struct detail::Binder;

  size_t offset(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4) const {
    const int64_t (&s)[5] = stride_.stride;
    return static_cast<size_t>(i0 * s[0] + i1 * s[1] + i2 * s[2] + i3 * s[3] + i4 * s[4]);
  }
  template <int Dim>
  static void set(int64_t (&sizes)[5], const int64_t (&fixed)[5], int64_t size) {
    static_assert(Dim >= 0 && Dim < 5, "[PTO][SA-0086] GlobalTensor: dimensions are 0..4");
    if (fixed[Dim] == DYNAMIC) sizes[Dim] = size;
  }

  DType* data_ = nullptr;
  Shape shape_;
  Stride stride_;
};

template <class T>
struct is_global : std::false_type {};
template <class E, class S, class T, Layout L>
struct is_global<GlobalTensor<E, S, T, L>> : std::true_type {};
template <class T>
inline constexpr bool is_global_data_v = is_global<std::remove_cv_t<T>>::value;
/// A GlobalTensor<T>, which has no shape.
template <class T>
concept is_unshaped_v = is_global_data_v<T> && !T::has_shape;

// --- shapes and strides of a matrix ------------------------------------------------------------------------

namespace detail {

template <class T>
inline constexpr int64_t kC0 = 32 / static_cast<int64_t>(sizeof(T));

/// Return a * b / c, or -1 if a or b is -1.
constexpr int64_t times(int64_t a, int64_t b, int64_t c = 1) {
  return a == DYNAMIC || b == DYNAMIC ? DYNAMIC : a * b / c;
}

struct Five {
  int64_t at[5];
};

/// Return the five sizes of a rows x cols matrix; a block of 32 bytes has c0 elements.
constexpr Five shape_2d(Layout layout, int64_t rows, int64_t cols, int64_t c0) {
  switch (layout) {
    case Layout::NZ: return {{1, times(cols, 1, c0), times(rows, 1, 16), 16, c0}};
    case Layout::MX_A_ZZ: return {{1, times(rows, 1, 16), times(cols, 1, 2), 16, 2}};
    case Layout::MX_A_ND: return {{1, 1, rows, times(cols, 1, 2), 2}};
    case Layout::MX_A_DN: return {{1, 1, times(cols, 1, 2), rows, 2}};
    case Layout::MX_B_NN: return {{1, times(cols, 1, 16), times(rows, 1, 2), 16, 2}};
    case Layout::MX_B_ND: return {{1, 1, times(rows, 1, 2), cols, 2}};
    case Layout::MX_B_DN: return {{1, 1, cols, times(rows, 1, 2), 2}};
    case Layout::HIF4_A_ZZ: return {{1, times(rows, 1, 16), cols, 16, 4}};
    case Layout::HIF4_B_NN: return {{1, times(cols, 1, 16), rows, 16, 4}};
    default: return {{1, 1, 1, rows, cols}};
  }
}

/// Return the five strides of the same matrix, if it is dense.
constexpr Five stride_2d(Layout layout, int64_t rows, int64_t cols, int64_t c0) {
  const int64_t all = times(rows, cols);
  switch (layout) {
    case Layout::DN: return {{all, all, all, 1, rows}};
    case Layout::NZ: return {{all, times(rows, c0), 16 * c0, c0, 1}};
    case Layout::MX_A_ZZ: return {{all, times(cols, 16), 32, 2, 1}};
    case Layout::MX_A_ND: return {{all, all, cols, 2, 1}};
    case Layout::MX_A_DN: return {{all, all, times(rows, 2), 2, 1}};
    case Layout::MX_B_NN: return {{all, times(rows, 16), 32, 2, 1}};
    case Layout::MX_B_ND: return {{all, all, times(cols, 2), 2, 1}};
    case Layout::MX_B_DN: return {{all, all, rows, 2, 1}};
    case Layout::HIF4_A_ZZ: return {{all, times(cols, 16), 64, 4, 1}};
    case Layout::HIF4_B_NN: return {{all, times(rows, 16), 64, 4, 1}};
    default: return {{all, all, all, cols, 1}};
  }
}

template <class T, int64_t Rows, int64_t Cols, Layout L>
inline constexpr bool is_blocked_right = [] {
  const int64_t row_step = L == Layout::NZ                                                        ? 16
                           : L == Layout::MX_B_NN || L == Layout::MX_B_ND || L == Layout::MX_B_DN ? 2
                                                                                                  : 1;
  const int64_t col_step = L == Layout::NZ                                                        ? kC0<T>
                           : L == Layout::MX_A_ZZ || L == Layout::MX_A_ND || L == Layout::MX_A_DN ? 2
                                                                                                  : 1;
  return (Rows == DYNAMIC || Rows % row_step == 0) && (Cols == DYNAMIC || Cols % col_step == 0);
}();

template <class T, int64_t Rows, int64_t Cols, Layout L>
struct Matrix {
  static constexpr Five shape = shape_2d(L, Rows, Cols, kC0<T>), stride = stride_2d(L, Rows, Cols, kC0<T>);
  using Shape = pto::Shape<shape.at[0], shape.at[1], shape.at[2], shape.at[3], shape.at[4]>;
  using Stride = pto::Stride<stride.at[0], stride.at[1], stride.at[2], stride.at[3], stride.at[4]>;
};

}  // namespace detail

/// The Shape of a matrix; rows and columns may be given at run time.
template <class T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct TileShape2D : detail::Matrix<T, Rows, Cols, L>::Shape {
  using Parent = typename detail::Matrix<T, Rows, Cols, L>::Shape;
  static_assert(detail::is_blocked_right<T, Rows, Cols, L>,
                "[PTO][SA-0093] TileShape2D: rows and columns are not multiples of the blocks of this layout "
                "(NZ: 16 rows, 32 bytes of columns); fix: round them up");
  using Parent::Parent;
  TileShape2D() = default;
  TileShape2D(int64_t rows, int64_t cols) : TileShape2D(detail::shape_2d(L, rows, cols, detail::kC0<T>)) {}

 private:
  TileShape2D(const detail::Five& f) : Parent(f.at[0], f.at[1], f.at[2], f.at[3], f.at[4]) {}
};

/// The Stride of a dense matrix; rows and columns may be given at run time.
template <class T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct BaseShape2D : detail::Matrix<T, Rows, Cols, L>::Stride {
  using Parent = typename detail::Matrix<T, Rows, Cols, L>::Stride;
  static_assert(detail::is_blocked_right<T, Rows, Cols, L>,
                "[PTO][SA-0007] BaseShape2D: rows and columns are not multiples of the blocks of this layout "
                "(NZ: 16 rows, 32 bytes of columns); fix: round them up");
  using Parent::Parent;
  BaseShape2D() = default;
  BaseShape2D(int64_t rows, int64_t cols) : BaseShape2D(detail::stride_2d(L, rows, cols, detail::kC0<T>)) {}

 private:
  BaseShape2D(const detail::Five& f) : Parent(f.at[0], f.at[1], f.at[2], f.at[3], f.at[4]) {}
};

}  // namespace pto
