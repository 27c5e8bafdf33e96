// Convolution tiles: changes of layout, fractal windows, unfolded feature maps, and the registers that
// describe them.
#pragma once

#include "pto/core/events.hpp"
#include "pto/ops/copy.hpp"
#include "pto/ops/legality.hpp"

namespace pto {

namespace detail {

/// Rows of a fractal in the N direction.
inline constexpr ptrdiff_t kN0 = 16;

/// Return a / b, rounded down.
template <class N>
constexpr ptrdiff_t floored(N a, ptrdiff_t b) {
  const ptrdiff_t wide = static_cast<ptrdiff_t>(a);
  return wide / b - (wide % b < 0);
}

/// Return the number of elements of a tile.
template <class TileT>
inline ptrdiff_t count_of(const TileT& tile) {
  return static_cast<ptrdiff_t>(tile.GetSizeInBytes() * 8 / bits_of<typename TileT::DType>);
}
template <class To, class From>
inline void copy_element(To& to, ptrdiff_t at, const From& from, ptrdiff_t of) {
  using T = typename To::DType;
  if (at < 0 || of < 0 || at >= count_of(to) || of >= count_of(from)) [[unlikely]]
    fail("[PTO-E2101] the sizes of a convolution tile lead outside the other tile");
  const auto found = element_at<typename From::DType>(from.data(), static_cast<size_t>(of));
  put_element<T>(detail::as_const(to).data(), static_cast<size_t>(at), __builtin_bit_cast(T, found));
}

/// Fill dst with elements (k, n) of a FRACTAL_Z tile, an array of blocks [k / C0, n / 16, 16, C0]; the window
/// starts at whole blocks.
template <class Dst, class Src>
inline void copy_fractal_window(Dst& dst, const Src& src, ptrdiff_t row, ptrdiff_t col) {
  static_assert(Src::layout == Layout::FRACTAL_Z || Src::layout == Layout::FRACTAL_Z_3D ||
                    Src::layout == Layout::FRACTAL_Z_S16S8,
                "[PTO][SA-0159] TEXTRACT: the convolution tile is not FRACTAL_Z; fix: TTRANS it first");
  constexpr int last = Src::totalDimCount - 1;
  const ptrdiff_t c0 = src.GetShape(last);
  const ptrdiff_t n = src.GetShape(last - 1) * (Src::totalDimCount == 4 ? src.GetShape(last - 2) : 1);
  const ptrdiff_t first = row * bits_of<typename Src::DType> / 256 * c0, column = col / kN0 * kN0;
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(dst.GetValidRow()); ++i) {
    const ptrdiff_t k = first + i, line = k / c0 * n * c0 + k % c0;
    for (ptrdiff_t j = 0; j < static_cast<ptrdiff_t>(dst.GetValidCol()); ++j)
      copy_element(dst, dst.offset(i, j), src, line + (column + j) * c0);
  }
}

/// Move every element of a convolution tile to its position in another layout (TTRANS).
template <class Dst, class Src>
inline void change_layout(Dst& dst, const Src& src) {
  constexpr Layout from = Src::layout, to = Dst::layout;
  constexpr int last = Src::totalDimCount - 1, to_last = Dst::totalDimCount - 1;
  constexpr bool blocks =
      (from == Layout::NCHW && to == Layout::NC1HWC0) || (from == Layout::GNCHW && to == Layout::GNC1HWC0);
  constexpr bool plain = from == Layout::NC1HWC0 && to == Layout::NCHW;
  constexpr bool fractal = (from == Layout::NC1HWC0 || from == Layout::GNC1HWC0) && to == Layout::FRACTAL_Z;
  constexpr bool deep = from == Layout::NCDHW && to == Layout::FRACTAL_Z_3D;
  static_assert(blocks || plain || fractal || deep,
                "[PTO][SA-0342] TTRANS: no change between these convolution layouts");
  const auto in = [&](int d) { return static_cast<ptrdiff_t>(src.GetShape(d)); };
  const auto out = [&](int d) { return static_cast<ptrdiff_t>(dst.GetShape(d)); };
  if constexpr (blocks || plain) {
    // Group channels into blocks, or the reverse. Channels that fill up the last block are not written.
    const auto size = [&](int back) { return blocks ? in(last - back) : out(to_last - back); };
    const ptrdiff_t channels = size(2), h = size(1), w = size(0);
    const ptrdiff_t c1 = blocks ? out(to_last - 3) : in(last - 3), c0 = blocks ? out(to_last) : in(last);
    ptrdiff_t images = 1;
    for (int d = 0; d < (blocks ? last : to_last) - 2; ++d) images *= blocks ? in(d) : out(d);
    ptrdiff_t at = 0;
    for (ptrdiff_t image = 0; image < images; ++image)
      for (ptrdiff_t c = 0; c < channels; ++c)
        for (ptrdiff_t y = 0; y < h; ++y)
          for (ptrdiff_t x = 0; x < w; ++x, ++at) {
            const ptrdiff_t block = (((image * c1 + c / c0) * h + y) * w + x) * c0 + c % c0;
            copy_element(dst, blocks ? block : at, src, blocks ? at : block);
          }
  } else {
    const ptrdiff_t n1 = out(to_last - 2), n0 = out(to_last - 1), c0 = out(to_last);
    const auto fractal_at = [=](ptrdiff_t block, ptrdiff_t n, ptrdiff_t c) {
      return ((block * n1 + n / n0) * n0 + n % n0) * c0 + c;
    };
    ptrdiff_t at = 0;
    if constexpr (fractal) {
      const ptrdiff_t groups = last == 5 ? in(0) : 1, images = in(last - 4), c1 = in(last - 3),
                      h = in(last - 2), w = in(last - 1), inner = in(last);
      for (ptrdiff_t g = 0; g < groups; ++g)
        for (ptrdiff_t n = 0; n < images; ++n)
          for (ptrdiff_t block = 0; block < c1 * h * w; ++block)
            for (ptrdiff_t c = 0; c < inner; ++c, ++at)
              copy_element(dst, fractal_at(g * c1 * h * w + block, n, c), src, at);
    } else {
      const ptrdiff_t images = in(0), channels = in(1), depth = in(2), h = in(3), w = in(4);
      const ptrdiff_t c1 = (channels + c0 - 1) / c0;
      for (ptrdiff_t n = 0; n < images; ++n)
        for (ptrdiff_t c = 0; c < channels; ++c)
          for (ptrdiff_t d = 0; d < depth; ++d)
            for (ptrdiff_t s = 0; s < h * w; ++s, ++at)
              copy_element(dst, fractal_at((d * c1 + c / c0) * h * w + s, n, c % c0), src, at);
    }
  }
}

template <SetFmatrixMode Mode>
inline constexpr bool kIsManual =
    Mode == SetFmatrixMode::FMATRIX_A_MANUAL || Mode == SetFmatrixMode::FMATRIX_B_MANUAL;
template <SetFmatrixMode Mode>
inline constexpr int kWhich =
    Mode == SetFmatrixMode::FMATRIX_B_MANUAL || Mode == SetFmatrixMode::FMATRIX_B_AUTO;

}  // namespace detail

