// Launches in whole programs: `kernel<T><<<blocks, nullptr, stream>>>(arguments)` becomes
//
//   ::pto::host::kernel<struct pto_at_123>("kernel<T>", 0, [](auto... a) { kernel<T>(a...); })
//       (blocks, nullptr, stream)(arguments)
//
// (src/pto/host/rewrite.py). The launch is complete when the call returns: a stream executes one command
// after another, and the launch also waits for other processes. If a kernel fails, the launch prints the
// reason on stderr, and the next call that waits for its stream returns an error, as on a device.
//
// The number is the count of vector cores per block of a mixed kernel; 0: one core does everything. A program
// with mixed kernels is compiled three times: as it is, and for the cube and the vector side of its kernels
// (PTO_HOST_SIDE is 1 and 2). Each side registers its function for each launch. The key is the number of its
// source (PTO_HOST_UNIT) and the place of the launch, a type declared in the function around the launch. The
// program finds the sides by this key.
#pragma once

#include <string>
#include <typeinfo>

#include "pto/core/scheduler.hpp"

#ifndef PTO_HOST_UNIT
#define PTO_HOST_UNIT 0
#endif

extern "C" {
/// Write at most `room` memory ranges that kernels may access to `into`; return the number of all ranges.
int32_t pto_host_arrays(struct pto_array* into, int32_t room);
/// Implement `idle` of pto_launch.
int32_t pto_host_idle(uint64_t moves);
/// Record the result of a launch for the next call that waits for the stream. A success has no text.
void pto_host_ended(void* stream, int status, const char* text);
/// Return the tracer for the launch of a kernel (native/host/trace.hpp), whose text names target and kernel.
/// Null: the launch is not traced.
struct pto_tracer* pto_host_trace(const char* kernel, uint32_t blocks, uint32_t vectors,
                                  const struct pto_array* arrays, int32_t count);
/// Register and find sides of mixed kernels: 1 cube, 2 vector.
void pto_host_add_side(int32_t side, int32_t unit, const char* call, pto::detail::Body body);
pto::detail::Body pto_host_side_of(int32_t side, int32_t unit, const char* call);
}

namespace pto::host {

/// Call a kernel on one core.
template <class Call>
void call_on(const pto_launch& launch, const detail::Core& core) {
  detail::current = const_cast<detail::Core*>(&core);  // each side has its own pointer
  (*reinterpret_cast<Call*>(launch.args[0]))();
}

/// The place of a launch in the source, as a type.
template <class At>
struct Place {};

#ifdef PTO_HOST_SIDE
template <class At, class Call>
struct Side {
  static inline const bool added =
      (pto_host_add_side(PTO_HOST_SIDE, PTO_HOST_UNIT, typeid(Place<At>).name(), call_on<Call>), true);
};
#endif

template <class At, class Call>
void run(const char* name, uint32_t vectors, uint32_t blocks, void* stream, Call& call) {
  using namespace pto::detail;
  char error[8192] = "";
#ifdef PTO_HOST_SIDE
  (void)Side<At, Call>::added;
#endif
  Role roles[] = {{CoreKind::Mix, 0, call_on<Call>}, {}, {}};
  if (vectors > 0) {
    const Body cube = pto_host_side_of(1, PTO_HOST_UNIT, typeid(Place<At>).name()),
               vector = pto_host_side_of(2, PTO_HOST_UNIT, typeid(Place<At>).name());
    if (cube == nullptr || vector == nullptr)
      return pto_host_ended(
          stream, 1,
          "[PTO-E2102] a mixed kernel lacks a side: the launch is left out where __DAV_VEC__ or "
          "__DAV_CUBE__ is not defined");
    roles[0] = {CoreKind::Cube, 0, cube};
    roles[1] = {CoreKind::Vector, 0, vector}, roles[2] = {CoreKind::Vector, 1, vector};
  }
  const auto word = reinterpret_cast<uint64_t>(&call);
  pto_launch launch{};
  launch.size = sizeof launch;
  launch.argc = 1, launch.args = &word;
  launch.blocks = static_cast<int32_t>(blocks);
  launch.subblocks = static_cast<int32_t>(vectors);
  launch.threads = 1;
  launch.error = error, launch.error_size = sizeof error;
  launch.idle = pto_host_idle;
  const int32_t count = pto_host_arrays(nullptr, 0);
  auto* arrays = static_cast<pto_array*>(std::calloc(static_cast<size_t>(count) + 1, sizeof(pto_array)));
  launch.array_count = pto_host_arrays(arrays, count);
  launch.arrays = arrays;
#ifdef PTO_TRACED
  launch.program = pto_host_trace((PTO_HOST_TARGET " " + std::string(name)).c_str(), blocks, vectors, arrays,
                                  launch.array_count);
#else
  (void)name;
#endif
  const int status = run_launch(&launch, roles, vectors > 0 ? 3 : 1, 1);
  std::free(arrays);
  pto_host_ended(stream, status, error);
}

template <class At, class Kernel>
auto kernel(const char* name, uint32_t vectors, Kernel kernel) {
  return [=](auto blocks, const void*, void* stream = nullptr) {
    return [=](auto... arguments) {
      auto call = [&] { kernel(arguments...); };
      run<At>(name, vectors, static_cast<uint32_t>(blocks), stream, call);
    };
  };
}

}  // namespace pto::host
