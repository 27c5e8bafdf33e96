#include "trace.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

namespace pto::host {
namespace {

int trace_file() {
  static const int file = [] {
    const char* text = std::getenv("PTO_TRACE_FILE");
    return text != nullptr ? std::atoi(text) : -1;
  }();
  return file;
}

std::mutex trace_lock;

void write_all(const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = write(trace_file(), at, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;  // the launcher finds that the file ends too early
    at += done, count -= static_cast<size_t>(done);
  }
}

}  // namespace

bool is_traced() { return trace_file() >= 0; }

void trace(Message kind, std::initializer_list<uint64_t> head, const void* bytes, size_t count) {
  if (!is_traced()) return;
  const std::lock_guard<std::mutex> held(trace_lock);
  const uint64_t begin[] = {static_cast<uint64_t>(kind), head.size() * sizeof(uint64_t) + count};
  write_all(begin, sizeof begin);
  write_all(head.begin(), head.size() * sizeof(uint64_t));
  write_all(bytes, count);
}

}  // namespace pto::host
