// Functions of one float, written without branches or library calls so that loops over them vectorise.
//
// The reference engine evaluates these in double and rounds once. Largest errors against that, in units of
// the last place of the result (tests/native/test_headers_math.py measures them):
//
//     exp     0.69 (0.78 where the result is subnormal)
//     log     0.86
//     pow     0.5001
//     sqrt, rsqrt, fmod: none
//
// Special values are those of C: NaN passes, log(0) = -inf, log(-1) = NaN, exp overflows to inf and falls
// through the subnormals to 0, pow has all its cases. Square roots vectorise under -fno-math-errno only.
// Not for -ffast-math: rounding to whole numbers by adding a large one, and sums in two parts, rely on order.
#pragma once

#include <bit>
#include <cstdint>

namespace pto::detail::math {

// Always inlined: a call in a loop keeps it from being vectorised.
#define PTO_MATH inline __attribute__((always_inline))

// a * b + c, rounded once where the machine can.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
PTO_MATH float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PTO_MATH double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
PTO_MATH float fma(float a, float b, float c) { return a * b + c; }
PTO_MATH double fma(double a, double b, double c) { return a * b + c; }
#endif

// c + c1 x + c2 x^2 + ..., the coefficients as arguments: arrays of them keep loops from being vectorised.
template <class Float>
PTO_MATH Float polynomial(Float, Float c) {
  return c;
}
template <class Float, class... More>
PTO_MATH Float polynomial(Float x, Float c, More... more) {
  return fma(polynomial(x, more...), x, c);
}

inline constexpr float kInfinity = std::bit_cast<float>(0x7F800000), kNaN = std::bit_cast<float>(0x7FC00000);

// condition ? a : b by a mask: where one of them is the result of a long computation, compilers make a branch
// around it of the plain form.
PTO_MATH float select(bool condition, float a, float b) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(condition);
  const std::uint32_t one = std::bit_cast<std::uint32_t>(a), other = std::bit_cast<std::uint32_t>(b);
  return std::bit_cast<float>((one & mask) | (other & ~mask));
}
PTO_MATH double select(bool condition, double a, double b) {
  const std::uint64_t mask = -static_cast<std::uint64_t>(condition);
  const std::uint64_t one = std::bit_cast<std::uint64_t>(a), other = std::bit_cast<std::uint64_t>(b);
  return std::bit_cast<double>((one & mask) | (other & ~mask));
}

// x held between two bounds; NaN stays.
template <class Float>
PTO_MATH Float bounded(Float x, Float low, Float high) {
  x = high < x ? high : x;
  return low > x ? low : x;
}

// ---------------------------------------------------------------------------------------------------------
// Exponential and logarithm

// x = n ln 2 + r + rest with |r| < 0.35; e^x = 2^n (1 + r + (r^2 q(r) + rest)).
PTO_MATH float exp(float x) {
  constexpr float log2e = 0x1.715476p+0f, ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;
  constexpr float whole = 0x1.8p23f;  // adding it leaves a whole number in the last bits
  x = bounded(x, -104.0f, 89.0f);
  const float shifted = fma(x, log2e, whole);
  const float n = shifted - whole;
  const float high = fma(n, -ln2_high, x), low = n * ln2_low;  // ln2_high has 13 bits: high is exact
  const float r = high - low;
  const float rest = (high - r) - low;
  const float sum = 1.0f + r;
  const float y = sum + ((1.0f - sum + r) + fma(r * r,
                                                polynomial(r, 0x1p-1f, 0x1.555554p-3f, 0x1.55548cp-5f,
                                                           0x1.111272p-7f, 0x1.6d8ddcp-10f, 0x1.9f07eep-13f),
                                                rest));
  // 2^n in two factors, for n from -151 to 129.
  const std::int32_t power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(whole);
  const std::int32_t half = power >> 1;
  return y * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((power - half + 127) << 23);
}

// x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); log x = e ln 2 + f - f^2 / 2 + f^3 p(f).
PTO_MATH float log(float x) {
  constexpr float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;
  constexpr std::uint32_t one = 0x3F800000, root = 0x3F3504F3;
  const std::uint32_t given = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t up = ((given - 0x800000) >> 31) * 23;  // subnormals are made larger first
  const std::uint32_t bits =
      std::bit_cast<std::uint32_t>(x * std::bit_cast<float>((127 + up) << 23)) + (one - root);
  const float e = static_cast<float>(static_cast<std::int32_t>((bits >> 23) - 127 - up));
  const float f = std::bit_cast<float>((bits & 0x7FFFFF) + root) - 1.0f;
  const float square = f * f;
  const float tail =
      fma(square,
          fma(f,
              polynomial(f, 0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a4bcp-3f, -0x1.555c5ep-3f, 0x1.2336e2p-3f,
                         -0x1.fc1ec2p-4f, 0x1.e6f55ap-4f, -0x1.de5386p-4f, 0x1.146992p-4f),
              -0.5f),
          e * ln2_low);
  const float big = e * ln2_high;  // exact, and 0 or larger than f
  const float sum = big + f;
  const float y = sum + ((big - sum + f) + tail);
  const float beyond = select(given == 0x7F800000, kInfinity, kNaN);
  const float special = select(given << 1 == 0, -kInfinity, beyond);
  return select(given - 1 < 0x7F7FFFFF, y, special);
}

