// Faults in user code: access to unmapped memory, division by zero, stack overflow, or no return after
// Ctrl-C. The task or the orchestration fails, not the process.
//
// The fault handler has a separate stack. For a kernel, it makes the thread continue in a function on the
// stack of the kernel's fiber, which abandons the fiber; for an orchestration, it jumps out. The interrupted
// code never finishes, and earlier damage by it remains: this is for finding the cause.
//
// Ctrl-C: if the run has not ended after some time, the threads of the run get a signal, again and again. A
// thread in user code then abandons that code. A thread in a library does not, because it may hold a lock.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <functional>

namespace pto2 {

/// The address range of the code of a shared object.
struct Text {
  uint64_t begin = 0, end = 0;
  bool has(uint64_t at) const { return at - begin < end - begin; }
};

/// Guard around each stretch of user code that a thread runs and that may fault.
struct Guarded {
  char* stack = nullptr;         // stack of the fiber, starting with its guard page
  void (*give_up)() = nullptr;   // called on that stack, which is empty then; does not return
  sigjmp_buf* out_of = nullptr;  // used instead of `stack` and `give_up` if not null: where to continue
  Text text;                     // address range of the user code
  int signal = 0;                // out: the signal and the address of the fault; SIGINT: after Ctrl-C
  uint64_t address = 0;
  bool overflow = false;  // out: the stack overflowed

  /// Write a description of the fault of `who` into `text`, and return `text`.
  const char* what(const char* who, char* text, size_t size) const;
};

/// The guard of the user code on the calling thread; null: no code that can be abandoned.
extern thread_local Guarded* guarded;

/// Removes the guard while our code runs that user code has called.
class Unguarded {
 public:
  Unguarded() : before_(guarded) { guarded = nullptr; }
  ~Unguarded() { guarded = before_; }
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

 private:
  Guarded* before_;
};

/// Call an orchestration whose code is `text`; throw std::runtime_error if it faults. Frames between this
/// call and the fault are left without unwinding, so they should all be frames of user code.
void call_guarded(const Text& text, const std::function<void()>& orchestration);

/// Catches faults in guarded code during its lifetime; other faults go to the previous handlers. With
/// `interrupts`, it also handles Ctrl-C.
class Faults {
 public:
  explicit Faults(bool interrupts);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

 private:
  const bool interrupts_;
};

/// Registers the calling thread, during its lifetime, as a thread of a run that Ctrl-C stops.
class Interruptible {
 public:
  explicit Interruptible(bool yes);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  int slot_ = -1;
};

/// Give a thread that will run kernels a stack for the handler. The stack is freed when the thread ends.
void prepare_thread_for_faults();

}  // namespace pto2
