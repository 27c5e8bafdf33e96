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
  DATA_TYPE_NUM = 9,
};

/// Bytes of one element; 0 for a value that is no type.
inline constexpr uint64_t get_element_size(DataType dtype) {
  switch (dtype) {
    case DataType::INT8:
    case DataType::UINT8: return 1;
    case DataType::FLOAT16:
    case DataType::BFLOAT16:
    case DataType::INT16: return 2;
    case DataType::FLOAT32:
    case DataType::INT32: return 4;
    case DataType::INT64:
    case DataType::UINT64: return 8;
    case DataType::DATA_TYPE_NUM: break;
  }
  return 0;
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
    case DataType::DATA_TYPE_NUM: break;
  }
  return "UNKNOWN";
}
