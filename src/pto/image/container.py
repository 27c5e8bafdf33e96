"""Files of images (`k.elf`): ELF with the sections

    .pto        the images of all kernels, one behind the other
    .ptobc      the program they were made of, as bytecode; missing in what was assembled from a listing
    .pto.lines  the lines of the program that instructions come from

and a symbol for every kernel. Other files may have such sections too (libraries, objects); `read` takes them.
"""

from __future__ import annotations

from ..diag import Source, Span
from ..isa.record import Record
from . import check, elf, format, lines
from .format import Image, ImageReader
from .lines import Lines

PTO, PROGRAM, LINES = ".pto", ".ptobc", ".pto.lines"


class File(Record):
    """What is in a file of images."""

    name: str
    images: tuple[Image, ...]
    program: bytes = b""  # bytecode
    lines: Lines = lines.NONE


def parts(file: File) -> dict[str, bytes]:
    """The sections of a file."""
    found = {PTO: b"".join(data + bytes(-len(data) % 8) for data in map(format.to_bytes, file.images))}
    found[LINES] = lines.to_bytes(file.lines)
    if file.program:
        found[PROGRAM] = file.program
    return found


def to_bytes(file: File) -> bytes:
    data = bytearray()
    symbols: list[elf.Symbol] = []
    for image in file.images:
        data += bytes(-len(data) % 8)
        made = format.to_bytes(image)
        symbols.append(elf.Symbol(image.name, len(data), len(made), elf.GLOBAL_OBJECT, 1))
        data += made
    return elf.written(parts(file), symbols)


def read(data: bytes, name: str, own: bool = False) -> File:
    """A file, all of whose images are checked; raises `DiagnosticError`. `own` files are as we made them."""
    found = elf.sections(data, name)
    if PTO not in found:
        ImageReader(data, Source(name, ""), "the file").fail(
            "PTO-E1221", f"no section {PTO} in this file", 0, got=", ".join(list(found)[:8]) or "no sections",
            help="ptoas FILE -o FILE.elf makes one",
        )  # fmt: skip
    images = _images(data, name, *found[PTO], own)
    begin, end = found.get(PROGRAM, (0, 0))
    known = lines.from_bytes(data, name, *found[LINES]) if LINES in found else lines.NONE
    return File(name, tuple(images), data[begin:end], known)


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
                "PTO-E1224", "two kernels of one name", at, got=made.image.name
            )
        found.append(made.image)
        names.add(made.image.name)
        at = made.end
        at += min(-(at - begin) % 8, end - at)
    if not found:
        ImageReader(data, source, PTO).fail("PTO-E1221", f"section {PTO} holds no image", begin)
    return found
