// Decoding and encoding of single elements, without branches so that loops over them vectorise.
//
// All functions are instantiated once per instruction set (see native/kernels/convert.cpp), each time in its
// own namespace. They must not call non-inline library functions, which the instances could share.
#pragma once

#include <bit>
#include <cstdint>

#include "pto/detail/fields.hpp"

#ifndef PTO_ISA
#define PTO_ISA baseline
#endif

namespace pto::detail::PTO_ISA {

// ---------------------------------------------------------------------------------------------------------
// Decoding

// Return the value of a code with at most 8 exponent bits. Subnormal floats are not used in the computation.
template <Fields F>
constexpr float decode_fields(std::uint32_t code) {
  constexpr std::uint32_t sign_bit = 1u << (F.bits - 1);
  constexpr std::uint32_t man_mask = (1u << F.man) - 1;
  const std::uint32_t magnitude = code & (sign_bit - 1);
  const std::uint32_t sign = (code & sign_bit) << (32 - F.bits);
  std::uint32_t bits = magnitude << (23 - F.man);
  if constexpr (F.bias != 127) {
    constexpr float unit = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - F.bias - F.man) << 23);
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude & man_mask)) * unit;
    const std::uint32_t normal = bits + (static_cast<std::uint32_t>(127 - F.bias) << 23);
    bits = magnitude >> F.man ? normal : std::bit_cast<std::uint32_t>(subnormal);
    if constexpr (F.has_nan()) {
      const bool inf = F.has_inf() && (magnitude & man_mask) == 0;
      bits = magnitude > F.max_code ? (inf ? 0x7F800000u : 0x7FC00000u) : bits;
    }
  }
  return std::bit_cast<float>(bits | sign);
}

constexpr float decode_e8m0(std::uint32_t code) {
  const std::uint32_t bits = code == 0 ? 0x00400000u : code == 0xFF ? 0x7FC00000u : code << 23;
  return std::bit_cast<float>(bits);
}

constexpr float decode_hif8(std::uint32_t code) {
  const std::uint32_t sign = (code & 0x80) << 24, body = code & 0x7F;
  if (body < 8) {  // 0000mmm: zero, NaN, or a power of two
    if (body == 0) return std::bit_cast<float>(code ? 0x7FC00000u : 0u);
    return std::bit_cast<float>(sign | (body + 127 - 23) << 23);
  }
  if (body == 0x6F) return std::bit_cast<float>(sign | 0x7F800000u);
  const int dots = body >= 32 ? static_cast<int>(body >> 5) + 1 : body >= 16 ? 1 : 0;  // exponent bits
  const int man = dots < 3 ? 3 : 5 - dots;
  int exponent = 0;
  if (dots) {  // sign and magnitude; the leading one is implicit
    const int field = static_cast<int>(body >> man) & ((1 << dots) - 1);
    const int size = 1 << (dots - 1) | (field & ((1 << (dots - 1)) - 1));
    exponent = field >> (dots - 1) ? -size : size;
  }
  const std::uint32_t fraction = (body & ((1u << man) - 1)) << (23 - man);
  return std::bit_cast<float>(sign | static_cast<std::uint32_t>(127 + exponent) << 23 | fraction);
}

// ---------------------------------------------------------------------------------------------------------
// Rounding

// A rounding rule as masks, so that one loop serves all rules. Rounding to nearest adds half - 1 and a tie
// bit that depends on the last kept bit. Directed rounding adds all ones if it rounds this sign away from
// zero.
template <class U>
struct Bias {
  U nearest, tie_and, tie_xor, up_positive, up_negative;

  constexpr explicit Bias(Round r) {
    const bool near = r == Round::rint || r == Round::round || r == Round::odd;
    nearest = near ? ~U{0} : 0;
    tie_and = r == Round::rint || r == Round::odd;
    tie_xor = r == Round::round || r == Round::odd;
    up_positive = r == Round::ceil ? ~U{0} : 0;
    up_negative = r == Round::floor ? ~U{0} : 0;
  }

  // Return value / 2**shift, rounded. shift must be positive, and value + 2**shift must not overflow.
  constexpr U divide(U value, U shift, bool negative) const {
    const U unit = U{1} << shift, half = unit >> 1;
    const U last = (value >> shift) & 1;
    const U near = (half - 1 + ((last & tie_and) ^ tie_xor)) & nearest;
    const U directed = (unit - 1) & (negative ? up_negative : up_positive);
    return (value + near + directed) >> shift;
  }

