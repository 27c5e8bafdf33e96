// The entry that the runtime calls if the entry of an orchestration takes ChipTaskArgs. Included after it.
//
// The source is compiled with its entry and configuration renamed to pto2_chip_entry and pto2_chip_config,
// because the runtime calls the entry by its usual name.
#pragma once

#include "pto_orchestration_api.h"

#undef aicpu_orchestration_entry

extern "C" {
// Either may be missing: a configuration is optional, and the source compiler reports a missing entry.
__attribute__((weak)) void pto2_chip_entry(const ChipTaskArgs& args);
__attribute__((weak)) PTO2OrchestrationConfig pto2_chip_config(const ChipTaskArgs& args);

__attribute__((visibility("default"))) void aicpu_orchestration_entry(PTO2Runtime*, uint64_t* words,
                                                                      int count) {
  ChipTaskArgs args;
  args.read(words, count);
  if (pto2_chip_config != nullptr) {
    const int expected = pto2_chip_config(args).expected_arg_count;
    if (expected > args.tensor_count() + args.scalar_count()) {
      assert_fail(__FILE__, __LINE__,
                  "the orchestration expects %d arguments, and was given %d tensors and %d "
                  "scalars",
                  expected, args.tensor_count(), args.scalar_count());
    }
  }
  pto2_detail::manual_scopes() = 0;
  pto2_chip_entry(args);
}
}
