"""What our objects hold, found without running them: images, and the program they were made of."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from ..diag import Diagnostic, DiagnosticError
from ..image.format import Image, from_bytes, to_bytes
from ..isa.record import Record
from .elf import DYNSYM, MACHINES, MAGIC, SHARED, BadElf, Elf

#: Sections of an object: images, each from a multiple of 8 on, and the program as bytecode.
IMAGES, PROGRAM = ".pto", ".ptobc"


class Contents(Record):
    """The images of an object, by the names of their kernels, and its program as bytecode."""

    images: dict[str, Image]
    program: bytes


def sections(images: Sequence[Image], program: bytes) -> dict[str, bytes]:
    """What an object holds beside its code; `program` is what the images were made of."""
    return {IMAGES: b"".join(map(_padded, map(to_bytes, images))), PROGRAM: program}


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def is_object(path: str) -> bool:
    """Whether a file is an ELF file with images in it. A damaged one counts as none."""
    try:
        with open(path, "rb") as f:
            return f.read(4) == MAGIC and Elf(MAGIC + f.read()).named(IMAGES) is not None
    except (OSError, ValueError, BadElf):
        return False


def contents(data: bytes, name: str) -> Contents:
    """What is in an object, of any machine; raises `DiagnosticError` for anything else."""
    try:
        elf = Elf(data)
        return _contents(elf, name)
    except BadElf as e:
        raise refusal(name, str(e)) from None


def runnable(data: bytes, name: str) -> Contents:
    """The same of a shared object for this machine, with a symbol for every image: one that can be loaded."""
    try:
        elf = Elf(data)
        if elf.kind != SHARED:
            raise BadElf("it is no shared object: 'ptoas FILE -o k.so' makes one, or a linker")
        if elf.machine != MACHINES.get(platform.machine()):
            raise BadElf(f"it is for another machine than this {platform.machine()}")
        check_segments(elf)
        found = _contents(elf, name)
        public = {s.name for s in elf.symbols(DYNSYM) if s.section}
        if lost := sorted(found.images.keys() - public):
            raise BadElf(f"it has no symbol '{lost[0]}'")
        return found
    except BadElf as e:
        raise refusal(name, str(e)) from None


def check_whole(data: bytes) -> None:
    """Raise `BadElf` for an ELF file that is cut; what is no ELF file is left to the system."""
    if data[:4] == MAGIC:
        check_segments(Elf(data))


def check_segments(elf: Elf) -> None:
    """What the system maps has to be in the file: it would find out by a signal."""
    for kind, _, offset, _, _, size, room, _ in elf.segments:
        if kind in (1, 2) and (offset + size > len(elf.data) or size > room):
            raise BadElf("it is cut: its segments go on behind its end")


def _contents(elf: Elf, name: str) -> Contents:
    data, program = elf.named(IMAGES), elf.named(PROGRAM)
    if data is None or program is None:
        raise BadElf(f"it has no sections {IMAGES} and {PROGRAM}")
    images: dict[str, Image] = {}
    at = 0
    while data[at:].strip(b"\0"):
        read = from_bytes(data, name, at)
        images[read.image.name] = read.image
        at = read.end + -read.end % 8
    if not images:
        raise BadElf("it has no kernel")
    return Contents(images, program)


def refusal(name: str, why: str) -> DiagnosticError:
    return DiagnosticError([
        Diagnostic("PTO-E2405", f"'{name}' cannot be run: {why}",
                   help="make it with 'ptoas FILE -o k.so' on this kind of machine, or with 'pto build'")
    ])  # fmt: skip