  constexpr bool toward_zero(bool negative) const {
    return !nearest && !(negative ? up_negative : up_positive);
  }
};

// ---------------------------------------------------------------------------------------------------------
// Encoding

template <class Float>
struct Source;
template <>
struct Source<float> {
  using U = std::uint32_t;
  using I = std::int32_t;
  static constexpr int man = 23, bias = 127;
};
template <>
struct Source<double> {
  using U = std::uint64_t;
  using I = std::int64_t;
  static constexpr int man = 52, bias = 1023;
};

// Return the code in format F of a float or double. A subnormal source is exact if F has the exponent range
// of the source; otherwise it counts as nonzero and far below the smallest F, which rounds the same.
template <Fields F, class Float>
constexpr typename Source<Float>::U encode_fields(Float value, const Bias<typename Source<Float>::U>& bias,
                                                  Mode mode) {
  using S = Source<Float>;
  using U = typename S::U;
  using I = typename S::I;
  constexpr int bits = sizeof(U) * 8;
  constexpr U infinity = U((1 << (bits - 2 - S::man)) * 2 - 1) << S::man;
  constexpr U max_code = F.max_code, nan_code = F.nan_code;
  constexpr I min_exponent = 1 - F.bias;

  const U raw = std::bit_cast<U>(value);
  const U magnitude = raw & ~(U{1} << (bits - 1));
  const bool negative = raw >> (bits - 1);
  const U field = magnitude >> S::man;
  const U significand = (magnitude & ((U{1} << S::man) - 1)) | (U{field != 0} << S::man);
  const I exponent = I(field ? field : 1) - S::bias;

  constexpr bool same_range = min_exponent == 1 - S::bias;  // bf16 from float: the shift is a constant
  const I below = !same_range && exponent < min_exponent ? min_exponent - exponent : 0;
  I shift = S::man - F.man + below;
  shift = shift > S::man + 2 ? S::man + 2 : shift;
  const U above = U(exponent > min_exponent ? exponent - min_exponent : 0);
  U code = (above << F.man) + bias.divide(significand, U(shift), negative);

  const U overflow = mode.saturate ? max_code : U(F.overflow_code);
  const U sign = U{negative} << (F.bits - 1);
  const bool too_large = code > max_code;
  code = too_large ? (bias.toward_zero(negative) ? max_code : overflow) : code;
  code = magnitude == infinity ? overflow : code;
  const bool nan = magnitude > infinity;
  if constexpr (F.has_nan() && !F.has_inf()) {
    code = code == nan_code ? code : code | sign;
  } else {
    code |= sign;
  }
  const U missing = F.has_nan() ? nan_code : mode.nan_is_max ? max_code : U{0};
  return nan ? missing : code;
}

// encode_fields of a float for rounding to nearest, ties to even, which is the most frequent case.
template <Fields F>
constexpr std::uint32_t encode_nearest(float value, Mode mode) {
  constexpr int shift = 23 - F.man;
  constexpr std::uint32_t half = 1u << (shift - 1), max_code = F.max_code, nan_code = F.nan_code;
  const std::uint32_t raw = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = raw & 0x7FFFFFFF;
  const std::uint32_t sign = (raw ^ magnitude) >> (32 - F.bits);
  const std::uint32_t rounded = (magnitude + (half - 1) + (magnitude >> shift & 1)) >> shift;
  std::uint32_t code = rounded - (static_cast<std::uint32_t>(127 - F.bias) << F.man);
  if constexpr (F.bias != 127) {
    // Add the power of two whose last place is the smallest number of F. The last bits of the sum are then
    // the value in units of that number, rounded.
    constexpr std::uint32_t unit = static_cast<std::uint32_t>(127 + 23 + 1 - F.bias - F.man) << 23;
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(unit);
    const bool subnormal = magnitude < static_cast<std::uint32_t>(127 + 1 - F.bias) << 23;
    code = subnormal ? std::bit_cast<std::uint32_t>(sum) - unit : code;
  }
  const std::uint32_t limit = mode.saturate ? max_code : std::uint32_t{F.overflow_code};  // <= max_code + 1
  code = code < limit ? code : limit;
  if constexpr (F.has_nan() && !F.has_inf()) {
    code = code == nan_code ? code : code | sign;
  } else {
    code |= sign;
  }
  const std::uint32_t missing = F.has_nan() ? nan_code : mode.nan_is_max ? max_code : 0;
  const std::uint32_t nan = magnitude > 0x7F800000 ? ~0u : 0;  // a mask, since compilers tend to branch here
  return (code & ~nan) | (missing & nan);
}

