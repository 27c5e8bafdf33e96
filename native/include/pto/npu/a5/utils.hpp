// The name under which kernels of A5 include GetScaleAddr.
#pragma once

#include "pto/pto-inst.hpp"
