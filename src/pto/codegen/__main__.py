"""Write the files that follow from the instruction table: headers, and the index of Python functions.

    python -m pto.codegen            # write them
    python -m pto.codegen --check    # report those that are out of date

The build runs it (CMakeLists.txt); `make generate` runs it after a change of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ..isa import python
from . import calls, intrinsics, legality, machine_facts, vector_headers
from .generated import write

HEADERS = Path(__file__).parents[3] / "native" / "include" / "pto"

FILES: dict[Path, Callable[[], str]] = {
    HEADERS / "core" / "machine_facts.hpp": machine_facts.machine,
    HEADERS / "detail" / "element_types.hpp": machine_facts.elements,
    HEADERS / "ops" / "legality.hpp": legality.generate,
    HEADERS / "ops" / "meanings.hpp": intrinsics.generate,
    HEADERS / "ops" / "regular.hpp": intrinsics.generate_regular,
    HEADERS / "ops" / "calls.hpp": calls.generate,
    HEADERS / "micro" / "tags.hpp": vector_headers.generate_tags,
    HEADERS / "micro" / "arithmetic.hpp": vector_headers.generate_arithmetic,
    Path(python.__file__).with_name("python_names.py"): python.index,
}

if __name__ == "__main__":
    sys.exit(write(FILES, sys.argv[1:]))
