"""The text before the functions: the include, and helpers that the emitted code uses."""

from __future__ import annotations

import re

_HEAD = """\
#include "pto/pto-inst.hpp"
"""
#: Functions that rows of `arith` and `math` call, from the standard library.
_CMATH = "#include <cmath>\n"
_FUNCTIONS = "fmod|exp|exp2|log|log2|sqrt|fabs|floor|ceil|round|rint|trunc|tanh|sin|cos|erf|pow|copysign|fma"
_FUNCTIONS += "|ptoas_rsqrt"
_NAMES = tuple(f"{name}{f}" for name in _FUNCTIONS.split("|") for f in ("", "f"))
_USING = """\
using namespace pto;
"""

_EVENT_ID_ARRAY = """\

template <int N>
struct PTOAS_EventIdArray {
  int32_t data[N];
  AICORE inline int32_t &operator[](int32_t i) { return data[i]; }
  AICORE inline const int32_t &operator[](int32_t i) const { return data[i]; }
};
"""

_TRANDOM = """\

template <uint16_t Rounds, typename DstTile>
static AICORE inline void PTOAS__TRANDOM(DstTile &dst, uint32_t key0, uint32_t key1, uint32_t counter0,
                                         uint32_t counter1, uint32_t counter2, uint32_t counter3) {
  TRandomKey key = {key0, key1};
  TRandomCounter counter = {counter0, counter1, counter2, counter3};
  TRANDOM<Rounds>(dst, key, counter);
}
"""

_TAIL = """\

enum class PTOAutoSyncTailMode : int {
  kBarrierAll = 0,
  kSetWaitMte3ToSEvent0 = 1,
};

static AICORE inline void ptoas_auto_sync_tail(PTOAutoSyncTailMode mode = PTOAutoSyncTailMode::kBarrierAll) {
  switch (mode) {
  case PTOAutoSyncTailMode::kSetWaitMte3ToSEvent0:
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
    break;
  case PTOAutoSyncTailMode::kBarrierAll:
  default:
    pipe_barrier(PIPE_ALL);
    break;
  }
}
"""

_BITCAST = """\

template <typename To, typename From>
static AICORE inline To ptoas_bitcast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bitcast keeps the width");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
"""
#: Our engine has its own version, which rounds once like its exp and log: see pto/core/functions.hpp.
_RSQRT = """\

#ifndef PTO_OWN_FUNCTIONS
static AICORE inline float ptoas_rsqrtf(float x) { return 1.0f / sqrtf(x); }
static AICORE inline double ptoas_rsqrt(double x) { return 1.0 / sqrt(x); }
#endif
"""


def prologue(body: str, target: str) -> str:
    """Return the text before the functions whose text is `body`; it names the target, for `pto build`."""
    out = [_HEAD, _CMATH if _calls_math(body) else "", _USING, f"// target: {target}\n"]
    if "PTOAS_EventIdArray<" in body:
        out.append(_EVENT_ID_ARRAY)
    if "PTOAS__TRANDOM<" in body:
        out.append(_TRANDOM)
    out.append(_TAIL)
    if "ptoas_bitcast<" in body:
        out.append(_BITCAST)
    if "ptoas_rsqrt" in body:
        out.append(_RSQRT)
    return "".join(out)


def _calls_math(body: str) -> bool:
    # few parts differ; a search of the whole text takes longer
    ends = {part[-10:] for part in body.split("(")}
    seen = any(end.endswith(_NAMES) for end in ends)
    return seen and re.search(rf"\b(?:{_FUNCTIONS})f?\(", body) is not None


def helpers() -> str:
    """Return all helpers, for functions that are compiled before their uses are known."""
    return "".join((_EVENT_ID_ARRAY, _TRANDOM, _BITCAST))
