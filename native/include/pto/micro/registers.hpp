// Vector registers, masks and alignment state, under the names that kernels use.
//
// A register is 256 bytes of lanes. Registers are different classes, but each may be accessed as another:
// (vector_u32&)x, or (vector_u32)x for a copy. A mask has a bit for every byte of a register: lane i of
// elements of w bytes is on if bit i * w is set. Calls that create masks set only that bit, and the other
// bits are never read.
#pragma once

#include <cstring>
#include <type_traits>

#include "pto/core/dtypes.hpp"

namespace pto::detail {

inline constexpr int kRegisterBytes = 256;

template <class V>
concept IsRegister = requires { typename V::Element; } && sizeof(V) == kRegisterBytes;

}  // namespace pto::detail

#define PTO_REGISTER_(name, element)                                           \
  struct [[gnu::may_alias]] alignas(64) name {                                 \
    using Element = element;                                                   \
    static constexpr int kLanes = 256 / static_cast<int>(sizeof(element));     \
    element lane[kLanes];                                                      \
    name() = default;                                                          \
    template <class Other>                                                     \
      requires(pto::detail::IsRegister<Other> && !std::is_same_v<Other, name>) \
    explicit name(const Other& other) {                                        \
      std::memcpy(lane, &other, sizeof lane);                                  \
    }                                                                          \
  };

// X(register, element), in the groups for which loads and arithmetic are overloaded.
#define PTO_B8_INTEGERS(X) X(vector_s8, int8_t) X(vector_u8, uint8_t)
#define PTO_B16_INTEGERS(X) X(vector_s16, int16_t) X(vector_u16, uint16_t)
#define PTO_B32_INTEGERS(X) X(vector_s32, int32_t) X(vector_u32, uint32_t)
#define PTO_B64_INTEGERS(X) X(vector_s64, int64_t) X(vector_u64, uint64_t)
#define PTO_B8_FLOATS(X)          \
  X(vector_f8e4m3, float8_e4m3_t) \
  X(vector_f8e5m2, float8_e5m2_t) X(vector_f8e8m0, float8_e8m0_t) X(vector_hif8, hifloat8_t)
#define PTO_B4_PAIRS(X) X(vector_f4e1m2x2, float4_e1m2x2_t) X(vector_f4e2m1x2, float4_e2m1x2_t)
#define PTO_B16_FLOATS(X) X(vector_f16, half) X(vector_bf16, bfloat16_t)
#define PTO_B32_FLOATS(X) X(vector_f32, float)
#define PTO_COMMON_REGISTERS(X) \
  PTO_B8_INTEGERS(X) PTO_B16_INTEGERS(X) PTO_B32_INTEGERS(X) PTO_B16_FLOATS(X) PTO_B32_FLOATS(X)
#define PTO_ALL_REGISTERS(X) PTO_COMMON_REGISTERS(X) PTO_B64_INTEGERS(X) PTO_B8_FLOATS(X) PTO_B4_PAIRS(X)

PTO_ALL_REGISTERS(PTO_REGISTER_)
PTO_REGISTER_(vector_s4x2, pto::int4b_t)
#undef PTO_REGISTER_

using vector_int8_t = vector_s8;
using vector_uint8_t = vector_u8;
using vector_int16_t = vector_s16;
using vector_uint16_t = vector_u16;
using vector_int32_t = vector_s32;
using vector_uint32_t = vector_u32;
using vector_int64_t = vector_s64;
using vector_uint64_t = vector_u64;
using vector_half = vector_f16;
using vector_bfloat16_t = vector_bf16;
using vector_float = vector_f32;
using vector_fp8_e4m3fn_t = vector_f8e4m3;
using vector_fp8_e5m2_t = vector_f8e5m2;
using vector_fp8_e8m0_t = vector_f8e8m0;
using vector_hifloat8_t = vector_hif8;
using vector_fp4x2_e1m2_t = vector_f4e1m2x2;
using vector_fp4x2_e2m1_t = vector_f4e2m1x2;
using vector_int4x2_t = vector_s4x2;

/// A mask of 256 bits, the first bit lowest.
struct vector_bool {
  uint64_t word[4];
};

/// State of an unaligned stream. A load stream holds the block in which its next access begins. A store
/// stream holds the bytes that wait for the rest of their block, and the position of the next store.
struct vector_align {
  enum Kind : uint8_t { kEmpty, kLoad, kStore };
  unsigned char bytes[32];
  char* position = nullptr;
  int32_t pending = 0;
  Kind kind = kEmpty;
};
/// An address that loops advance; no call here takes one.
struct vector_address {
  int64_t offset = 0;
};
using vector_load_unalign = vector_align;
using vector_store_unalign = vector_align;

inline constexpr int CCE_VL = 256, ELE_CNT_B8 = 256, ELE_CNT_B16 = 128, ELE_CNT_B32 = 64;

// Names for registers by element type. -DPTO_CPU_BARE_REGISTERS is for code that defines its own.
#ifndef PTO_CPU_BARE_REGISTERS
namespace pto {

/// The register of an element type.
template <class T>
struct TypeGet;
#define PTO_TYPE_GET_(V, element) \
  template <>                     \
  struct TypeGet<element> {       \
    using T = V;                  \
  };
PTO_ALL_REGISTERS(PTO_TYPE_GET_)
#undef PTO_TYPE_GET_

/// A register by its element type; it converts to the register itself.
template <class T>
struct RegTensor {
  using RegType = typename TypeGet<T>::T;
  RegType reg;
  operator RegType&() { return reg; }
};
using MaskReg = vector_bool;
using UnalignReg = vector_align;
using AddrReg = vector_address;

}  // namespace pto
#endif
