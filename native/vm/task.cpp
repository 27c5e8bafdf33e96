// A program as a kernel of the task runtime: the slots of a task become the arguments of its image.
#define PTO2_TENSOR_SLOTS
#include "pto/vm/open.hpp"
//
#include "pto2/kernel_entry.hpp"
#include "vm.hpp"

/// Return the number of the layout that the runtime and the machine must share.
PTO2_EXPORT uint64_t pto_vm_task_abi() { return pto2::kernel_abi(); }

/// Execute a task on a fiber of its core. Arguments take the slots in order, except numbers of the core.
PTO2_EXPORT void pto_vm_task(const pto_task* task, int64_t* slots, pto::detail::Core* core) {
  pto::detail::current = core;
  const pto_program& program = *task->program;
  const pto_code& code = program.codes[task->code];
  core->target = reinterpret_cast<const pto::detail::Target*>(&program.target);
  constexpr uint32_t kMost = 64;
  pto_array arrays[kMost];
  int count = 0;
  const pto::vm::Frame frame(code);
  for (uint32_t i = 0; i < code.argc; ++i) {
    char* at = frame.at + code.arguments[2 * i];
    const uint8_t kind = task->kinds[i];
    if (kind <= pto_task::kSubblock) {
      const uint64_t known[] = {core->block_idx, core->block_num, core->subblock_idx};
      std::memcpy(at, &known[kind], 8);
      continue;
    }
    const auto word = static_cast<uint64_t>(*slots++);
    if (kind == pto_task::kNumber || task->tensors == 0) {
      std::memcpy(at, &word, 8);  // for a view only its address: the frame has the rest
      continue;
    }
    const pto2::Slot slot = pto2::open_slot(word);
    std::memcpy(at, &slot.address, 8);
    if (kind == pto_task::kView) {
      std::memcpy(at + 8, slot.shape, sizeof slot.shape);
      std::memcpy(at + 8 + sizeof slot.shape, slot.stride, sizeof slot.stride);
    }
    if (count < static_cast<int>(kMost))
      arrays[count++] = {reinterpret_cast<void*>(slot.first), slot.bytes, task->names[i]};
  }
  if (task->tensors != 0) {  // a task may access its tensors and windows of ranks, nothing else
    for (int i = 0; i < core->array_count && count < static_cast<int>(kMost); ++i)
      if (core->arrays[i].owner < 0) arrays[count++] = core->arrays[i];
    core->arrays = arrays;
    core->array_count = count;
    core->only_arrays = true;
  }
  pto::vm::execute(program, code, frame.at, *core, false);
}
