// Assertions of orchestration code: debug_assert (removed by NDEBUG) and always_assert.
//
// A failed assertion throws AssertionError, which has the condition and the source location. It neither
// prints nor exits: the runtime catches the error, releases the resources of the run, and reports the error
// to the caller.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// PTO_CPU_LEAN (for kernels) and PTO2_LEAN (for orchestrations) exclude code with standard headers that take
// longer to compile than the source itself: std::string is not used, and an error has only its text.
#if defined(PTO_CPU_LEAN) && !defined(PTO2_LEAN)
#define PTO2_LEAN
#endif

#ifdef PTO2_LEAN

#include <exception>

struct AssertionError : std::exception {
  char text[1000];
  const char* what() const noexcept override { return text; }
};

[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 3, 4)]] inline void assert_fail(const char* file,
                                                                                          int line,
                                                                                          const char* format,
                                                                                          ...) {
  AssertionError error;
  const int begun = snprintf(error.text, sizeof error.text, "%s:%d: ", file, line);
  va_list values;
  va_start(values, format);
  const int room = static_cast<int>(sizeof error.text) - begun;
  if (begun >= 0 && room > 0) vsnprintf(error.text + begun, room, format, values);
  va_end(values);
  throw error;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void assert_impl(const char* condition, const char* file,
                                                               int line) {
  assert_fail(file, line, "assertion failed: %s", condition);
}

#else

#include <execinfo.h>

#include <stdexcept>
#include <string>

/// Return the call stack, one call per line, innermost first, without the first `skip` calls.
inline std::string get_stacktrace(int skip = 1) {
  void* frames[64];
  const int count = backtrace(frames, 64);
  std::string text;
  char** names = backtrace_symbols(frames, count);
  if (names == nullptr) return text;
  for (int i = skip > 0 ? skip : 0; i < count; i++) {
    text += "  ";
    text += names[i];
    text += '\n';
  }
  free(names);
  return text;
}

class AssertionError : public std::runtime_error {
 public:
  AssertionError(const char* condition, const char* file, int line)
      : AssertionError(("assertion failed: " + std::string(condition)).c_str(), condition, file, line) {}
  AssertionError(const char* text, const char* condition, const char* file, int line)
      : std::runtime_error(placed(text, file, line)),
        condition_(condition),
        file_(file),
        line_(line),
        stacktrace_(get_stacktrace(3)) {}

  const char* condition() const { return condition_.c_str(); }
  const char* file() const { return file_.c_str(); }
  int line() const { return line_; }
  const char* stacktrace() const { return stacktrace_.c_str(); }

 private:
  static std::string placed(const char* text, const char* file, int line) {
    char number[24];
    snprintf(number, sizeof number, ":%d: ", line);
    return std::string(file) + number + text;
  }

  // Copies, because the strings of a shared object are gone when the error is reported.
  std::string condition_, file_;
  int line_;
  std::string stacktrace_;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void assert_impl(const char* condition, const char* file,
                                                               int line) {
  throw AssertionError(condition, file, line);
}

/// Throw AssertionError with a formatted text instead of a condition.
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 3, 4)]] inline void assert_fail(const char* file,
                                                                                          int line,
                                                                                          const char* format,
                                                                                          ...) {
  char text[400];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  throw AssertionError(text, text, file, line);
}

#endif

#define always_assert(cond)                              \
  do {                                                   \
    if (!(cond)) assert_impl(#cond, __FILE__, __LINE__); \
  } while (0)

#ifdef NDEBUG
#define debug_assert(cond) ((void)0)
#else
#define debug_assert(cond) always_assert(cond)
#endif
