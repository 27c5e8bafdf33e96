// Some orchestrations include this by habit; it is empty for them.
#pragma once

#include "pto_orchestration_api.h"
