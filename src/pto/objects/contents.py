"""Find out which files are objects of pto, and which of them can be loaded, without loading them."""

from __future__ import annotations

import platform

from ..diag import Diagnostic, DiagnosticError
from ..image.elf import DYNSYM, MACHINES, MAGIC, SHARED, BadElf, Elf

#: The section of images, as in `image.container`. A copy here avoids an import of that module.
_IMAGES = ".pto"


def is_object(path: str) -> bool:
    """Return True if a file is an ELF file with machine code and images. Return False for a damaged file."""
    try:
        with open(path, "rb") as f:
            if f.read(4) != MAGIC:
                return False
            found = Elf(MAGIC + f.read())
    except (OSError, ValueError, BadElf):
        return False
    return found.machine != 0 and found.named(_IMAGES) is not None


def check_runnable(data: bytes, name: str, symbol: str) -> None:
    """Raise `DiagnosticError` unless a file is a shared object for this machine with a symbol."""
    try:
        if not has_symbol(data, symbol):
            raise BadElf(f"it has no symbol '{symbol}'")
    except BadElf as e:
        raise refusal(name, str(e)) from None


def has_symbol(data: bytes, symbol: str) -> bool:
    """Return True if a library exports a symbol. The library is not loaded, because loading would run its
    constructors. Raise `BadElf` for a file that is not a complete shared library for this machine."""
    elf = Elf(data)
    if elf.kind != SHARED:
        raise BadElf("expected a shared object, from a linker or 'ptoas FILE -o k.so'")
    if elf.machine != MACHINES.get(platform.machine()):
        raise BadElf(f"expected a library for {platform.machine()}, got another machine")
    check_segments(elf)
    return any(s.name == symbol and s.section for s in elf.symbols(DYNSYM))


def check_segments(elf: Elf) -> None:
    """Check that the file contains all segments that the system maps. Access to a missing part would raise a
    signal."""
    for kind, _, offset, _, _, size, room, _ in elf.segments:
        if kind in (1, 2) and (offset + size > len(elf.data) or size > room):
            raise BadElf("the file is truncated before the end of its segments")


def refusal(name: str, why: str) -> DiagnosticError:
    return DiagnosticError([
        Diagnostic("PTO-E2405", f"cannot run '{name}': {why}",
                   help="make it with 'ptoas FILE -o k.so' on this kind of machine, or with 'pto build'")
    ])  # fmt: skip
