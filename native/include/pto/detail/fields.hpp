// Layouts of the floating-point types, rounding rules, and modes for overflow and NaN.
//
// src/pto/isa/encoding.py documents the rules. <cstdint> is the only standard header, for fast compilation.
#pragma once

#include <cstdint>

#include "pto/detail/element_types.hpp"

namespace pto::detail {

#define PTO_NAME_(name, bits, kind) name,
enum class DType : std::uint8_t { PTO_ELEMENT_TYPES(PTO_NAME_) };
#undef PTO_NAME_

// Name, bits and kind (f, e, i or u) of each type.
#define PTO_TEXT_(name, bits, kind) #name,
#define PTO_BITS_(name, bits, kind) bits,
#define PTO_KIND_(name, bits, kind) kind,
inline constexpr const char* kDTypeNames[] = {PTO_ELEMENT_TYPES(PTO_TEXT_)};
inline constexpr int kDTypeBits[] = {PTO_ELEMENT_TYPES(PTO_BITS_)};
inline constexpr char kDTypeKinds[] = {PTO_ELEMENT_TYPES(PTO_KIND_)};
#undef PTO_TEXT_
#undef PTO_BITS_
#undef PTO_KIND_

constexpr int bits_in(DType t) { return kDTypeBits[static_cast<int>(t)]; }
constexpr bool is_int(DType t) {
  return kDTypeKinds[static_cast<int>(t)] == 'i' || kDTypeKinds[static_cast<int>(t)] == 'u';
}
constexpr bool is_float4(DType t) { return bits_in(t) == 4 && !is_int(t); }

// Rounding rules; the caller has replaced NONE by one of them.
enum class Round : std::uint8_t { rint, round, floor, ceil, trunc, odd };

struct Mode {
  Round round = Round::rint;
  bool saturate = false;
  bool nan_is_max = true;  // in a type without NaN, NaN becomes the largest value (else zero)
};

// A float type with the fields sign | exp | man; its special codes have no sign bit.
struct Fields {
  int exp, man, bias, bits;
  std::uint64_t max_code;       // largest finite value
  std::uint64_t overflow_code;  // result of an overflow: infinity, NaN or the largest value
  std::uint64_t nan_code;       // canonical NaN; 0 if the type has none
  constexpr bool has_nan() const { return nan_code != 0; }
  constexpr bool has_inf() const { return overflow_code == max_code + 1 && overflow_code != nan_code; }
};

// The fields of a float type, if it has such fields.
template <DType D>
struct FieldsOf;
template <DType D>
inline constexpr Fields kFields = FieldsOf<D>::fields;
#define PTO_FIELDS_(name, ...)                      \
  template <>                                       \
  struct FieldsOf<DType::name> {                    \
    static constexpr Fields fields = {__VA_ARGS__}; \
  };
PTO_FLOAT_FIELDS(PTO_FIELDS_)
#undef PTO_FIELDS_

}  // namespace pto::detail
