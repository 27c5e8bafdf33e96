"""ELF files of 64-bit machines, read with nothing taken on trust: segments, sections, symbols."""

from __future__ import annotations

import struct

from ..isa.record import Record

MAGIC = b"\x7fELF"
#: Kinds of file.
OBJECT, SHARED = 1, 3
#: Machines by the names that Python has for them.
MACHINES = {"x86_64": 62, "AMD64": 62, "aarch64": 183, "arm64": 183}
#: Kinds of section, flags of sections.
SYMTAB, STRTAB, RELA, HASH, DYNAMIC, NOBITS, REL, DYNSYM = 2, 3, 4, 5, 6, 8, 9, 11
WRITE, ALLOC, EXECUTE = 1, 2, 4
#: Bytes of all names, in sizes of the file. Names may share bytes: a hostile file could make many long ones.
_NAMES = 4


class BadElf(Exception):
    """What is wrong with a file."""


class Section(Record):
    name: str
    kind: int
    flags: int
    address: int
    data: bytes
    link: int
    info: int
    alignment: int


class Symbol(Record):
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
            raise BadElf("it is no ELF file")
        if len(data) < 64 or data[4:7] != b"\x02\x01\x01":
            raise BadElf("it is no ELF file of a 64-bit machine with the low byte first")
        self.data = data
        self._left = _NAMES * len(data)  # bytes of names
        self.kind, self.machine = struct.unpack_from("<HH", data, 16)
        program, table = struct.unpack_from("<QQ", data, 32)
        size, each, count, own, many, names = struct.unpack_from("<6H", data, 52)
        if size != 64 or (many and own != 64) or (count and each != 56):
            raise BadElf("its headers are of other sizes than ELF has")
        self.segments = [
            struct.unpack("<IIQQQQQQ", self._part(program + 56 * n, 56, "segments")) for n in range(count)
        ]
        raw = [struct.unpack("<IIQQQQIIQQ", self._part(table + 64 * n, 64, "sections")) for n in range(many)]
        texts = b""
        if raw:
            if names >= many:
                raise BadElf("it has no names of sections")
            texts = self._part(raw[names][4], raw[names][5], "names of sections")
        if sum(entry[5] for entry in raw if entry[1] not in (0, NOBITS)) > 2 * len(data):
            raise BadElf("its sections overlap")
        self.sections = [
            Section(self._text(texts, name), kind, flags, address,
                    b"" if kind in (0, NOBITS) else self._part(offset, size, "sections"),
                    link, info, alignment)
            for name, kind, flags, address, offset, size, link, info, alignment, _ in raw
        ]  # fmt: skip

    def _part(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self.data):
            raise BadElf(f"it is cut: its {what} go on behind its end")
        return self.data[offset : offset + size]

    def _text(self, texts: bytes, offset: int) -> str:
        end = texts.find(b"\0", offset, offset + self._left + 1)
        if offset > len(texts) or end < 0:
            raise BadElf("a name in it goes on behind its end")
        self._left -= end - offset
        return texts[offset:end].decode("utf-8", "surrogateescape")

    def named(self, name: str) -> bytes | None:
        """What is in the section of a name; None where there is none."""
        found = [s.data for s in self.sections if s.name == name]
        return b"".join(found) if found else None

    def symbols(self, kind: int) -> list[Symbol]:
        """Those of the first symbol table of a kind."""
        for section in self.sections:
            if section.kind == kind:
                if section.link >= len(self.sections):
                    raise BadElf("its symbols have no names")
                texts = self.sections[section.link].data
                return [
                    Symbol(self._text(texts, name), value, size, info, at)
                    for name, info, _, at, value, size in struct.iter_unpack(
                        "<IBBHQQ", section.data[: len(section.data) // 24 * 24]
                    )
                ]
        return []
