// Largest error of the float functions, in units of the last place, against the C library in double.
//
//     math_ulp STEP      every STEP-th float (1: all of them), and as many pairs for pow
//
// One line per function: name, largest error, the argument it is at, how many special values differ.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "pto/ops/math.hpp"

namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Distance of a float from the exact value, in units of the last place there; -1 where one is special and
// the other another special value, or the sign of a zero differs.
double distance(float got, double exact) {
  const float near = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(near) || std::isinf(got) || exact == 0) {
    if (std::isnan(exact)) return std::isnan(got) ? 0 : -1;
    if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : -1;
    // Beside the largest number, infinity counts as the power of two it stands for.
    if (got == near) return 0;
    const double limit = std::copysign(0x1p128, exact);
    return std::fabs((std::isinf(got) ? limit : got) -
                     (std::isinf(near) ? std::clamp(exact, -0x1p128, 0x1p128) : exact)) /
           0x1p104;
  }
  if (std::isnan(got)) return -1;
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::fabs(got - exact) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  const char* name;
  double normal = 0, subnormal = 0;
  float x = 0, y = 0;
  long wrong = 0;

  void take(float got, double exact, float a, float b = 0) {
    const double d = distance(got, exact);
    if (d < 0 || std::isnan(d)) {
      if (wrong++ < 5) std::fprintf(stderr, "%s(%a, %a) = %a, expected %a\n", name, a, b, got, exact);
    } else if (exact != 0 && std::fabs(exact) < 0x1p-126) {
      subnormal = std::max(subnormal, d);
    } else if (d > normal) {
      normal = d, x = a, y = b;
    }
  }
  void print() const { std::printf("%s %.5f %.5f %ld %a %a\n", name, normal, subnormal, wrong, x, y); }
};

constexpr int kChunk = 4096;

// One function over a chunk, by a loop of its own, as an intrinsic would have it.
template <class Function>
void apply(Function f, const float* in, float* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = f(in[i]);
}

std::uint64_t state = 88172645463325252u;
std::uint32_t random_bits() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return static_cast<std::uint32_t>(state >> 16);
}

}  // namespace

int main(int, char** argv) {
  namespace m = pto::detail::math;
  const std::uint64_t step = std::strtoull(argv[1], nullptr, 10);
  Worst exp{"exp"}, log{"log"}, sqrt{"sqrt"}, rsqrt{"rsqrt"}, pow{"pow"}, fmod{"fmod"};
  static float in[kChunk], out[kChunk];
  const float edges[] = {0.0f,
                         -0.0f,
                         1.0f,
                         -1.0f,
                         2.0f,
                         -2.0f,
                         3.0f,
                         -3.0f,
                         0.5f,
                         -0.5f,
                         1.5f,
                         -2.5f,
                         0x1p23f,
                         0x1p24f + 2,
                         -0x1p23f - 1,
                         0x1.fffffep22f,
                         0x1.fffffep23f,
                         -0x1.fffffep23f,
                         0x1p-149f,
                         -0x1p-149f,
                         0x1p-126f,
                         0x1.fffffep127f,
                         -0x1.fffffep127f,
                         88.72283f,
                         88.72284f,
                         -87.33655f,
                         -103.97f,
                         -103.98f,
                         -104.5f,
                         INFINITY,
                         -INFINITY,
                         NAN,
                         -NAN,
                         0x1.fffffep-1f,
                         0x1.000002p0f,
                         127.0f,
                         128.0f,
                         -126.0f,
                         -149.0f,
                         -150.0f};
  const int edge_count = sizeof edges / sizeof *edges;

  const auto chunk = [&](int count) {
    apply([](float x) { return m::exp(x); }, in, out, count);
    for (int i = 0; i < count; ++i) exp.take(out[i], std::exp(static_cast<double>(in[i])), in[i]);
    apply([](float x) { return m::log(x); }, in, out, count);
    for (int i = 0; i < count; ++i) log.take(out[i], std::log(static_cast<double>(in[i])), in[i]);
    apply([](float x) { return m::sqrt(x); }, in, out, count);
    for (int i = 0; i < count; ++i)
      sqrt.take(out[i], static_cast<float>(std::sqrt(static_cast<double>(in[i]))), in[i]);
    apply([](float x) { return m::rsqrt(x); }, in, out, count);
    for (int i = 0; i < count; ++i)
      rsqrt.take(out[i], static_cast<float>(1 / std::sqrt(static_cast<double>(in[i]))), in[i]);
  };
  int count = 0;
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += step) {
    in[count++] = from_bits(static_cast<std::uint32_t>(bits));
    if (count == kChunk) chunk(kChunk), count = 0;
  }
  chunk(count);
  std::copy(edges, edges + edge_count, in);
  chunk(edge_count);

  const auto two = [&](float x, float y) {
    pow.take(m::pow(x, y), std::pow(static_cast<double>(x), static_cast<double>(y)), x, y);
    fmod.take(m::fmod(x, y), std::fmod(static_cast<double>(x), static_cast<double>(y)), x, y);
  };
  for (float x : edges)
    for (float y : edges) two(x, y);
  for (std::uint64_t n = 0; n < (std::uint64_t{1} << 29) / step; ++n) {
    const std::uint32_t a = random_bits(), b = random_bits();
    two(from_bits(a), from_bits(b));  // anything
    // A result inside the range: a base near 1 or not, an exponent that its logarithm allows.
    const float x = from_bits((a & 0x3FFFFFF) % 0x3000000 + 0x3E000000), size = std::fabs(std::log2(x));
    two(x, static_cast<float>(static_cast<std::int32_t>(b)) * 0x1p-31f * 150 / std::max(size, 0x1p-20f));
    two(-x, static_cast<float>(static_cast<int>(b % 61) - 30));
  }
  for (const Worst* w : {&exp, &log, &sqrt, &rsqrt, &pow, &fmod}) w->print();
}
