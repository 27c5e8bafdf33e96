// Mathematical functions of floats, for all engines including the reference engine
// (native/kernels/engine.cpp). Results have the same bits on every machine, with every compiler and option
// except -ffast-math: all operations are rounded by IEEE 754, in an order that is fixed here. The C library
// is used only for fused multiply-add on machines without that instruction, and for rare cases of fmod.
//
//   exp(float) log(float) pow(float, float)   computed in double and rounded once; no branches, calls or
//                                             tables, so that loops over them vectorise. exp is correctly
//                                             rounded for every float, log for all but five; pow is within
//                                             0.501 units in the last place, squares are correctly rounded.
//   exp_wide log_wide pow_wide                the same before rounding to float: for elements below 32 bits
//   sqrt, rsqrt, fmod                         correctly rounded; rsqrt is computed in double and rounded
//   exp(double) exp2 log log2 pow tanh sin cos erf
//                                             computed in pairs of doubles: within 0.501 units, or 1 for
//                                             subnormal results. For floats, the result is rounded again.
//
// Special values are the same as in C. Square roots vectorise only with -fno-math-errno. A product that is
// added to a sum uses `fma`, or is in a function where compilers must not fuse it (PTO_EXACT_LOOP).
#pragma once

#include <bit>
#include <cstdint>

#include "pto/core/macros.hpp"

namespace pto::detail::math {

// Always inlined: a call in a loop prevents vectorisation.
#define PTO_MATH inline __attribute__((always_inline))

// Return a * b + c, rounded once. Without an FMA instruction this calls the C library.
PTO_MATH double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Return c + c1 x + c2 x^2 + .... Coefficients are arguments, since arrays prevent vectorisation.
PTO_MATH double polynomial(double, double c) { return c; }
template <class... More>
PTO_MATH double polynomial(double x, double c, More... more) {
  return fma(polynomial(x, more...), x, c);
}

inline constexpr float kInfinity = std::bit_cast<float>(0x7F800000), kNaN = std::bit_cast<float>(0x7FC00000);

// Return condition ? a : b, by a mask. If a or b is the result of a long computation, compilers turn the
// plain form into a branch around the computation.
PTO_MATH float select(bool condition, float a, float b) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(condition);
  const std::uint32_t one = std::bit_cast<std::uint32_t>(a), other = std::bit_cast<std::uint32_t>(b);
  return std::bit_cast<float>(((one ^ other) & mask) ^ other);  // one instruction on Arm
}
PTO_MATH double select(bool condition, double a, double b) {
  const std::uint64_t mask = -static_cast<std::uint64_t>(condition);
  const std::uint64_t one = std::bit_cast<std::uint64_t>(a), other = std::bit_cast<std::uint64_t>(b);
  return std::bit_cast<double>(((one ^ other) & mask) ^ other);
}

// Clamp x to two bounds; NaN stays NaN.
template <class Float>
PTO_MATH Float bounded(Float x, Float low, Float high) {
  x = high < x ? high : x;
  return low > x ? low : x;
}

// ---------------------------------------------------------------------------------------------------------
// Exponential and logarithm

// Clamp x to bounds beyond which exp is 0 or infinite, for floats and shorter elements. NaN becomes a bound.
// Floats have the order of their bits as integers, and integer comparisons need no case for NaN.
PTO_MATH float bounded_power(float x) {
  constexpr std::uint32_t low = std::bit_cast<std::uint32_t>(-110.0f);
  constexpr std::int32_t high = std::bit_cast<std::int32_t>(90.0f);
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  bits = bits < low ? bits : low;
  std::int32_t found = static_cast<std::int32_t>(bits);
  found =
      found < high ? found : high;  // a statement of its own, so that compilers find a minimum of integers
  return std::bit_cast<float>(found);
}

