// Element types (half, bfloat16_t, the 8- and 4-bit floats, int4b_t) and their traits.
//
// All small floats are instances of one class template that holds the bits. They convert to float exactly,
// and from numbers by rounding to nearest, ties to even (hif8: away from zero). Expressions with them are
// evaluated in float, as on the hardware. An object of a 4-bit type is a byte with two elements; an object
// made from a number holds one element, in its low half.
//
//   dtype_of<T>     DType of an element type        bits_of<T>    its number of bits: 4, 8, 16, 32 or 64
//   compute_t<T>    type of expressions: float for every float below f64, int8_t for int4b_t, else T
//   code_t<T>       unsigned integer for a code (uint8_t for 4-bit types, with one element)
//   decode<T>(code) value of an element             encode<T>(x)  element nearest to x, as a code
#pragma once

#include <limits>
#include <type_traits>

#include "pto/core/machine_facts.hpp"
#include "pto/core/macros.hpp"
#include "pto/detail/convert.hpp"

namespace pto::detail {

/// Return the value of a code of a small float.
template <DType D>
constexpr float decode_code(uint32_t code) {
  if constexpr (D == DType::hif8) {
    return baseline::decode_hif8(code);
  } else if constexpr (D == DType::f8e8m0) {
    return baseline::decode_e8m0(code);
  } else if constexpr (D == DType::bf16) {
    return __builtin_bit_cast(float, code << 16);
  } else {
    return baseline::decode_fields<kFields<D>>(code);
  }
}

/// Return the code of the small float nearest to a float.
template <DType D>
constexpr uint32_t encode_code(float value, Mode mode = {}) {
  if constexpr (D == DType::hif8) {  // hif8 rounds ties away from zero
    return baseline::encode_hif8(value, baseline::Bias<uint64_t>(Round::round), mode);
  } else if constexpr (D == DType::f8e8m0) {
    return baseline::encode_e8m0(value, baseline::Bias<uint64_t>(Round::rint), mode);
  } else {
    return baseline::encode_nearest<kFields<D>>(value, mode);
  }
}

/// A floating-point type of 16 bits or fewer.
template <DType D>
struct SmallFloat {
  using Code = std::conditional_t<bits_in(D) == 16, uint16_t, uint8_t>;
  Code data;

  SmallFloat() = default;
  template <class N>
    requires(std::is_arithmetic_v<N>)
  constexpr SmallFloat(N value) : data(nearest(value)) {}
  template <DType E>
    requires(E != D)
  constexpr SmallFloat(SmallFloat<E> value) : data(nearest(static_cast<float>(value))) {}

  constexpr operator float() const { return decode_code<D>(is_float4(D) ? data & 0xF : data); }

  static constexpr SmallFloat FromRaw(Code code) {
    SmallFloat made{};
    made.data = code;
    return made;
  }
  constexpr Code RawData() const { return data; }

  constexpr SmallFloat& operator+=(float x) { return *this = SmallFloat(float(*this) + x); }
  constexpr SmallFloat& operator-=(float x) { return *this = SmallFloat(float(*this) - x); }
  constexpr SmallFloat& operator*=(float x) { return *this = SmallFloat(float(*this) * x); }
  constexpr SmallFloat& operator/=(float x) { return *this = SmallFloat(float(*this) / x); }
  constexpr SmallFloat operator-() const {
    if constexpr (bits_in(D) == 16) {
      return FromRaw(static_cast<Code>(data ^ 0x8000));
    } else {
      return SmallFloat(-float(*this));
    }
  }

