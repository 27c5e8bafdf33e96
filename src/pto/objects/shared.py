"""Link an object of pto to a shared object, without a linker.

Such an object has no references to other files. So a shared object needs only a symbol table, and relocations
with distances between its own sections. It has three segments: read-only data, code, and the table in which
the system finds the symbols.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ..image.elf import (
    ALLOC,
    DYNAMIC,
    DYNSYM,
    EXECUTE,
    HASH,
    HEADER,
    IDENT,
    RELA,
    SECTION,
    SEGMENT,
    SHARED,
    STRTAB,
    SYMBOL,
    SYMTAB,
    WRITE,
    BadElf,
    Elf,
    ElfSection,
    ElfSymbol,
    texts,
)

#: The largest page size of all machines.
_PAGE = 0x10000
_SEGMENTS = 5
_GLOBAL, _LOCAL = 1, 0
_SECTION, _FILE = 3, 4

#: (place, value, instruction) -> instruction
Fix = Callable[[int, int, int], int]


def _low(shift: int) -> Fix:
    """Return a fix for the low 12 bits of an address in an Arm instruction with scaled offsets."""
    return lambda _, value, word: word | (value & 0xFFF) >> shift << 10


def _pages(place: int, value: int, word: int) -> int:
    distance = (value >> 12) - (place >> 12)
    return word | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5


def _itself(place: int, value: int, _: int) -> int:
    return value


def _distance(place: int, value: int, _: int) -> int:
    return value - place


#: Relocations relative to their position: machine -> kind -> size in bytes and fix.
_FIXES: dict[int, dict[int, tuple[int, Fix]]] = {
    62: {2: (4, _distance), 4: (4, _distance), 24: (8, _distance)},
    183: {
        260: (8, _distance), 261: (4, _distance), 275: (4, _pages), 277: (4, _low(0)), 278: (4, _low(0)),
        284: (4, _low(1)), 285: (4, _low(2)), 286: (4, _low(3)), 299: (4, _low(4)),
    },
}  # fmt: skip


#: Relocations of debug information with absolute addresses: machine -> kind -> size in bytes.
_ADDRESSES = {62: {1: 8, 10: 4}, 183: {257: 8, 258: 4}}
_STRINGS = 0x30  # flags of a section of mergeable strings


class _FileLayout:
    """Offsets in the file. The address of a section is its offset plus some pages per segment."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.parts: list[tuple[int, bytes]] = []

    def put(self, data: bytes, alignment: int = 8) -> int:
        """Append data, and return its offset."""
        self.at += -self.at % max(1, alignment)
        self.parts.append((self.at, data))
        self.at += len(data)
        return self.at - len(data)


def shared(data: bytes, name: str) -> bytes:
    """Return the shared object of an object; `name` becomes its SONAME."""
    elf = Elf(data)
    if elf.machine not in _FIXES:
        raise BadElf(f"unknown machine {elf.machine}")
    symbols = elf.symbols(SYMTAB)
    public = [s for s in symbols if s.binding == _GLOBAL]
    if any(s.section == 0 for s in public):
        raise BadElf("it has undefined symbols, which need a linker")
    kept = [n for n, s in enumerate(elf.sections) if s.flags & ALLOC and s.data]
    if any(elf.sections[n].flags & WRITE for n in kept):
        raise BadElf("it has writable data, which needs a linker")
    return _ObjectWriter(elf, symbols, public, kept, name).file()