// Return e^x: x = n ln 2 + r with |r| < 0.35, and n is added to the exponent bits. The polynomial is
// evaluated in pairs, for a shorter chain of dependent steps.
PTO_MATH double exp_of_bounded(double x) {
  constexpr double whole = 0x1.8p52;  // adding this leaves a whole number in the last bits
  const double shifted = fma(x, 0x1.71547652b82fep+0, whole), n = shifted - whole;
  const double r = fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, x));
  const double r2 = r * r, r4 = r2 * r2;
  const double p0 = 1.0 + r, p1 = fma(0x1.55555555507c6p-3, r, 0x1.ffffffffffed2p-2),
               p2 = fma(0x1.11111125b3d76p-7, r, 0x1.55555555890c2p-5),
               p3 = fma(0x1.a0198d5886e61p-13, r, 0x1.6c16c0c830c40p-10),
               p4 = fma(0x1.72e91ac74b98ap-19, r, 0x1.a01b7c5170c4fp-16);
  const double q0 = fma(p1, r2, p0), q1 = fma(p3, r2, p2), q2 = fma(0x1.2707a3d398594p-22, r2, p4);
  const double y = fma(fma(q2, r4, q1), r4, q0);
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) +
                               std::bit_cast<std::uint64_t>(y));
}
template <class Result>
PTO_MATH Result exp_as(float x) {
  const Result y = static_cast<Result>(exp_of_bounded(static_cast<double>(bounded_power(x))));
  return select(x == x, y, static_cast<Result>(x));
}
PTO_MATH double exp_wide(float x) { return exp_as<double>(x); }
PTO_MATH float exp(float x) { return exp_as<float>(x); }

// A positive number as 2^e m, with m from sqrt(1/2) to sqrt(2).
struct Parts {
  double e, m;
};
PTO_MATH Parts parts_of(double x) {
  constexpr std::uint64_t one = 0x3FF0000000000000, root = 0x3FE6A09E667F3BCD;
  constexpr double whole = 0x1p52;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (one - root);
  const double e = std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(whole)) - (whole + 1023);
  return {e, std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) + root)};
}

// Return log of a positive float: e ln 2 + 2 atanh((m - 1) / (m + 1)).
PTO_MATH double log_of_positive(double x) {
  const Parts p = parts_of(x);
  const double s = (p.m - 1.0) / (p.m + 1.0), z = s * s, z2 = z * z, z4 = z2 * z2;
  const double p0 = fma(0x1.55555555555aep-1, z, 0x1p+1),
               p1 = fma(0x1.249249453306cp-2, z, 0x1.999999997ac3ap-2),
               p2 = fma(0x1.74669de670407p-3, z, 0x1.c71c4fe8bd7dap-3),
               p3 = fma(0x1.2f51d6fc742fcp-3, z, 0x1.39994de1c9a8bp-3);
  const double tail = fma(fma(p3, z2, p2), z4, fma(p1, z2, p0));
  return fma(p.e, 0x1.62e42fefa39efp-1, s * tail);  // ln 2 has an error of 2^-56, less than the sum
}
template <class Result>
PTO_MATH Result log_as(float x) {
  const std::uint32_t given = std::bit_cast<std::uint32_t>(x);
  const Result y = static_cast<Result>(log_of_positive(static_cast<double>(x)));
  const float beyond = select(given == 0x7F800000, kInfinity, kNaN);
  const float special = select(given << 1 == 0, -kInfinity, beyond);
  return select(given - 1 < 0x7F7FFFFF, y, static_cast<Result>(special));
}
PTO_MATH double log_wide(float x) { return log_as<double>(x); }
PTO_MATH float log(float x) { return log_as<float>(x); }

// ---------------------------------------------------------------------------------------------------------
// Roots, remainder

PTO_MATH float sqrt(float x) { return __builtin_sqrtf(x); }
PTO_MATH double sqrt(double x) { return __builtin_sqrt(x); }

PTO_MATH float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }

// Return the exact remainder of a truncated division, with the sign of a. Quotients of more than 28 bits, and
// NaN, use the C library, whose result is the same.
PTO_MATH float fmod(float a, float b) {
  const double wide = a, count = __builtin_trunc(wide / b);
  const double rest = fma(-count, b, wide);
  if (!(__builtin_fabs(count) < 0x1p28) || rest != rest) [[unlikely]]
    return __builtin_fmodf(a, b);
  return static_cast<float>(__builtin_copysign(rest, wide));
}

