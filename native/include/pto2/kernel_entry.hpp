// The C interface of a kernel of the task runtime: how the engine calls it on one of its cores.
//
// The runner compiles a kernel as one translation unit: the source of the user, then this header and one of
//
//   PTO2_KERNEL(kernel_entry)            // a C++ source: it takes the slots of the task apart itself
//   PTO2_TASK(vector_half::vec_add, 0)   // a function with typed parameters: the slots are taken apart here
//
// which give `pto2_kernel`, called on a fiber of the core with the slots of the task, and `pto2_kernel_abi`.
// Parameters of PTO2_TASK take the slots in order: a pointer is the address of the first element of the
// tensor (its start offset included), a number is the low part of its slot, a view takes shape and strides
// from the tensor. Numbers after the function say, one per parameter, what takes no slot: 1 the block, 2 the
// number of blocks, 3 the vector core. With PTO2_TENSOR_SLOTS a tensor slot is a TensorData*, otherwise an
// address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "pto/core/indices.hpp"
#include "pto/core/launch_abi.hpp"
#include "pto/core/machine.hpp"
#ifdef PTO2_TENSOR_SLOTS
#include "tensor.h"
#endif

namespace pto2 {

/// What the engine and a kernel must agree on: the state of a core and the hooks of its host. The engine
/// refuses a library whose number is another one.
inline constexpr uint64_t kernel_abi() {
  using pto::detail::Core;
  const uint64_t facts[] = {1,  // version of this interface
                            sizeof(Core),
                            sizeof(pto::detail::Host),
                            sizeof(pto::detail::Cluster),
                            sizeof(pto::detail::Grid),
                            static_cast<uint64_t>(pto::detail::kSpaces),
                            offsetof(Core, block_idx),
                            offsetof(Core, cluster),
                            offsetof(Core, host),
                            offsetof(Core, fiber),
                            offsetof(Core, ctrl)};
  uint64_t hash = 14695981039346656037ull;  // FNV-1a, a word at a time
  for (const uint64_t fact : facts) hash = (hash ^ fact) * 1099511628211ull;
  return hash;
}

/// The on-chip memory that a kernel was compiled for: the engine's cores must have at least that much.
inline constexpr uint64_t kernel_room(int space) {
  return space >= 0 && space < pto::detail::kSpaces ? pto::detail::room(space) : 0;
}

/// A tensor slot: where it starts and how it lies in memory, as seen by a kernel.
struct Slot {
  uint64_t address;
  uint64_t first = 0, bytes = 0;  // the memory from its first element to its last
  int64_t shape[5] = {1, 1, 1, 1, 1}, stride[5] = {};
  bool shaped = false;
};

inline Slot open_slot(uint64_t word) {
#ifdef PTO2_TENSOR_SLOTS
  const auto& tensor = *reinterpret_cast<const TensorData*>(word);
  Slot slot{tensor.buffer.addr + tensor.start_offset * get_element_size(tensor.dtype)};
  uint64_t strides[RUNTIME_MAX_TENSOR_DIMS];
  tensor.strides(strides);
  const uint64_t first = 5 - tensor.ndims;
  for (uint64_t i = 0; i < tensor.ndims; ++i) {
    slot.shape[first + i] = static_cast<int64_t>(tensor.shapes[i]);
    slot.stride[first + i] = static_cast<int64_t>(strides[i]);
  }
  for (uint64_t i = first; i > 0; --i) slot.stride[i - 1] = slot.stride[i] * slot.shape[i];
  slot.shaped = true;
  const Segment all = tensor_bytes(tensor);
  slot.first = tensor.buffer.addr + all.begin;
  slot.bytes = all.end - all.begin;
  return slot;
#else
  return Slot{word};
#endif
}

/// Whether a view type says everything about the memory but where it is.
template <class T>
inline constexpr bool fixed_size() {
  for (int i = 0; i < 5; ++i) {
    if (T::staticShape[i] < 0 || T::staticStride[i] < 0) return false;
  }
  return true;
}

/// A parameter of type T from its slot.
template <class T>
inline T take(uint64_t word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(open_slot(word).address);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(word);
  } else if constexpr (requires { T::staticStride; }) {
    const Slot slot = open_slot(word);
    auto* data = reinterpret_cast<typename T::DType*>(slot.address);
    if (!slot.shaped) {
      if constexpr (fixed_size<T>()) return T(data);
      pto::detail::fail("[PTO-E2610] a view of unknown size needs a tensor, but the slot is an address");
    }
    const auto& n = slot.shape;
    const auto& s = slot.stride;
    return T(data, typename T::Shape(n[0], n[1], n[2], n[3], n[4]),
             typename T::Stride(s[0], s[1], s[2], s[3], s[4]));
  } else {
    static_assert(sizeof(T) <= sizeof word, "a kernel takes pointers, views and numbers");
    T value;
    std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
    return value;
  }
}

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

