// A flow of control with a stack of its own. Used for kernels that may wait in the middle, and for the actors
// of deterministic mode. A fiber goes on only on the thread that started it.
#pragma once

namespace pto2 {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Begin with `body(context)` at the next resume; what ran here before is forgotten.
  void start(void (*body)(void*), void* context);

  /// Let it run until it ends or suspends; true if it has ended.
  bool resume();

  /// Called on the fiber: go back to the caller of resume.
  void suspend();

  /// Called on the fiber: end here, without unwinding.
  [[noreturn]] void abandon();

  /// Its stack, with an inaccessible first page.
  char* stack() const;

 private:
  struct State;
  State* state_;
  static void main();
  static thread_local Fiber* starting_;
};

}  // namespace pto2