// Return a double as a float whose last bit is sticky. Rounding the float to fewer bits gives the same result
// as rounding the double, under every rule.
constexpr float narrow_to_odd(double value) {
  const float near = static_cast<float>(value);
  const double size = __builtin_fabs(value), got = __builtin_fabs(static_cast<double>(near));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(near), even = ~bits & 1;
  const std::uint32_t up = size > got ? even : 0, down = size < got ? even : 0;
  return std::bit_cast<float>(bits + up - down);
}

// Return the e8m0 code of a value: an unsigned power of two.
constexpr std::uint8_t encode_e8m0(double value, const Bias<std::uint64_t>& bias, Mode mode) {
  if (!(value >= 0)) return 0xFF;
  if (value == 0) return mode.saturate ? 0 : 0xFF;
  if (value < 0x1p-127) return 0;
  const std::uint64_t raw = std::bit_cast<std::uint64_t>(value);
  if (raw == 0x7FF0000000000000) return mode.saturate ? 0xFE : 0xFF;
  const std::uint64_t field = raw >> 52;
  const std::uint64_t significand = (raw & 0xFFFFFFFFFFFFF) | 0x10000000000000;
  const std::uint64_t code = field - 1023 + 127 + bias.divide(significand, 52, false) - 1;
  if (code <= 0xFE) return static_cast<std::uint8_t>(code);
  return mode.saturate || bias.toward_zero(false) ? 0xFE : 0xFF;
}

// Codes of all positive hif8 numbers, by exponent + 23 (row 0 is zero) and the upper three mantissa bits.
struct Hif8Table {
  std::uint8_t code[40][8] = {};
  constexpr Hif8Table() {
    for (int m = 1; m < 8; ++m) code[m][0] = static_cast<std::uint8_t>(m);
    for (int e = -15; e <= 15; ++e) {
      const int size = e < 0 ? -e : e;
      const int dots = size >= 8 ? 4 : size >= 4 ? 3 : size >= 2 ? 2 : size;
      const int man = dots < 3 ? 3 : 5 - dots;
      const int prefix = dots >= 2 ? (dots - 1) << 5 : dots == 1 ? 1 << 4 : 1 << 3;
      const int field = dots ? (e < 0) << (dots - 1) | (size & ((1 << (dots - 1)) - 1)) : 0;
      for (int m = 0; m < 1 << man; ++m)
        code[e + 23][m << (3 - man)] = static_cast<std::uint8_t>(prefix | field << man | m);
    }
  }
};
inline constexpr Hif8Table kHif8;

constexpr std::uint8_t encode_hif8(double value, const Bias<std::uint64_t>& bias, Mode mode) {
  const std::uint64_t raw = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = raw & 0x7FFFFFFFFFFFFFFF;
  const bool negative = raw >> 63;
  const std::uint8_t sign = negative ? 0x80 : 0;
  const std::uint8_t overflow = sign | (mode.saturate ? 0x6E : 0x6F);
  if (magnitude > 0x7FF0000000000000) return 0x80;
  if (magnitude == 0x7FF0000000000000) return overflow;
  if (magnitude == 0) return 0;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const int size = exponent < 0 ? -exponent : exponent;
  const int man = size < 4 ? 3 : size < 8 ? 2 : size < 16 || exponent > 0 ? 1 : 0;
  int shift = 52 - man + (exponent < -22 ? -22 - exponent : 0);
  shift = shift > 54 ? 54 : shift;
  const std::uint64_t significand =
      (magnitude & 0xFFFFFFFFFFFFF) | (std::uint64_t{magnitude >> 52 != 0} << 52);
  // The rounded value in units of the last place: 2**man .. 2**(man+1), or 0 or 1 below the smallest number.
  const std::uint64_t count = bias.divide(significand, static_cast<std::uint64_t>(shift), negative);
  if (exponent < -22) return count ? sign | 1 : 0;
  const int carry = static_cast<int>(count >> (man + 1));
  const int rounded = exponent + carry;
  const int fraction = carry ? 0 : static_cast<int>(count & ((1u << man) - 1)) << (3 - man);
  if (rounded > 15 || (rounded == 15 && fraction)) return bias.toward_zero(negative) ? sign | 0x6E : overflow;
  return sign | kHif8.code[rounded + 23][fraction];
}