/// The values are variables here, so that a function may take them by reference.
template <class Result, class... Args>
inline void call_on(Result (*function)(Args...), Plain<Args>... values) {
  function(values...);
}

/// Whether a parameter is memory, and not a number.
template <class T>
inline constexpr bool is_memory() {
  if constexpr (std::is_pointer_v<T>) return true;
  return requires { T::staticStride; };
}

/// The memory of the parameters: a task may touch what its tensors hold, and nothing else.
template <class... Args>
class Known {
 public:
  Known(pto::detail::Core* core, const uint64_t* words, const uint8_t* special) {
    int at = 0;
    ((note<Plain<Args>>(words[at], special[at] == 0, at), ++at), ...);
    if (core == nullptr) return;  // a plain thread
    core->arrays = arrays_;
    core->array_count = count_;
    core->only_arrays = true;
  }

 private:
  template <class T>
  void note(uint64_t word, bool given, int at) {
    if constexpr (is_memory<T>()) {
      if (!given) return;
      const Slot slot = open_slot(word);
      static constexpr const char* kNames[] = {
          "parameter 0",  "parameter 1",  "parameter 2",  "parameter 3", "parameter 4",  "parameter 5",
          "parameter 6",  "parameter 7",  "parameter 8",  "parameter 9", "parameter 10", "parameter 11",
          "parameter 12", "parameter 13", "parameter 14", "parameter 15"};
      arrays_[count_++] = {reinterpret_cast<void*>(slot.first), slot.bytes,
                           at < 16 ? kNames[at] : "a parameter"};
    }
  }
  pto_array arrays_[sizeof...(Args) + 1];
  int count_ = 0;
};

template <class Result, class... Args, size_t... I>
inline void call_words(Result (*function)(Args...), const uint64_t* words, pto::detail::Indices<I...>) {
  call_on<Result, Args...>(function, take<Plain<Args>>(words[I])...);
}

/// Call a function with the slots of a task; `special` has an entry per parameter.
template <class Result, class... Args>
inline void call_task(Result (*function)(Args...), const int64_t* slots, pto::detail::Core* core,
                      const uint8_t* special) {
  uint64_t words[sizeof...(Args) + 1] = {};
  for (size_t i = 0; i < sizeof...(Args); ++i) {
    words[i] = special[i] == 1   ? core->block_idx
               : special[i] == 2 ? core->block_num
               : special[i] == 3 ? core->subblock_idx
                                 : static_cast<uint64_t>(*slots++);
  }
#ifdef PTO2_TENSOR_SLOTS
  const Known<Args...> known(core, words, special);
#endif
  call_words(function, words, pto::detail::IndicesTo<sizeof...(Args)>{});
}

}  // namespace pto2

#define PTO2_EXPORT extern "C" __attribute__((visibility("default")))

#define PTO2_KERNEL_ABI                                                 \
  PTO2_EXPORT uint64_t pto2_kernel_abi() { return pto2::kernel_abi(); } \
  PTO2_EXPORT uint64_t pto2_kernel_room(int space) { return pto2::kernel_room(space); }

// The pointer to the core belongs to this library: each has its own, set when a task starts and after a wait.
#define PTO2_KERNEL(function)                                            \
  PTO2_EXPORT void pto2_kernel(int64_t* args, pto::detail::Core* core) { \
    pto::detail::current = core;                                         \
    function(args);                                                      \
  }                                                                      \
  PTO2_KERNEL_ABI

#define PTO2_TASK(function, ...)                                         \
  PTO2_EXPORT void pto2_kernel(int64_t* args, pto::detail::Core* core) { \
    pto::detail::current = core;                                         \
    static constexpr uint8_t special[] = {__VA_ARGS__};                  \
    pto2::call_task(&function, args, core, special);                     \
  }                                                                      \
  PTO2_KERNEL_ABI
