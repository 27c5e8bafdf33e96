// Element types of tensors, their sizes and their names.
#pragma once

#include <stdint.h>

enum class DataType : uint32_t {
  FLOAT32 = 0,
  FLOAT16 = 1,
  INT32 = 2,
  INT16 = 3,
  INT8 = 4,
  UINT8 = 5,
  BFLOAT16 = 6,
  INT64 = 7,
  UINT64 = 8,
  UINT16 = 9,
  UINT32 = 10,
  BOOL = 11,
  FP8E4M3FN = 12,
  FP8E8M0 = 13,
  FP4E2M1 = 14,  // two values per byte; the byte is the element
  DATA_TYPE_NUM = 15,
};

/// Return the bytes of one element; 0 for an unknown type.
inline constexpr uint64_t get_element_size(DataType dtype) {
  switch (dtype) {
    case DataType::INT8:
    case DataType::UINT8:
    case DataType::BOOL:
    case DataType::FP8E4M3FN:
    case DataType::FP8E8M0:
    case DataType::FP4E2M1: return 1;
    case DataType::FLOAT16:
    case DataType::BFLOAT16:
    case DataType::INT16:
    case DataType::UINT16: return 2;
    case DataType::FLOAT32:
    case DataType::INT32:
    case DataType::UINT32: return 4;
    case DataType::INT64:
    case DataType::UINT64: return 8;
    case DataType::DATA_TYPE_NUM: break;
  }
  return 0;
}

/// Return false for unsigned integers and BOOL, else true.
inline constexpr bool is_signed(DataType dtype) {
  return dtype != DataType::UINT8 && dtype != DataType::UINT16 && dtype != DataType::UINT32 &&
         dtype != DataType::UINT64 && dtype != DataType::BOOL;
}

inline constexpr const char* get_dtype_name(DataType dtype) {
  switch (dtype) {
    case DataType::FLOAT32: return "FLOAT32";
    case DataType::FLOAT16: return "FLOAT16";
    case DataType::INT32: return "INT32";
    case DataType::INT16: return "INT16";
    case DataType::INT8: return "INT8";
    case DataType::UINT8: return "UINT8";
    case DataType::BFLOAT16: return "BFLOAT16";
    case DataType::INT64: return "INT64";
    case DataType::UINT64: return "UINT64";
    case DataType::UINT16: return "UINT16";
    case DataType::UINT32: return "UINT32";
    case DataType::BOOL: return "BOOL";
    case DataType::FP8E4M3FN: return "FP8E4M3FN";
    case DataType::FP8E8M0: return "FP8E8M0";
    case DataType::FP4E2M1: return "FP4E2M1";
    case DataType::DATA_TYPE_NUM: break;
  }
  return "UNKNOWN";
}

/// Convert a number to the bits of a slot, and back.
template <class T>
inline uint64_t to_u64(T value) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
inline T from_u64(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
