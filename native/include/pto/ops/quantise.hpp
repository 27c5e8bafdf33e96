// Quantisation of tiles to 8-bit integers by a scale per row, and to MX and HiFloat4 by groups; the reverse.
//
// An MX group has 32 elements and a power of two as scale; a HiFloat4 group has 64 elements and a scale of
// three levels. Groups lie along columns (axis 1) or rows (axis 0) and cover the whole tile in that
// direction. `max` and `scaling` receive a value per group (HiFloat4: per 4 elements) in group order from the
// start of their storage. `exp` receives the exponents as a matrix, or in group order if it has one row.
#pragma once

#include "pto/ops/legality.hpp"

namespace pto::detail {

// --- integers ----------------------------------------------------------------------------------------------

/// Return the nearest 8-bit integer, clamped to its range; 0 for NaN.
template <class T>
PTO_INLINE T quantised(float y) {
  constexpr float low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  y = y == y ? y : 0.0f;
  y = y < low ? low : y > high ? high : y;
  return static_cast<T>(static_cast<int32_t>(__builtin_rintf(y)));
}

template <class Dst, class Src, class Para, class Offset>
inline void quantise_int8(Dst& dst, const Src& src, const Para& scale, const Offset* offset) {
  using T = typename Dst::DType;
  const Lines<Dst> out(dst);
  const Lines<Src> in(src);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  const auto column = [](const auto& tile, ptrdiff_t r) {  // the last valid row also serves the rows after it
    const auto have = static_cast<ptrdiff_t>(tile.GetValidRow());
    if (have == 0) fail("[PTO] TQUANT: the scale or the offset has no valid row");
    return Lines<std::remove_cvref_t<decltype(tile)>>(tile).template get<float>(r < have ? r : have - 1, 0);
  };
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const float factor = column(scale, r), plus = offset != nullptr ? column(*offset, r) : 0.0f;
    const bool adds = offset != nullptr;
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<float> from;
      Buffer<T> to;
      const float* x = in.template read<float>(r, c, n, from.at);
      T* y = to.at;
      loop(n, [=](ptrdiff_t j) {
        const float product = mul(x[j], factor);
        y[j] = quantised<T>(adds ? product + plus : product);
      });
      out.template write<T>(r, c, n, y);
    }
  }
}

// --- MX ----------------------------------------------------------------------------------------------------

struct Mxfp8 {  // elements are e4m3
  static constexpr bool is_fp8 = true;
  static constexpr int emax = 8;
  static constexpr float limit = 448.0f;
};
struct Mxfp4 {  // elements are e2m1
  static constexpr bool is_fp8 = false;
  static constexpr int emax = 2;
  static constexpr float limit = 6.0f;
};

/// Return the largest magnitude of a group so far: `most`, which is 0 at first, or that of x.
template <class Scheme, bool Nv>
PTO_INLINE float larger_size(float most, float x) {
  const float size = __builtin_fabsf(x);
  if constexpr (Scheme::is_fp8) {
    return size > most ? size : most;  // skips NaN
  } else if constexpr (Nv) {
    return size > most || size != size ? size : most;  // NaN stays: nothing is larger than it
  } else {
    const uint32_t high = __builtin_bit_cast(uint32_t, x) & 0x7FFF0000;  // truncated to bf16
    const uint32_t bits = __builtin_bit_cast(uint32_t, most);
    return __builtin_bit_cast(float, high > bits ? high : bits);
  }
}

inline constexpr int kNanExponent = 255;

/// Return the e8m0 code of a group with this largest magnitude.
template <class Scheme, bool Nv>
PTO_INLINE int group_exponent(float largest) {
  const float base = Nv ? largest * (1.0f / Scheme::limit) : largest;
  const uint32_t bits = __builtin_bit_cast(uint32_t, base);
  const int field = static_cast<int>(bits >> 23 & 0xFF);
  const uint32_t mantissa = bits & 0x7FFFFF;
  if (base != base) return kNanExponent;
  if constexpr (Nv) {
    const bool up = mantissa > 0 && field != 0xFE && !(field == 0 && mantissa <= 0x400000);
    return field == 0xFF ? 0xFE : field + up;
  } else {
    return field > Scheme::emax ? field - Scheme::emax : 0;
  }
}