// Return a 64-bit integer as a double of at most 53 bits whose last bit is sticky. Rounding the double to 24
// bits or fewer gives the same result as rounding the integer.
constexpr double round_to_odd(std::uint64_t size) {
  const std::uint64_t cut = (size & ~std::uint64_t{0x7FF}) | (std::uint64_t{(size & 0x7FF) != 0} << 11);
  return static_cast<double>(size >> 53 ? cut : size);
}

// Return the magnitude of a 64-bit integer as a double; `negative` affects only directed roundings.
constexpr double int_to_double(std::uint64_t size, bool negative, const Bias<std::uint64_t>& bias) {
  if (size >> 53) {
    const int shift = 11 - std::countl_zero(size);  // 1 .. 11
    const std::uint64_t low = size & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t kept = size >> shift;  // 53 bits; the carry out of divide() is added to them
    const std::uint64_t last = kept & 1;
    const std::uint64_t up =
        bias.divide(last << shift | low, static_cast<std::uint64_t>(shift), negative) - last;
    size = (kept + up) << shift;
    if (size == 0) return 0x1p64;
  }
  return static_cast<double>(size);
}

// ---------------------------------------------------------------------------------------------------------
// Floating point to integer

template <Round R>
constexpr double round_integral(double x) {
  if constexpr (R == Round::rint) return __builtin_nearbyint(x);
  if constexpr (R == Round::floor) return __builtin_floor(x);
  if constexpr (R == Round::ceil) return __builtin_ceil(x);
  const double whole = __builtin_trunc(x);
  if constexpr (R == Round::trunc) return whole;
  const double rest = __builtin_fabs(x - whole);
  if constexpr (R == Round::round) return rest >= 0.5 ? whole + __builtin_copysign(1.0, x) : whole;
  return rest == 0.5 ? 2.0 * __builtin_floor(x * 0.5) + 1.0 : __builtin_nearbyint(x);
}

// Convert a whole number (or NaN) to an integer of `Bits` bits, in the low bits of the result. For the rules
// of overflow see encoding.py.
template <int Bits, bool Signed>
constexpr std::uint64_t whole_to_int(double whole, Mode mode) {
  constexpr double low = Signed ? -static_cast<double>(std::uint64_t{1} << (Bits - 1)) : 0.0;
  constexpr double high =
      static_cast<double>(std::uint64_t{1} << (Bits - 1)) * (Signed ? 1.0 : 2.0);  // excluded
  constexpr std::uint64_t max =
      Signed ? (std::uint64_t{1} << (Bits - 1)) - 1 : ~std::uint64_t{0} >> (64 - Bits);
  constexpr std::uint64_t min = Signed ? ~max : 0;
  constexpr bool wide = Bits == 64 || (!Signed && (Bits == 8 || Bits == 32));  // converts by i64, else by i32
  constexpr double limit = wide ? 0x1p63 : 0x1p31;
  constexpr bool to_u64 = Bits == 64 && !Signed;

  const bool inside = mode.saturate ? whole >= low && whole < high : whole >= -limit && whole < limit;
  const double safe = inside ? whole : 0.0;
  std::uint64_t out;
  if constexpr (to_u64) {
    if (whole >= 0x1p63 && whole < 0x1p64) return static_cast<std::uint64_t>(whole);
    out = static_cast<std::uint64_t>(static_cast<std::int64_t>(safe));
    if (!mode.saturate && whole >= 0x1p64) return 0;
  } else {
    out = static_cast<std::uint64_t>(static_cast<std::int64_t>(safe));
  }
  if (mode.saturate) {
    const std::uint64_t clamped = whole < 0 ? min : whole > 0 ? max : mode.nan_is_max ? max : 0;
    return inside ? out : clamped;
  }
  return inside ? out : ~std::uint64_t{0} << (wide ? 63 : 31);
}

}  // namespace pto::detail::PTO_ISA
