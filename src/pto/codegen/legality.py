"""Generates native/include/pto/ops/legality.hpp: what C++ checks of the tile instructions.

    python -m pto.codegen.legality            # write the header
    python -m pto.codegen.legality --check    # say whether it is up to date

It has a function per overload (`codegen/checks.py`), which the intrinsics in ops/*.hpp call. What several
overloads of a call ask is a function that these call: the compiler reads it once.
"""

from __future__ import annotations

import sys

from .. import isa
from .checks import Check, checks_of, functions
from .generated import OPS, head, write

TARGET = OPS / "legality.hpp"

_HEAD = head(
    "pto.codegen.legality", "What is legal for the tile instructions, by the types of their operands."
)

#: Programs that were verified skip all of it.
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
    """The text of the header."""
    out = [_HEAD, _BEGIN]
    calls: dict[str, list[Check]] = {}
    for check in (check for row in isa.rows() for check in checks_of(row)):
        calls.setdefault(check.call.name, []).append(check)
    for checks in calls.values():
        out += functions(checks)
    return "\n".join([*out, _END])


def main(args: list[str]) -> int:
    return write(TARGET, generate(), "pto.codegen.legality", check="--check" in args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
