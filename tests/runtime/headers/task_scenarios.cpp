// Orchestrations with everything that a task may have (pto_task_args.h): args[0] chooses one, args[1] is an array of
// 64 numbers.
#include "pto_orchestration_api.h"

namespace {

enum { BUMP = 0, CUBE = 1, DOUBLE = 2 };

Tensor part(const Tensor& x, uint64_t at, uint64_t count) {
  const uint64_t shape[] = {count}, offset[] = {at};
  return x.view(shape, offset);
}

TaskOutputTensors task(int kernel, const Tensor& t, PTO2TaskId dep = PTO2TaskId::invalid()) {
  CoreTaskArgsWithDeps<2> args;
  args.add_dep(dep, dep);
  args.clear();  // makes room for two again
  args.add_inout(t);
  args.add_dep(dep, dep);
  return rt_submit_aiv_task(kernel, args);
}

// x = 2 (x + 1), by edges alone; then the whole of it once more.
void manual(const Tensor& x) {
  PTO2TaskId done[4];
  PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
    for (uint64_t i = 0; i < 4; i++) {
      const Tensor mine = part(x, 16 * i, 16);
      done[i] = task(DOUBLE, mine, task(BUMP, mine).task_id()).task_id();
    }
    CoreTaskArgs args;
    args.set_dependencies(done, 4);
    const PTO2TaskId join = rt_submit_dummy_task(args).task_id();
    task(BUMP, x, join);
  }
}

// Memory that several tasks write parts of; numbers that come back.
void memory(const Tensor& x) {
  const uint32_t shape[] = {64}, at[] = {5};
  TensorCreateInfo info(shape, 1, DataType::UINT64);
  info.set_initial_value(uint64_t{7});
  TaskOutputTensors made = alloc_tensors(info, TensorCreateInfo(shape, 1, DataType::INT32, true));
  const Tensor& seven = made.get_ref(0);
  always_assert(made.size() == 2 && made.get_ref(1).data().manual_dep == 1);
  always_assert(get_tensor_data<uint64_t>(seven, 1, at) == 7);
  task(BUMP, part(seven, 0, 32));
  task(DOUBLE, part(seven, 32, 32));
  always_assert(get_tensor_data<uint64_t>(seven, 1, at) == 8);
  set_tensor_data(seven, 1, at, uint64_t{100});
  CoreTaskArgs args;
  args.add_input(seven);
  args.add_no_dep(x);
  args.add_scalar(1.5f, int32_t{-1}, uint64_t{3});
  rt_submit_aiv_task(BUMP, args);
  for (uint32_t i = 0; i < 64; i++) set_tensor_data(x, 1, &i, get_tensor_data(seven, 1, &i));
}

// Which of the tasks run.
void predicates(const Tensor& x) {
  const uint32_t shape[] = {3};
  const TaskOutputTensors made = alloc_tensors(TensorCreateInfo(shape, 1, DataType::INT32));
  const Tensor& flags = made.get_ref(0);
  for (uint32_t i = 0; i < 3; i++) set_tensor_data(flags, 1, &i, static_cast<int32_t>(i) - 1);
  for (uint32_t i = 0; i < 3; i++) {
    for (int op = 1; op <= 6; op++) {
      CoreTaskArgs args;
      args.add_inout(part(x, 8 * i + static_cast<uint64_t>(op), 1));
      args.set_predicate({{&flags, 1, {i}}, static_cast<PredicateOp>(op), 0});
      rt_submit_aiv_task(BUMP, args);
    }
  }
}

// Several kernels, several blocks.
void mixed(const Tensor& x) {
  CoreTaskArgs args;
  args.add_inout(x);
  rt_submit_task({CUBE, BUMP, BUMP}, args);
  args.launch_spec.set_block_num(static_cast<int16_t>(rt_available_cluster_count()));
  args.launch_spec.set_require_sync_start(true);
  rt_submit_task({CUBE, BUMP, INVALID_KERNEL_ID}, args);
  rt_submit_aic_task(CUBE, args);
}

void wrong(const Tensor& x, uint64_t which) {
  CoreTaskArgsWithDeps<1> args;
  args.add_inout(x);
  const uint32_t at[] = {64};
  switch (which) {
    case 0: args.add_dep(PTO2TaskId{7}); break;
    case 1: args.add_dep(PTO2TaskId{0}, PTO2TaskId{0}); break;
    case 2: args.launch_spec.set_block_num(99), args.launch_spec.set_require_sync_start(true); break;
    case 3: get_tensor_data(x, 1, at); break;
    case 4: rt_report_fatal(9, "no %s", "more"); break;
    case 5: PTO2_SCOPE(PTO2ScopeMode::MANUAL) { PTO2_SCOPE() {
        }
      }
      break;
    case 6: args.set_predicate({{nullptr, 0, {}}, PredicateOp::EQ, 0}); break;
    case 7: {
      const PTO2TaskId made[] = {PTO2TaskId{0}};
      args.set_dependencies(made, 1), args.add_dep(made[0]);
      break;
    }
  }
  rt_submit_aiv_task(BUMP, args);
}

}  // namespace

extern "C" void aicpu_orchestration_entry(PTO2Runtime*, uint64_t* args, int) {
  const uint64_t shape[] = {64};
  const Tensor x = make_tensor_external(reinterpret_cast<void*>(args[1]), shape, 1, DataType::UINT64);
  PTO2_SCOPE() {
    switch (args[0]) {
      case 0: manual(x); break;
      case 1: memory(x); break;
      case 2: predicates(x); break;
      case 3: mixed(x); break;
      default: wrong(x, args[0] - 10);
    }
  }
}
