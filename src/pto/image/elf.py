"""ELF files of 64-bit machines, little-endian.

`Elf` reads the segments, sections and symbols of any such file, and checks every number before it uses it.
`written` makes a file of sections with a symbol table; `readelf`, `nm` and `objdump -h` can read it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from ..bytecode.leb import fail
from ..diag import Source
from ..isa.record import Record

MAGIC = b"\x7fELF"
IDENT = MAGIC + bytes((2, 1, 1)) + bytes(9)  # 64 bits, little-endian, version 1
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
#: Kinds of file.
OBJECT, SHARED = 1, 3
NO_MACHINE = 0
#: Machines by their names in Python.
MACHINES = {"x86_64": 62, "AMD64": 62, "aarch64": 183, "arm64": 183}
#: Kinds of section, flags of sections.
PROGBITS, SYMTAB, STRTAB, RELA, HASH, DYNAMIC, NOBITS, REL, DYNSYM = 1, 2, 3, 4, 5, 6, 8, 9, 11
WRITE, ALLOC, EXECUTE = 1, 2, 4
GLOBAL_OBJECT = 1 << 4 | 1
#: Limit for the bytes of all names, in sizes of the file. Names may share bytes, so a hostile file could have
#: many long names.
_NAMES = 4
_HELP = "the file is cut or damaged: make it again"


class BadElf(Exception):
    """A problem of a file, and its byte offset."""

    def __init__(self, why: str, at: int = 0) -> None:
        super().__init__(why)
        self.at = at


class ElfSection(Record):
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    data: bytes
    link: int
    info: int
    alignment: int


class ElfSymbol(Record):
    """A name for some bytes of a section, which is given by number."""

    name: str
    value: int
    size: int
    info: int
    section: int

    @property
    def binding(self) -> int:
        return self.info >> 4


class Elf:
    """A file: its kind, its machine and its sections."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != MAGIC:
            raise BadElf("not an ELF file")
        if len(data) < HEADER.size or data[:7] != IDENT[:7]:
            raise BadElf("not a little-endian ELF file of a 64-bit machine", 4)
        self.data = data
        self._left = _NAMES * len(data)  # bytes of names
        (_, self.kind, self.machine, _, _, program, table, _,
         head, each, count, own, many, names) = HEADER.unpack_from(data)  # fmt: skip
        if head != HEADER.size or (count and each != SEGMENT.size) or (many and own != SECTION.size):
            raise BadElf("wrong sizes of headers", 52)
        segments = self._part(program, SEGMENT.size * count, "its table of segments", 32)
        self.segments = [*SEGMENT.iter_unpack(segments)]
        raw = [*SECTION.iter_unpack(self._part(table, SECTION.size * many, "its table of sections", 40))]
        if raw and names >= many:
            raise BadElf("missing names of sections", 62)
        contents = [(offset, 0 if kind in (0, NOBITS) else size) for _, kind, _, _, offset, size, *_ in raw]
        if sum(size for _, size in contents) > 2 * len(data):
            raise BadElf("sections overlap", 40)
        places = range(table, table + SECTION.size * many, SECTION.size)
        parts = [
            self._part(offset, size, f"section {n}", at) if size else b""
            for n, ((offset, size), at) in enumerate(zip(contents, places, strict=True))
        ]
        self.sections = [
            ElfSection(self._text(parts[names], name, f"section {n}", at), kind, flags, address, offset,
                    parts[n], link, info, alignment)
            for n, (at, (name, kind, flags, address, offset, _, link, info, alignment, _))
            in enumerate(zip(places, raw, strict=True))
        ]  # fmt: skip

    def _part(self, offset: int, size: int, what: str, at: int) -> bytes:
        if offset + size > len(self.data):
            raise BadElf(f"the file is cut before the end of {what}", at)
        return self.data[offset : offset + size]

    def _text(self, texts: bytes, offset: int, what: str, at: int = 0) -> str:
        end = texts.find(b"\0", offset, offset + self._left + 1)
        if offset > len(texts) or end < 0:
            raise BadElf(f"{what} has no name", at)
        self._left -= end - offset
        return texts[offset:end].decode("utf-8", "surrogateescape")

    def named(self, name: str) -> bytes | None:
        """Return the content of the section of this name; None if it is missing."""
        found = [s.data for s in self.sections if s.name == name]
        return b"".join(found) if found else None

    def symbols(self, kind: int) -> list[ElfSymbol]:
        """Return the symbols of the first symbol table of a kind."""
        for section in self.sections:
            if section.kind == kind:
                if section.link >= len(self.sections):
                    raise BadElf("missing names of symbols")
                texts = self.sections[section.link].data
                whole = section.data[: len(section.data) // SYMBOL.size * SYMBOL.size]
                return [
                    ElfSymbol(self._text(texts, name, "a symbol"), value, size, info, at)
                    for name, info, _, at, value, size in SYMBOL.iter_unpack(whole)
                ]
        return []


def sections(data: bytes, name: str) -> dict[str, tuple[int, int]]:
    """Return the begin and the end of each section of a file; raise `DiagnosticError` with a byte offset. The
    first section with a name counts; sections without content in the file are left out."""
    source = Source(name, "")
    if data[:4] != MAGIC:
        fail(source, "PTO-E1221", "not an ELF file", 0, expected=repr(MAGIC)[1:], got=repr(data[:4])[1:],
             help="ptoas FILE -o FILE.elf makes one")  # fmt: skip
    try:
        found = Elf(data).sections
    except BadElf as e:
        fail(source, "PTO-E1223", str(e), e.at, help=_HELP)
    held: dict[str, tuple[int, int]] = {}
    for s in found:
        if s.name and s.data:
            held.setdefault(s.name, (s.offset, s.offset + len(s.data)))
    return held


def texts(names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """Return the bytes of a table of names, and the offset of each name."""
    out = bytearray(1)
    at: dict[str, int] = {}
    for name in names:
        if name not in at:
            at[name] = len(out)
            out += name.encode("utf-8", "surrogateescape") + b"\0"
    return bytes(out), at


def written(parts: Mapping[str, bytes], symbols: Sequence[ElfSymbol]) -> bytes:
    """Return a relocatable file of no machine with these sections, numbered from 1, and symbols."""
    strings, at = texts(s.name for s in symbols)
    table = bytes(SYMBOL.size) + b"".join(
        SYMBOL.pack(at[s.name], s.info, 0, s.section, s.value, s.size) for s in symbols
    )
    own = ".symtab", ".strtab", ".shstrtab"
    names, number = texts((*parts, *own))
    link = len(parts) + 2  # the number of .strtab
    sections: list[tuple[str, int, bytes, int, int, int, int]] = [
        *((name, PROGBITS, data, 0, 0, 8, 0) for name, data in parts.items()),
        (own[0], SYMTAB, table, link, 1, 8, SYMBOL.size),
        (own[1], STRTAB, strings, 0, 0, 1, 0),
        (own[2], STRTAB, names, 0, 0, 1, 0),
    ]
    out = bytearray(HEADER.size)
    headers = [bytes(SECTION.size)]
    for name, kind, data, linked, info, align, each in sections:
        out += bytes(-len(out) % align)
        flags = ALLOC if kind == PROGBITS else 0  # without this flag, nm shows symbols as debugger symbols
        place = len(out), len(data)
        headers.append(SECTION.pack(number[name], kind, flags, 0, *place, linked, info, align, each))
        out += data
    out += bytes(-len(out) % 8)
    HEADER.pack_into(
        out, 0, IDENT, OBJECT, NO_MACHINE, 1, 0, 0, len(out), 0, HEADER.size, 0, 0, SECTION.size,
        len(headers), len(headers) - 1,
    )  # fmt: skip
    return bytes(out + b"".join(headers))
