// For kernels that include this path.
#pragma once

#include "pto/core/tile.hpp"