/// Return the factor for the elements of a group: 2**(127 - exponent), or NaN for a NaN exponent.
PTO_INLINE float group_scaling(int exponent, float largest) {
  if (exponent == kNanExponent) return largest;
  const uint32_t bits = exponent == 254 ? 0x400000 : static_cast<uint32_t>(254 - exponent) << 23;
  return __builtin_bit_cast(float, bits);
}

/// Return the code of a scaled value. A zero keeps its sign in e2m1; in e4m3 it keeps it only in the NV
/// scheme, for values below 2**-10.
template <class Scheme, bool Nv>
PTO_INLINE uint8_t group_code(float y) {
  constexpr Mode mode{Round::rint, true, true};
  if constexpr (Scheme::is_fp8) {
    const uint32_t code = encode_code<DType::f8e4m3>(y, mode);
    const bool plain = code == 0x80 && !(Nv && __builtin_fabsf(y) < 0x1p-10f);
    return static_cast<uint8_t>(plain ? 0 : code);
  } else {
    return static_cast<uint8_t>(encode_code<DType::f4e2m1>(y, mode));
  }
}

/// Return a code as an element of a type of the same size.
template <class T>
PTO_INLINE T coded(uint8_t code) {
  return __builtin_bit_cast(T, code);
}

/// Store value number k in a tile that has one per group.
template <class TileT>
inline void put_flat(TileT* tile, ptrdiff_t k, float value) {
  if (tile == nullptr) return;
  PTO_CHECK(k < tile->Numel, "PTO-E2102", "TQUANT: a result of %d elements is too small for the groups",
            tile->Numel);
  using T = typename TileT::DType;
  put_element(tile->data(), static_cast<size_t>(k), element_of<T>(static_cast<compute_t<T>>(value)));
}

/// Store the exponent of group (r, c), where a row has `each` groups.
template <class Exp>
inline void put_exponent(Exp* exp, ptrdiff_t r, ptrdiff_t c, ptrdiff_t each, int code) {
  if (exp == nullptr) return;
  const auto element = coded<typename Exp::DType>(static_cast<uint8_t>(code));
  const ptrdiff_t at = exp->Rows == 1 ? r * each + c : exp->offset(r, c);
  PTO_CHECK(exp->Rows == 1 ? at < exp->Numel : r < exp->Rows && c < exp->Cols, "PTO-E2102",
            "TQUANT: the exponents do not fit %dx%d", exp->Rows, exp->Cols);
  put_element(exp->data(), static_cast<size_t>(at), element);
}

/// Return the position of a group in boxes of 16 lines x 2 groups, the order of a ZZ scale tile.
constexpr ptrdiff_t box_place(ptrdiff_t line, ptrdiff_t g, ptrdiff_t groups) {
  return ((line / 16) * (groups / 2) + g / 2) * 32 + line % 16 * 2 + g % 2;
}

inline constexpr ptrdiff_t kGroup = 32;

template <class Scheme, class Dst>
inline void clear_packed(Dst& dst) {  // tiles of 4-bit elements are cleared first
  if constexpr (!Scheme::is_fp8) std::memset(detail::as_const(dst).data(), 0, dst.GetSizeInBytes());
}

template <class Scheme, bool Nv, class Dst, class Src, class Exp, class Max, class Scaling, class ExpZz>
inline void quantise_rows(Dst& dst, const Src& src, Exp* exp, Max* max, Scaling* scaling, ExpZz* exp_zz) {
  using T = typename Dst::DType;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const ptrdiff_t groups = src.Cols / kGroup;
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow());
  clear_packed<Scheme>(dst);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t g = 0; g < groups; ++g) {
      float from[kGroup], largest = 0;
      const float* x = in.template read<float>(r, g * kGroup, kGroup, from);
      for (ptrdiff_t j = 0; j < kGroup; ++j) largest = larger_size<Scheme, Nv>(largest, x[j]);
      const int code = group_exponent<Scheme, Nv>(largest);
      const float scale = group_scaling(code, largest);
      T to[kGroup];
      for (ptrdiff_t j = 0; j < kGroup; ++j) to[j] = coded<T>(group_code<Scheme, Nv>(x[j] * scale));
      out.template write<T>(r, g * kGroup, kGroup, to);
      put_flat(max, r * groups + g, largest);
      put_flat(scaling, r * groups + g, scale);
      put_exponent(exp, r, g, groups, code);
      if (exp_zz != nullptr)
        put_element(exp_zz->data(), static_cast<size_t>(box_place(r, g, groups)),
                    coded<typename ExpZz::DType>(static_cast<uint8_t>(code)));
    }
  }
}

