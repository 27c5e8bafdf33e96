// The C interface of the virtual machine; `pto.engine.native.machine` has the same structures.
#pragma once

#include <cstdint>
#include <cstring>

#include "pto/vm/open.hpp"

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

/// A program as a kernel of the task runtime.
struct pto_task {
  /// What an argument is: what the core itself knows, or what a slot holds.
  enum Kind : uint8_t { kBlock, kBlocks, kSubblock, kNumber, kPointer, kView };
  const pto_program* program;
  const uint8_t* kinds;      // one per argument
  const char* const* names;  // of the arguments, for messages
  uint32_t code;             // which of the program's
  uint32_t tensors;          // whether slots are tensors, not addresses
};
}

namespace pto::vm {

/// The values of a core: as the code has them at its beginning.
struct Frame {
  explicit Frame(const pto_code& code)
      : room(static_cast<ptrdiff_t>(code.frame_size) + 64),
        at(room.at + (64 - reinterpret_cast<uintptr_t>(room.at) % 64) % 64) {
    std::memcpy(at, code.frame, code.frame_size);
  }
  const detail::Scratch<char> room;
  char* const at;
};

/// Execute a code on a core whose target is set.
void execute(const pto_program& program, const pto_code& code, char* frame, detail::Core& core);

}  // namespace pto::vm
