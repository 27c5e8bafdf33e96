// A coroutine with its own stack. Fibers run kernels that may wait in the middle, and the actors of
// deterministic mode. A fiber continues only on the thread that started it.
#pragma once

namespace pto2 {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Call `body(context)` at the next resume; an earlier body is discarded.
  void start(void (*body)(void*), void* context);

  /// Run the fiber until it ends or suspends; return true if it has ended.
  bool resume();

  /// Return to the caller of resume. Call it on the fiber.
  void suspend();

  /// End the fiber without unwinding. Call it on the fiber.
  [[noreturn]] void abandon();

  /// Return its stack, whose first page is inaccessible.
  char* stack() const;

 private:
  struct State;
  State* state_;
  static void main();
  static thread_local Fiber* starting_;
};

}  // namespace pto2