// ---------------------------------------------------------------------------------------------------------
// Powers

// Return log2 of a positive float.
PTO_MATH double log2_of_positive(double x) {
  const Parts p = parts_of(x);
  const double s = (p.m - 1.0) / (p.m + 1.0);
  return fma(
      s,
      polynomial(s * s, 0x1.71547652b82ffp+1, 0x1.ec709dc39c9b7p-1, 0x1.2776c516ae0ebp-1,
                 0x1.a61756713cca2p-2, 0x1.484fadc421056p-2, 0x1.0bb7882772b4fp-2, 0x1.f189e8fde19dbp-3),
      p.e);
}

// Return 2^x for |x| <= 1000.
PTO_MATH double exp2_of_small(double x) {
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

// Return true if a float, or half of one, is a whole number.
PTO_MATH bool is_whole(double y) {
  constexpr double whole = 0x1.8p52;
  return (y + whole - whole == y) | (__builtin_fabs(y) >= 0x1p24);
}

template <class Result>
PTO_MATH Result pow_as(float x, float y) {
  constexpr std::uint32_t infinite = 0x7F800000, one = 0x3F800000;
  const std::uint32_t given = std::bit_cast<std::uint32_t>(x), size = given & 0x7FFFFFFF;
  const std::uint32_t power = std::bit_cast<std::uint32_t>(y) & 0x7FFFFFFF;
  const float base = std::bit_cast<float>(size);
  const double far = size >= infinite ? base : -kInfinity;  // infinity, NaN; zero
  const double log = select(size - 1 < infinite - 1, log2_of_positive(base), far);
  const double product = bounded(static_cast<double>(y) * log, -1000.0, 1000.0);
  double exact = exp2_of_small(product);
  if constexpr (sizeof(Result) == sizeof(double)) {
    // The exact power of short elements may lie halfway between two elements. It then has fewer than 43 bits.
    // The error is below 2^-44, so rounding to 43 fraction bits gives the exact power.
    exact = std::bit_cast<double>((std::bit_cast<std::uint64_t>(exact) + 0x100) & ~std::uint64_t{0x1FF});
  }
  const double wide = x;
  const Result found = static_cast<Result>(select(y == 2.0f, wide * wide, exact));
  const bool negative = given >> 31, whole = is_whole(y), half = is_whole(static_cast<double>(y) * 0.5);
  const bool flipped = negative & whole & !half;
  const bool undefined = negative & !whole & (size - 1 < infinite - 1);
  const bool unit = (power == 0) | (given == one) | ((size == one) & (power == infinite));
  const Result raised = select(undefined, static_cast<Result>(kNaN), select(flipped, -found, found));
  return select(unit, Result{1}, raised);
}
PTO_MATH double pow_wide(float x, float y) { return pow_as<double>(x, y); }
PTO_MATH float pow(float x, float y) { return pow_as<float>(x, y); }

// ---------------------------------------------------------------------------------------------------------
// Doubles

PTO_COMMON double exp(double x);
PTO_COMMON double exp2(double x);
PTO_COMMON double log(double x);
PTO_COMMON double log2(double x);
PTO_COMMON double pow(double x, double y);
PTO_COMMON double tanh(double x);
PTO_COMMON double sin(double x);
PTO_COMMON double cos(double x);
PTO_COMMON double erf(double x);

// Functions of floats that tiles do not have.
PTO_MATH float exp2(float x) { return static_cast<float>(exp2(static_cast<double>(x))); }
PTO_MATH float log2(float x) { return static_cast<float>(log2(static_cast<double>(x))); }
PTO_MATH float tanh(float x) { return static_cast<float>(tanh(static_cast<double>(x))); }
PTO_MATH float sin(float x) { return static_cast<float>(sin(static_cast<double>(x))); }
PTO_MATH float cos(float x) { return static_cast<float>(cos(static_cast<double>(x))); }
PTO_MATH float erf(float x) { return static_cast<float>(erf(static_cast<double>(x))); }

#ifdef PTO_BODY

#define PTO_MATH_BODY PTO_BODY PTO_EXACT_LOOP

// The sum of two doubles, with about 104 bits: `low` is at most half a unit in the last place of `high`.
// Functions of pairs sum series, which need no fitted coefficients; speed is not the goal.
struct Pair {
  double high, low;
};

// Exact sums of doubles (`ordered_sum` needs |a| >= |b|), and operators on pairs, which round to a pair.
PTO_MATH Pair ordered_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}
PTO_MATH Pair sum_of(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
PTO_MATH Pair operator+(Pair a, Pair b) {
  const Pair high = sum_of(a.high, b.high), low = sum_of(a.low, b.low);
  const Pair s = ordered_sum(high.high, high.low + low.high);
  return ordered_sum(s.high, s.low + low.low);
}
PTO_MATH Pair operator-(Pair a) { return {-a.high, -a.low}; }
PTO_MATH Pair operator*(Pair a, Pair b) {
  const double p = a.high * b.high;
  return ordered_sum(p, fma(a.high, b.low, fma(a.low, b.high, fma(a.high, b.high, -p))));
}
PTO_MATH Pair operator/(Pair a, Pair b) {
  const double first = a.high / b.high;
  const Pair rest = a + -(Pair{first, 0} * b);
  const double second = rest.high / b.high;
  const Pair last = rest + -(Pair{second, 0} * b);
  const Pair q = ordered_sum(first, second);
  return ordered_sum(q.high, q.low + last.high / b.high);
}
PTO_MATH Pair over(Pair a, double b) {
  const double q = a.high / b;
  return ordered_sum(q, (fma(-q, b, a.high) + a.low) / b);
}

inline constexpr Pair kOne{1, 0}, kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56},
    kLog2e{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}, kHalfPi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
    kTwoOverRootPi{0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};
