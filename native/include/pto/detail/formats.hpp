// Element types of the native module: what is needed to convert them, nothing more.
//
// The table repeats src/pto/isa/dtypes.py in C++ terms; a test compares the two. Meaning and decisions are
// documented in src/pto/isa/encoding.py.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "pto/detail/fields.hpp"

namespace pto::detail {

struct DTypeInfo {
  std::string_view name;
  int bits;
  char kind;  // 'f' float, 'e' exponent only, 'i' signed, 'u' unsigned
};

inline constexpr DTypeInfo kDTypes[] = {
    {"f64", 64, 'f'},   {"f32", 32, 'f'},   {"f16", 16, 'f'}, {"bf16", 16, 'f'},  {"f8e4m3", 8, 'f'},
    {"f8e5m2", 8, 'f'}, {"f8e8m0", 8, 'e'}, {"hif8", 8, 'f'}, {"f4e2m1", 4, 'f'}, {"f4e1m2", 4, 'f'},
    {"s4", 4, 'i'},     {"i1", 1, 'u'},     {"i8", 8, 'i'},   {"u8", 8, 'u'},     {"i16", 16, 'i'},
    {"u16", 16, 'u'},   {"i32", 32, 'i'},   {"u32", 32, 'u'}, {"i64", 64, 'i'},   {"u64", 64, 'u'},
};
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
constexpr bool is_int(DType t) { return info(t).kind == 'i' || info(t).kind == 'u'; }

// Bytes of one code in an array: 4-bit and 1-bit elements take a byte each.
constexpr std::size_t code_bytes(DType t) { return info(t).bits < 8 ? 1 : info(t).bits / 8; }

// In the order of Round.
inline constexpr std::string_view kRounds[] = {"RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"};

#ifdef PTO_HAVE_AVX2
// Whether this machine has what the loops of the avx2 instruction set use.
inline bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return found;
}
#endif

}  // namespace pto::detail
