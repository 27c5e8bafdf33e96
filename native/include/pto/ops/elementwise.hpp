// Element-wise instructions, tile with tile and tile with scalar. Most are generated (meanings.hpp); this
// file has those that need more than one expression.
#pragma once

#include "pto/ops/meanings.hpp"

namespace pto {

namespace detail {

template <>
inline constexpr bool is_long<Meaning<texp, float, float, float>> = true;
template <>
inline constexpr bool is_long<Meaning<tlog, float, float, float>> = true;

#ifdef PTO_VECTOR_MATH
template <>
inline constexpr auto by_hand<Meaning<texp, float, float, float>> = &math::exp_many;
template <>
inline constexpr auto by_hand<Meaning<tlog, float, float, float>> = &math::log_many;
#endif

#ifdef PTO_COMPUTES_HALVES
#define PTO_IN_HALVES(M, op)                                                                             \
  template <>                                                                                            \
  struct InHalves<Meaning<M, half, half, half, half>> {                                                  \
    static constexpr bool any = true;                                                                    \
    static PTO_INLINE halves::Vec of(Meaning<M, half, half, half, half>, halves::Vec a, halves::Vec b) { \
      return halves::op(a, b);                                                                           \
    }                                                                                                    \
  };                                                                                                     \
  template <>                                                                                            \
  struct InHalves<ScalarMeaning<M##s, half, half, half>> {                                               \
    static constexpr bool any = true;                                                                    \
    static PTO_INLINE halves::Vec of(ScalarMeaning<M##s, half, half, half> f, halves::Vec a) {           \
      return halves::op(a, halves::all(half(f.scalar).data));                                            \
    }                                                                                                    \
  };
PTO_IN_HALVES(tadd, add)
PTO_IN_HALVES(tsub, sub)
PTO_IN_HALVES(tmul, mul)
PTO_IN_HALVES(tdiv, div)
PTO_IN_HALVES(tmax, max)
PTO_IN_HALVES(tmin, min)
#undef PTO_IN_HALVES
#endif

/// Compute s * x + z; only f16 into f16 rounds the product.
template <class D>
struct axpy {
  static constexpr bool converts = false;
  template <class T>
  static PTO_INLINE auto of(wide_t<T> s, wide_t<T> x, wide_t<D> z) {
    if constexpr (std::is_same_v<D, half>) {
      return add(round<T>(mul(s, x)), z);
    } else {
      return add(mul(s, x), z);
    }
  }
};

/// Scale a sum of integers and apply ReLU, in f16. The hardware multiplies by 2**-17, the scale and 2**17,
/// and saturates; the simulator rounds and overflows.
struct deq_relu {
  static PTO_INLINE float of(float scale, int32_t x, int32_t y) {
    const float total = static_cast<float>(add(x, y));
    PTO_IF_TARGET(kIsa == Isa::cpu) return relu(round<half>(mul(total, scale)));
    const float scaled = mul(mul(mul(total, 0x1p-17f), scale), 0x1p17f);
    return saturated<half>(relu(scaled));
  }
};

/// Add a scaled tile to dst.
template <class Dst, class Src>
inline void taxpy(Dst& dst, Src& src, typename Src::DType scalar) {
  compute_scalar<axpy<typename Dst::DType>>(dst, scalar, src, dst);
}

/// Add integers, dequantise the sum by a scale, and apply ReLU.
template <class Dst, class Src0, class Src1>
inline void tadddeqrelu(Dst& dst, Src0& src0, Src1& src1, float deqScale) {
  map(dst, [deqScale](int32_t x, int32_t y) { return deq_relu::of(deqScale, x, y); }, src0, src1);
}

/// Fill the valid region of a vec tile, or all of a mat or convolution tile.
template <class Dst>
inline void texpands(Dst& dst, typename Dst::DType scalar) {
  using T = typename Dst::DType;
  if constexpr (is_conv_tile_v<Dst>) {
    T* data = dst.data();
    size_t count = 1;
    for (int d = 0; d < Dst::totalDimCount; ++d) count *= static_cast<size_t>(dst.GetShape(d));
    for (size_t i = 0; i < count; ++i) put_element(data, i, scalar);
  } else {
    const bool whole = Dst::Loc == TileType::Mat;
    fill_region(whole ? dst.Rows : dst.GetValidRow(), whole ? dst.Cols : dst.GetValidCol(), dst, scalar);
  }
}

}  // namespace detail

}  // namespace pto