inline constexpr double kNoNumber = kNaN, kEndless = kInfinity;

// Return x 2^k for |k| <= 2000, in two steps of which only the last one rounds.
PTO_MATH double scaled(double x, int k) {
  const int half = k / 2;
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(half + 1023) << 52) *
         std::bit_cast<double>(static_cast<std::uint64_t>(k - half + 1023) << 52);
}

// e^x = pair 2^k for |x| <= 1000: x = k ln 2 + r, |r| < 0.35.
struct Power {
  Pair pair;
  int k;
};
PTO_MATH Power power_of(Pair x) {
  const double n = __builtin_rint(x.high * kLog2e.high);
  const Pair r = x + -(Pair{n, 0} * kLn2);
  Pair s = kOne;
  for (int i = 24; i > 0; --i) s = kOne + over(r * s, i);
  return {s, static_cast<int>(n)};
}
PTO_MATH double value_of(Power p, int more = 0) { return scaled(p.pair.high, p.k + more); }

// The logarithm of a positive number: log x = e ln 2 + pair.
struct Logarithm {
  double e;
  Pair pair;
};
PTO_MATH Logarithm logarithm_of(double x) {
  const bool small = x < 0x1p-1022;
  const Parts p = parts_of(small ? x * 0x1p54 : x);
  const Pair s = Pair{p.m - 1.0, 0} / sum_of(p.m, 1.0);  // the difference is exact
  const Pair z = s * s;
  Pair t{};
  for (int i = 21; i >= 0; --i) t = over(kOne, 2 * i + 1) + z * t;
  const Pair half = s * t;
  return {small ? p.e - 54 : p.e, Pair{2 * half.high, 2 * half.low}};
}
PTO_MATH Pair pair_of(Logarithm l) { return Pair{l.e, 0} * kLn2 + l.pair; }
// Return true if x has no finite logarithm.
PTO_MATH bool is_odd_for_log(double x) { return !(x > 0 && x < kEndless); }
PTO_MATH double odd_log(double x) { return x > 0 || x != x ? x : x == 0 ? -kEndless : kNoNumber; }