template <class Scheme, bool Nv, bool Interleave, class Dst, class Src, class Exp, class Max, class Scaling>
inline void quantise_columns(Dst& dst, const Src& src, Exp* exp, Max* max, Scaling* scaling) {
  using T = typename Dst::DType;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const ptrdiff_t groups = src.Rows / kGroup;
  const auto cols = static_cast<ptrdiff_t>(src.GetValidCol());
  clear_packed<Scheme>(dst);
  for (ptrdiff_t g = 0; g < groups; ++g) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<float> buffer, largest, scale;
      Buffer<T> to;
      for (ptrdiff_t j = 0; j < n; ++j) largest.at[j] = 0;
      for (ptrdiff_t k = 0; k < kGroup; ++k) {
        const float* x = in.template read<float>(g * kGroup + k, c, n, buffer.at);
        for (ptrdiff_t j = 0; j < n; ++j) largest.at[j] = larger_size<Scheme, Nv>(largest.at[j], x[j]);
      }
      for (ptrdiff_t j = 0; j < n; ++j) {
        const int code = group_exponent<Scheme, Nv>(largest.at[j]);
        scale.at[j] = group_scaling(code, largest.at[j]);
        put_flat(max, g * cols + c + j, largest.at[j]);
        put_flat(scaling, g * cols + c + j, scale.at[j]);
        if constexpr (Interleave) {  // rows 2p and 2p + 1 side by side, column by column
          put_exponent(exp, g / 2, 2 * (c + j) + g % 2, 2 * cols, code);
          if (g == groups - 1 && g % 2 == 0) put_exponent(exp, g / 2, 2 * (c + j) + 1, 2 * cols, 0);
        } else {
          put_exponent(exp, g, c + j, cols, code);
        }
      }
      for (ptrdiff_t k = 0; k < kGroup; ++k) {
        const float* x = in.template read<float>(g * kGroup + k, c, n, buffer.at);
        for (ptrdiff_t j = 0; j < n; ++j) to.at[j] = coded<T>(group_code<Scheme, Nv>(x[j] * scale.at[j]));
        out.template write<T>(g * kGroup + k, c, n, to.at);
      }
    }
  }
}

// --- HiFloat4 ----------------------------------------------------------------------------------------------

PTO_INLINE float to_bf16(float x) { return decode_code<DType::bf16>(encode_code<DType::bf16>(x)); }

/// Return the nearest e6m2 code of a number >= 0, ties to even; the type has no zero and ends at 0xFE.
inline int e6m2_code(float value) {
  if (value != value) return 0xFF;
  const auto bits = static_cast<int64_t>(__builtin_bit_cast(uint32_t, value));
  const int64_t code = ((bits + 0xFFFFF + (bits >> 21 & 1)) >> 21) - ((127 - 48) << 2);
  return static_cast<int>(code < 0 ? 0 : code > 0xFE ? 0xFE : code);
}
/// Return the value of a code: (1 + m / 4) * 2**(e - 48); 0xFF is NaN.
inline double e6m2_value(int code) {
  if (code == 0xFF) return __builtin_nan("");
  const auto bits = static_cast<uint64_t>(1023 - 48 + (code >> 2)) << 52 | static_cast<uint64_t>(code & 3)
                                                                               << 50;
  return __builtin_bit_cast(double, bits);
}

