"""Generates what C++ checks of the tile instructions, and the names of the element types.

    python -m pto.codegen.legality            # write the headers
    python -m pto.codegen.legality --check    # say whether they are up to date

ops/legality.hpp has a function per overload (`codegen/checks.py`), which the intrinsics in ops/*.hpp call;
detail/dtype_names.hpp has the enumeration DType in the order of `isa/dtypes.py`, in which sets of element
types are written.
"""

from __future__ import annotations

import sys

from .. import isa
from ..isa.dtypes import DTYPES
from .checks import assertions, checks_of
from .generated import OPS, filled, head, write

TARGET = OPS / "legality.hpp"
DTYPE_NAMES = OPS.parent / "detail/dtype_names.hpp"

_HEAD = head(
    "pto.codegen.legality", "What is legal for the tile instructions, by the types of their operands."
)


def generate() -> str:
    """The text of the header."""
    out = [_HEAD, '#include "pto/ops/rules.hpp"\n', "namespace pto::detail {\n"]
    for row in isa.rows():
        for check in checks_of(row):
            if any(assertions(check)):
                out += [*check.lines(), ""]
    return "\n".join([*out, "}  // namespace pto::detail"]) + "\n"


def generate_dtypes() -> str:
    """The text of detail/dtype_names.hpp."""
    listed = [f"  X({d.name}, {d.bits}, '{d.kind}')" for d in DTYPES.values()]
    out = [
        head(
            "pto.codegen.legality",
            "Element types: X(name, bits, kind) of each, in the order of their numbers.",
        ),
        "#include <cstdint>\n",
        " \\\n".join(["#define PTO_DTYPES(X)", *listed]),
        "",
        "namespace pto::detail {\n",
        "enum class DType : std::uint8_t {",
        *filled("  ", ", ".join(DTYPES)),
        "};\n",
        "}  // namespace pto::detail",
    ]
    return "\n".join(out) + "\n"


def main(args: list[str]) -> int:
    made = {TARGET: generate(), DTYPE_NAMES: generate_dtypes()}
    return max(write(path, text, "pto.codegen.legality", "--check" in args) for path, text in made.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
