// Log functions for orchestrations without a runtime to write to: LOG_INFO(format, ...) and the others.
//
// A line goes to the sink of the runtime (pto2_bind_log, exported by every shared object that includes this).
// Without a sink, lines up to INFO are printed as "[LEVEL] function: text", errors and warnings on stderr.
#pragma once

#include <stdarg.h>
#include <stdio.h>

/// Level: -1 ALWAYS, 0 ERROR, 1 WARN, 2 INFO, 3 DEBUG.
typedef void (*PTO2LogSink)(int level, const char* func, const char* text);

namespace pto2_detail {

__attribute__((visibility("hidden"))) inline PTO2LogSink& log_sink() {
  static PTO2LogSink sink = nullptr;
  return sink;
}

inline void log_line(int level, const char* func, const char* format, va_list values) {
  char text[1024];
  vsnprintf(text, sizeof text, format, values);
  if (log_sink() != nullptr) {
    log_sink()(level, func, text);
    return;
  }
  if (level > 2) return;
  const char* const name = level < 0 ? "ALWAYS" : level == 0 ? "ERROR" : level == 1 ? "WARN" : "INFO";
  fprintf(level == 0 || level == 1 ? stderr : stdout, "[%s] %s: %s\n", name, func, text);
}

}  // namespace pto2_detail

/// Set the sink for log lines of this shared object (null: standard streams). The runtime calls this.
extern "C" __attribute__((weak, used, visibility("default"))) void pto2_bind_log(PTO2LogSink sink) {
  pto2_detail::log_sink() = sink;
}

#define PTO2_LOG_FUNCTION(name, level)                                                                    \
  __attribute__((format(printf, 2, 3))) inline void unified_log_##name(const char* func, const char* fmt, \
                                                                       ...) {                             \
    va_list values;                                                                                       \
    va_start(values, fmt);                                                                                \
    pto2_detail::log_line(level, func, fmt, values);                                                      \
    va_end(values);                                                                                       \
  }
PTO2_LOG_FUNCTION(always, -1)
PTO2_LOG_FUNCTION(error, 0)
PTO2_LOG_FUNCTION(warn, 1)
PTO2_LOG_FUNCTION(info, 2)
PTO2_LOG_FUNCTION(debug, 3)
#undef PTO2_LOG_FUNCTION

#ifndef LOG_ERROR
#define LOG_ERROR(fmt, ...) unified_log_error(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_WARN(fmt, ...) unified_log_warn(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_INFO(fmt, ...) unified_log_info(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_DEBUG(fmt, ...) unified_log_debug(__FUNCTION__, fmt, ##__VA_ARGS__)
#define LOG_ALWAYS(fmt, ...) unified_log_always(__FUNCTION__, fmt, ##__VA_ARGS__)
#endif
