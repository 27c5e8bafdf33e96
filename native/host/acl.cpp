// Host calls of the device runtime (acl/acl.h), and the launch functions of pto_host.hpp.
#include "acl/acl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>

#include "group.hpp"
#include "hccl.hpp"
#include "pto/core/launch.h"
#include "trace.hpp"

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

namespace pto::detail {
struct Core;
}

/// The same type as pto::detail::Body in pto_host.hpp.
using pto_host_side = void (*)(const pto_launch&, const pto::detail::Core&);

namespace {

struct Piece {
  size_t size;
  bool device;
  std::string name;
  char* traced = nullptr;  // last traced contents; null: zeros
};

std::mutex pieces_lock;
std::map<char*, Piece> pieces;
int made = 0;
bool initialised = false;
thread_local int32_t current_device = 0;
thread_local std::string message;

struct Stream {
  int error = 0;
};
Stream default_stream;
Stream& stream_of(void* given) { return given != nullptr ? *static_cast<Stream*>(given) : default_stream; }

struct Event {
  timespec at{};
};

aclError bad(const char* what) {
  message = what;
  std::fprintf(stderr, "[PTO-E2420] %s\n", what);
  return ACL_ERROR_INVALID_PARAM;
}

aclError take(void** memory, size_t size, bool device, const char* call) {
  if (memory == nullptr || size == 0)
    return bad((std::string(call) + ": expected an address and a size above 0").c_str());
  if (size > SIZE_MAX / 2) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  void* got = nullptr;
  if (posix_memalign(&got, 512, (size + 511) / 512 * 512) != 0) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  const std::lock_guard<std::mutex> held(pieces_lock);
  const std::string name = "memory " + std::to_string(++made) + " (" + call + ")";
  pieces[static_cast<char*>(got)] = {size, device, name, nullptr};
  *memory = got;
  return ACL_SUCCESS;
}

aclError give_back(void* memory, const char* call) {
  const std::lock_guard<std::mutex> held(pieces_lock);
  const auto found = pieces.find(static_cast<char*>(memory));
  if (found == pieces.end())
    return bad((std::string(call) + ": expected an address that was allocated").c_str());
  std::free(found->second.traced);
  pieces.erase(found);
  std::free(memory);
  return ACL_SUCCESS;
}

/// Return the allocation (device or host) that contains an address; null if there is none.
const Piece* piece_at(const void* at, size_t& offset) {
  auto found = pieces.upper_bound(const_cast<char*>(static_cast<const char*>(at)));
  if (found == pieces.begin()) return nullptr;
  --found;
  offset = static_cast<size_t>(static_cast<const char*>(at) - found->first);
  return offset < found->second.size ? &found->second : nullptr;
}

bool fits(const void* at, size_t count, const char* call) {
  const std::lock_guard<std::mutex> held(pieces_lock);
  size_t offset = 0;
  const Piece* piece = piece_at(at, offset);
  if (piece == nullptr || count <= piece->size - offset) return true;
  char text[256];
  std::snprintf(text, sizeof text, "%s: touches bytes %zu..%zu of %s, which has %zu", call, offset,
                offset + count, piece->name.c_str(), piece->size);
  bad(text);
  return false;
}

bool is_piece(void* at) {
  const std::lock_guard<std::mutex> held(pieces_lock);
  return pieces.contains(static_cast<char*>(at));
}

/// Trace a write by the host to a window.
void trace_write(const void* at, size_t count) {
  if (!pto::host::is_traced()) return;
  const auto place = pto::host::window_at(at);
  if (place.group != 0)
    pto::host::trace(pto::host::Message::window, {place.group, place.rank, place.offset}, at, count);
}

/// Trace the pages of device memory that changed since the last launch.
void trace_memory() {
  constexpr size_t kPage = 4096;
  const std::lock_guard<std::mutex> held(pieces_lock);
  for (auto& [at, piece] : pieces) {
    if (!piece.device) continue;
    if (piece.traced == nullptr) piece.traced = static_cast<char*>(std::calloc(piece.size, 1));
    if (piece.traced == nullptr) continue;
    for (size_t first = 0; first < piece.size; first += kPage) {
      const size_t count = piece.size - first < kPage ? piece.size - first : kPage;
      if (std::memcmp(at + first, piece.traced + first, count) == 0) continue;
      std::memcpy(piece.traced + first, at + first, count);
      pto::host::trace(pto::host::Message::memory, {reinterpret_cast<uint64_t>(at + first)}, at + first,
                       count);
    }
  }
}

int32_t trace_records(uint32_t, uint32_t block, uint32_t core, uint32_t, const uint64_t* words,
                      uint64_t count) {
  pto::host::trace(pto::host::Message::records, {block, core}, words, count * sizeof *words);
  return 0;
}
pto_tracer tracer;

}  // namespace

