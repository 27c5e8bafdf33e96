// Fibers: flows of control with stacks of their own, scheduled cooperatively on one thread.
//
// Only the launcher includes this. A switch saves the callee-saved registers and changes the stack. On
// processors without a hand-written switch, ucontext is the fallback. It is slower: it saves the signal mask
// with a system call.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#define PTO_FIBER_UCONTEXT 1
#endif

namespace pto::detail {

inline constexpr size_t kStack = size_t{1} << 20;
inline constexpr size_t kGuard = size_t{1} << 16;  // a large frame could skip a guard of one page

/// Return a stack with inaccessible pages below it; null if there is not enough memory.
inline char* make_stack() {
  void* memory = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  mprotect(memory, kGuard, PROT_NONE);
  return static_cast<char*>(memory);
}

inline void drop_stack(char* stack) {
  if (stack == nullptr) return;
#ifdef __SANITIZE_ADDRESS__  // remove the poison of this fiber: the addresses may be mapped again
  __asan_unpoison_memory_region(stack + kGuard, kStack);
#endif
  munmap(stack, kStack + kGuard);
}

#ifdef PTO_FIBER_UCONTEXT

struct Context {
  ucontext_t place;
};

inline void switch_to(Context& from, Context& to) { swapcontext(&from.place, &to.place); }

inline void prepare(Context& context, char* stack, void (*entry)()) {
  getcontext(&context.place);
  context.place.uc_stack.ss_sp = stack + kGuard;
  context.place.uc_stack.ss_size = kStack;
  context.place.uc_link = nullptr;
  makecontext(&context.place, entry, 0);
}

#else

struct Context {
  void* sp = nullptr;
};

extern "C" void pto_fiber_switch(void** from, void* to) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.local pto_fiber_switch
.type pto_fiber_switch, @function
pto_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size pto_fiber_switch, .-pto_fiber_switch
)");

inline void prepare(Context& context, char* stack, void (*entry)()) {
  auto* top = reinterpret_cast<uint64_t*>(stack + kGuard + kStack);
  *--top = 0;  // the return address: the function never returns, and unwinding ends here
  *--top = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < 6; ++i) *--top = 0;
  uint32_t mxcsr;
  uint16_t x87;
  asm volatile("stmxcsr %0" : "=m"(mxcsr));
  asm volatile("fnstcw %0" : "=m"(x87));
  *--top = static_cast<uint64_t>(mxcsr) | static_cast<uint64_t>(x87) << 32;
  context.sp = top;
}
#else
asm(R"(
.text
.p2align 4
.local pto_fiber_switch
.type pto_fiber_switch, %function
pto_fiber_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
.size pto_fiber_switch, .-pto_fiber_switch
)");

inline void prepare(Context& context, char* stack, void (*entry)()) {
  auto* top = reinterpret_cast<uint64_t*>(stack + kGuard + kStack) - 22;
  for (int i = 0; i < 22; ++i) top[i] = 0;
  top[11] = reinterpret_cast<uint64_t>(entry);  // x30
  context.sp = top;
}
#endif

inline void switch_to(Context& from, Context& to) { pto_fiber_switch(&from.sp, to.sp); }

#endif

}  // namespace pto::detail
