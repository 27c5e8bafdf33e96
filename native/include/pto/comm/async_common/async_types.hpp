// For kernels that include this path.
#pragma once

#include "pto/pto-inst.hpp"
