// Trace of a program that `pto ranks --sanitize` has built: a file that the launcher reads (src/pto/host/trace.py).
//
// The launcher opens the file and passes its descriptor in PTO_TRACE_FILE. A message consists of its kind and
// its number of bytes, two words of 8 bytes, then these bytes, and a word with the checksum of them all
// (Adler-32). A launch sends `array` for each piece of memory that its kernel may touch, `memory` for changes
// there, `launch`, `records` of its cores, and `ended`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace pto::host {

enum class Message : uint64_t {
  array = 1,  // address, bytes, group and rank of the window (0 and 0: none), 1 if it is the own one; name
  memory,     // address; bytes
  window,     // group, rank, offset; bytes that the host has written there
  launch,  // blocks, vector cores of a block (0: one core does everything); names of the target and of the kernel
  records,  // block, kind and sub-block as pto_tracer has them; words
  ended,    // status, 12 return addresses; text
  barrier,  // of how many ranks: they have met on the host
};

/// True if there is a trace file.
bool is_traced();
void trace(Message kind, std::initializer_list<uint64_t> head, const void* bytes, size_t count);

/// A window of a group.
struct WindowPlace {
  uint64_t group;  // 0: the address is in no window
  uint64_t rank, offset, own;
};
WindowPlace window_at(const void* address);

}  // namespace pto::host
