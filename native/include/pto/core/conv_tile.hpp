// ConvTile: a feature map or weights in on-chip memory, with one to six dimensions and the parameters that
// img2col reads.
#pragma once

#include "pto/core/tile.hpp"

namespace pto {

namespace ConvTileDetail {
inline constexpr int MAX_CONVTILE_DIM = 6;
}

template <int64_t... N>
struct ConvTileShape {
  static constexpr int totalDimCount = sizeof...(N);
  static constexpr int dynamicDimCount = ((N == DYNAMIC) + ... + 0);
  static constexpr int64_t staticShape[6] = {N...};
  int64_t shape[6] = {};

  constexpr ConvTileShape() { fill(nullptr); }
  template <class... Size>
    requires(sizeof...(Size) > 0 && (std::is_integral_v<Size> && ...))
  constexpr ConvTileShape(Size... sizes) {
    static_assert(sizeof...(Size) == dynamicDimCount || sizeof...(Size) == 6,
                  "[PTO][SA-0001] ConvTileShape: give one size per dynamic dimension, or all six");
    const int64_t values[] = {static_cast<int64_t>(sizes)...};
    fill(values, sizeof...(Size) == 6);
  }

  constexpr void fill(const int64_t* values, bool by_position = false) {
    int next = 0;
    for (int d = 0; d < totalDimCount; ++d) {
      shape[d] = staticShape[d] != DYNAMIC ? staticShape[d]
                 : values == nullptr       ? 1
                                           : values[by_position ? d : next];
      next += staticShape[d] == DYNAMIC;
    }
  }
};

template <TileType Loc_, class Element_, int BufferSize_, Layout Layout_, class Shape_>
struct ConvTile {
  using DType = Element_;
  using ShapeType = Shape_;
  using TileDType = DType*;
  static constexpr TileType Loc = Loc_;
  static constexpr int bufferSize = BufferSize_;
  static constexpr Layout layout = Layout_;
  static constexpr int totalDimCount = Shape_::totalDimCount, dynamicDimCount = Shape_::dynamicDimCount;
  static constexpr int64_t staticShape[6] = {Shape_::staticShape[0], Shape_::staticShape[1],
                                             Shape_::staticShape[2], Shape_::staticShape[3],
                                             Shape_::staticShape[4], Shape_::staticShape[5]};
  static_assert(totalDimCount >= 1 && totalDimCount <= 6, "[PTO][SA-0064] ConvTile: one to six dimensions");

  ConvTile() = default;
  /// Construct from the sizes of the dynamic dimensions, in order, or from six sizes.
  template <class... Size>
    requires(sizeof...(Size) > 0 && (std::is_integral_v<Size> && ...))
  explicit ConvTile(Size... sizes) : extent_(sizes...) {}
  template <class... Size>
  void SetDynamicShape(Size... sizes) {
    extent_ = Shape_(sizes...);
  }
  int64_t GetShape(int dim) const { return dim < 0 || dim >= totalDimCount ? -1 : extent_.shape[dim]; }

#ifdef __PTO_AUTO__
  TileDType& data() {
    detail::keep_order();
    if (data_ == nullptr) data_ = reinterpret_cast<DType*>(own_.make(Loc, GetSizeInBytes()));
    return data_;
  }
  const TileDType& data() const { return const_cast<ConvTile*>(this)->data(); }
#else
  TileDType& data() {
    detail::keep_order();
    return data_;
  }
  const TileDType& data() const {
    detail::keep_order();
    return data_;
  }
#endif
#ifdef PTO_CPU_OPEN  // sizes are known only at run time
  size_t GetSizeInBytes() const {
    size_t count = 1;
    for (int d = 0; d < totalDimCount; ++d) count *= static_cast<size_t>(extent_.shape[d]);
    return detail::bytes_of<DType>(count);
  }
#else
  static constexpr size_t GetSizeInBytes() { return detail::bytes_of<DType>(BufferSize_); }
#endif

#define PTO_CONV_FIELD(type, Name, field)  \
  type Get##Name() const { return field; } \
  void Set##Name(type value) { field = value; }
  PTO_CONV_FIELD(uint16_t, FmapH, fmap_h_)
  PTO_CONV_FIELD(uint16_t, FmapW, fmap_w_)
  PTO_CONV_FIELD(uint16_t, FilterH, filter_h_)
  PTO_CONV_FIELD(uint16_t, FilterW, filter_w_)
  PTO_CONV_FIELD(uint8_t, DilationH, dilation_h_)
  PTO_CONV_FIELD(uint8_t, DilationW, dilation_w_)
  PTO_CONV_FIELD(uint8_t, StrideH, stride_h_)
  PTO_CONV_FIELD(uint8_t, StrideW, stride_w_)
  PTO_CONV_FIELD(DType, PadValue, pad_value_)
  PTO_CONV_FIELD(uint16_t, ChannelSize, channel_size_)
  PTO_CONV_FIELD(uint16_t, RepeatStride, repeat_stride_)
  PTO_CONV_FIELD(uint8_t, RepeatTime, repeat_time_)
  PTO_CONV_FIELD(uint8_t, RepeatMode, repeat_mode_)
  PTO_CONV_FIELD(uint16_t, DstStride, dst_stride_)
  PTO_CONV_FIELD(uint16_t, DstMposition, dst_mposition_)
  PTO_CONV_FIELD(bool, Transpose, transpose_)
#undef PTO_CONV_FIELD
  uint8_t GetPadList(uint8_t index) const { return pad_list_[index]; }
  void SetPadList(uint8_t index, uint8_t value) { pad_list_[index] = value; }
  const uint8_t* GetPadListArray() const { return pad_list_; }
  void SetPadListArray(const uint8_t (&values)[4]) {
    for (int i = 0; i < 4; ++i) pad_list_[i] = values[i];
  }

 private:
  template <class>
  friend struct detail::Binder;

  TileDType data_ = nullptr;
  Shape_ extent_;
  uint8_t pad_list_[4] = {};
  uint16_t fmap_h_ = 0, fmap_w_ = 0, filter_h_ = 1, filter_w_ = 1;
  uint8_t dilation_h_ = 1, dilation_w_ = 1, stride_h_ = 1, stride_w_ = 1;
  DType pad_value_ = DType(0);
  uint16_t channel_size_ = 0, repeat_stride_ = 0;
  uint8_t repeat_time_ = 1, repeat_mode_ = 0;
  uint16_t dst_stride_ = 0, dst_mposition_ = 0;
  bool transpose_ = false;
#ifdef __PTO_AUTO__
  detail::OwnStorage own_;
#endif
};

template <class T>
struct is_conv_tile : std::false_type {};
template <TileType L, class E, int B, Layout F, class S>
struct is_conv_tile<ConvTile<L, E, B, F, S>> : std::true_type {};
template <class T>
inline constexpr bool is_conv_tile_v = is_conv_tile<std::remove_cv_t<T>>::value;

}  // namespace pto
