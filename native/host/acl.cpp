// Host calls of the device runtime (acl/acl.h), and what launches need of them (pto_host.hpp).
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

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Piece {
  size_t size;
  bool device;
  std::string name;
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
  if (memory == nullptr || size == 0) return bad((std::string(call) + ": no bytes are asked for").c_str());
  if (size > SIZE_MAX / 2) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  void* got = nullptr;
  if (posix_memalign(&got, 512, (size + 511) / 512 * 512) != 0) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  const std::lock_guard<std::mutex> held(pieces_lock);
  const std::string name = "memory " + std::to_string(++made) + " (" + call + ")";
  pieces[static_cast<char*>(got)] = {size, device, name};
  *memory = got;
  return ACL_SUCCESS;
}

aclError give_back(void* memory, const char* call) {
  const std::lock_guard<std::mutex> held(pieces_lock);
  const auto found = pieces.find(static_cast<char*>(memory));
  if (found == pieces.end())
    return bad((std::string(call) + ": this is no memory that was allocated").c_str());
  pieces.erase(found);
  std::free(memory);
  return ACL_SUCCESS;
}

/// What a device or the host has at an address: nothing where it was not allocated here.
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
  if (rest >= 0x38800000) {  // to the nearest, ties to even
    kept = (rest - 0x38000000) >> 13, dropped = rest & 0x1fff, half = 0x1000;
  } else {
    const uint32_t shift = 126 - (rest >> 23), whole = (rest & 0x7fffff) | 0x800000;
    if (shift > 24) return static_cast<aclFloat16>(sign);
    kept = whole >> shift, dropped = whole & ((1u << shift) - 1), half = 1u << (shift - 1);
  }
  kept += dropped > half || (dropped == half && (kept & 1) != 0);
  return static_cast<aclFloat16>(sign | kept);
}

// The layer below it, which programs declare themselves.
PTO_EXPORT int32_t rtSetDevice(int32_t device) { return aclrtSetDevice(device); }
PTO_EXPORT int32_t rtStreamCreate(void** stream, int32_t) { return aclrtCreateStream(stream); }
PTO_EXPORT int32_t rtStreamDestroy(void* stream) { return aclrtDestroyStream(stream); }
PTO_EXPORT int32_t rtStreamSynchronize(void* stream) { return aclrtSynchronizeStream(stream); }
/// Where signals between cores begin: nowhere, cores have their own.
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

PTO_EXPORT int32_t pto_host_idle(uint64_t moves) {
  const bool stuck = pto::host::look(moves + 1, "what its kernel waits for");
  sched_yield();
  return stuck;
}

PTO_EXPORT void pto_host_ended(void* stream, int status, const char* text) {
  pto::host::go_on();
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
