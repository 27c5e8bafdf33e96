#include "trace.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <vector>

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

/// Return the Adler-32 checksum, as zlib does.
uint64_t checksum(const char* bytes, size_t count) {
  constexpr uint32_t kPrime = 65521;
  constexpr size_t kMost = 5552;  // the most bytes whose sums fit in 32 bits
  uint32_t low = 1, high = 0;
  while (count > 0) {
    const size_t part = count < kMost ? count : kMost;
    for (size_t i = 0; i < part; ++i) high += low += static_cast<unsigned char>(bytes[i]);
    low %= kPrime, high %= kPrime;
    bytes += part, count -= part;
  }
  return uint64_t{high} << 16 | low;
}

void write_all(const char* at, size_t count) {
  while (count > 0) {
    const ssize_t done = write(trace_file(), at, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;  // the launcher reports that the file is truncated
    at += done, count -= static_cast<size_t>(done);
  }
}

}  // namespace

bool is_traced() { return trace_file() >= 0; }

void trace(Message kind, std::initializer_list<uint64_t> head, const void* bytes, size_t count) {
  if (!is_traced()) return;
  const std::lock_guard<std::mutex> held(trace_lock);
  static std::vector<char> message;  // a copy: other ranks may change a window meanwhile
  message.clear();
  const auto add = [](const void* from, size_t size) {
    const char* first = static_cast<const char*>(from);
    if (size > 0) message.insert(message.end(), first, first + size);
  };
  const uint64_t begin[] = {static_cast<uint64_t>(kind), head.size() * sizeof(uint64_t) + count};
  add(begin, sizeof begin);
  add(head.begin(), head.size() * sizeof(uint64_t));
  add(bytes, count);
  const uint64_t sum = checksum(message.data(), message.size());
  add(&sum, sizeof sum);
  write_all(message.data(), message.size());
}

}  // namespace pto::host
