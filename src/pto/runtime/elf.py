"""Names that a shared library exports, read from its file: nothing of it is loaded or run."""

from __future__ import annotations

import struct
from pathlib import Path

_DYNSYM = 11  # type of the section of dynamic symbols


def exports(path: str) -> set[str]:
    """Names of the functions and variables that a library defines for others; of 64-bit ELF files."""
    data = Path(path).read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return set()
    order = "<" if data[5] == 1 else ">"
    table, size, count = _header(data, order)
    sections = [struct.unpack_from(f"{order}IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    found: set[str] = set()
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != _DYNSYM or not entry:
            continue
        names = sections[link][4]
        for at in range(start, start + length, entry):
            name, info, _, index, _, _ = struct.unpack_from(f"{order}IBBHQQ", data, at)
            if index and info >> 4 in (1, 2):  # defined here, and global or weak
                first = names + name
                found.add(data[first : data.index(b"\0", first)].decode("utf-8", "replace"))
    return found


def _header(data: bytes, order: str) -> tuple[int, int, int]:
    """Where the section headers are, the size of one, and how many there are."""
    (table,) = struct.unpack_from(f"{order}Q", data, 0x28)
    size, count = struct.unpack_from(f"{order}HH", data, 0x3A)
    return table, size, count
