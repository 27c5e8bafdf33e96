// Forwarding header, for orchestrations that include it without need.
#pragma once

#include "pto_orchestration_api.h"