/// Quantise groups of 64 columns: an e6m2 scale, a bit per 8 elements and a bit per 4 that double it.
template <class Dst, class Src, class Exp, class Max, class Scaling>
inline void quantise_hif4(Dst& dst, const Src& src, Exp* exp, Max* max, Scaling* scaling) {
  using T = typename Dst::DType;
  constexpr ptrdiff_t group = 64, quads = 16;
  const Lines<Src> in(src);
  const Lines<Dst> out(dst);
  const ptrdiff_t groups = src.Cols / group;
  const auto rows = static_cast<ptrdiff_t>(src.GetValidRow());
  const auto larger = [](float a, float b) { return a > b || a != a ? a : b; };  // NaN counts as the largest
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t g = 0; g < groups; ++g) {
      float from[group], per4[quads], per8[quads / 2], whole = 0, scale[quads];
      const float* x = in.template read<float>(r, g * group, group, from);
      for (ptrdiff_t q = 0; q < quads; ++q) {
        per4[q] = __builtin_fabsf(x[4 * q]);
        for (ptrdiff_t j = 1; j < 4; ++j) per4[q] = larger(per4[q], __builtin_fabsf(x[4 * q + j]));
        per8[q / 2] = q % 2 ? larger(per8[q / 2], per4[q]) : per4[q];
        whole = q == 0 ? per4[q] : larger(whole, per4[q]);
      }
      const int ea = e6m2_code(to_bf16(whole * 0.142578125f));  // 1/7 in bf16
      const float inverse = to_bf16(baseline::narrow_to_odd(1.0 / e6m2_value(ea)));
      unsigned eb = 0, ec = 0;
      for (ptrdiff_t q = 0; q < quads; ++q) {
        const bool b = to_bf16(per8[q / 2] * inverse) >= 4;
        const float half_b = b ? 0.5f : 1.0f;
        const bool c = to_bf16(per4[q] * inverse) * half_b >= 2;
        eb |= static_cast<unsigned>(b) << (q / 2);
        ec |= static_cast<unsigned>(c) << q;
        scale[q] = inverse * half_b * (c ? 0.5f : 1.0f);
        put_flat(max, (r * groups + g) * quads + q, per4[q]);
        put_flat(scaling, (r * groups + g) * quads + q, scale[q]);
      }
      T to[group];
      for (ptrdiff_t j = 0; j < group; ++j)
        to[j] = coded<T>(static_cast<uint8_t>(
            encode_code<DType::f4e1m2>(to_bf16(x[j] * scale[j / 4]), Mode{Round::rint, true, true})));
      out.template write<T>(r, g * group, group, to);
      const unsigned cell[4] = {static_cast<unsigned>(ea), eb, ec & 0xFF, ec >> 8};
      for (ptrdiff_t k = 0; k < 4; ++k)
        put_exponent(exp, r, 4 * g + k, 4 * groups, static_cast<int>(cell[k]));
    }
  }
}

// --- schemes by name ---------------------------------------------------------------------------------------

template <QuantType Type, QuantScaleAlg Alg, class Dst, class Src, class Exp, class Max, class Scaling,
          class ExpZz>
inline void quantise_mx(Dst& dst, const Src& src, Exp* exp, Max* max, Scaling* scaling, ExpZz* exp_zz) {
  using Scheme = std::conditional_t<Type == QuantType::MXFP8, Mxfp8, Mxfp4>;
  quantise_rows<Scheme, Alg == QuantScaleAlg::NV>(dst, src, exp, max, scaling, exp_zz);
}

/// `Turned`: the instruction for groups along rows, which may interleave exponents.
template <int Axis, MxQuantAlg Alg, bool Turned, bool Interleave, class Dst, class Src, class Exp, class Max,
          class Scaling>
