// Loops of the reference engine that have no fast form in NumPy. Compiled once per instruction set, like the
// element loops. Every instruction set gives the same bits, except those of a NaN.
#include "pto/detail/engine.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "pto/core/math.hpp"
#include "pto/detail/convert.hpp"

#define PTO_JOIN_(a, b) a##b
#define PTO_JOIN(a, b) PTO_JOIN_(a, b)

namespace pto::detail {
namespace PTO_ISA {
namespace {

// ---------------------------------------------------------------------------------------------------------
// Matrix products

// A vector of numbers that fills one register of this instruction set.
#ifdef __AVX2__
constexpr std::size_t kRegister = 32;
#else
constexpr std::size_t kRegister = 16;
#endif
template <class T, std::size_t Bytes = kRegister>
using Lanes __attribute__((vector_size(Bytes))) = T;

// Compute acc + a * b, rounded once to float. The double sum is rounded to odd, so that rounding the sum to
// float gives the same result as rounding the exact sum.
inline void fuse(Lanes<double>& acc, const Lanes<double>& a, const Lanes<double>& b) {
  using Bits = Lanes<std::int64_t>;
  const Lanes<double> term = a * b, total = acc + term, part = total - acc;
  const Lanes<double> lost = (acc - (total - part)) + (term - part);
  const Bits bits = (Bits)total;
  const Bits even = (bits & 1) - 1, toward_zero = (((Bits)lost ^ bits) < 0);
  const Bits step = (toward_zero | 1) & even & ((lost < 0) | (lost > 0));
  const auto rounded = __builtin_convertvector((Lanes<double>)(bits + step), Lanes<float, kRegister / 2>);
#ifdef __AVX2__
  acc = _mm256_cvtps_pd(rounded);
#else
  acc = __builtin_convertvector(rounded, Lanes<double>);
#endif
}

#ifdef __FP_FAST_FMAF
inline void fuse(Lanes<float>& acc, const Lanes<float>& a, const Lanes<float>& b) {
#ifdef __AVX2__
  acc = _mm256_fmadd_ps(a, b, acc);
#elif defined(__aarch64__)
  __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(acc) : "w"(a), "w"(b));
#else
  for (std::size_t i = 0; i < kRegister / sizeof(float); ++i) acc[i] = std::fma(a[i], b[i], acc[i]);
#endif
}
using Wide = float;
#else
using Wide = double;
#endif

// A block of results, which stays in registers while k increases.
template <class Wide>
struct Block {
  using Vector = Lanes<Wide>;
  static constexpr std::size_t rows = 4, vectors = 2, cols = vectors * kRegister / sizeof(Wide);
  Wide out[rows][cols];

  // Multiply rows of a by consecutive lines of `cols` elements of b.
  template <class Float>
  void compute(const Float* const (&a)[rows], const Wide* b, std::size_t depth) {
    Vector acc[rows][vectors] = {};
    for (std::size_t k = 0; k < depth; ++k, b += cols) {
      Vector line[vectors];
#pragma GCC unroll 2
      for (std::size_t v = 0; v < vectors; ++v) std::memcpy(&line[v], b + v * cols / vectors, kRegister);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < rows; ++r) {
        const Vector factor = static_cast<Wide>(a[r][k]) - Vector{};
#pragma GCC unroll 2
        for (std::size_t v = 0; v < vectors; ++v) fuse(acc[r][v], factor, line[v]);
      }
    }
    std::memcpy(out, acc, sizeof out);
  }
};

template <class Wide, class Float>
void dot(const Float* a, const Float* b, float* out, std::size_t m, std::size_t depth, std::size_t n) {
  Block<Wide> block;
  constexpr std::size_t rows = block.rows, cols = block.cols;
  const std::unique_ptr<Wide[]> panel(new Wide[depth * cols + 1]);
  for (std::size_t j = 0; j < n; j += cols) {
    const std::size_t width = n - j < cols ? n - j : cols;
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t c = 0; c < cols; ++c)
        panel[k * cols + c] = c < width ? static_cast<Wide>(b[k * n + j + c]) : 0;
    for (std::size_t i = 0; i < m; i += rows) {
      const std::size_t height = m - i < rows ? m - i : rows;
      const Float* row[rows];  // the last row is repeated, without being stored
      for (std::size_t r = 0; r < rows; ++r) row[r] = a + (i + (r < height ? r : height - 1)) * depth;
      block.compute(row, panel.get(), depth);
      for (std::size_t r = 0; r < height; ++r)
        for (std::size_t c = 0; c < width; ++c)
          out[(i + r) * n + j + c] = static_cast<float>(block.out[r][c]);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------
// Reductions

template <Fields F, class Step>
void fold_columns(const float* x, float* out, std::size_t rows, std::size_t cols, Step step) {
  for (std::size_t c = 0; c < cols; ++c) out[c] = x[c];
  for (std::size_t r = 1; r < rows; ++r) {
    x += cols;
    for (std::size_t c = 0; c < cols; ++c)
      out[c] = decode_fields<F>(encode_nearest<F>(step(out[c], x[c]), Mode{}));
  }
}

void fold(DType t, bool product, const float* x, float* out, std::size_t rows, std::size_t cols) {
  const auto columns = [&](auto step) {
    return t == DType::f16 ? fold_columns<kFields<DType::f16>>(x, out, rows, cols, step)
                           : fold_columns<kFields<DType::bf16>>(x, out, rows, cols, step);
  };
  return product ? columns([](float a, float b) { return a * b; })
                 : columns([](float a, float b) { return a + b; });
}

// ---------------------------------------------------------------------------------------------------------
// Random numbers

void philox(const PhiloxState& state, const std::uint64_t* ahead, std::uint32_t* out, std::size_t count) {
  constexpr std::size_t kLanes = 64;
  constexpr std::uint32_t kSteps[2] = {0x9E3779B9, 0xBB67AE85};
  constexpr std::uint64_t kFactors[2] = {0xD2511F53, 0xCD9E8D57};
  std::uint32_t word[4][kLanes] = {};
  for (std::size_t at = 0; at < count; at += kLanes) {
    const std::size_t lanes = count - at < kLanes ? count - at : kLanes;
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint64_t low = state.low + ahead[at + i], high = state.high + (low < state.low);
      word[0][i] = static_cast<std::uint32_t>(low);
      word[1][i] = static_cast<std::uint32_t>(low >> 32);
      word[2][i] = static_cast<std::uint32_t>(high);
      word[3][i] = static_cast<std::uint32_t>(high >> 32);
    }
    std::uint32_t key0 = state.keys[0], key1 = state.keys[1];
    for (int round = 0; round < state.rounds; ++round) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::uint64_t first = word[0][i] * kFactors[0], second = word[2][i] * kFactors[1];
        word[0][i] = static_cast<std::uint32_t>(second >> 32) ^ word[1][i] ^ key0;
        word[1][i] = static_cast<std::uint32_t>(second);
        word[2][i] = static_cast<std::uint32_t>(first >> 32) ^ word[3][i] ^ key1;
        word[3][i] = static_cast<std::uint32_t>(first);
      }
      key0 += kSteps[0];
      key1 += kSteps[1];
    }
    for (std::size_t w = 0; w < 4; ++w)
      for (std::size_t i = 0; i < lanes; ++i) out[w * count + at + i] = word[w][i];
  }
}

