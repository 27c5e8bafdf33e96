// Launches of whole programs: `kernel<T><<<blocks, nullptr, stream>>>(arguments)` becomes
//
//   ::pto::host::kernel([](auto... a) { kernel<T>(a...); })(blocks, nullptr, stream)(arguments)
//
// (src/pto/host/rewrite.py). The launch is over when it returns: a stream does one thing after another, and what other
// processes do is waited for inside. A kernel that fails says why on stderr, and the next call that waits for its stream
// gives an error, as on a device.
#pragma once

#include "pto/core/scheduler.hpp"

extern "C" {
/// Memory that kernels may touch: as many as there are, written to `into` where there is room.
int32_t pto_host_arrays(struct pto_array* into, int32_t room);
/// As `idle` of a launch.
int32_t pto_host_idle(uint64_t moves);
/// What became of a launch, for who waits for the stream; nothing is said of one that went well.
void pto_host_ended(void* stream, int status, const char* text);
}

namespace pto::host {

template <class Call>
void run(uint32_t blocks, void* stream, Call& call) {
  using namespace pto::detail;
  const Role role = {CoreKind::Mix, 0, [](const pto_launch& launch, const Core&) {
                       (*static_cast<Call*>(const_cast<void*>(launch.program)))();
                     }};
  char error[8192] = "";
  pto_launch launch{};
  launch.size = sizeof launch;
  launch.blocks = static_cast<int32_t>(blocks);
  launch.subblocks = launch.threads = 1;
  launch.error = error, launch.error_size = sizeof error;
  launch.program = &call;
  launch.idle = pto_host_idle;
  const int32_t count = pto_host_arrays(nullptr, 0);
  auto* arrays = static_cast<pto_array*>(std::calloc(static_cast<size_t>(count) + 1, sizeof(pto_array)));
  launch.array_count = pto_host_arrays(arrays, count);
  launch.arrays = arrays;
  const int status = run_launch(&launch, &role, 1, 0);
  std::free(arrays);
  pto_host_ended(stream, status, error);
}

template <class Kernel>
auto kernel(Kernel kernel) {
  return [kernel](auto blocks, const void*, void* stream = nullptr) {
    return [=](auto... arguments) {
      auto call = [&] { kernel(arguments...); };
      run(static_cast<uint32_t>(blocks), stream, call);
    };
  };
}

}  // namespace pto::host