inline void quantise_axis(Dst& dst, const Src& src, Exp* exp, Max* max, Scaling* scaling) {
  static_assert(Axis == 0 || Axis == 1, "[PTO][PTO-E0501] TQUANT: groups lie along rows (0) or columns (1)");
  constexpr bool nv = Alg == MxQuantAlg::NvMxFp8E4M3 || Alg == MxQuantAlg::NvMxFp4E2M1;
  constexpr bool fp8 = Alg == MxQuantAlg::OcpMxFp8E4M3 || Alg == MxQuantAlg::NvMxFp8E4M3;
  using Scheme = std::conditional_t<fp8, Mxfp8, Mxfp4>;
  if constexpr (Alg == MxQuantAlg::Hif4) {
    static_assert(Axis == 1, "[PTO][PTO-E0501] TQUANT: HiFloat4 groups lie along columns");
    PTO_LEGAL(check_tquant_hif4<Dst, Src, Exp, Max, Scaling>());
    quantise_hif4(dst, src, exp, max, scaling);
  } else {
    constexpr QuantType type = fp8 ? QuantType::MXFP8 : QuantType::MXFP4_E2M1;
    if constexpr (Turned) {
      PTO_LEGAL(check_tquant_dn<Dst, Src, Exp, Max, Scaling, type, Interleave>());
    } else {
      PTO_LEGAL(check_tquant_with_exp_max_scaling<Dst, Src, Exp, Max, Scaling, type, Axis>(dst, src));
    }
    if constexpr (Axis == 1) {
      quantise_rows<Scheme, nv>(dst, src, exp, max, scaling, static_cast<Exp*>(nullptr));
    } else {
      quantise_columns<Scheme, nv, Interleave>(dst, src, exp, max, scaling);
    }
  }
}

}  // namespace pto::detail

namespace pto {

// --- by groups ---------------------------------------------------------------------------------------------

template <auto quant_type, class Dst, class Src, class Exp, class Max, class Scaling,
          auto scale_alg = QuantScaleAlg::OCP, class... Events>
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Exp* exp, Max* max, Scaling* scaling, Events&... events) {
  PTO_LEGAL(check_tquant_with_exp_max_scaling<Dst, Src, Exp, Max, Scaling, quant_type>(dst, src));
  TSYNC(events...);
  PTO_TRACE("tquant dst src exp max scaling: quant_type scale_alg", PTO_SAYS(quant_type, scale_alg), dst, src,
            *exp, *max, *scaling);
  detail::quantise_mx<quant_type, scale_alg>(dst, src, exp, max, scaling, static_cast<Exp*>(nullptr));
  return {};
}
/// Quantise by groups; the algorithm is the second template argument.
template <auto quant_type, QuantScaleAlg scale_alg, class Dst, class Src, class Exp, class Max, class Scaling,
          class... Events>
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Exp* exp, Max* max, Scaling* scaling, Events&... events) {
  PTO_LEGAL(check_tquant_with_exp_max_scaling<Dst, Src, Exp, Max, Scaling, quant_type>(dst, src));
  TSYNC(events...);
  PTO_TRACE("tquant dst src exp max scaling: quant_type scale_alg", PTO_SAYS(quant_type, scale_alg), dst, src,
            *exp, *max, *scaling);
  detail::quantise_mx<quant_type, scale_alg>(dst, src, exp, max, scaling, static_cast<Exp*>(nullptr));
  return {};
}
/// Quantise by groups, and store the exponents also in the order of a ZZ scale tile.
template <auto quant_type, VecStoreMode store_mode, class Dst, class Src, class Exp, class Max, class Scaling,
          class ExpZz, class... Events>
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Exp* exp, Max* max, Scaling* scaling, ExpZz* exp_zz,
                            Events&... events) {
  PTO_LEGAL(
      check_tquant_with_exp_max_scaling_exp_zz<Dst, Src, Exp, Max, Scaling, ExpZz, quant_type>(dst, src));
  TSYNC(events...);
  PTO_TRACE("tquant dst src exp max scaling exp_zz: quant_type", PTO_SAYS(quant_type), dst, src, *exp, *max,
            *scaling, *exp_zz);
  detail::quantise_mx<quant_type, QuantScaleAlg::OCP>(dst, src, exp, max, scaling,
                                                      store_mode == VecStoreMode::NZ ? exp_zz : nullptr);
  return {};
}
/// Quantise by groups along rows (grp_axis 0) or columns (1).
template <int grp_axis, auto mx_alg, class Dst = void, class Src = void, class Exp = void, class Max = void,
          class Scaling = void, class... Events>
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Exp* exp, Max* max, Scaling* scaling, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tquant_axis dst src exp max scaling: grp_axis mx_alg", PTO_SAYS(grp_axis, mx_alg), dst, src,
            *exp, *max, *scaling);
  detail::quantise_axis<grp_axis, mx_alg, false, false>(dst, src, exp, max, scaling);
  return {};
}
/// Quantise by groups; `interleave` stores the exponents of two row groups side by side.
template <int grp_axis, auto mx_alg, bool interleave, class Dst = void, class Src = void, class Exp = void,
          class Max = void, class Scaling = void, class... Events>
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Exp* exp, Max* max, Scaling* scaling, Events&... events) {
  TSYNC(events...);
  PTO_TRACE("tquant_axis dst src exp max scaling: grp_axis mx_alg interleave",
            PTO_SAYS(grp_axis, mx_alg, interleave), dst, src, *exp, *max, *scaling);
  detail::quantise_axis<grp_axis, mx_alg, grp_axis == 0, interleave>(dst, src, exp, max, scaling);
  return {};
}

