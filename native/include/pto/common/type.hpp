// For kernels that include this path.
#pragma once

#include "pto/core/check.hpp"
#include "pto/core/dtypes.hpp"
#include "pto/core/enums.hpp"