 private:
  template <class N>
  static constexpr Code nearest(N value) {
    if constexpr (std::is_same_v<N, float>) {
      return static_cast<Code>(encode_code<D>(value));
    } else if constexpr (std::is_integral_v<N> && sizeof(N) == 8) {
      const bool negative = value < 0;
      const double size =
          baseline::round_to_odd(negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
      return static_cast<Code>(encode_code<D>(baseline::narrow_to_odd(negative ? -size : size)));
    } else {
      return static_cast<Code>(encode_code<D>(baseline::narrow_to_odd(static_cast<double>(value))));
    }
  }
};

}  // namespace pto::detail

#define PTO_ALIAS_(name, cpp) using cpp = pto::detail::SmallFloat<pto::detail::DType::name>;
PTO_SMALL_FLOATS(PTO_ALIAS_)
#undef PTO_ALIAS_
using float16_t = half;
using float32_t = float;
#ifdef __CPU_SIM
using aclFloat16 = half;
#endif

namespace pto {

/// Two signed 4-bit integers in a byte; an object made from a number holds one, in the low half.
struct int4b_t {
  uint8_t storage;
  int4b_t() = default;
  constexpr explicit int4b_t(int32_t value) : storage(static_cast<uint8_t>(value & 0xF)) {}
  constexpr operator int8_t() const { return static_cast<int8_t>(static_cast<int8_t>(storage << 4) >> 4); }
};

}  // namespace pto

namespace pto::detail {

template <class T>
struct Element {
  static_assert(std::is_arithmetic_v<T>, "[PTO][SA-0010] element type: not one of the PTO element types");
  static constexpr int bytes = sizeof(T);
  static constexpr bool is_float = std::is_floating_point_v<T>, is_signed = std::is_signed_v<T>;
  static constexpr int bits = bytes * 8;
  static constexpr DType dtype = is_float                  ? (bytes == 8 ? DType::f64 : DType::f32)
                                 : std::is_same_v<T, bool> ? DType::i1
                                                           : static_cast<DType>(static_cast<int>(DType::i8) +
                                                                                (bytes == 1   ? 0
                                                                                 : bytes == 2 ? 2
                                                                                 : bytes == 4 ? 4
                                                                                              : 6) +
                                                                                !is_signed);
  using Compute = T;
};
template <DType D>
struct Element<SmallFloat<D>> {
  static constexpr DType dtype = D;
  static constexpr int bits = bits_in(D);
  static constexpr bool is_float = true, is_signed = true;
  using Compute = float;
};
template <>
struct Element<int4b_t> {
  static constexpr DType dtype = DType::s4;
  static constexpr int bits = 4;
  static constexpr bool is_float = false, is_signed = true;
  using Compute = int8_t;
};

template <class T>
inline constexpr DType dtype_of = Element<std::remove_cv_t<T>>::dtype;
template <class T>
inline constexpr int bits_of = Element<std::remove_cv_t<T>>::bits;
template <class T>
inline constexpr bool is_float_v = Element<std::remove_cv_t<T>>::is_float;
template <class T>
using compute_t = typename Element<std::remove_cv_t<T>>::Compute;

template <int Bits>
struct CodeOf {
  using type = uint8_t;
};
template <>
struct CodeOf<16> {
  using type = uint16_t;
};
template <>
struct CodeOf<32> {
  using type = uint32_t;
};
template <>
struct CodeOf<64> {
  using type = uint64_t;
};
template <class T>
using code_t = typename CodeOf<bits_of<T>>::type;

/// True if T is a float of 16 bits or fewer, which computes in f32.
template <class T>
inline constexpr bool is_small_float = is_float_v<T> && bits_of<T> <= 16;

/// Return the value of an element, given its code.
template <class T>
constexpr compute_t<T> decode(code_t<T> code) {
  if constexpr (std::is_same_v<T, int4b_t>) {
    return static_cast<int8_t>(static_cast<int8_t>(code << 4) >> 4);
  } else if constexpr (is_small_float<T>) {
    return decode_code<dtype_of<T>>(code);
  } else {
    return __builtin_bit_cast(T, code);
  }
}

/// Return the code of the element nearest to a value; int4b_t wraps.
template <class T>
constexpr code_t<T> encode(compute_t<T> value) {
  if constexpr (std::is_same_v<T, int4b_t>) {
    return static_cast<uint8_t>(value & 0xF);
  } else if constexpr (is_small_float<T>) {
    return static_cast<code_t<T>>(encode_code<dtype_of<T>>(value));
  } else {
    return __builtin_bit_cast(code_t<T>, value);
  }
}

/// Return the element bits of a pad value. Max and Min are 0 for 64-bit and 4-bit elements and 8-bit floats.
/// On the cpu profile they are the limits of 64-bit integers, and the codes 7 and 1 of 4-bit floats.
template <class T, auto Pad>
PTO_OF_TARGET code_t<T> pad_code() {
  constexpr uint64_t pad = static_cast<uint64_t>(Pad);
  constexpr int bits = bits_of<T>;
  if constexpr (pad >= 0x100000000) {
    return static_cast<code_t<T>>(pad & 0xFFFFFFFF &
                                  (bits < 32 ? (uint64_t{1} << (bits & 31)) - 1 : 0xFFFFFFFF));
  } else if constexpr (pad < 2) {
    return 0;
  } else if constexpr (bits == 4 && is_float_v<T>) {
    return kIsa != Isa::cpu ? 0 : pad == 2 ? 7 : 1;
  } else if constexpr (bits == 64 && !is_float_v<T>) {
    using Number = std::conditional_t<Element<T>::is_signed, int64_t, uint64_t>;
    using Limits = std::numeric_limits<Number>;
    return kIsa != Isa::cpu ? 0 : static_cast<code_t<T>>(pad == 2 ? Limits::max() : Limits::min());
  } else if constexpr (bits == 64 || (is_float_v<T> && bits < 16) || bits == 4) {
    return 0;
  } else if constexpr (is_float_v<T>) {
    constexpr uint64_t infinity = bits == 32 ? 0x7F800000 : dtype_of<T> == DType::f16 ? 0x7C00 : 0x7F80;
    return static_cast<code_t<T>>(pad == 2 ? infinity : infinity | uint64_t{1} << (bits - 1));
  } else {
    constexpr uint64_t ones = (uint64_t{1} << bits) - 1, top = uint64_t{1} << (bits - 1);
    constexpr bool is_signed = Element<T>::is_signed;
    return static_cast<code_t<T>>(pad == 2 ? (is_signed ? ones ^ top : ones) : (is_signed ? top : 0));
  }
}

/// The members of std::numeric_limits of a small float.
template <DType D>
struct SmallFloatLimits {
  using T = SmallFloat<D>;
  static constexpr Fields f = kFields<D>;
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = f.has_inf(), has_quiet_NaN = f.has_nan(), has_signaling_NaN = false;
  static constexpr bool is_iec559 = false, is_bounded = true, is_modulo = false, traps = false;
  static constexpr int radix = 2, digits = f.man + 1;
  static constexpr T min() noexcept {
    return T::FromRaw(static_cast<typename T::Code>(f.exp > 1 ? 1 << f.man : 1));
  }
  static constexpr T max() noexcept { return T::FromRaw(static_cast<typename T::Code>(f.max_code)); }
  static constexpr T lowest() noexcept {
    return T::FromRaw(static_cast<typename T::Code>(f.max_code | uint64_t{1} << (f.bits - 1)));
  }
  static constexpr T denorm_min() noexcept { return T::FromRaw(1); }
  static constexpr T epsilon() noexcept { return T(1.0 / (1 << f.man)); }
  static constexpr T round_error() noexcept { return T(0.5f); }
  static constexpr T infinity() noexcept {
    return T::FromRaw(static_cast<typename T::Code>(f.overflow_code));
  }
  static constexpr T quiet_NaN() noexcept { return T::FromRaw(static_cast<typename T::Code>(f.nan_code)); }
  static constexpr T signaling_NaN() noexcept { return quiet_NaN(); }
};

}  // namespace pto::detail

#define PTO_LIMITS_(name, cpp, code) \
  template <>                        \
  struct std::numeric_limits<cpp> : pto::detail::SmallFloatLimits<pto::detail::DType::name> {};
PTO_SMALL_FIELDS(PTO_LIMITS_)
#undef PTO_LIMITS_
