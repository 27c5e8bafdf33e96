// CoreTaskArgsWithDeps, which pto_orchestration_api.h has; sources may include it by this name.
#pragma once

#include "pto_orchestration_api.h"
