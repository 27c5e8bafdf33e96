"""Files of images (`k.elf`): ELF with the sections

    .pto        the images of all kernels, one after another
    .ptobc      their program, as bytecode; missing in files that were assembled from a listing
    .pto.lines  the source lines of instructions

and a symbol for every kernel. Other files may have such sections too (libraries, objects); `read` accepts
them.
"""

from __future__ import annotations

from ..diag import Source, Span
from ..isa.record import Record
from . import check, elf, format, lines
from .format import Image, ImageReader
from .lines import Lines

PTO, PROGRAM, LINES = ".pto", ".ptobc", ".pto.lines"


class ImageFile(Record):
    """The content of a file of images."""

    name: str
    images: tuple[Image, ...]
    program: bytes = b""  # bytecode
    lines: Lines = lines.NONE


def parts(file: ImageFile) -> dict[str, bytes]:
    """Return the sections of a file."""
    found = {PTO: b"".join(data + bytes(-len(data) % 8) for data in map(format.to_bytes, file.images))}
    found[LINES] = lines.to_bytes(file.lines)
    if file.program:
        found[PROGRAM] = file.program
    return found


def to_bytes(file: ImageFile) -> bytes:
    data = bytearray()
    symbols: list[elf.ElfSymbol] = []
    for image in file.images:
        data += bytes(-len(data) % 8)
        made = format.to_bytes(image)
        symbols.append(elf.ElfSymbol(image.name, len(data), len(made), elf.GLOBAL_OBJECT, 1))
        data += made
    return elf.written(parts(file), symbols)


def read(data: bytes, name: str, own: bool = False) -> ImageFile:
    """Return a file and check all its images; raise `DiagnosticError`. Skip the checks for `own` files, which
    this process wrote."""
    found = elf.sections(data, name)
    if PTO not in found:
        ImageReader(data, Source(name, ""), "the file").fail(
            "PTO-E1221", f"missing section {PTO}", 0, got=", ".join(list(found)[:8]) or "no sections",
            help="ptoas FILE -o FILE.elf makes one",
        )  # fmt: skip
    images = _images(data, name, *found[PTO], own)
    begin, end = found.get(PROGRAM, (0, 0))
    known = lines.from_bytes(data, name, *found[LINES]) if LINES in found else lines.NONE
    return ImageFile(name, tuple(images), data[begin:end], known)


def _images(data: bytes, name: str, at: int, end: int, own: bool) -> list[Image]:
    source = Source(name, "")
    found: list[Image] = []
    names: set[str] = set()
    begin = at
    while at < end:
        made = format.from_bytes(data, name, at, end)

        def place(code: int, word: int, made: format.Read = made, at: int = at) -> Span:
            here = at if code < 0 else made.words[code] + 4 * max(word, 0)
            return Span(source, here, here + 1)

        if not own:
            check.check(made.image, place)
        if made.image.name in names:
            ImageReader(data, source, PTO).fail(
                "PTO-E1224", "duplicate name of a kernel", at, got=made.image.name
            )
        found.append(made.image)
        names.add(made.image.name)
        at = made.end
        at += min(-(at - begin) % 8, end - at)
    if not found:
        ImageReader(data, source, PTO).fail("PTO-E1221", f"missing image in section {PTO}", begin)
    return found
