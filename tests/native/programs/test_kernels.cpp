// Tests the compiled loops without Python, for ASan and UBSan: every code and pair of types, odd sizes.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "pto/detail/engine.hpp"
#include "pto/detail/kernels.hpp"

using namespace pto::detail;

namespace {

int failures = 0;

void expect(bool ok, const char* what, std::string_view detail) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "failed: %s (%.*s)\n", what, static_cast<int>(detail.size()), detail.data());
}

bool is_nan_code(DType t, const std::vector<char>& codes, std::size_t i) {
  if (is_int(t)) return false;
  double value = 0;
  element_kernels().decode_f64(t, codes.data() + i * code_bytes(t), &value, 1);
  return value != value;
}

// Return all codes of a type of up to 16 bits, or random codes of a larger type.
std::vector<char> codes_of(DType t, std::size_t& count) {
  const int bits = info(t).bits;
  count = bits <= 16 ? std::size_t{1} << bits : 5001;
  std::vector<char> out(count * code_bytes(t));
  std::mt19937_64 random(static_cast<unsigned>(bits));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t code = bits <= 16 ? i : random();
    std::memcpy(out.data() + i * code_bytes(t), &code, code_bytes(t));  // little-endian
  }
  return out;
}

void every_pair() {
  for (int s = 0; s < kDTypeCount; ++s) {
    const DType src = static_cast<DType>(s);
    std::size_t n = 0;
    const std::vector<char> in = codes_of(src, n);
    for (int d = 0; d < kDTypeCount; ++d) {
      const DType dst = static_cast<DType>(d);
      std::vector<char> out(n * code_bytes(dst));
      for (int r = 0; r < 6; ++r) {
        for (const bool saturate : {false, true}) {
          const Mode mode{static_cast<Round>(r), saturate, r % 2 == 0};
          element_kernels().convert(src, dst, in.data(), out.data(), n, mode);
          std::vector<char> plain(out.size());
          baseline_kernels().convert(src, dst, in.data(), plain.data(), n, mode);
          expect(plain == out, "instruction sets agree", info(dst).name);
        }
      }
      if (src == dst) expect(out == in || info(src).bits < 8, "a type converts to itself", info(src).name);
    }
  }
}

void round_trips() {
  for (int s = 0; s < kDTypeCount; ++s) {
    const DType t = static_cast<DType>(s);
    if (info(t).bits == 64 && is_int(t)) continue;
    std::size_t n = 0;
    const std::vector<char> in = codes_of(t, n);
    std::vector<double> values(n);
    std::vector<char> out(in.size());
    element_kernels().decode_f64(t, in.data(), values.data(), n);
    element_kernels().encode_f64(t, values.data(), out.data(), n, Mode{});
    const std::size_t size = code_bytes(t);
    bool ok = true;
    for (std::size_t i = 0; i < n; ++i) {
      ok &= is_nan_code(t, in, i) ? is_nan_code(t, out, i)
                                  : std::memcmp(in.data() + i * size, out.data() + i * size, size) == 0;
    }
    expect(ok, "codes survive a round trip", info(t).name);
  }
}

// Return random numbers that are exact in a float; some are special.
template <class Float>
std::vector<Float> numbers(std::mt19937_64& random, std::size_t count) {
  std::vector<Float> out(count);
  for (Float& x : out) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random());
    x = bits % 3 ? static_cast<Float>(static_cast<std::int32_t>(bits) >> 8) : std::bit_cast<float>(bits);
  }
  return out;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) || (x != x && y != y);
  });
}

template <class Float>
void dot(void (*kernel)(const Float*, const Float*, float*, std::size_t, std::size_t, std::size_t)) {
  std::mt19937_64 random(1);
  for (const auto& [m, k, n] : {std::array<std::size_t, 3>{0, 3, 3},
                                {3, 0, 5},
                                {2, 2, 0},
                                {1, 1, 1},
                                {4, 7, 16},
                                {5, 33, 17},
                                {9, 20, 47}}) {
    const std::vector<Float> a = numbers<Float>(random, m * k), b = numbers<Float>(random, k * n);
    std::vector<float> want(m * n), got(m * n, -1);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t l = 0; l < k; ++l)
          want[i * n + j] =
              std::fma(static_cast<float>(a[i * k + l]), static_cast<float>(b[l * n + j]), want[i * n + j]);
    kernel(a.data(), b.data(), got.data(), m, k, n);
    expect(same(got, want), "products are fused", sizeof(Float) == 4 ? "float" : "double");
  }
}

void engine(const EngineKernels& loops) {
  dot(loops.dot_f32);
  dot(loops.dot_f64);
  std::mt19937_64 random(2);
  for (const std::size_t n : {0, 1, 5, 31, 32, 33, 100}) {
    const std::vector<float> x = numbers<float>(random, 7 * n);
    for (const DType t : {DType::f16, DType::bf16}) {
      for (const bool product : {false, true}) {
        std::vector<float> got(n), want(n);
        loops.fold(t, product, x.data(), got.data(), 7, n);
        baseline_engine().fold(t, product, x.data(), want.data(), 7, n);
        expect(same(got, want), "folds agree", info(t).name);
      }
    }
    std::vector<std::uint64_t> ahead(n);
    for (std::uint64_t& a : ahead) a = random() >> 1;
    std::vector<std::uint32_t> got(4 * n), want(4 * n);
    const PhiloxState state{random(), ~std::uint64_t{0}, {1, 2}, 10};
    loops.philox(state, ahead.data(), got.data(), n);
    baseline_engine().philox(state, ahead.data(), want.data(), n);
    expect(got == want, "random words agree", "philox");

    std::vector<std::uint32_t> rank(3 * n), index(3 * n);
    for (std::uint32_t& r : rank) r = static_cast<std::uint32_t>(random() % 3 ? random() : 7);
    for (std::uint32_t& i : index) i = static_cast<std::uint32_t>(random() % 5);
    std::vector<std::int64_t> order(3 * n), sorted(3 * n);
    loops.sort_blocks(rank.data(), index.data(), order.data(), 3, n);
    for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<std::int64_t>(i);
    const auto less = [&](std::int64_t p, std::int64_t q) {
      const std::size_t a = static_cast<std::size_t>(p), b = static_cast<std::size_t>(q);
      return rank[a] != rank[b] ? rank[a] < rank[b] : index[a] < index[b];
    };
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t c = 0; c < n; c += kSortBlock)
        std::stable_sort(sorted.begin() + static_cast<std::ptrdiff_t>(r * n + c),
                         sorted.begin() + static_cast<std::ptrdiff_t>(r * n + std::min(n, c + kSortBlock)),
                         less);
    expect(order == sorted, "blocks are sorted", "sort");
  }
}

}  // namespace

int main() {
  every_pair();
  round_trips();
  engine(engine_kernels());
  engine(baseline_engine());
  std::printf("%s\n", failures ? "FAILED" : "ok");
  return failures != 0;
}
