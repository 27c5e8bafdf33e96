// The two kinds of cores.
#pragma once

#include <stdint.h>
#include <string.h>

enum class CoreType : int32_t {
  AIC = 0,  // cube
  AIV = 1,  // vector
};

/// Convert "aic" or "AIC" to AIC, and any other name to AIV.
inline CoreType core_type_from_string(const char* name) {
  return name != nullptr && (strcmp(name, "aic") == 0 || strcmp(name, "AIC") == 0) ? CoreType::AIC
                                                                                   : CoreType::AIV;
}

inline const char* core_type_to_string(CoreType type) { return type == CoreType::AIC ? "aic" : "aiv"; }
