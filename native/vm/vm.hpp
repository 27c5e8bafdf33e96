// The C interface of the virtual machine; `pto.engine.native.machine` has the same structures.
#pragma once

#include <cstdint>

#include "pto/core/machine_facts.hpp"

extern "C" {

/// What one kind of core executes.
struct pto_code {
  const uint32_t* words;
  const char* frame;
  const uint32_t* arguments;  // offset in the frame and kind (1: a view) of each
  uint32_t frame_size, argc;
  uint32_t kind;  // of core: 0 any, 1 cube, 2 vector
  uint32_t reserved;
};

struct pto_target {
  uint8_t isa, left_by_columns;
  uint64_t capacity[pto::detail::kSpaces];
};

/// An image that is ready to run: its calls are addresses.
struct pto_program {
  pto_target target;
  void* const* functions;
  const pto_code* codes;  // one, or that of the cube core and that of the vector cores
  uint32_t code_count;
};
}
