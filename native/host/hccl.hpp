// Windows of the groups that a process has joined.
#pragma once

#include "pto/core/launch.h"

namespace pto::host {

/// Those that kernels may touch, as many as there are, written where there is room.
int32_t windows(pto_array* into, int32_t room);

}  // namespace pto::host