class _ObjectWriter:
    """Writer of one shared object."""

    def __init__(
        self, elf: Elf, symbols: list[ElfSymbol], public: list[ElfSymbol], kept: list[int], name: str
    ) -> None:
        self.elf = elf
        self.symbols = symbols
        self.public = public
        self.kept = kept
        self.name = name
        self.debug = _debug_sections(elf)
        self.address: dict[int, int] = {}  # section of the object -> its address
        self.offset: dict[int, int] = {}
        self.index: dict[int, int] = {}  # section of the object -> its number in the file
        self.names = bytearray(b"\0")
        self.headers: list[bytes] = [bytes(64)]

    def file(self) -> bytes:
        strings, at = texts([*(s.name for s in self.public), self.name])
        layout = _FileLayout(HEADER.size + _SEGMENTS * SEGMENT.size)
        hashes = _hash_table([s.name for s in self.public])
        hash_at = layout.put(hashes)
        size = SYMBOL.size * (1 + len(self.public))
        table_at = layout.put(bytes(size))
        texts_at = layout.put(strings, 1)
        self.header(".hash", HASH, ALLOC, hash_at, hash_at, len(hashes), 2, 0, 8, 4)
        self.header(".dynsym", DYNSYM, ALLOC, table_at, table_at, size, 3, 1, 8, SYMBOL.size)
        self.header(".dynstr", STRTAB, ALLOC, texts_at, texts_at, len(strings), 0, 0, 1, 0)
        self.sections(layout, code=False, step=0)
        read_end = layout.at
        layout.at += -layout.at % 64
        code_at = layout.at
        self.sections(layout, code=True, step=_PAGE)
        code_end = layout.at
        dynamic = self.dynamic(hash_at, texts_at, table_at, len(strings), at[self.name])
        dynamic_at = layout.put(dynamic, 16)
        self.header(".dynamic", DYNAMIC, ALLOC | WRITE, dynamic_at + 2 * _PAGE, dynamic_at, len(dynamic), 3,
                    0, 8, 16)  # fmt: skip
        self.debug_sections(layout)
        entries = [self.symbol(s, at[s.name]) for s in self.public]
        layout.parts.append((table_at, bytes(SYMBOL.size) + b"".join(entries)))
        layout.parts += [(self.offset[n], self.fixed(n)) for n in (*self.kept, *self.debug)]
        self.symbol_table(layout)
        head_at = self.finish(layout)
        segments = (
            (1, 4, 0, 0, read_end, _PAGE), (1, 5, code_at, code_at + _PAGE, code_end - code_at, _PAGE),
            (1, 6, dynamic_at, dynamic_at + 2 * _PAGE, len(dynamic), _PAGE),
            (2, 6, dynamic_at, dynamic_at + 2 * _PAGE, len(dynamic), 8),
            (0x6474E551, 6, 0, 0, 0, 16),  # a stack that is not executable
        )  # fmt: skip
        head = HEADER.pack(
            IDENT, SHARED, self.elf.machine, 1, 0, HEADER.size, head_at, 0, HEADER.size, SEGMENT.size,
            _SEGMENTS, SECTION.size, len(self.headers), len(self.headers) - 1,
        )  # fmt: skip
        for kind, flags, offset, address, size, alignment in segments:
            head += SEGMENT.pack(kind, flags, offset, address, address, size, size, alignment)
        out = bytearray(layout.at)
        for place, data in ((0, head), *layout.parts):
            out[place : place + len(data)] = data
        return bytes(out)

    def header(
        self, name: str, kind: int, flags: int, address: int, offset: int, size: int, link: int, info: int,
        alignment: int, each: int,
    ) -> int:  # fmt: skip
        """Append a section header, and return its number."""
        self.headers.append(
            SECTION.pack(len(self.names), kind, flags, address, offset, size, link, info, alignment, each)
        )
        self.names += name.encode("utf-8", "surrogateescape") + b"\0"
        return len(self.headers) - 1

    def sections(self, layout: _FileLayout, code: bool, step: int) -> None:
        """Append the sections of the object with or without code, at addresses `step` bytes above their
        offsets."""
        for n in self.kept:
            section = self.elf.sections[n]
            if bool(section.flags & EXECUTE) != code:
                continue
            self.offset[n] = layout.put(section.data, section.alignment)
            self.address[n] = self.offset[n] + step
            self.index[n] = self.header(
                section.name, section.kind, section.flags & (ALLOC | EXECUTE), self.address[n],
                self.offset[n], len(section.data), 0, 0, section.alignment, 0,
            )  # fmt: skip

    def debug_sections(self, layout: _FileLayout) -> None:
        """Append debug information, which is not loaded, at address 0."""
        for n in self.debug:
            section = self.elf.sections[n]
            self.offset[n], self.address[n] = layout.put(section.data, section.alignment), 0
            flags = section.flags & _STRINGS
            self.index[n] = self.header(
                section.name, section.kind, flags, 0, self.offset[n], len(section.data), 0, 0,
                section.alignment, 1 if flags else 0,
            )  # fmt: skip

    def dynamic(self, hash_at: int, texts_at: int, table_at: int, size: int, name: int) -> bytes:
        entries = ((14, name), (4, hash_at), (5, texts_at), (6, table_at), (10, size), (11, 24), (0, 0))
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)

    def value(self, symbol: ElfSymbol) -> int:
        if symbol.section not in self.address:
            raise BadElf(f"cannot find the section of symbol '{symbol.name}'")
        return self.address[symbol.section] + symbol.value

    def symbol(self, symbol: ElfSymbol, name: int) -> bytes:
        section = self.index.get(symbol.section, 0)
        return SYMBOL.pack(name, symbol.info, 0, section, self.value(symbol), symbol.size)

    def fixed(self, number: int) -> bytes:
        """Return a section with its relocations applied."""
        out = bytearray(self.elf.sections[number].data)
        for relocations in self.elf.sections:
            if relocations.kind == RELA and relocations.info == number:
                self.relocate(out, number, relocations)
        return bytes(out)

    def relocate(self, out: bytearray, number: int, relocations: ElfSection) -> None:
        for offset, info, addend in struct.iter_unpack("<QQq", relocations.data):
            kind, at = info & 0xFFFFFFFF, info >> 32
            found = _FIXES[self.elf.machine].get(kind)
            if number in self.debug and kind in _ADDRESSES[self.elf.machine]:
                found = _ADDRESSES[self.elf.machine][kind], _itself
            if found is None or at >= len(self.symbols) or offset + found[0] > len(out):
                raise BadElf(f"it has a relocation of kind {kind}, which needs a linker")
            size, fix = found
            word = int.from_bytes(out[offset : offset + size], "little")
            value = fix(self.address[number] + offset, self.value(self.symbols[at]) + addend, word)
            out[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def symbol_table(self, layout: _FileLayout) -> None:
        """Append all symbols, including functions of cores, for debuggers and profilers."""
        local = [s for s in self.symbols if s.binding == _LOCAL and s.info & 15 not in (_SECTION, _FILE)]
        local = [s for s in local if s.name and s.section in self.kept]
        strings, at = texts([s.name for s in (*local, *self.public)])
        entries = b"".join(self.symbol(s, at[s.name]) for s in (*local, *self.public))
        table_at, texts_at = layout.put(bytes(SYMBOL.size) + entries), layout.put(strings, 1)
        here = len(self.headers)
        self.header(".symtab", SYMTAB, 0, 0, table_at, 24 + len(entries), here + 1, 1 + len(local), 8, 24)
        self.header(".strtab", STRTAB, 0, 0, texts_at, len(strings), 0, 0, 1, 0)

    def finish(self, layout: _FileLayout) -> int:
        """Append the names and headers of sections, and return the offset of the headers."""
        size = len(self.names) + len(".shstrtab") + 1
        self.header(".shstrtab", STRTAB, 0, 0, layout.at, size, 0, 0, 1, 0)
        layout.put(bytes(self.names), 1)
        return layout.put(b"".join(self.headers))


def _debug_sections(elf: Elf) -> list[int]:
    """Return the sections of debug information, or no sections if their relocations need a linker."""
    found = [n for n, s in enumerate(elf.sections) if s.name.startswith(".debug_") and s.data]
    for section in elf.sections:
        if section.kind == RELA and section.info in found:
            kinds = {info & 0xFFFFFFFF for _, info, _ in struct.iter_unpack("<QQq", section.data)}
            if not kinds <= {*_ADDRESSES[elf.machine], *_FIXES[elf.machine]}:
                return []
    return found


def _hash(name: str) -> int:
    """Return the ELF hash of a name."""
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def _hash_table(names: list[str]) -> bytes:
    buckets, chain = [0] * max(1, len(names)), [0] * (1 + len(names))
    for n, name in enumerate(names, 1):
        at = _hash(name) % len(buckets)
        chain[n], buckets[at] = buckets[at], n
    return struct.pack(f"<II{len(buckets) + len(chain)}I", len(buckets), len(chain), *buckets, *chain)
