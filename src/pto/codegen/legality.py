"""The text of ops/legality.hpp: the checks of tile instructions in C++.

The header has a function for each overload (`codegen/checks.py`), which the intrinsics in ops/*.hpp call.
Checks that several overloads share are a function of their own.
"""

from __future__ import annotations

from .. import isa
from .checks import Check, checks_of, functions
from .generated import head

_HEAD = head("The rules of tile instructions, over the types and values of their operands.")

#: Verified programs skip all checks.
_BEGIN = """\
#include "pto/ops/rules.hpp"

#ifndef PTO_CPU_VERIFIED
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace pto::detail {
"""
_END = """\
}  // namespace pto::detail

#pragma GCC diagnostic pop
#endif
"""


def generate() -> str:
    """Return the text of the header."""
    out = [_HEAD, _BEGIN]
    calls: dict[str, list[Check]] = {}
    for check in (check for row in isa.rows() for check in checks_of(row)):
        calls.setdefault(check.call.name, []).append(check)
    for checks in calls.values():
        out += functions(checks)
    return "\n".join([*out, _END])
