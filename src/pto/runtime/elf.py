"""Names that a shared library exports, read from its file: the library is not loaded."""

from __future__ import annotations

from pathlib import Path

from ..image.elf import DYNSYM, BadElf, Elf

_DEFINED_FOR_OTHERS = (1, 2)  # bindings: global, weak


def exports(path: str) -> set[str]:
    """Return the names of the functions and variables that a library defines for others; of 64-bit ELF
    files."""
    try:
        found = Elf(Path(path).read_bytes()).symbols(DYNSYM)
    except BadElf:
        return set()
    return {s.name for s in found if s.section and s.binding in _DEFINED_FOR_OTHERS}