// --- registers: no effect on data; the automatic modes leave them to TIMG2COL -----------------------------

namespace detail {

template <SetFmatrixMode Mode, class Conv>
inline void feature_map(Conv& src) {
  constexpr int last = Conv::totalDimCount - 1;
  constexpr bool blocks =
      Conv::layout == Layout::NC1HWC0 || Conv::layout == Layout::NDC1HWC0 || Conv::layout == Layout::GNC1HWC0;
  const int64_t dim_h = src.GetShape(blocks ? last - 2 : last - 1),
                dim_w = src.GetShape(blocks ? last - 1 : last);
  const uint64_t height = src.GetFmapH() != 0 ? src.GetFmapH() : static_cast<uint64_t>(dim_h);
  const uint64_t width = src.GetFmapW() != 0 ? src.GetFmapW() : static_cast<uint64_t>(dim_w);
  uint64_t word = (width & 0xFFFF) | (height & 0xFFFF) << 16;
  for (uint8_t n = 0; n < 4; ++n) word |= static_cast<uint64_t>(src.GetPadList(n)) << (32 + 8 * n);
  if constexpr (kIsManual<Mode>) core().fmatrix[kWhich<Mode>] = word;
}

template <SetFmatrixMode Mode, class Conv>
inline void window_repetition(Conv& src) {
  uint64_t word = src.GetRepeatStride() | static_cast<uint64_t>(src.GetRepeatTime()) << 16 |
                  static_cast<uint64_t>(src.GetRepeatMode()) << 24;
  PTO_IF_TARGET(kIsa != Isa::a2a3)
  word |= static_cast<uint64_t>(src.GetDstStride()) << 32 | static_cast<uint64_t>(src.GetDstMposition())
                                                                << 48;
  if constexpr (kIsManual<Mode>) core().repeat = word;
}

template <SetFmatrixMode Mode, class Conv>
inline void window_padding(Conv& src) {
  using T = typename Conv::DType;
  const uint64_t code = __builtin_bit_cast(code_t<T>, src.GetPadValue());
  if constexpr (kIsManual<Mode>) core().padding = bits_of<T> <= 8 ? code | code << 8 : code;
}

}  // namespace detail

