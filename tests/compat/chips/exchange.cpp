// One task of a rank. Arguments: out, window, the context, quiet.
#include "pto_orchestration_api.h"

extern "C" {

PTO2OrchestrationConfig exchange_config(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 4};
}

void exchange(const ChipTaskArgs& given) {
  const ChipTensor& out = given.tensor(0).ref();
  const ChipTensor& window = given.tensor(1).ref();
  CoreTaskArgs args;
  args.add_inout(out, window);
  args.add_scalar(given.scalar(0), given.scalar(1));
  rt_submit_aiv_task(0, args);
}
}
