// exp and log of many floats with AVX-512, eight doubles at a time, with the same bits as in math.hpp.
//
// `exp` reads 2^(j/16) from a table in two registers, so that its polynomial has half the degree. Rounded to
// float, the result is that of math.hpp: all floats were compared. `log` has a table, too (log_table.hpp).
#pragma once

#include "pto/core/log_table.hpp"
#include "pto/core/math.hpp"

#if defined(__AVX512F__) && defined(__GNUC__)
#define PTO_VECTOR_MATH 1

namespace pto::detail::math {

#define PTO_MATH inline __attribute__((always_inline))

/// Compute exp or log of the leading floats that fill whole steps, and return their number.
PTO_COMMON std::ptrdiff_t exp_many(std::ptrdiff_t n, float* out, const float* in);
PTO_COMMON std::ptrdiff_t log_many(std::ptrdiff_t n, float* out, const float* in);

#ifdef PTO_BODY
namespace by_hand {

typedef float Floats __attribute__((vector_size(64)));
typedef std::uint32_t FloatBits __attribute__((vector_size(64)));
typedef std::int32_t FloatInts __attribute__((vector_size(64)));
typedef double Doubles __attribute__((vector_size(64)));
typedef std::uint64_t DoubleBits __attribute__((vector_size(64)));
typedef float Half __attribute__((vector_size(32)));
typedef float LooseFloats __attribute__((vector_size(64), aligned(4), may_alias));
typedef float LooseHalf __attribute__((vector_size(32), aligned(4), may_alias));
inline constexpr int kStep = 16;

PTO_MATH Doubles all(double x) { return Doubles{x, x, x, x, x, x, x, x}; }
PTO_MATH Doubles fused(Doubles a, Doubles b, Doubles c) {
  return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
}
PTO_MATH Floats load(const float* from) { return *reinterpret_cast<const LooseFloats*>(from); }
PTO_MATH void save(float* to, Floats x) { *reinterpret_cast<LooseFloats*>(to) = x; }
PTO_MATH Doubles widened(const float* from) {  // from memory, which costs half as much as from a register
  return __builtin_ia32_cvtps2pd512_mask(*reinterpret_cast<const LooseHalf*>(from), Doubles{}, -1, 4);
}
PTO_MATH void narrowed(float* to, Doubles x) {
  *reinterpret_cast<LooseHalf*>(to) = __builtin_ia32_cvtpd2ps512_mask(x, Half{}, -1, 4);
}
PTO_MATH bool any_from(FloatBits x, std::uint32_t bound) {
  const FloatBits least = FloatBits{} + bound;
  return __builtin_ia32_ucmpd512_mask(std::bit_cast<FloatInts>(x), std::bit_cast<FloatInts>(least), 5, -1) !=
         0;
}

/// The bits of 2^(j/16), minus j << 48: `exp_of_small` adds 16 n + j, shifted left by 48.
alignas(64) inline constexpr std::uint64_t kRoots[16] = {
    0x3FF0000000000000, 0x3FEFB5586CF9890F, 0x3FEF72B83C7D517B, 0x3FEF387A6E756238,
    0x3FEF06FE0A31B715, 0x3FEEDEA64C123422, 0x3FEEBFDAD5362A27, 0x3FEEAB07DD485429,
    0x3FEEA09E667F3BCD, 0x3FEEA11473EB0187, 0x3FEEACE5422AA0DB, 0x3FEEC49182A3F090,
    0x3FEEE89F995AD3AD, 0x3FEF199BDD85529C, 0x3FEF5818DCFBA487, 0x3FEFA4AFA2A490DA};

/// Return e^x for |x| <= 700: x = (16 n + j) ln 2 / 16 + r, |r| < 0.022.
PTO_MATH Doubles exp_of_small(Doubles x, DoubleBits low, DoubleBits high) {
  const Doubles whole = all(0x1.8p52);  // adding this leaves 16 n + j in the last bits
  const Doubles shifted = fused(x, all(0x1.71547652b82fep+4), whole), count = shifted - whole;
  const Doubles r = fused(count, all(-0x1.abc9e3b39803fp-60), fused(count, all(-0x1.62e42fefa39efp-5), x));
  DoubleBits root = std::bit_cast<DoubleBits>(shifted);  // the last four bits are the index
  __asm__("vpermi2q %2, %1, %0" : "+v"(root) : "v"(low), "v"(high));
  const Doubles power = std::bit_cast<Doubles>(root + (std::bit_cast<DoubleBits>(shifted) << 48));
  Doubles q = fused(all(0x1.6c14c5aba8b8bp-10), r, all(0x1.11123ad35d31dp-7));
  q = fused(q, r, all(0x1.55555558fec96p-5));
  q = fused(q, r, all(0x1.555555548f581p-3));
  q = fused(q, r, all(0x1.fffffffffffb9p-2));
  q = fused(q, r, all(1.0));
  return fused(power * r, q, power);
}
PTO_MATH void exp_step(float* out, const float* in, DoubleBits low, DoubleBits high) {
  const Doubles a = exp_of_small(widened(in), low, high), b = exp_of_small(widened(in + 8), low, high);
  narrowed(out, a);
  narrowed(out + 8, b);
}
/// Compute a step with a lane that is large, infinite or NaN.
[[gnu::noinline]] inline void exp_beyond(float* out, const float* in) {
  PTO_INDEPENDENT
  for (int i = 0; i < kStep; ++i) out[i] = exp(in[i]);
}

/// The table of log_table.hpp in four registers.
struct LogTable {
  Doubles c_low, c_high, t_low, t_high;
  __attribute__((always_inline)) LogTable() {
    for (int i = 0; i < 8; ++i) {
      c_low[i] = kLogParts[i].c;
      t_low[i] = kLogParts[i].t;
      c_high[i] = kLogParts[i + 8].c;
      t_high[i] = kLogParts[i + 8].t;
    }
  }
};
/// Select from two tables of eight, by the last four bits of an index.
PTO_MATH Doubles chosen(DoubleBits index, Doubles low, Doubles high) {
  __asm__("vpermi2pd %2, %1, %0" : "+v"(index) : "v"(low), "v"(high));
  return std::bit_cast<Doubles>(index);
}
PTO_MATH Doubles log_of(Doubles x, const LogTable& table) {
  constexpr std::uint64_t one = 0x3FF0000000000000, first = std::bit_cast<std::uint64_t>(
                                                        static_cast<double>(std::bit_cast<float>(kLogFirst)));
  const DoubleBits bits = std::bit_cast<DoubleBits>(x) + (one - first);
  const Doubles e = __builtin_ia32_getexppd512_mask(std::bit_cast<Doubles>(bits), x, -1, 4);
  const Doubles m = std::bit_cast<Doubles>((bits & 0xFFFFFFFFFFFFF) + first);
  const DoubleBits part = bits >> 48;
  const Doubles r = fused(m, chosen(part, table.c_low, table.c_high), all(-1.0));
  Doubles q = fused(all(kLogTail[6]), r, all(kLogTail[5]));
  q = fused(q, r, all(kLogTail[4]));
  q = fused(q, r, all(kLogTail[3]));
  q = fused(q, r, all(kLogTail[2]));
  q = fused(q, r, all(kLogTail[1]));
  q = fused(q, r, all(kLogTail[0]));
  return fused(r * r, q, fused(e, all(kLogOfTwo), chosen(part, table.t_low, table.t_high)) + r);
}
PTO_MATH void log_step(float* out, const float* in, const LogTable& table) {
  const Doubles a = log_of(widened(in), table), b = log_of(widened(in + 8), table);
  narrowed(out, a);
  narrowed(out + 8, b);
}
/// Return true if a lane is zero or less, infinite, or NaN.
PTO_MATH bool has_no_log(Floats x) {
#ifdef __AVX512DQ__
  return __builtin_ia32_fpclassps512_mask(x, 0xDF, -1) != 0;  // all classes except subnormal
#else
  return any_from(std::bit_cast<FloatBits>(x) - 1, 0x7F7FFFFF);
#endif
}
/// Compute a step with a lane that is zero or less, infinite, or NaN.
[[gnu::noinline]] inline void log_beyond(float* out, const float* in) {
  PTO_INDEPENDENT
  for (int i = 0; i < kStep; ++i) out[i] = log(in[i]);
}

/// Call `step` for runs of steps that are not `odd`, and `rest` for the others. The inner loop has no calls,
/// so that constants stay in registers.
template <class Odd, class Step, class Rest>
PTO_MATH std::ptrdiff_t in_steps(std::ptrdiff_t n, float* out, const float* in, Odd odd, Step step,
                                 Rest rest) {
  std::ptrdiff_t i = 0;
  while (i + kStep <= n) {
    for (; i + kStep <= n && !odd(load(in + i)); i += kStep) step(out + i, in + i);
    if (i + kStep <= n) rest(out + i, in + i), i += kStep;
  }
  return i;
}

}  // namespace by_hand

PTO_BODY std::ptrdiff_t exp_many(std::ptrdiff_t n, float* out, const float* in) {
  using namespace by_hand;
  DoubleBits low, high;
  __builtin_memcpy(&low, kRoots, sizeof low);
  __builtin_memcpy(&high, kRoots + 8, sizeof high);
  return in_steps(
      n, out, in,
      [](Floats x) {
        return any_from(std::bit_cast<FloatBits>(x) & 0x7FFFFFFF, std::bit_cast<std::uint32_t>(700.0f));
      },
      [=](float* to, const float* from) { exp_step(to, from, low, high); }, exp_beyond);
}

PTO_BODY std::ptrdiff_t log_many(std::ptrdiff_t n, float* out, const float* in) {
  using namespace by_hand;
  const LogTable table;
  return in_steps(
      n, out, in, [](Floats x) { return has_no_log(x); },
      [=](float* to, const float* from) { log_step(to, from, table); }, log_beyond);
}
#endif
#undef PTO_MATH

}  // namespace pto::detail::math
#endif
