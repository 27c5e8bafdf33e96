// Launches of a kernel: the cores of its blocks are fibers on a few threads, behind a C interface.
//
// Only launchers include this, after the kernel: a launcher is a translation unit with the kernel source and
//
//   PTO_LAUNCHER(vec_add, pto::detail::CoreKind::Vector, vec_add)   // one core per block
//   PTO_MIXED_LAUNCHER(gemm, cube_side::gemm, vector_side::gemm)    // a cube core and its vector cores
//
// which define `extern "C" int pto_launch_vec_add(pto_launch*)`. The halves of a mixed kernel are the same
// source, compiled with only __DAV_CUBE__ or only __DAV_VEC__. All cores of a block run on one thread and
// switch when one must wait; while a block waits for another block (SYNCALL, TWAIT), the next block starts.
// If no core can proceed, the launch ends with a text that lists the condition of each core. A failed check,
// a trap, a division by zero and an access outside mapped memory end the launch, too. Resources of the kernel
// are then not released.
#pragma once

#include <cstring>
#include <type_traits>

#include "pto/core/indices.hpp"
#include "pto/core/scheduler.hpp"

namespace pto::detail {

/// Return the start of the part of an array that a block gets: an equal number of 4-byte words.
inline uint64_t part_of(const pto_launch& launch, const Core& core, uint64_t address) {
  for (int i = 0; i < launch.array_count; ++i) {
    const uint64_t from = address - reinterpret_cast<uintptr_t>(launch.arrays[i].data);
    const uint64_t bytes = launch.arrays[i].bytes;
    if (from < bytes) return address + (bytes - from) / 4 / core.block_num * core.block_idx * 4;
  }
  return address;
}

[[gnu::noinline]] inline uint64_t word_of(const pto_launch& launch, const Core& core, int index,
                                          int first_special = 0) {
  const int special = launch.special != nullptr ? launch.special[first_special + index] : 0;
  const uint64_t given = launch.args[static_cast<size_t>(core.grid->rank) * static_cast<size_t>(launch.argc) +
                                     static_cast<size_t>(index)];
  return special == 1   ? core.block_idx
         : special == 2 ? core.block_num
         : special == 3 ? core.subblock_idx
         : special == 4 ? part_of(launch, core, given)
                        : given;
}

template <class T>
inline T from_word(const pto_launch& launch, const Core& core, int index) {
  const uint64_t word = word_of(launch, core, index);
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(word);
  } else if constexpr (requires { T::staticStride; }) {
    const auto& [data, n, s] = *reinterpret_cast<const pto_view*>(word);
    return T(static_cast<typename T::DType*>(data), typename T::Shape(n[0], n[1], n[2], n[3], n[4]),
             typename T::Stride(s[0], s[1], s[2], s[3], s[4]));
  } else {
    static_assert(sizeof(T) <= sizeof word, "a kernel takes pointers and numbers");
    T value;
    std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
    return value;
  }
}

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

/// Call a function. The values are variables here, so that the function may take them by reference.
template <class Result, class... Args>
inline void call_on(Result (*function)(Args...), Plain<Args>... values) {
  function(values...);
}

template <class Result, class... Args, size_t... I>
inline void call_with(Result (*function)(Args...), const pto_launch& launch, const Core& core,
                      Indices<I...>) {
  call_on(function, from_word<Plain<Args>>(launch, core, I)...);
}

template <class Result, class... Args>
inline void call(Result (*function)(Args...), const pto_launch& launch, const Core& core) {
  call_with(function, launch, core, IndicesTo<sizeof...(Args)>{});
}

template <class Result, class... Args>
constexpr int count_of(Result (*)(Args...)) {
  return sizeof...(Args);
}

}  // namespace pto::detail

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

#define PTO_LAUNCHER(name, kind, function)                                                             \
  PTO_EXPORT int pto_launch_##name(pto_launch* launch) {                                               \
    const pto::detail::Role roles[] = {{kind, 0, [](const pto_launch& l, const pto::detail::Core& c) { \
                                          pto::detail::call(&function, l, c);                          \
                                        }}};                                                           \
    return pto::detail::run_launch(launch, roles, 1, pto::detail::count_of(&function));                \
  }

#define PTO_MIXED_LAUNCHER(name, cube, vector)                                                             \
  PTO_EXPORT int pto_launch_##name(pto_launch* launch) {                                                   \
    using pto::detail::CoreKind;                                                                           \
    const pto::detail::Body on_cube = [](const pto_launch& l, const pto::detail::Core& c) {                \
      pto::detail::call(&cube, l, c);                                                                      \
    };                                                                                                     \
    const pto::detail::Body on_vector = [](const pto_launch& l, const pto::detail::Core& c) {              \
      pto::detail::call(&vector, l, c);                                                                    \
    };                                                                                                     \
    const pto::detail::Role roles[] = {                                                                    \
        {CoreKind::Cube, 0, on_cube}, {CoreKind::Vector, 0, on_vector}, {CoreKind::Vector, 1, on_vector}}; \
    constexpr int args = pto::detail::count_of(&cube) > pto::detail::count_of(&vector)                     \
                             ? pto::detail::count_of(&cube)                                                \
                             : pto::detail::count_of(&vector);                                             \
    return pto::detail::run_launch(launch, roles, 3, args);                                                \
  }

// A half of a mixed kernel in its own translation unit, and the launcher that joins two such halves. Each
// half has its own pointer to its core, which is set when the core starts and after every wait.
#define PTO_HALF(half, name, function)                                                           \
  PTO_EXPORT void pto_##half##_##name(const pto_launch& launch, const pto::detail::Core& core) { \
    pto::detail::current = const_cast<pto::detail::Core*>(&core);                                \
    pto::detail::call(&function, launch, core);                                                  \
  }                                                                                              \
  PTO_EXPORT int pto_##half##_args_##name() { return pto::detail::count_of(&function); }

#define PTO_JOINED_LAUNCHER(name)                                                    \
  extern "C" void pto_cube_##name(const pto_launch&, const pto::detail::Core&);      \
  extern "C" void pto_vector_##name(const pto_launch&, const pto::detail::Core&);    \
  extern "C" int pto_cube_args_##name();                                             \
  extern "C" int pto_vector_args_##name();                                           \
  PTO_EXPORT int pto_launch_##name(pto_launch* launch) {                             \
    using pto::detail::CoreKind;                                                     \
    const pto::detail::Role roles[] = {{CoreKind::Cube, 0, pto_cube_##name},         \
                                       {CoreKind::Vector, 0, pto_vector_##name},     \
                                       {CoreKind::Vector, 1, pto_vector_##name}};    \
    const int cube = pto_cube_args_##name(), vector = pto_vector_args_##name();      \
    return pto::detail::run_launch(launch, roles, 3, cube > vector ? cube : vector); \
  }
