// Emitted C++ of a program as a kernel of the task runtime: the slots of a task become the arguments of the
// program, as in the virtual machine (native/vm/task.cpp).
//
//   static const pto2::Parameter kParameters[] = {{pto2::Parameter::view, "%x", {nullptr, {...}, {...}}}, {}};
//   PTO2_PROGRAM(vector_side::twice, kParameters)
#pragma once

#include "pto/launch.hpp"
#include "pto2/kernel_entry.hpp"

namespace pto2 {

struct Parameter {
  enum Kind : uint8_t {
    block,
    blocks,
    subblock,
    number,
    pointer,
    view
  };  // the core itself supplies the first three
  Kind kind;
  const char* name;
  pto_view shown;  // shape and strides of a view, from its type
};

/// The arguments of a task, one for each parameter but the last, which ends the list. With tensor slots, the
/// core may from now on access only the tensors of the task.
template <size_t N>
class Arguments {
 public:
  Arguments(const Parameter (&parameters)[N], const int64_t* slots, pto::detail::Core& core) : core_(core) {
    for (size_t i = 0; i + 1 < N; ++i) {
      const Parameter& p = parameters[i];
      special_[i] = p.kind < Parameter::number ? static_cast<uint8_t>(p.kind + 1) : uint8_t{0};
      if (special_[i] != 0) continue;
      words_[i] = static_cast<uint64_t>(*slots++);
      if (p.kind == Parameter::number) continue;
      views_[i] = p.shown;
#ifdef PTO2_TENSOR_SLOTS
      const Slot slot = open_slot(words_[i]);
      words_[i] = slot.address;
      if (p.kind == Parameter::view) {
        std::memcpy(views_[i].shape, slot.shape, sizeof slot.shape);
        std::memcpy(views_[i].stride, slot.stride, sizeof slot.stride);
      }
      arrays_[count_++] = {reinterpret_cast<void*>(slot.first), slot.bytes, p.name, 0};
#endif
      views_[i].data = reinterpret_cast<void*>(words_[i]);
      if (p.kind == Parameter::view) words_[i] = reinterpret_cast<uintptr_t>(&views_[i]);
    }
#ifdef PTO2_TENSOR_SLOTS
    for (int i = 0; i < core.array_count && count_ < kMost; ++i)
      if (core.arrays[i].owner < 0) arrays_[count_++] = core.arrays[i];
    core.arrays = arrays_;
    core.array_count = count_;
    core.only_arrays = true;
#endif
  }

  template <class Function>
  void call(Function* function) const {
    pto_launch launch{};
    launch.args = words_;
    launch.special = special_;
    pto::detail::call(function, launch, core_);
  }

 private:
  static constexpr int kMost = static_cast<int>(N) + 64;
  pto::detail::Core& core_;
  uint64_t words_[N] = {};
  uint8_t special_[N] = {};
  pto_view views_[N] = {};
  pto_array arrays_[kMost] = {};
  int count_ = 0;
};

}  // namespace pto2

#define PTO2_PROGRAM(function, parameters)                               \
  PTO2_EXPORT void pto2_kernel(int64_t* args, pto::detail::Core* core) { \
    pto::detail::current = core;                                         \
    const pto2::Arguments given(parameters, args, *core);                \
    const auto body = [&given](int64_t*) { given.call(&function); };     \
    PTO2_CALL_(body);                                                    \
  }                                                                      \
  PTO2_TRACER_                                                           \
  PTO2_KERNEL_ABI
