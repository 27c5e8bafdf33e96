// Forwarding header: pto_orchestration_api.h defines CoreTaskArgsWithDeps.
#pragma once

#include "pto_orchestration_api.h"
