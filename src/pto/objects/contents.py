"""Which files are objects of ours, and which of them can be loaded: found out without loading them."""

from __future__ import annotations

import platform

from ..diag import Diagnostic, DiagnosticError
from ..image.elf import DYNSYM, MACHINES, MAGIC, SHARED, BadElf, Elf

#: The section of images, as `image.container` has it: to ask for it does not load that module.
_IMAGES = ".pto"


def is_object(path: str) -> bool:
    """Whether a file is an ELF file of a machine with images in it. A damaged one counts as none."""
    try:
        with open(path, "rb") as f:
            if f.read(4) != MAGIC:
                return False
            found = Elf(MAGIC + f.read())
    except (OSError, ValueError, BadElf):
        return False
    return found.machine != 0 and found.named(_IMAGES) is not None


def check_runnable(data: bytes, name: str, symbol: str) -> None:
    """Raise `DiagnosticError` unless a file is a shared object for this machine that has a symbol."""
    try:
        if not has_symbol(data, symbol):
            raise BadElf(f"it has no symbol '{symbol}'")
    except BadElf as e:
        raise refusal(name, str(e)) from None


def has_symbol(data: bytes, symbol: str) -> bool:
    """Return True if a library has a symbol for others, without loading it: to load a library is to run its
    constructors. Raises `BadElf` for anything but a whole library of this machine."""
    elf = Elf(data)
    if elf.kind != SHARED:
        raise BadElf("it is no shared object: 'ptoas FILE -o k.so' makes one, or a linker")
    if elf.machine != MACHINES.get(platform.machine()):
        raise BadElf(f"it is for another machine than this {platform.machine()}")
    check_segments(elf)
    return any(s.name == symbol and s.section for s in elf.symbols(DYNSYM))


def check_segments(elf: Elf) -> None:
    """What the system maps has to be in the file: it would find out by a signal."""
    for kind, _, offset, _, _, size, room, _ in elf.segments:
        if kind in (1, 2) and (offset + size > len(elf.data) or size > room):
            raise BadElf("the file is cut before the end of its segments")


def refusal(name: str, why: str) -> DiagnosticError:
    return DiagnosticError([
        Diagnostic("PTO-E2405", f"'{name}' cannot be run: {why}",
                   help="make it with 'ptoas FILE -o k.so' on this kind of machine, or with 'pto build'")
    ])  # fmt: skip