PTO_MATH_BODY double exp(double x) { return x != x ? x : value_of(power_of({bounded(x, -760.0, 720.0), 0})); }
PTO_MATH_BODY double exp2(double x) {
  if (x != x) return x;
  x = bounded(x, -1100.0, 1100.0);
  const double n = __builtin_rint(x);
  return value_of(power_of(Pair{x - n, 0} * kLn2), static_cast<int>(n));
}
PTO_MATH_BODY double log(double x) { return is_odd_for_log(x) ? odd_log(x) : pair_of(logarithm_of(x)).high; }
PTO_MATH_BODY double log2(double x) {
  if (is_odd_for_log(x)) return odd_log(x);
  const Logarithm l = logarithm_of(x);
  return (Pair{l.e, 0} + l.pair * kLog2e).high;
}

// Return x^y for positive x. Powers with a small whole exponent are products, which are exact while they fit
// into a pair: an approximation could round a value halfway between two doubles the wrong way.
PTO_MATH double power_of(double x, double y) {
  const double size = __builtin_fabs(y);
  if (size <= 64 && __builtin_trunc(y) == y) {
    const bool small = x < 0x1p-1022;
    const Parts p = parts_of(small ? x * 0x1p54 : x);
    Pair s = kOne, square{p.m, 0};
    for (int n = static_cast<int>(size); n > 0; n >>= 1, square = square * square)
      if (n & 1) s = s * square;
    if (y < 0) s = kOne / s;
    return scaled(s.high, static_cast<int>(bounded((small ? p.e - 54 : p.e) * y, -2000.0, 2000.0)));
  }
  const Pair product = Pair{bounded(y, -0x1p80, 0x1p80), 0} * pair_of(logarithm_of(x));
  return product.high > 720 ? kEndless : product.high < -760 ? 0.0 : value_of(power_of(product));
}
PTO_MATH_BODY double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return kNoNumber;
  const double base = __builtin_fabs(x), size = __builtin_fabs(y);
  const bool whole = __builtin_trunc(y) == y;
  const bool odd = whole && size < 0x1p53 && (static_cast<std::int64_t>(y) & 1);
  const double sign = odd ? __builtin_copysign(1.0, x) : 1.0;
  if (size == kEndless) return base == 1 ? 1 : (base > 1) == (y > 0) ? kEndless : 0;
  if (base == 0 || base == kEndless) return sign * ((base == 0) == (y < 0) ? kEndless : 0.0);
  if (x < 0 && !whole) return kNoNumber;
  return sign * power_of(base, y);
}

PTO_MATH_BODY double tanh(double x) {
  const double size = __builtin_fabs(x);
  if (!(size > 0x1p-28)) return x;  // includes NaN
  if (size > 22) return __builtin_copysign(1.0, x);
  const Power p = power_of(Pair{size, 0});
  const Pair up{scaled(p.pair.high, p.k), scaled(p.pair.low, p.k)}, down = kOne / up;
  return __builtin_copysign(((up + -down) / (up + down)).high, x);
}

