// The end of a kernel: the scalar unit waits until the stores of the kernel are in memory.
#pragma once

#include "pto/core/machine.hpp"

static inline void pipe_sync() {
  if (pto::detail::core().kind == pto::detail::CoreKind::Cube) {
    set_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
    wait_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
  } else {
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
    wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
  }
}
