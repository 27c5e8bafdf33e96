// Kernels that touch memory that is not there, divide by zero, or use up their stack: the task fails, not the
// process.
//
// The signal is handled on a stack of its own. It makes the thread go on, as the handler returns, in a
// function on the stack of the kernel's fiber, which gives the fiber up. What the kernel was in the middle of
// is never finished, and what it may have damaged before is damaged: this is for finding out what went wrong.
#pragma once

#include <cstdint>

namespace pto2 {

/// Where a kernel may fail: around every stretch that it runs on its fiber.
struct Guarded {
  char* stack = nullptr;        // of the fiber, its guard page first
  void (*give_up)() = nullptr;  // called on that stack, with nothing below it; does not return
  int signal = 0;               // out: what happened, and at which address
  uint64_t address = 0;
  bool overflow = false;  // out: the stack was used up
};

/// What the calling thread runs; null: nothing that could be given up.
extern thread_local Guarded* guarded_kernel;

/// Whether the calling thread orchestrates: its faults end the process, but not without a word.
extern thread_local bool orchestrating;

/// While one of these lives, faults of kernels are caught. Others go to whoever handled them before.
class Faults {
 public:
  Faults();
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
};

/// For a thread that will run kernels: a stack for the handler. It is dropped when the thread ends.
void prepare_thread_for_faults();

/// "SIGSEGV at address 0x10", and the like.
const char* fault_name(int signal);

}  // namespace pto2
