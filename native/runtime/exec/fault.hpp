// User code that accesses unmapped memory, divides by zero, uses up its stack, or does not return after
// Ctrl-C: the task or the orchestration fails, not the process.
//
// A fault is handled on a separate stack. The handler makes the thread continue, on return, in a function on
// the stack of the kernel's fiber, which gives the fiber up; or jumps out of the orchestration. The
// interrupted code is never finished, and earlier damage by it stays: this is for finding the cause.
//
// Ctrl-C: if the run has not ended some time after it, the threads of the run get a signal, again and again,
// and a thread in user code gives that code up. A thread in a library does not, because it may hold a lock.
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

/// Guard around user code that may fail: around every stretch of it that a thread runs.
struct Guarded {
  char* stack = nullptr;         // of the fiber, its guard page first
  void (*give_up)() = nullptr;   // called on that stack, with nothing below it; does not return
  sigjmp_buf* out_of = nullptr;  // instead of these two: where to go on
  Text text;                     // the user's code
  int signal = 0;                // out: what happened, and at which address; SIGINT: it was to be stopped
  uint64_t address = 0;
  bool overflow = false;  // out: the stack was used up

  /// The description of the fault, about `who`.
  const char* what(const char* who, char* text, size_t size) const;
};

/// The user code on the calling thread; null: no code that can be given up.
extern thread_local Guarded* guarded;

/// While code of ours runs that was called by the user's.
class Unguarded {
 public:
  Unguarded() : before_(guarded) { guarded = nullptr; }
  ~Unguarded() { guarded = before_; }
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

 private:
  Guarded* before_;
};

/// Call an orchestration whose code is `text`; throws std::runtime_error if it faults. Frames between here
/// and the fault are left without unwinding: only frames of user code should be there.
void call_guarded(const Text& text, const std::function<void()>& orchestration);

/// During its lifetime faults are caught; other faults go to the previous handler. With `interrupts`, Ctrl-C
/// counts, too.
class Faults {
 public:
  explicit Faults(bool interrupts);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

 private:
  const bool interrupts_;
};

/// While one of these lives, the calling thread belongs to a run that Ctrl-C is meant for.
class Interruptible {
 public:
  explicit Interruptible(bool yes);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  int slot_ = -1;
};

/// For a thread that will run kernels: a stack for the handler. It is dropped when the thread ends.
void prepare_thread_for_faults();

}  // namespace pto2
