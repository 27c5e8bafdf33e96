// The C interface of the virtual machine; `pto.engine.native.machine` has the same structures.
#pragma once

#include <cstdint>
#include <cstring>

#include "pto/vm/open.hpp"

extern "C" {

/// Asked by machine code at the ends of loops whether it is to end, as in the interpreter (time_limit.hpp).
struct pto_time_limit {
  /// Return the number of ends of loops until the next question; does not return if the launch is to end.
  /// First asked at the first end.
  uint32_t (*ask)(pto_time_limit* time_limit);
};

/// The code of one kind of core.
struct pto_code {
  const uint32_t* words;
  const char* frame;
  const uint32_t* arguments;  // offset in the frame and kind (1: a view) of each
  uint32_t frame_size, argc;
  uint32_t kind;  // of core: 0 any, 1 cube, 2 vector
  uint32_t reserved;
  /// The words compiled to machine code (src/pto/objects/ir.py); null: the machine interprets them.
  void (*run)(char* frame, const uint32_t* words, void* const* functions, int32_t* mark,
              pto_time_limit* time_limit);
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
  const uint8_t*
      kinds;  // by opcode, how an instruction is done: itself, or what pto_vm_kind says of the call
};

/// A program as a kernel of the task runtime.
struct pto_task {
  /// The kind of an argument: a number of the core itself, or a slot.
  enum Kind : uint8_t { kBlock, kBlocks, kSubblock, kNumber, kPointer, kView };
  const pto_program* program;
  const uint8_t* kinds;      // one per argument
  const char* const* names;  // of the arguments, for messages
  uint32_t code;             // which of the program's
  uint32_t tensors;          // whether slots are tensors, not addresses
};

/// A kernel as machine code, as its entry hands it to a machine (`_entry` of src/pto/objects/ir.py).
struct pto_object {
  uint32_t version;  // kObjectVersion
  uint32_t code_count, call_count, reserved;
  uint64_t key;  // of its image
  const pto_target* target;
  const uint64_t* keys;  // of its calls
  const char* names;     // of the same, each with a zero behind
  pto_code codes[2];     // as many as there are
};

void* pto_vm_own(const char* name);
int pto_vm_kind(const char* name);
int pto_launch_image(struct pto_launch* launch);
}

namespace pto::vm {

inline constexpr uint32_t kObjectVersion = 2;

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

/// Execute a code on a core whose target is set. In a launch of ours loops ask whether they are to end; the task
/// runtime ends its kernels itself.
void execute(const pto_program& program, const pto_code& code, char* frame, detail::Core& core,
             bool in_launch);

}  // namespace pto::vm
