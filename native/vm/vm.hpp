// The C interface of the virtual machine; `pto.engine.native.machine` has the same structures.
#pragma once

#include <cstdint>
#include <cstring>

#include "pto/vm/open.hpp"

extern "C" {

/// The time limit of a launch, which machine code checks at loop ends, like the interpreter (time_limit.hpp).
struct pto_time_limit {
  /// Return the number of iterations until the next call; does not return if the launch must end. The first
  /// call comes at the end of the first iteration.
  uint32_t (*ask)(pto_time_limit* time_limit);
};

/// The code of one kind of core.
struct pto_code {
  const uint32_t* words;
  const char* frame;
  const uint32_t* arguments;  // two words each: offset in the frame, kind (1: a view)
  uint32_t frame_size, argc;
  uint32_t kind;  // kind of core: 0 any, 1 cube, 2 vector
  uint32_t reserved;
  /// The words compiled to machine code (src/pto/objects/ir.py); null: the machine interprets the words.
  void (*run)(char* frame, const uint32_t* words, void* const* functions, int32_t* mark,
              pto_time_limit* time_limit);
};

struct pto_target {
  uint8_t isa, left_by_columns;
  uint64_t capacity[pto::detail::kSpaces];
};

/// An image that is ready to run: its calls are resolved to addresses.
struct pto_program {
  pto_target target;
  void* const* functions;
  const pto_code* codes;  // one code, or two: for the cube core and for the vector cores
  uint32_t code_count;
  const uint8_t*
      kinds;  // the handling of each opcode: the opcode itself, or for a call the result of pto_vm_kind
};

/// A program as a kernel of the task runtime.
struct pto_task {
  /// The kind of an argument: a number of the core, or the content of a slot.
  enum Kind : uint8_t { kBlock, kBlocks, kSubblock, kNumber, kPointer, kView };
  const pto_program* program;
  const uint8_t* kinds;      // one per argument
  const char* const* names;  // names of the arguments, for messages
  uint32_t code;             // index of the code in the program
  uint32_t tensors;          // 1: slots for arrays hold tensors; 0: addresses
};

/// A kernel as machine code, as its entry passes it to a machine (`_entry` of src/pto/objects/ir.py).
struct pto_object {
  uint32_t version;  // kObjectVersion
  uint32_t code_count, call_count, reserved;
  uint64_t key;  // key of the image
  const pto_target* target;
  const uint64_t* keys;  // keys of the calls
  const char* names;     // names of the calls, each zero-terminated
  pto_code codes[2];     // code_count of them
};

void* pto_vm_own(const char* name);
int pto_vm_kind(const char* name);
int pto_launch_image(struct pto_launch* launch);
}

namespace pto::vm {

inline constexpr uint32_t kObjectVersion = 2;

/// The frame of a core: all its values, initialized from its code, aligned to 64 bytes.
struct Frame {
  explicit Frame(const pto_code& code)
      : room(static_cast<ptrdiff_t>(code.frame_size) + 64),
        at(room.at + (64 - reinterpret_cast<uintptr_t>(room.at) % 64) % 64) {
    std::memcpy(at, code.frame, code.frame_size);
  }
  const detail::Scratch<char> room;
  char* const at;
};

/// Execute a code on a core whose target is set. Loops check the time limit only if `in_launch`; the task
/// runtime ends its kernels itself.
void execute(const pto_program& program, const pto_code& code, char* frame, detail::Core& core,
             bool in_launch);

}  // namespace pto::vm
