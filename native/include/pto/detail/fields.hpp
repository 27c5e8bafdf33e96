// Layouts of the floating-point types, rounding rules, and how a conversion treats what does not fit.
//
// Meaning and decisions are documented in src/pto/isa/encoding.py. Nothing here costs compile time.
#pragma once

#include <cstdint>

#include "pto/detail/dtype_names.hpp"

namespace pto::detail {

// Rounding with NONE already resolved by the caller.
enum class Round : std::uint8_t { rint, round, floor, ceil, trunc, odd };

struct Mode {
  Round round = Round::rint;
  bool saturate = false;
  bool nan_is_max = true;  // NaN to a type without NaN: its largest value, else zero
};

// A float type with sign | exp | man fields and its special codes (without sign bit).
struct Fields {
  int exp, man, bias, bits;
  std::uint64_t max_code;       // largest finite value
  std::uint64_t overflow_code;  // what overflow becomes: infinity, NaN or the largest value
  std::uint64_t nan_code;       // canonical NaN; 0 if the type has none
  constexpr bool has_nan() const { return nan_code != 0; }
  constexpr bool has_inf() const { return overflow_code == max_code + 1 && overflow_code != nan_code; }
};

inline constexpr Fields kF64{11, 52, 1023, 64, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000};
inline constexpr Fields kF32{8, 23, 127, 32, 0x7F7FFFFF, 0x7F800000, 0x7FC00000};
inline constexpr Fields kF16{5, 10, 15, 16, 0x7BFF, 0x7C00, 0x7E00};
inline constexpr Fields kBf16{8, 7, 127, 16, 0x7F7F, 0x7F80, 0x7FC0};
inline constexpr Fields kE4M3{4, 3, 7, 8, 0x7E, 0x7F, 0x7F};
inline constexpr Fields kE5M2{5, 2, 15, 8, 0x7B, 0x7C, 0x7E};
inline constexpr Fields kE2M1{2, 1, 1, 4, 0x7, 0x7, 0};
inline constexpr Fields kE1M2{1, 2, 1, 4, 0x7, 0x7, 0};

}  // namespace pto::detail