// --- TIMG2COL ---------------------------------------------------------------------------------------------

/// Unfold a feature map: row m of dst is an output position, column k a filter tap in a channel. The element
/// is the input at that tap.
template <class TileT, class Conv, SetFmatrixMode Mode = SetFmatrixMode::FMATRIX_A_MANUAL, class... Events>
PTO_INST RecordEvent TIMG2COL(TileT& dst, Conv& src, uint16_t pos_m = 0, uint16_t pos_k = 0,
                              Events&... events) {
  PTO_LEGAL(check_timg2col<TileT, Conv>());
  TSYNC(events...);
  PTO_TRACE("timg2col dst src posM posK: fmatrix_mode", PTO_SAYS(Mode), dst, src, pos_m, pos_k);
  using T = typename Conv::DType;
  constexpr bool deep = Conv::layout == Layout::NDC1HWC0;
  const auto dim = [&](int d) { return static_cast<ptrdiff_t>(src.GetShape(d)); };
  constexpr int shift = deep ? 1 : 0;
  const ptrdiff_t images = dim(0), depth = deep ? dim(1) : 1, c1s = dim(1 + shift), high = dim(2 + shift),
                  wide = dim(3 + shift);
  const ptrdiff_t c0s = Conv::totalDimCount > 4 + shift ? dim(4 + shift) : 256 / detail::bits_of<T>;
  const ptrdiff_t left = src.GetPadList(0), right = src.GetPadList(1), top = src.GetPadList(2),
                  bottom = src.GetPadList(3);
  const ptrdiff_t fh = src.GetFilterH(), fw = src.GetFilterW(), dh = src.GetDilationH(),
                  dw = src.GetDilationW(), sh = src.GetStrideH(), sw = src.GetStrideW();
  const ptrdiff_t out_h = detail::floored(high + top + bottom - dh * (fh - 1) - 1, sh) + 1;
  const ptrdiff_t out_w = detail::floored(wide + left + right - dw * (fw - 1) - 1, sw) + 1;
  if (out_h <= 0 || out_w <= 0)
    detail::failf("[PTO-E2102] TIMG2COL: the filter does not fit the padded feature map");
  const auto to = detail::place(dst);
  const T* data = src.data();
  const T outside = src.GetPadValue();
  detail::Buffer<T> line;
  for (ptrdiff_t r = 0; r < static_cast<ptrdiff_t>(dst.GetValidRow()); ++r) {
    const ptrdiff_t m = pos_m + r, place = m % (out_h * out_w);
    const ptrdiff_t image = m / (depth * out_h * out_w), d = m / (out_h * out_w) % depth;
    const ptrdiff_t y0 = place / out_w * sh - top, x0 = place % out_w * sw - left;
    const ptrdiff_t cols = dst.GetValidCol();
    for (ptrdiff_t c = 0; c < cols; c += detail::kChunk) {
      const ptrdiff_t n = detail::lesser(cols - c, detail::kChunk);
      for (ptrdiff_t i = 0; i < n; ++i) {
        const ptrdiff_t k = pos_k + c + i, tap = k / c0s % (fh * fw), c1 = k / (c0s * fh * fw), c0 = k % c0s;
        const ptrdiff_t y = y0 + tap / fw * dh, x = x0 + tap % fw * dw;
        const bool inside = image < images && c1 < c1s && y >= 0 && y < high && x >= 0 && x < wide;
        const ptrdiff_t at = ((((image * depth + d) * c1s + c1) * high + y) * wide + x) * c0s + c0;
        line.at[i] = inside ? detail::element_at<T>(data, static_cast<size_t>(at)) : outside;
      }
      if constexpr (std::is_same_v<T, typename TileT::DType>) {
        detail::put_row(to, r, c, n, line.at);
      } else {
        detail::put_row(to, r, c, n, reinterpret_cast<const typename TileT::DType*>(line.at));
      }
    }
  }
  return {};
}

}  // namespace pto