// --- by rows -----------------------------------------------------------------------------------------------

/// Quantise by rows. INT8_SYM: x * scale as i8; INT8_ASYM: x * scale + offset as u8.
template <auto quant_type, class Dst, class Src, class Para, class Offset = Para, class... Events>
  requires(is_tile_data_v<Para> && all_events_v<Events...>)
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Para& scale, Offset* offset = nullptr, Events&... events) {
  if constexpr (quant_type == QuantType::INT8_ASYM) {
    PTO_LEGAL(check_tquant_with_fp_offset<Dst, Src, Para, Offset, quant_type>(dst, src));
  } else {
    PTO_LEGAL(check_tquant_with_fp<Dst, Src, Para, quant_type>(dst, src));
  }
  TSYNC(events...);
  PTO_TRACE_EITHER(offset != nullptr,
                   ("tquant dst src fp offset: quant_type", PTO_SAYS(quant_type), dst, src, scale, *offset),
                   ("tquant dst src fp: quant_type", PTO_SAYS(quant_type), dst, src, scale));
  detail::quantise_int8(dst, src, scale, offset);
  return {};
}
/// Quantise by rows with a scratch tile, which the A2/A3 vector unit needs.
template <auto quant_type, class Dst, class Src, class Para, class Tmp, class Offset = Para, class... Events>
  requires(is_tile_data_v<Tmp> && all_events_v<Events...>)
PTO_INST RecordEvent TQUANT(Dst& dst, Src& src, Para& scale, Tmp&, Offset* offset = nullptr,
                            Events&... events) {
  return TQUANT<quant_type>(dst, src, scale, offset, events...);
}

namespace detail {

/// Compute dst = (src - offset) * scale: src is converted to the dst type, arithmetic is f32, and the result
/// is rounded to dst. The last valid column of scale and offset also serves the columns after it.
template <class Dst, class Src, class Para, class Offset>
inline void dequantisation(Dst& dst, Src& src, Para& scale, Offset& offset) {
  using D = typename Dst::DType;
  const Lines<Dst> out(dst);
  const Lines<Src> in(src);
  const Lines<Para> factors(scale);
  const Lines<Offset> offsets(offset);
  const auto rows = static_cast<ptrdiff_t>(dst.GetValidRow()),
             cols = static_cast<ptrdiff_t>(dst.GetValidCol());
  const ptrdiff_t width = scale.GetValidCol() == 0 ? 1 : static_cast<ptrdiff_t>(scale.GetValidCol());
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; c += kChunk) {
      const ptrdiff_t n = cols - c < kChunk ? cols - c : kChunk;
      Buffer<float> to;
      for (ptrdiff_t j = 0; j < n; ++j) {
        const ptrdiff_t p = c + j < width ? c + j : width - 1;
        const float x = value_of<float>(static_cast<D>(in.get(r, c + j)));
        to.at[j] = (x - offsets.template get<float>(r, p)) * factors.template get<float>(r, p);
      }
      out.template write<float>(r, c, n, to.at);
    }
  }
}

}  // namespace detail

}  // namespace pto
