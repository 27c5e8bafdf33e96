// For kernels that include this path.
#pragma once

#include "pto/core/conv_tile.hpp"
#include "pto/core/global_tensor.hpp"
