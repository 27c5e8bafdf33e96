// For kernels that include this path.
#pragma once

#include "pto/ops/comm.hpp"
