// Tasks of one chip. Arguments: a, b, out (of 8 x 8 each), which scenario.
#include <stdint.h>

#include "pto_orchestration_api.h"

#define ADD 0
#define WHERE_CUBE 1
#define WHERE_VECTOR 2

namespace {

void add(const ChipTensor& a, const ChipTensor& b, const ChipTensor& out) {
  CoreTaskArgs args;
  args.add_input(a, b);
  args.add_inout(out);
  rt_submit_aiv_task(ADD, args);
}

/// out[0] = (a + b)[1] + (a + b)[2], by views of a tensor that a task makes; out[1] = a[1] + a[1].
void views(const ChipTaskArgs& given) {
  const ChipTensor& a = given.tensor(0).ref();
  const ChipTensor& b = given.tensor(1).ref();
  const ChipTensor& out = given.tensor(2).ref();
  const uint32_t all[1] = {64}, row[2] = {1, 8};
  ChipTensor flat_a = a.reshape(all, 1), flat_b = b.reshape(all, 1);
  TensorCreateInfo info(all, 1, DataType::FLOAT32);
  PTO2_SCOPE() {
    CoreTaskArgs args;
    args.add_input(flat_a, flat_b);
    args.add_output(info);
    TaskOutputTensors made = rt_submit_aiv_task(ADD, args);
    const ChipTensor& sum = made.get_ref(0);
    LOG_INFO("%u elements of task %llu", sum.shapes[0], static_cast<unsigned long long>(made.task_id().raw));
    const uint32_t shape[2] = {8, 8}, one[2] = {1, 0}, two[2] = {2, 0}, none[2] = {0, 0}, eight[1] = {8};
    ChipTensor rows = sum.reshape(shape, 2);
    ChipTensor first = rows.view(row, one).reshape(eight, 1), second = rows.view(row, two).reshape(eight, 1);
    ChipTensor to = out.view(row, none).reshape(eight, 1);
    add(first, second, to);
    ChipTensor same = a.view(row, one).reshape(eight, 1), next = out.view(row, one).reshape(eight, 1);
    add(same, same, next);
  }
}

/// out[0] = a[0] + b[0] + b[0], ordered by explicit edges only; out[1] = the same once more, if out[0][0] is
/// right by then.
void edges(const ChipTaskArgs& given) {
  const uint32_t row[2] = {1, 8}, zero[2] = {0, 0}, one[2] = {1, 0}, eight[1] = {8};
  ChipTensor a = given.tensor(0).ref().view(row, zero).reshape(eight, 1);
  ChipTensor b = given.tensor(1).ref().view(row, zero).reshape(eight, 1);
  ChipTensor out = given.tensor(2).ref().view(row, zero).reshape(eight, 1);
  ChipTensor next = given.tensor(2).ref().view(row, one).reshape(eight, 1);
  TaskOutputTensors memory = alloc_tensors(TensorCreateInfo(eight, 1, DataType::FLOAT32));
  const ChipTensor& between = memory.get_ref(0);
  PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
    CoreTaskArgs first;
    first.add_input(a, b);
    first.add_inout(between);
    const PTO2TaskId begun = rt_submit_aiv_task(ADD, first).task_id();
    CoreTaskArgs none;
    none.set_dependencies(&begun, 1);
    const PTO2TaskId joined = rt_submit_dummy_task(none).task_id();
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
      CoreTaskArgsWithDeps<2> second;
      second.add_input(between, b);
      second.add_inout(out);
      second.add_dep(joined, PTO2TaskId::invalid());
      rt_submit_aiv_task(ADD, second);
    }
  }
  const uint32_t at[1] = {0};
  const float sum = get_tensor_data<float>(out, 1, at);
  if (sum == get_tensor_data<float>(a, 1, at) + 2 * get_tensor_data<float>(b, 1, at)) {
    add(out, b, next);
    set_tensor_data(next, 1, at, -1.0f);
  }
}

/// A tensor that is not tracked: who uses it still waits for the task that made it.
void untracked(const ChipTaskArgs& given) {
  const uint32_t row[2] = {1, 8}, zero[2] = {0, 0}, eight[1] = {8};
  ChipTensor a = given.tensor(0).ref().view(row, zero).reshape(eight, 1);
  ChipTensor out = given.tensor(2).ref().view(row, zero).reshape(eight, 1);
  TensorCreateInfo info(eight, 1, DataType::FLOAT32);
  CoreTaskArgs first;
  first.add_input(a, a);
  first.add_output(info);
  TaskOutputTensors made = rt_submit_aiv_task(ADD, first);
  CoreTaskArgs second;
  second.add_no_dep(made.get_ref(0));
  second.add_input(a);
  second.add_inout(out);
  rt_submit_aiv_task(ADD, second);
}

/// Blocks of a task that has a kernel for every core of a cluster.
void mixed(const ChipTaskArgs& given) {
  const ChipTensor& out = given.tensor(2).ref();
  MixedKernels kernels;
  kernels.aic_kernel_id = WHERE_CUBE;
  kernels.aiv0_kernel_id = WHERE_VECTOR;
  kernels.aiv1_kernel_id = WHERE_VECTOR;
  CoreTaskArgs args;
  args.add_inout(out);
  args.launch_spec.set_block_num(2);
  args.launch_spec.set_require_sync_start(true);
  rt_submit_task(kernels, args);
}

void wrong(const ChipTaskArgs& given, uint64_t how) {
  const ChipTensor& a = given.tensor(0).ref();
  CoreTaskArgs args;
  const uint32_t two[2] = {2, 8}, last[2] = {7, 0};
  if (how == 10) {
    args.add_scalar(1);
    args.add_input(a);
    rt_submit_aiv_task(ADD, args);
  } else if (how == 11) {
    (void)a.view(two, last);
  } else if (how == 12) {
    rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "no more than %d", 3);
  } else if (how == 14) {
    args.add_input(a);
    args.launch_spec.set_block_num(0);
    rt_submit_aiv_task(ADD, args);
  } else if (how == 15) {
    MixedKernels kernels;
    kernels.aic_kernel_id = WHERE_CUBE;
    kernels.aiv0_kernel_id = kernels.aiv1_kernel_id = WHERE_VECTOR;
    args.add_inout(a);
    args.launch_spec.set_block_num(10923);
    rt_submit_task(kernels, args);
  } else {
    (void)given.tensor(3).ref();
  }
}

}  // namespace

extern "C" {

PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& args) {
  (void)args;
  return PTO2OrchestrationConfig{
      .expected_arg_count = 4,
  };
}

void aicpu_orchestration_entry(const ChipTaskArgs& args) {
  const uint64_t which = args.scalar(0);
  if (which == 0) {
    views(args);
  } else if (which == 1) {
    edges(args);
  } else if (which == 2) {
    untracked(args);
  } else if (which == 3) {
    mixed(args);
  } else {
    wrong(args, which);
  }
}
}