PTO_EXPORT aclError aclInit(const char*) {
  if (initialised) return ACL_ERROR_REPEAT_INITIALIZE;
  initialised = true;
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclFinalize() {
  initialised = false;
  return ACL_SUCCESS;
}
PTO_EXPORT const char* aclGetRecentErrMsg() { return message.empty() ? nullptr : message.c_str(); }
PTO_EXPORT aclError aclrtSetDevice(int32_t device) {
  current_device = device;
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
PTO_EXPORT aclError aclrtGetDevice(int32_t* device) {
  *device = current_device;
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = pto::host::kMostRanks;
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtSynchronizeDevice() { return default_stream.error; }
PTO_EXPORT aclError aclrtCreateContext(aclrtContext* context, int32_t device) {
  *context = &default_stream;
  return aclrtSetDevice(device);
}
PTO_EXPORT aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
PTO_EXPORT aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }

PTO_EXPORT aclError aclrtMalloc(void** memory, size_t size, aclrtMemMallocPolicy) {
  return take(memory, size, true, "aclrtMalloc");
}
PTO_EXPORT aclError aclrtFree(void* memory) { return give_back(memory, "aclrtFree"); }
PTO_EXPORT aclError aclrtMallocHost(void** memory, size_t size) {
  return take(memory, size, false, "aclrtMallocHost");
}
PTO_EXPORT aclError aclrtFreeHost(void* memory) { return give_back(memory, "aclrtFreeHost"); }
PTO_EXPORT aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind) {
  if (count > room) return bad("aclrtMemcpy: more bytes than there is room for");
  if (!fits(to, count, "aclrtMemcpy") || !fits(from, count, "aclrtMemcpy")) return ACL_ERROR_INVALID_PARAM;
  std::memmove(to, from, count);
  trace_write(to, count);
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t count,
                                     aclrtMemcpyKind kind, aclrtStream) {
  return aclrtMemcpy(to, room, from, count, kind);
}
PTO_EXPORT aclError aclrtMemset(void* at, size_t room, int32_t value, size_t count) {
  if (count > room) return bad("aclrtMemset: more bytes than there is room for");
  if (!fits(at, count, "aclrtMemset")) return ACL_ERROR_INVALID_PARAM;
  std::memset(at, value, count);
  trace_write(at, count);
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtMemsetAsync(void* at, size_t room, int32_t value, size_t count, aclrtStream) {
  return aclrtMemset(at, room, value, count);
}

PTO_EXPORT aclError aclrtCreateStream(aclrtStream* stream) {
  *stream = new Stream;
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
  return aclrtCreateStream(stream);
}
PTO_EXPORT aclError aclrtDestroyStream(aclrtStream stream) {
  delete static_cast<Stream*>(stream);
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream) { return stream_of(stream).error; }
PTO_EXPORT aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t) {
  return stream_of(stream).error;
}
PTO_EXPORT aclError aclrtCreateEvent(aclrtEvent* event) {
  *event = new Event;
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) { return aclrtCreateEvent(event); }
PTO_EXPORT aclError aclrtDestroyEvent(aclrtEvent event) {
  delete static_cast<Event*>(event);
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtRecordEvent(aclrtEvent event, aclrtStream) {
  clock_gettime(CLOCK_MONOTONIC, &static_cast<Event*>(event)->at);
  return ACL_SUCCESS;
}
PTO_EXPORT aclError aclrtSynchronizeEvent(aclrtEvent) { return ACL_SUCCESS; }
PTO_EXPORT aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }
PTO_EXPORT aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent begin, aclrtEvent end) {
  const timespec &a = static_cast<Event*>(begin)->at, &b = static_cast<Event*>(end)->at;
  *milliseconds = static_cast<float>(static_cast<double>(b.tv_sec - a.tv_sec) * 1e3 +
                                     static_cast<double>(b.tv_nsec - a.tv_nsec) / 1e6);
  return ACL_SUCCESS;
}

