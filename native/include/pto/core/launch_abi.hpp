// The C interface of a launch, for C++.
#pragma once

#include <cstdint>

#include "pto/core/launch.h"
