// Declarations that select the cores of a kernel. They are no-ops: here the launch selects the cores.
#pragma once

#include "pto/core/macros.hpp"

#define PTO_SYNCALL_AIV_KERNEL_META(name) static_assert(true)
#define PTO_SYNCALL_AIC_KERNEL_META(name) static_assert(true)
#define PTO_SYNCALL_MIX_AIC_KERNEL_META(name, cubes, vectors) static_assert(true)
