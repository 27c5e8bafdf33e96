// Trace of a program that `pto ranks --sanitize` has built: a file that the launcher reads
// (src/pto/host/trace.py).
//
// The launcher opens the file and passes its descriptor in PTO_TRACE_FILE. A message has a header of two
// 8-byte words, its kind and the number of content bytes. The content follows, then a word with the Adler-32
// checksum of header and content. A launch writes `array` for each piece of memory that its kernel may
// access, `memory` for changes there, `launch`, the `records` of its cores, and `ended`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace pto::host {

enum class Message : uint64_t {
  array = 1,  // address, bytes, group and rank of the window (0 and 0: none), 1 if this rank owns it; name
  memory,     // address; bytes
  window,     // group, rank, offset; bytes that the host wrote
  launch,     // blocks, vector cores per block (0: one core does everything); names of target and kernel
  records,    // block, kind and sub-block as in pto_tracer; words
  ended,      // status, 12 return addresses; text
  barrier,    // number of ranks that meet on the host
};

/// Return true if there is a trace file.
bool is_traced();
void trace(Message kind, std::initializer_list<uint64_t> head, const void* bytes, size_t count);

/// The position of an address in a window of a group.
struct WindowPlace {
  uint64_t group;  // 0: the address is not in a window
  uint64_t rank, offset, own;
};
WindowPlace window_at(const void* address);

}  // namespace pto::host
