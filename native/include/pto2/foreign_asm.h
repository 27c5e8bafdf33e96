// The counter of the device in assembler, for a processor without it. Compiled before an orchestration.
//
// Orchestrations that measure time read the counter of the device with `mrs REG, cntvct_el0`. Here `mrs` is
// an assembler macro that reads the time stamp counter, divided to about the 50 MHz of the device. The
// counter always increases, but is not calibrated. The macro changes no register but REG (and the flags), and
// keeps the 128 bytes below the stack pointer (the red zone of the function around it).
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
asm(R"(
.macro mrs reg, what
  lea -152(%rsp), %rsp
  mov %rax, 0(%rsp)
  mov %rdx, 8(%rsp)
  rdtsc
  shl $32, %rdx
  or %rdx, %rax
  shr $6, %rax
  mov %rax, 16(%rsp)
  mov 0(%rsp), %rax
  mov 8(%rsp), %rdx
  mov 16(%rsp), \reg
  lea 152(%rsp), %rsp
.endm
)");
#endif
