// What mixed.cpp includes: a file of its own to stop in.
#pragma once
#include "pto/pto-inst.hpp"

using namespace pto;

template <class From, class To>
AICORE inline void sync(From from, To to, event_t id) {
  set_flag(from, to, id);
  wait_flag(from, to, id);
}

template <class Part, class Data>
AICORE inline void exponent(Part& y, Part& x, Data& source, Data& target) {
  TLOAD(x, source);
  sync(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TEXP(y, x);
  sync(PIPE_V, PIPE_MTE3, EVENT_ID1);
  TSTORE(target, y);
}
