// Read before an orchestration: the device's counter in assembler, on a processor that has no such thing.
//
// Orchestrations that time themselves read the counter of the device with `mrs REG, cntvct_el0`. Here that is
// a macro of the assembler that gives the time stamp counter, divided to about the 50 MHz of the device: it
// always goes on, but is not calibrated. No register but REG changes; below the stack pointer the 128 bytes
// that belong to the function around are left alone.
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
