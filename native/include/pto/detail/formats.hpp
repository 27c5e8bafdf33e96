// Properties of element types that conversions in the native module need.
//
// src/pto/isa/encoding.py documents the rules.
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

#define PTO_INFO_(name, bits, kind) {#name, bits, kind},
inline constexpr DTypeInfo kDTypes[] = {PTO_ELEMENT_TYPES(PTO_INFO_)};
#undef PTO_INFO_
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }

// Return the bytes of a code in an array: a 4-bit or 1-bit element takes one byte.
constexpr std::size_t code_bytes(DType t) { return info(t).bits < 8 ? 1 : info(t).bits / 8; }

// In the order of Round.
inline constexpr std::string_view kRounds[] = {"RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"};

#ifdef PTO_HAVE_AVX2
// Return true if this machine has the instructions that the avx2 loops need.
inline bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return found;
}
#endif

}  // namespace pto::detail
