// Log lines. Each line is written by one call, so lines of different threads do not mix.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>

namespace pto2 {

enum class Level : int { Always = -1, Error = 0, Warn = 1, Info = 2, Debug = 3 };

class Log {
 public:
  using Sink = std::function<void(Level, const std::string&)>;
  explicit Log(Level level = Level::Info, Sink sink = {}) : level_(level), sink_(std::move(sink)) {}

  bool wants(Level level) const { return level == Level::Always || level <= level_; }

  void line(Level level, const char* function, const char* format, std::va_list rest) {
    if (!wants(level)) return;
    char text[2048];
    std::vsnprintf(text, sizeof text, format, rest);
    static constexpr const char* names[] = {"ALWAYS", "ERROR", "WARN", "INFO", "DEBUG"};
    write(level, std::string("[") + names[static_cast<int>(level) + 1] + "] " + function + ": " + text);
  }
  [[gnu::format(printf, 4, 5)]] void operator()(Level level, const char* function, const char* format, ...) {
    std::va_list rest;
    va_start(rest, format);
    line(level, function, format, rest);
    va_end(rest);
  }

 private:
  void write(Level level, const std::string& text) {
    if (sink_) {  // without the lock: a sink does its own locking, and may wait for a thread that logs
      sink_(level, text);
    } else {
      const std::lock_guard guard(lock_);
      std::FILE* out = level == Level::Error || level == Level::Warn ? stderr : stdout;
      std::fprintf(out, "%s\n", text.c_str());
      std::fflush(out);
    }
  }
  const Level level_;
  Sink sink_;
  std::mutex lock_;
};

}  // namespace pto2
