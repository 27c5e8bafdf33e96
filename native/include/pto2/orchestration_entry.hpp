// Included after an orchestration: records whether its entry returns a code, which is not visible to the
// loader.
//
// The documents declare it with `int`, most sources with `void`; a macro or a condition may stand between.
// The compiler decides it.
#pragma once

#include <cstdint>

struct PTO2Runtime;

namespace pto2_entry {

/// Called if the source has none; the loader reports that.
void aicpu_orchestration_entry(...);

template <class Result>
inline constexpr int returns = 1;
template <>
inline constexpr int returns<void> = 0;

}  // namespace pto2_entry

using namespace pto2_entry;  // one set of functions, in which any other comes before that with dots

extern "C" {
__attribute__((visibility("default"), used)) extern const int pto2_entry_returns =
    pto2_entry::returns<decltype(aicpu_orchestration_entry(static_cast<PTO2Runtime*>(nullptr),
                                                           static_cast<uint64_t*>(nullptr), 0))>;
}