// An angle as a number of quarter turns (0 to 3) and a rest of at most pi / 4 in magnitude.
struct Angle {
  Pair rest;
  unsigned quarter;
};
// x = m 2^e. The first bits of 2 / pi are skipped: with them, x * 2 / pi is a multiple of 4, that is, whole
// turns. The next 256 bits give about 200 bits of the rest, of which cancellation costs at most 62.
PTO_MATH Angle angle_of(double x) {
  constexpr std::uint64_t kTwoOverPi[] = {0,
                                          0xA2F9836E4E441529,
                                          0xFC2757D1F534DDC0,
                                          0xDB6295993C439041,
                                          0xFE5163ABDEBBC561,
                                          0xB7246E3A424DD2E0,
                                          0x06492EEA09D1921C,
                                          0xFE1DEB1CB129A73E,
                                          0xE88235F52EBB4484,
                                          0xE99C7026B45F7E41,
                                          0x3991D639835339F4,
                                          0x9C845F8BBDF9283B,
                                          0x1FF897FFDE05980F,
                                          0xEF2F118B5A0A6D1F,
                                          0x6D367ECF27CB09B7,
                                          0x4F463F669E5FEA2D,
                                          0x7527BAC7EBE5F17B,
                                          0x3D0739F78A5292EA,
                                          0x6BFB5FB11F8D5D08,
                                          0x56033046FC7B6BAB,
                                          0xF0CFBC209AF4361D};
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t m = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000;
  const unsigned at = static_cast<unsigned>(bits >> 52) - 1075 + 62, shift = at % 64;
  std::uint64_t product[4], carry = 0;  // the low 256 bits of m times the 256 bits from `at` on
  for (int i = 3; i >= 0; --i) {
    const std::uint64_t* word = kTwoOverPi + at / 64 + i;
    const std::uint64_t part = shift ? word[0] << shift | word[1] >> (64 - shift) : word[0];
    const auto wide = static_cast<unsigned __int128>(m) * part + carry;
    product[i] = static_cast<std::uint64_t>(wide);
    carry = static_cast<std::uint64_t>(wide >> 64);
  }
  const unsigned quarter = static_cast<unsigned>(product[0] >> 62);
  const bool above = product[0] >> 61 & 1;  // more than half a quarter: use the next one and a negative rest
  Pair rest{};
  double unit = 0x1p-254;
  for (int i = 3; i >= 0; --i) {
    const std::uint64_t part =
        (above ? ~product[i] : product[i]) & (i == 0 ? 0x3FFFFFFFFFFFFFFF : ~std::uint64_t{0});
    rest = Pair{static_cast<double>(part & 0xFFFFFFFF) * unit, 0} + rest;
    rest = Pair{static_cast<double>(part >> 32) * (unit * 0x1p32), 0} + rest;
    unit *= 0x1p64;
  }
  rest = rest * kHalfPi;
  return {above ? -rest : rest, (quarter + above) % 4};
}
// Return the sine or cosine of an angle of at most pi / 4.
PTO_MATH Pair sine_of(Pair x) {
  const Pair z = x * x;
  Pair s = kOne;
  for (int i = 14; i > 0; --i) s = kOne + -over(z * s, 2 * i * (2 * i + 1));
  return x * s;
}
PTO_MATH Pair cosine_of(Pair x) {
  const Pair z = x * x;
  Pair s = kOne;
  for (int i = 14; i > 0; --i) s = kOne + -over(z * s, 2 * i * (2 * i - 1));
  return s;
}
PTO_MATH double wave(double size, unsigned ahead) {
  const Angle a = size <= 0.78125 ? Angle{{size, 0}, 0} : angle_of(size);
  const unsigned quarter = (a.quarter + ahead) % 4;
  const double y = quarter & 1 ? cosine_of(a.rest).high : sine_of(a.rest).high;
  return quarter & 2 ? -y : y;
}
PTO_MATH_BODY double sin(double x) {
  const double size = __builtin_fabs(x);
  if (!(size < kEndless)) return kNoNumber;
  if (size < 0x1p-28) return x;
  const double y = wave(size, 0);
  return x < 0 ? -y : y;
}
PTO_MATH_BODY double cos(double x) {
  const double size = __builtin_fabs(x);
  return size < kEndless ? wave(size, 1) : kNoNumber;
}

// erf x = 2 / sqrt(pi) e^-xx x (1 + 2xx/3 (1 + 2xx/5 (1 + ..))): all terms are positive.
PTO_MATH_BODY double erf(double x) {
  const double size = __builtin_fabs(x);
  if (x != x) return x;
  if (size >= 6) return __builtin_copysign(1.0, x);
  if (size < 0x1p-28) return fma(x, kTwoOverRootPi.high, x * kTwoOverRootPi.low);
  const Pair square = Pair{x, 0} * Pair{x, 0}, twice{2 * square.high, 2 * square.low};
  Pair s = kOne;
  for (int i = 30 + static_cast<int>(3 * square.high); i > 0; --i) s = kOne + over(twice * s, 2 * i + 1);
  const Power p = power_of(-square);
  return scaled((Pair{x, 0} * s * p.pair * kTwoOverRootPi).high, p.k);
}

#undef PTO_MATH_BODY
#endif  // PTO_BODY

#undef PTO_MATH

}  // namespace pto::detail::math
