"""ELF files, as far as images need them: 64 bits, little-endian, sections and symbols.

`written` makes a file of sections with a symbol table, that `readelf`, `nm` and `objdump -h` read. `sections`
finds the sections of any such file, whoever made it; nothing in a file is believed before it is measured.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from ..bytecode.leb import Reader
from ..diag import Source
from ..isa.record import Record

MAGIC = b"\x7fELF"
RELOCATABLE, SHARED = 1, 3
NO_MACHINE = 0
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_IDENT = MAGIC + bytes((2, 1, 1)) + bytes(9)  # 64 bits, little-endian, version 1
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_ALLOC = 2
_GLOBAL_OBJECT = 1 << 4 | 1
_MOST_SECTIONS = 4096
_LONGEST_NAME = 256
_HELP = "the file is cut or damaged: make it again"


class Symbol(Record):
    """A name for some bytes of a section."""

    name: str
    section: str
    at: int
    size: int


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode("utf-8") + b"\0"
        return at


def written(parts: Mapping[str, bytes], symbols: Sequence[Symbol]) -> bytes:
    """A relocatable file of no machine with these sections and symbols."""
    names, strings = _Strings(), _Strings()
    order = list(parts)
    table = bytearray(_SYMBOL.size)
    for s in symbols:
        table += _SYMBOL.pack(
            strings.add(s.name), _GLOBAL_OBJECT, 0, 1 + order.index(s.section), s.at, s.size
        )
    link = len(order) + 2  # the number of .strtab
    sections: list[tuple[str, int, bytes, int, int, int, int]] = [
        (name, _PROGBITS, data, 0, 0, 8, 0) for name, data in parts.items()
    ]
    sections.append((".symtab", _SYMTAB, bytes(table), link, 1, 8, _SYMBOL.size))
    sections.append((".strtab", _STRTAB, bytes(strings.data), 0, 0, 1, 0))
    numbers = [names.add(name) for name, *_ in sections]
    sections.append((".shstrtab", _STRTAB, b"", 0, 0, 1, 0))
    numbers.append(names.add(".shstrtab"))
    sections[-1] = (".shstrtab", _STRTAB, bytes(names.data), 0, 0, 1, 0)
    out = bytearray(_HEADER.size)
    headers = [bytes(_SECTION.size)]
    for number, (_, kind, data, linked, info, align, each) in zip(numbers, sections, strict=True):
        out += bytes(-len(out) % align)
        flags = _ALLOC if kind == _PROGBITS else 0  # else nm takes symbols for those of a debugger
        headers.append(_SECTION.pack(number, kind, flags, 0, len(out), len(data), linked, info, align, each))
        out += data
    out += bytes(-len(out) % 8)
    head = _HEADER.pack(
        _IDENT, RELOCATABLE, NO_MACHINE, 1, 0, 0, len(out), 0, _HEADER.size, 0, 0, _SECTION.size,
        len(headers), len(headers) - 1,
    )  # fmt: skip
    out[: len(head)] = head
    return bytes(out + b"".join(headers))


def sections(data: bytes, name: str) -> dict[str, tuple[int, int]]:
    """Where each section of a file begins and ends; raises `DiagnosticError` with a byte offset. Of
    several of one name the first counts, of those that hold nothing in the file none."""
    r = Reader(data, Source(name, ""), "the file")
    if data[:4] != MAGIC:
        r.fail("PTO-E1221", "this is no ELF file", expected=repr(MAGIC)[1:], got=repr(data[:4])[1:],
               help="ptoas FILE -o FILE.elf makes one")  # fmt: skip
    if len(data) < _HEADER.size or data[:7] != _IDENT[:7]:
        r.fail("PTO-E1223", "not the header of an ELF file of 64 bits, little-endian", 4, help=_HELP)
    _, _, _, _, _, _, at, _, _, _, _, each, count, strings = _HEADER.unpack_from(data)
    if each != _SECTION.size or not 0 < count <= _MOST_SECTIONS or at + each * count > len(data):
        r.fail(
            "PTO-E1223", "the table of sections does not lie in the file", 40,
            expected=f"{_SECTION.size} bytes each, at most {_MOST_SECTIONS}, in {len(data)} bytes",
            got=f"{count} of {each} bytes at {at}", help=_HELP,
        )  # fmt: skip
    found: list[tuple[int, int, int]] = []
    for number in range(count):
        here = at + each * number
        text, kind, _, _, begin, size, *_ = _SECTION.unpack_from(data, here)
        size = size if kind not in (0, _NOBITS) else 0
        if begin + size > len(data) and size:
            r.fail("PTO-E1223", f"section {number} does not lie in the file", here,
                   expected=f"at most {len(data)}", got=str(begin + size), help=_HELP)  # fmt: skip
        found.append((text, begin, begin + size))
    if strings >= count:
        r.fail("PTO-E1223", "no section has the names of sections", 62, expected=f"below {count}",
               got=str(strings), help=_HELP)  # fmt: skip
    _, first, last = found[strings]
    named: dict[str, tuple[int, int]] = {}
    for number, (text, begin, end) in enumerate(found):
        close = data.find(b"\0", first + text, min(last, first + text + _LONGEST_NAME + 1))
        if text and (first + text >= last or close < 0):
            r.fail("PTO-E1223", f"section {number} has no name", at + each * number, help=_HELP)
        if text and end > begin:
            named.setdefault(data[first + text : close].decode("utf-8", "replace"), (begin, end))
    return named
