// Assertions: at compile time with a documented id; at run time, PTO_CHECK is active only with -DPTO_CHECKED.
//
//   PTO_CHECK(condition, "PA-0017", "texp: src has %d valid columns, dst %d", a, b)
//
// A failed run-time check ends the launch with its message; without a launch it aborts the program. Kernels
// may use PTO_CPU_ASSERT, PTO_STATIC_ASSERT, and PTO_ASSERT, which is active only with PTO_CHECKED.
#pragma once

#include "pto/core/machine.hpp"
#include "pto/core/macros.hpp"

#ifdef PTO_CHECKED
#define PTO_CHECK(condition, id, ...)                             \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::pto::detail::check_failed("[PTO][" id "] ", __VA_ARGS__); \
  } while (0)
#define PTO_ASSERT(condition, ...) PTO_CPU_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#else
#define PTO_CHECK(condition, id, ...) ((void)0)
#define PTO_ASSERT(condition, ...) ((void)0)
#endif

#define PTO_CPU_ASSERT(condition, ...)                                                  \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::pto::detail::failf("[PTO][CA] %s:%d: %s " __VA_OPT__("%s"), __FILE__, __LINE__, \
                           "does not hold: " #condition __VA_OPT__(, ) __VA_ARGS__);    \
  } while (0)

#define PTO_STATIC_ASSERT(condition, ...) \
  static_assert((condition), "[PTO][SA] does not hold: " #condition __VA_OPT__("; ") __VA_ARGS__)

namespace pto::detail {

/// Fail with the id and the formatted message.
template <class... Values>
[[noreturn, gnu::noinline, gnu::cold]] void check_failed(const char* id, const char* format,
                                                         Values... values) {
  char text[384];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::snprintf(text, sizeof text, format, values...);
#pragma GCC diagnostic pop
  failf("%s%s", id, text);
}

}  // namespace pto::detail