// ---------------------------------------------------------------------------------------------------------
// Roots, remainder

PTO_MATH float sqrt(float x) { return __builtin_sqrtf(x); }
PTO_MATH double sqrt(double x) { return __builtin_sqrt(x); }

PTO_MATH float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }

// The remainder of a truncated division, with the sign of a; exact. Quotients of more than 28 bits, and what
// is no number, are the library's.
PTO_MATH float fmod(float a, float b) {
  const double wide = a, count = __builtin_trunc(wide / b);
  const double rest = wide - count * b;
  if (!(__builtin_fabs(count) < 0x1p28) || rest != rest) [[unlikely]]
    return __builtin_fmodf(a, b);
  return static_cast<float>(__builtin_copysign(rest, wide));
}

// ---------------------------------------------------------------------------------------------------------
// Powers

// log2 of a float that is positive, in double: 2^e m, and atanh((m - 1) / (m + 1)) by a series.
PTO_MATH double log2_wide(double x) {
  constexpr std::uint64_t one = 0x3FF0000000000000, root = 0x3FE6A09E667F3BCD;
  constexpr double whole = 0x1p52;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (one - root);
  const double e = std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(whole)) - (whole + 1023);
  const double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) + root);
  const double s = (m - 1.0) / (m + 1.0);
  return fma(
      s,
      polynomial(s * s, 0x1.71547652b82ffp+1, 0x1.ec709dc39c9b7p-1, 0x1.2776c516ae0ebp-1,
                 0x1.a61756713cca2p-2, 0x1.484fadc421056p-2, 0x1.0bb7882772b4fp-2, 0x1.f189e8fde19dbp-3),
      e);
}

// 2^x for |x| <= 1000, in double.
PTO_MATH double exp2_wide(double x) {
  constexpr double whole = 0x1.8p52;
  const double shifted = x + whole;
  const double r = x - (shifted - whole);
  const double power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
  return fma(r,
             polynomial(r, 0x1.62e42fefa37d0p-1, 0x1.ebfbdff81bd9ap-3, 0x1.c6b08d70c8b4dp-5,
                        0x1.3b2ab7241e786p-7, 0x1.5d87fd9341dedp-10, 0x1.430897da26e81p-13,
                        0x1.ffce3034fe869p-17, 0x1.63e6b464dbd18p-20, 0x1.b3de0ee9d9cf4p-24),
             1.0) *
         power;
}

// Whether a float, or half of one, is a whole number.
PTO_MATH bool is_whole(double y) {
  constexpr double whole = 0x1.8p52;
  return (y + whole - whole == y) | (__builtin_fabs(y) >= 0x1p24);
}

PTO_MATH float pow(float x, float y) {
  constexpr std::uint32_t infinite = 0x7F800000, one = 0x3F800000;
  const std::uint32_t given = std::bit_cast<std::uint32_t>(x), size = given & 0x7FFFFFFF;
  const std::uint32_t power = std::bit_cast<std::uint32_t>(y) & 0x7FFFFFFF;
  const float base = std::bit_cast<float>(size);
  const double far = size >= infinite ? base : -kInfinity;  // infinity, NaN; zero
  const double log = select(size - 1 < infinite - 1, log2_wide(base), far);
  const double product = bounded(static_cast<double>(y) * log, -1000.0, 1000.0);
  const float found = static_cast<float>(exp2_wide(product));
  const bool negative = given >> 31, whole = is_whole(y), half = is_whole(static_cast<double>(y) * 0.5);
  const bool flipped = negative & whole & !half;
  const bool undefined = negative & !whole & (size - 1 < infinite - 1);
  const bool unit = (power == 0) | (given == one) | ((size == one) & (power == infinite));
  const float raised = select(undefined, kNaN, select(flipped, -found, found));
  return select(unit, 1.0f, raised);
}

#undef PTO_MATH

}  // namespace pto::detail::math
