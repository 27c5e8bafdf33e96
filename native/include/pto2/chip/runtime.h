// Some orchestrations include this by habit; there is nothing in it for them.
#pragma once

#include "pto_orchestration_api.h"
