// Declarations of kernels about the cores that they run on; here the launch defines that.
#pragma once

#include "pto/core/macros.hpp"

#define PTO_SYNCALL_AIV_KERNEL_META(name) static_assert(true)
#define PTO_SYNCALL_AIC_KERNEL_META(name) static_assert(true)
#define PTO_SYNCALL_MIX_AIC_KERNEL_META(name, cubes, vectors) static_assert(true)
