// Calls that the machine executes inline, without a pack: integer arithmetic that cannot fail. These are the
// most frequent calls on numbers. The name of such a call is its C++ code (src/pto/image/calls.py), so each
// expression below gives both the name and the implementation.
#pragma once

#include <cstdint>

// X: two operands, Y: one operand. The parameters of both: name, type of the operands, type of the result,
// expression.
// clang-format off
#define PTO_VM_QUICK_OF_(X, T, U)           \
  X(add, T, T, (T) ((U) a1 + (U) a2))       \
  X(sub, T, T, (T) ((U) a1 - (U) a2))       \
  X(mul, T, T, (T) ((U) a1 * (U) a2))       \
  X(and_, T, T, (T) ((U) a1 & (U) a2))      \
  X(or_, T, T, (T) ((U) a1 | (U) a2))       \
  X(xor_, T, T, (T) ((U) a1 ^ (U) a2))      \
  X(max, T, T, (a1 > a2) ? a1 : a2)         \
  X(min, T, T, (a1 < a2) ? a1 : a2)         \
  X(umax, T, T, ((U) a1 > (U) a2) ? a1 : a2) \
  X(umin, T, T, ((U) a1 < (U) a2) ? a1 : a2) \
  X(eq, T, bool, a1 == a2)                  \
  X(ne, T, bool, a1 != a2)                  \
  X(lt, T, bool, a1 < a2)                   \
  X(le, T, bool, a1 <= a2)                  \
  X(gt, T, bool, a1 > a2)                   \
  X(ge, T, bool, a1 >= a2)                  \
  X(ult, T, bool, (U) a1 < (U) a2)          \
  X(ule, T, bool, (U) a1 <= (U) a2)         \
  X(ugt, T, bool, (U) a1 > (U) a2)          \
  X(uge, T, bool, (U) a1 >= (U) a2)
#define PTO_VM_QUICK(X, Y)                             \
  PTO_VM_QUICK_OF_(X, int32_t, uint32_t)               \
  PTO_VM_QUICK_OF_(X, int64_t, uint64_t)               \
  Y(same, int64_t, int64_t, a1)                        \
  Y(wide, int32_t, int64_t, (int64_t) a1)              \
  Y(uwide, int32_t, int64_t, (int64_t) (uint32_t) a1)  \
  Y(narrow, int64_t, int32_t, (int32_t) a1)            \
  Y(unarrow, int64_t, int32_t, (int32_t) (uint64_t) a1)
// clang-format on

namespace pto::vm {

#define PTO_NAME_OF_TWO_(name, T, R, ...) #R "& a0; " #T "& a1; " #T "& a2; a0 = " #__VA_ARGS__ ";",
#define PTO_NAME_OF_ONE_(name, T, R, ...) #R "& a0; " #T "& a1; a0 = " #__VA_ARGS__ ";",
/// The names of these calls, in the order of their kinds.
inline constexpr const char* kQuick[] = {PTO_VM_QUICK(PTO_NAME_OF_TWO_, PTO_NAME_OF_ONE_)};
#undef PTO_NAME_OF_TWO_
#undef PTO_NAME_OF_ONE_

}  // namespace pto::vm
