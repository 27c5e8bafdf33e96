// Code of the user's that touches memory that is not there, divides by zero, uses up its stack, or does not
// return when somebody wants to stop it: the task or the orchestration fails, not the process.
//
// A fault is handled on a stack of its own. The handler makes the thread go on, as it returns, in a function
// on the stack of the kernel's fiber, which gives the fiber up; or jumps out of the orchestration. What the
// code was in the middle of is never finished, and what it may have damaged before is damaged: this is for
// finding out what went wrong.
//
// Ctrl-C: if the run has not ended some time after it, the threads of the run are told by a signal, again and
// again, and one that finds itself in the user's own code gives that up. Not one that is in a library: that
// may hold a lock.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <functional>

namespace pto2 {

/// Where the code of a shared object is.
struct Text {
  uint64_t begin = 0, end = 0;
  bool has(uint64_t at) const { return at - begin < end - begin; }
};

/// Where code of the user's may fail: around every stretch of it that a thread runs.
struct Guarded {
  char* stack = nullptr;         // of the fiber, its guard page first
  void (*give_up)() = nullptr;   // called on that stack, with nothing below it; does not return
  sigjmp_buf* out_of = nullptr;  // instead of these two: where to go on
  Text text;                     // the user's code
  int signal = 0;                // out: what happened, and at which address; SIGINT: it was to be stopped
  uint64_t address = 0;
  bool overflow = false;  // out: the stack was used up

  /// What happened, about `who`.
  const char* what(const char* who, char* text, size_t size) const;
};

/// What the calling thread runs; null: nothing that could be given up.
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
/// and the fault are left without unwinding: nothing but the user's own should be there.
void call_guarded(const Text& text, const std::function<void()>& orchestration);

/// While one of these lives, faults are caught; those of others go to whoever handled them before. With
/// `interrupts`, Ctrl-C counts, too.
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
