// Windows of the groups that a process has joined.
#pragma once

#include "pto/core/launch.h"

namespace pto::host {

/// Write at most `room` windows and contexts that kernels may access to `into`; return the number of all.
int32_t windows(pto_array* into, int32_t room);

}  // namespace pto::host
