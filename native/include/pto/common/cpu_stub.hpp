// Host calls of the device runtime, for programs that are written against it and run here: memory is the host's,
// streams and devices are names. Included by pto-inst.hpp where __CPU_SIM is defined.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pto/core/dtypes.hpp"

using aclFloat16 = half;
using aclrtStream = void*;
using aclError = int;
using aclStatus = int;

enum {
  ACL_SUCCESS = 0,
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 0,
  ACL_MEMCPY_DEVICE_TO_HOST = 1,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 2,
};
