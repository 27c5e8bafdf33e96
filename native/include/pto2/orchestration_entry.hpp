// Include this after an orchestration: it records whether the entry returns a code. The loader cannot
// detect that.
//
// The documentation declares the entry with `int`, most sources with `void`, some through macros or
// conditions. So the compiler decides.
#pragma once

#include <cstdint>

struct PTO2Runtime;

namespace pto2_entry {

/// Selected if the source has no entry; the loader reports the missing entry.
void aicpu_orchestration_entry(...);

template <class Result>
inline constexpr int returns = 1;
template <>
inline constexpr int returns<void> = 0;

}  // namespace pto2_entry

using namespace pto2_entry;  // one overload set, in which any other function is preferred to `...`

extern "C" {
__attribute__((visibility("default"), used)) extern const int pto2_entry_returns =
    pto2_entry::returns<decltype(aicpu_orchestration_entry(static_cast<PTO2Runtime*>(nullptr),
                                                           static_cast<uint64_t*>(nullptr), 0))>;
}