// ---------------------------------------------------------------------------------------------------------
// Sorting

// Set the place of each record to the number of records before it, which needs no unpredictable branch. All
// ranks are compared with all. Only if some are equal, the indices and then the positions decide.
void sort_block(const std::uint32_t* rank, const std::uint32_t* index, std::int64_t (&place)[kSortBlock],
                std::size_t n) {
  std::int32_t key[kSortBlock] = {}, before[kSortBlock] = {};  // ordered as signed numbers
  for (std::size_t i = 0; i < n; ++i) key[i] = static_cast<std::int32_t>(rank[i] ^ 0x80000000);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < kSortBlock; ++i) before[i] += key[k] < key[i];
  std::size_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    place[i] = before[i];
    total += static_cast<std::size_t>(before[i]);
  }
  if (total == n * (n - 1) / 2) return;  // all ranks differ
  std::int64_t record[kSortBlock] = {};
  for (std::size_t i = 0; i < n; ++i) record[i] = static_cast<std::int64_t>(key[i]) << 32 | index[i];
  for (std::int64_t& p : place) p = 0;
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < k; ++i) place[i] += record[k] < record[i];
    for (std::size_t i = k + 1; i < n; ++i) place[i] += record[k] <= record[i];
  }
}

void sort_blocks(const std::uint32_t* rank, const std::uint32_t* index, std::int64_t* order, std::size_t rows,
                 std::size_t cols) {
  std::int64_t place[kSortBlock];
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; c += kSortBlock) {
      const std::size_t at = r * cols + c, n = cols - c < kSortBlock ? cols - c : kSortBlock;
      sort_block(rank + at, index + at, place, n);
      for (std::size_t i = 0; i < n; ++i)
        order[at + static_cast<std::size_t>(place[i])] = static_cast<std::int64_t>(at + i);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------
// Functions

#define PTO_FUNCTION(name)                                                       \
  template <class Out>                                                           \
  void all_##name(const float* x, Out* out, std::size_t count) {                 \
    for (std::size_t i = 0; i < count; ++i) out[i] = math::name##_as<Out>(x[i]); \
  }
PTO_FUNCTION(exp)
PTO_FUNCTION(log)
#undef PTO_FUNCTION

template <class Out>
void all_pow(const float* x, const float* y, Out* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = math::pow_as<Out>(x[i], y[i]);
}

}  // namespace
}  // namespace PTO_ISA

const EngineKernels& PTO_JOIN(PTO_ISA, _engine)() {
  using namespace PTO_ISA;
  static constexpr EngineKernels kernels{dot<Wide, float>,
                                         dot<double, double>,
                                         fold,
                                         philox,
                                         sort_blocks,
                                         {all_exp<float>, all_exp<double>},
                                         {all_log<float>, all_log<double>},
                                         {all_pow<float>, all_pow<double>}};
  return kernels;
}

}  // namespace pto::detail
