#include "fiber.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "pto/core/fiber.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace pto2 {

namespace {

/// Clear the sanitizer's marks of frames that were abandoned without a return.
void forget_frames([[maybe_unused]] char* stack) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack + pto::detail::kGuard, pto::detail::kStack);
#endif
}

}  // namespace

struct Fiber::State {
  /// The exceptions that a flow of control is handling. The C++ runtime stores them per thread, in this
  /// layout. The fibers of a thread enter and leave handlers in any order, so each fiber has its own copy.
  struct Exceptions {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static Exceptions& of_thread() { return *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals()); }

  pto::detail::Context here, there;  // contexts of the fiber and of its resumer
  char* stack = nullptr;
  void (*body)(void*) = nullptr;
  void* context = nullptr;
  bool done = true;
  Exceptions exceptions;
#if defined(__SANITIZE_THREAD__)
  void *mine = nullptr, *resumer = nullptr;
#endif
#if defined(__SANITIZE_ADDRESS__)
  void *fake = nullptr, *resumer_fake = nullptr;
  const void* resumer_stack = nullptr;
  size_t resumer_size = 0;
#endif
};

thread_local Fiber* Fiber::starting_ = nullptr;

Fiber::Fiber() : state_(new State) {
  state_->stack = pto::detail::make_stack();
  if (state_->stack == nullptr) {
    delete state_;
    throw std::bad_alloc();
  }
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (state_->mine != nullptr) __tsan_destroy_fiber(state_->mine);
#endif
  forget_frames(state_->stack);
  pto::detail::drop_stack(state_->stack);
  delete state_;
}

void Fiber::start(void (*body)(void*), void* context) {
  state_->body = body;
  state_->context = context;
  state_->done = false;
  state_->exceptions = {};
  forget_frames(state_->stack);
  pto::detail::prepare(state_->here, state_->stack, &Fiber::main);
#if defined(__SANITIZE_THREAD__)
  if (state_->mine != nullptr) __tsan_destroy_fiber(state_->mine);
  state_->mine = __tsan_create_fiber(0);
#endif
}

void Fiber::main() {
  Fiber& self = *starting_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self.state_->resumer_stack, &self.state_->resumer_size);
#endif
  self.state_->body(self.state_->context);
  self.abandon();
}

bool Fiber::resume() {
  State& s = *state_;
  starting_ = this;
  const State::Exceptions outside = std::exchange(State::of_thread(), s.exceptions);
#if defined(__SANITIZE_THREAD__)
  s.resumer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(s.mine, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&s.resumer_fake, s.stack + pto::detail::kGuard, pto::detail::kStack);
#endif
  pto::detail::switch_to(s.there, s.here);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(s.resumer_fake, nullptr, nullptr);
#endif
  s.exceptions = std::exchange(State::of_thread(), outside);
  return s.done;
}

void Fiber::suspend() {
  State& s = *state_;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(s.resumer, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(s.done ? nullptr : &s.fake, s.resumer_stack, s.resumer_size);
#endif
  pto::detail::switch_to(s.here, s.there);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(s.fake, &s.resumer_stack, &s.resumer_size);
#endif
}

char* Fiber::stack() const { return state_->stack; }

void Fiber::abandon() {
  state_->done = true;
  suspend();
  std::abort();  // not reached: an ended fiber is never resumed
}

}  // namespace pto2
