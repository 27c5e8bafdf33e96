// Loops over elements. Compiled once per instruction set with PTO_ISA naming it (baseline, avx2).
//
// A conversion works in chunks through a small buffer of floats, doubles or 64-bit integers, so there is
// one loop per source type and one per destination type instead of one per pair.
#include "pto/detail/convert.hpp"

#include <cstring>

#include "pto/detail/kernels.hpp"

#define PTO_JOIN_(a, b) a##b
#define PTO_JOIN(a, b) PTO_JOIN_(a, b)

namespace pto::detail {
namespace PTO_ISA {
namespace {

constexpr std::size_t kChunk = 1024;

template <class T>
const T* as(const void* p) {
  return static_cast<const T*>(p);
}

template <class C, class Out, class F>
void map(const void* in, Out* out, std::size_t n, F f) {
  const C* codes = as<C>(in);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(codes[i]));
}

struct SmallTable {
  float value[256];
  constexpr explicit SmallTable(float (*f)(std::uint32_t)) : value{} {
    for (std::uint32_t c = 0; c < 256; ++c) value[c] = f(c);
  }
};
constexpr SmallTable kHif8Values{decode_hif8};
constexpr SmallTable kE8M0Values{decode_e8m0};

// ---------------------------------------------------------------------------------------------------------
// Sources

// Mask of the bits of a stored code.
template <DType D>
constexpr std::uint32_t kMask = (std::uint32_t{1} << bits_in(D)) - 1;

// Load values of any float type except f64.
void load_float(DType t, const void* in, float* out, std::size_t n) {
  using u8 = std::uint8_t;
  switch (t) {
    case DType::f32: std::memcpy(out, in, n * sizeof(float)); return;
#define PTO_LOAD_(name, cpp, code) \
  case DType::name:                \
    return map<code>(in, out, n,   \
                     [](code c) { return decode_fields<kFields<DType::name>>(c & kMask<DType::name>); });
      PTO_SMALL_FIELDS(PTO_LOAD_)
#undef PTO_LOAD_
    case DType::hif8: return map<u8>(in, out, n, [](u8 c) { return kHif8Values.value[c]; });
    case DType::f8e8m0: return map<u8>(in, out, n, [](u8 c) { return kE8M0Values.value[c]; });
    default: return;
  }
}

// Load values of any integer type, sign- or zero-extended; the bits of u64 are kept.
template <class Out>
void load_int(DType t, const void* in, Out* out, std::size_t n) {
  const auto nibble = [](std::uint8_t c) { return static_cast<std::int8_t>(((c & 0xF) ^ 8) - 8); };
  switch (t) {
    case DType::s4: return map<std::uint8_t>(in, out, n, nibble);
    case DType::i1: return map<std::uint8_t>(in, out, n, [](std::uint8_t c) { return c & 1; });
    case DType::i8: return map<std::int8_t>(in, out, n, [](auto c) { return c; });
    case DType::u8: return map<std::uint8_t>(in, out, n, [](auto c) { return c; });
    case DType::i16: return map<std::int16_t>(in, out, n, [](auto c) { return c; });
    case DType::u16: return map<std::uint16_t>(in, out, n, [](auto c) { return c; });
    case DType::i32: return map<std::int32_t>(in, out, n, [](auto c) { return c; });
    case DType::u32: return map<std::uint32_t>(in, out, n, [](auto c) { return c; });
    case DType::i64: return map<std::int64_t>(in, out, n, [](auto c) { return c; });
    case DType::u64: return map<std::uint64_t>(in, out, n, [](auto c) { return c; });
    default: return;
  }
}

// ---------------------------------------------------------------------------------------------------------
// Destinations

template <Fields F, class C, class Float>
void encode_loop(const Float* in, void* out, std::size_t n, Mode mode) {
  C* codes = static_cast<C*>(out);
  if constexpr (sizeof(Float) == 4) {
    if (mode.round == Round::rint) {
      for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<C>(encode_nearest<F>(in[i], mode));
      return;
    }
  }
  const Bias<typename Source<Float>::U> bias(mode.round);
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<C>(encode_fields<F>(in[i], bias, mode));
}

template <class Float, class F>
void encode_bytes(const Float* in, void* out, std::size_t n, Mode mode, F encode) {
  const Bias<std::uint64_t> bias(mode.round);
  std::uint8_t* codes = static_cast<std::uint8_t*>(out);
  for (std::size_t i = 0; i < n; ++i) codes[i] = encode(static_cast<double>(in[i]), bias, mode);
}

// Store values that the destination represents: NaN becomes canonical, infinities are clamped if saturating.
template <Fields F, class Float, class Wide, class U>
void store_exact(const Float* in, U* out, std::size_t n, Mode mode) {
  const U infinity = U{F.overflow_code}, sign = U{1} << (F.bits - 1);
  const U clamp = mode.saturate ? 1 : 0;  // the largest finite code is one below infinity's
  for (std::size_t i = 0; i < n; ++i) {
    const U bits = std::bit_cast<U>(static_cast<Wide>(in[i]));
    const U kept = bits - ((bits & ~sign) == infinity ? clamp : 0);
    out[i] = in[i] != in[i] ? U{F.nan_code} : kept;
  }
}

template <class Float>
void round_chunk(const Float* in, double* out, std::size_t n, Round round) {
  const auto all = [&](auto f) {
    for (std::size_t i = 0; i < n; ++i) out[i] = f(static_cast<double>(in[i]));
  };
  switch (round) {
    case Round::rint: return all([](double x) { return round_integral<Round::rint>(x); });
    case Round::round: return all([](double x) { return round_integral<Round::round>(x); });
    case Round::floor: return all([](double x) { return round_integral<Round::floor>(x); });
    case Round::ceil: return all([](double x) { return round_integral<Round::ceil>(x); });
    case Round::trunc: return all([](double x) { return round_integral<Round::trunc>(x); });
    case Round::odd: return all([](double x) { return round_integral<Round::odd>(x); });
  }
}

template <class C, int Bits, bool Signed>
void whole_loop(const double* in, void* out, std::size_t n, Mode mode) {
  constexpr std::uint64_t mask = ~std::uint64_t{0} >> (64 - Bits);
  C* codes = static_cast<C*>(out);
  for (std::size_t i = 0; i < n; ++i)
    codes[i] = static_cast<C>(whole_to_int<Bits, Signed>(in[i], mode) & mask);
}

void store_whole(DType t, const double* in, void* out, std::size_t n, Mode mode) {
  switch (t) {
    case DType::s4: return whole_loop<std::uint8_t, 4, true>(in, out, n, mode);
    case DType::i1: return whole_loop<std::uint8_t, 1, false>(in, out, n, mode);
    case DType::i8: return whole_loop<std::uint8_t, 8, true>(in, out, n, mode);
    case DType::u8: return whole_loop<std::uint8_t, 8, false>(in, out, n, mode);
    case DType::i16: return whole_loop<std::uint16_t, 16, true>(in, out, n, mode);
    case DType::u16: return whole_loop<std::uint16_t, 16, false>(in, out, n, mode);
    case DType::i32: return whole_loop<std::uint32_t, 32, true>(in, out, n, mode);
    case DType::u32: return whole_loop<std::uint32_t, 32, false>(in, out, n, mode);
    case DType::i64: return whole_loop<std::uint64_t, 64, true>(in, out, n, mode);
    case DType::u64: return whole_loop<std::uint64_t, 64, false>(in, out, n, mode);
    default: return;
  }
}

// Store floats as codes of a float type below 32 bits.
void store_small(DType t, const float* in, void* out, std::size_t n, Mode mode) {
  switch (t) {
#define PTO_STORE_(name, cpp, code) \
  case DType::name: return encode_loop<kFields<DType::name>, code>(in, out, n, mode);
    PTO_SMALL_FIELDS(PTO_STORE_)
#undef PTO_STORE_
    case DType::f8e8m0: return encode_bytes(in, out, n, mode, encode_e8m0);
    case DType::hif8: return encode_bytes(in, out, n, mode, encode_hif8);
    default: return;
  }
}

// Store at most kChunk floats or doubles as codes of any type.
template <class Float>
void store_float(DType t, const Float* in, void* out, std::size_t n, Mode mode) {
  if (t == DType::f64)
    return store_exact<kFields<DType::f64>, Float, double>(in, static_cast<std::uint64_t*>(out), n, mode);
  if (t == DType::f32) {
    if constexpr (sizeof(Float) == 8)
      return encode_loop<kFields<DType::f32>, std::uint32_t>(in, out, n, mode);
    return store_exact<kFields<DType::f32>, Float, float>(in, static_cast<std::uint32_t*>(out), n, mode);
  }
  if (is_int(t)) {
    double whole[kChunk];
    round_chunk(in, whole, n, mode.round);
    return store_whole(t, whole, out, n, mode);
  }
  if constexpr (sizeof(Float) == 4) {
    return store_small(t, in, out, n, mode);
  } else {
    float narrow[kChunk];
    for (std::size_t i = 0; i < n; ++i) narrow[i] = narrow_to_odd(in[i]);
    return store_small(t, narrow, out, n, mode);
  }
}

// Store at most kChunk integers as codes of an integer type: clamped if saturating, else the low bits.
void store_int(DType src, DType dst, const std::uint64_t* in, void* out, std::size_t n, Mode mode) {
  const int bits = info(dst).bits;
  const bool is_signed = info(dst).kind == 'i';
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t max = is_signed ? mask >> 1 : mask;
  const std::int64_t min = is_signed ? -static_cast<std::int64_t>(max) - 1 : 0;
  const bool unsigned_source = src == DType::u64;
  const bool saturate = mode.saturate;
  const auto all = [&](auto* codes) {
    using C = std::remove_pointer_t<decltype(codes)>;
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t x = in[i];
      const bool negative = !unsigned_source && static_cast<std::int64_t>(x) < 0;
      if (saturate) {
        const bool below = negative && static_cast<std::int64_t>(x) < min;
        const bool above = !negative && x > max;
        x = below ? static_cast<std::uint64_t>(min) : above ? max : x;
      }
      codes[i] = static_cast<C>(x & mask);
    }
  };
  switch (code_bytes(dst)) {
    case 1: return all(static_cast<std::uint8_t*>(out));
    case 2: return all(static_cast<std::uint16_t*>(out));
    case 4: return all(static_cast<std::uint32_t*>(out));
    default: return all(static_cast<std::uint64_t*>(out));
  }
}

// ---------------------------------------------------------------------------------------------------------
// Entry points

template <class F>
void chunks(std::size_t count, F f) {
  for (std::size_t at = 0; at < count; at += kChunk) f(at, count - at < kChunk ? count - at : kChunk);
}

const void* at(const void* p, std::size_t bytes) { return as<char>(p) + bytes; }
void* at(void* p, std::size_t bytes) { return static_cast<char*>(p) + bytes; }

void decode_f32(DType src, const void* codes, float* out, std::size_t count) {
  return is_int(src) ? load_int(src, codes, out, count) : load_float(src, codes, out, count);
}

void decode_f64(DType src, const void* codes, double* out, std::size_t count) {
  if (is_int(src)) return load_int(src, codes, out, count);
  if (src == DType::f64) {
    std::memcpy(out, codes, count * sizeof(double));
    return;
  }
  float values[kChunk];
  chunks(count, [&](std::size_t i, std::size_t n) {
    load_float(src, at(codes, i * code_bytes(src)), values, n);
    for (std::size_t k = 0; k < n; ++k) out[i + k] = values[k];
  });
}

template <class Float>
void encode(DType dst, const Float* values, void* codes, std::size_t count, Mode mode) {
  chunks(count, [&](std::size_t i, std::size_t n) {
    store_float(dst, values + i, at(codes, i * code_bytes(dst)), n, mode);
  });
}

// Store 64-bit integers as codes of a float type, rounded once.
void store_wide_int(DType src, DType dst, const std::uint64_t* in, void* out, std::size_t n, Mode mode) {
  const Bias<std::uint64_t> bias(mode.round);
  double values[kChunk];
  for (std::size_t k = 0; k < n; ++k) {
    const bool negative = src == DType::i64 && in[k] >> 63;
    const std::uint64_t size = negative ? ~in[k] + 1 : in[k];
    const double value = dst == DType::f64 ? int_to_double(size, negative, bias) : round_to_odd(size);
    values[k] = negative ? -value : value;
  }
  store_float(dst, values, out, n, mode);
}

void convert(DType src, DType dst, const void* in, void* out, std::size_t count, Mode mode) {
  const std::size_t from = code_bytes(src), to = code_bytes(dst);
  if (src == dst && info(src).bits >= 8) {
    std::memcpy(out, in, count * from);
    return;
  }
  if (src == dst) {
    const std::uint8_t mask = static_cast<std::uint8_t>((1u << info(src).bits) - 1);
    return map<std::uint8_t>(in, static_cast<std::uint8_t*>(out), count,
                             [=](std::uint8_t c) { return c & mask; });
  }
  if (!is_int(src)) {
    if (src == DType::f64) return encode(dst, as<double>(in), out, count, mode);
    float values[kChunk];
    return chunks(count, [&](std::size_t i, std::size_t n) {
      load_float(src, at(in, i * from), values, n);
      store_float(dst, values, at(out, i * to), n, mode);
    });
  }
  if (is_int(dst) || info(src).bits == 64) {
    std::uint64_t values[kChunk];
    return chunks(count, [&](std::size_t i, std::size_t n) {
      load_int(src, at(in, i * from), values, n);
      if (is_int(dst)) return store_int(src, dst, values, at(out, i * to), n, mode);
      store_wide_int(src, dst, values, at(out, i * to), n, mode);
    });
  }
  double values[kChunk];
  chunks(count, [&](std::size_t i, std::size_t n) {
    load_int(src, at(in, i * from), values, n);
    store_float(dst, values, at(out, i * to), n, mode);
  });
}

}  // namespace
}  // namespace PTO_ISA

const ElementKernels& PTO_JOIN(PTO_ISA, _kernels)() {
  using namespace PTO_ISA;
  static constexpr ElementKernels kernels{decode_f32, decode_f64, encode<float>, encode<double>, convert};
  return kernels;
}

}  // namespace pto::detail