PTO_EXPORT float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t sign = uint32_t{value} >> 15 << 31, exponent = value >> 10 & 31, part = value & 1023;
  uint32_t bits = sign;
  if (exponent == 31) {
    bits |= 0xffu << 23 | part << 13;
  } else if (exponent != 0) {
    bits |= (exponent + 112) << 23 | part << 13;
  } else if (part != 0) {
    const float small = static_cast<float>(part) / 16777216.0f;
    return sign != 0 ? -small : small;
  }
  float found;
  std::memcpy(&found, &bits, sizeof found);
  return found;
}
PTO_EXPORT aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return static_cast<aclFloat16>(sign | 0x7e00);
  if (rest >= 0x477ff000) return static_cast<aclFloat16>(sign | 0x7c00);
  uint32_t kept, dropped, half;
  if (rest >= 0x38800000) {  // round to nearest, ties to even
    kept = (rest - 0x38000000) >> 13, dropped = rest & 0x1fff, half = 0x1000;
  } else {
    const uint32_t shift = 126 - (rest >> 23), whole = (rest & 0x7fffff) | 0x800000;
    if (shift > 24) return static_cast<aclFloat16>(sign);
    kept = whole >> shift, dropped = whole & ((1u << shift) - 1), half = 1u << (shift - 1);
  }
  kept += dropped > half || (dropped == half && (kept & 1) != 0);
  return static_cast<aclFloat16>(sign | kept);
}

// The layer below acl: programs declare these calls themselves.
PTO_EXPORT int32_t rtSetDevice(int32_t device) { return aclrtSetDevice(device); }
PTO_EXPORT int32_t rtStreamCreate(void** stream, int32_t) { return aclrtCreateStream(stream); }
PTO_EXPORT int32_t rtStreamDestroy(void* stream) { return aclrtDestroyStream(stream); }
PTO_EXPORT int32_t rtStreamSynchronize(void* stream) { return aclrtSynchronizeStream(stream); }
/// Return a null address for the signals between cores: the cores themselves store them.
PTO_EXPORT int32_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length) {
  *address = 0, *length = 0;
  return 0;
}

// --- launches (pto_host.hpp) --------------------------------------------------------------------------------

PTO_EXPORT int32_t pto_host_arrays(pto_array* into, int32_t room) {
  const std::lock_guard<std::mutex> held(pieces_lock);
  int32_t count = 0;
  for (auto& [at, piece] : pieces) {
    if (!piece.device) continue;
    if (count < room) into[count] = {at, piece.size, piece.name.c_str(), 0};
    ++count;
  }
  return count + pto::host::windows(count < room ? into + count : nullptr, room - count);
}

PTO_EXPORT pto_tracer* pto_host_trace(const char* kernel, uint32_t blocks, uint32_t vectors,
                                      const pto_array* arrays, int32_t count) {
  using pto::host::Message;
  if (!pto::host::is_traced()) return nullptr;
  for (int32_t i = 0; i < count; ++i) {
    const pto_array& a = arrays[i];
    const auto place = pto::host::window_at(a.data);
    pto::host::trace(Message::array,
                     {reinterpret_cast<uint64_t>(a.data), a.bytes, place.group, place.rank, place.own},
                     a.name, std::strlen(a.name));
    if (place.group == 0 && !is_piece(a.data))
      pto::host::trace(Message::memory, {reinterpret_cast<uint64_t>(a.data)}, a.data, a.bytes);
  }
  trace_memory();
  pto::host::trace(Message::launch, {blocks, vectors}, kernel, std::strlen(kernel));
  tracer = {trace_records, {}};
  return &tracer;
}

namespace {
std::map<std::string, pto_host_side>& sides() {
  static std::map<std::string, pto_host_side> all;
  return all;
}
std::string side_name(int32_t side, int32_t unit, const char* call) {
  return std::to_string(side) + " " + std::to_string(unit) + " " + call;
}
}  // namespace
PTO_EXPORT void pto_host_add_side(int32_t side, int32_t unit, const char* call, pto_host_side body) {
  sides()[side_name(side, unit, call)] = body;
}
PTO_EXPORT pto_host_side pto_host_side_of(int32_t side, int32_t unit, const char* call) {
  const auto found = sides().find(side_name(side, unit, call));
  return found == sides().end() ? nullptr : found->second;
}

PTO_EXPORT int32_t pto_host_idle(uint64_t moves) {
  const bool stuck = pto::host::look(moves + 1, "the condition of its kernel");
  sched_yield();
  return stuck;
}

PTO_EXPORT void pto_host_ended(void* stream, int status, const char* text) {
  pto::host::go_on();
  const uint64_t* f = tracer.frames;
  pto::host::trace(pto::host::Message::ended,
                   {static_cast<uint64_t>(status), f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9],
                    f[10], f[11]},
                   text, std::strlen(text));
  if (status == 0) return;
  stream_of(stream).error = ACL_ERROR_RT_AICORE_EXCEPTION;
  message = text;
  if (status == 2) {
    std::string said = text;
    for (size_t at; (at = said.find('\t')) != std::string::npos;)
      said.replace(at, 1, at == 0 || said[at - 1] == '\n' ? "" : ": ");
    std::fprintf(stderr, "[PTO-E2104] the kernel is stuck: waits for %s", said.c_str());
  } else {
    std::fprintf(stderr, "%s\n", text);
  }
}
