"""Lines of addresses in a shared library: a reader of DWARF line tables (versions 2 to 5).

    Lines(path).at(0x1234)  # -> Line("/home/u/k.cpp", 12, 5)

Compilers write such tables with -g1 (gcc) or -gline-tables-only (clang). A return address stands behind its
call, so callers ask for the byte before it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ...isa.record import Record
from ...objects.elf import Elf


class Line(NamedTuple):
    """A place in a file; column 0 where the compiler says none."""

    file: str
    line: int
    column: int


class _Row(NamedTuple):
    address: int
    file: int
    line: int
    column: int
    end: bool


class _Unit(Record):
    """The table of a translation unit: file names, and rows by address."""

    files: tuple[str, ...]
    rows: tuple[_Row, ...]


class _Reader:
    """Numbers of DWARF, one after another."""

    def __init__(self, data: bytes, at: int, strings: tuple[bytes, bytes]) -> None:
        self.data = data
        self.at = at
        self._str, self._line_str = strings

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> bits - 1 else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode("utf-8", "surrogateescape")
        self.at = end + 1
        return found

    def form(self, form: int, wide: int) -> str | int:
        """A value of an attribute form, as entries of files and folders have them."""
        if form == 0x08:
            return self.text()
        if form in (0x0E, 0x1F):
            source = self._str if form == 0x0E else self._line_str
            at = self.number(wide)
            return source[at : source.index(b"\0", at)].decode("utf-8", "surrogateescape")
        if form == 0x0F:
            return self.unsigned()
        if form == 0x1E:  # a digest
            self.at += 16
            return 0
        return self.number({0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8}[form])


def _entries(r: _Reader, wide: int) -> list[tuple[str, int]]:
    """Folders or files of version 5: name, and number of the folder."""
    formats = [(r.unsigned(), r.unsigned()) for _ in range(r.number(1))]
    found = []
    for _ in range(r.unsigned()):
        values = {kind: r.form(form, wide) for kind, form in formats}
        found.append((str(values.get(1, "")), int(values.get(2, 0))))
    return found


def _units(data: bytes, strings: tuple[bytes, bytes]) -> Iterator[_Unit]:
    r = _Reader(data, 0, strings)
    while r.at < len(data):
        length, wide = r.number(4), 4
        if length == 0xFFFFFFFF:
            length, wide = r.number(8), 8
        end = r.at + length
        version = r.number(2)
        if 2 <= version <= 5:
            yield _unit(r, version, wide, end)
        r.at = end


def _unit(r: _Reader, version: int, wide: int, end: int) -> _Unit:
    if version >= 5:
        r.at += 2  # sizes of addresses and of segments
    header = r.number(wide)
    program = r.at + header
    least = r.number(1)
    r.at += 1 if version >= 4 else 0  # operations of a bundle
    r.at += 1  # whether rows are statements at first
    base = r.number(1)
    base -= 256 if base > 127 else 0
    span, special = r.number(1), r.number(1)
    lengths = [r.number(1) for _ in range(special - 1)]
    if version >= 5:
        folders = [name for name, _ in _entries(r, wide)]
        files = _entries(r, wide)
    else:
        folders, files = [""], [("", 0)]
        while r.data[r.at]:
            folders.append(r.text())
        r.at += 1
        while r.data[r.at]:
            files.append((r.text(), r.unsigned()))
            for _ in ("time", "size"):
                r.unsigned()
    top = folders[0] if folders else ""
    names = tuple(
        os.path.normpath(os.path.join(top, folders[n] if n < len(folders) else "", name)) for name, n in files
    )
    r.at = program
    return _Unit(names, tuple(_rows(r, end, least, base, span, special, lengths)))


def _rows(
    r: _Reader, end: int, least: int, base: int, span: int, special: int, lengths: list[int]
) -> Iterator[_Row]:
    """What the program of a line table makes."""
    address, file, line, column = 0, 1, 1, 0
    while r.at < end:
        code = r.number(1)
        if code >= special:
            code -= special
            address += code // span * least
            line += base + code % span
            yield _Row(address, file, line, column, False)
        elif code == 0:
            size = r.unsigned()
            after = r.at + size
            extended = r.number(1)
            if extended == 1:
                yield _Row(address, file, line, column, True)
                address, file, line, column = 0, 1, 1, 0
            elif extended == 2:
                address = r.number(size - 1)
            r.at = after
        elif code == 1:
            yield _Row(address, file, line, column, False)
        elif code == 2:
            address += r.unsigned() * least
        elif code == 3:
            line += r.signed()
        elif code == 4:
            file = r.unsigned()
        elif code == 5:
            column = r.unsigned()
        elif code == 8:
            address += (255 - special) // span * least
        elif code == 9:
            address += r.number(2)
        else:
            for _ in range(lengths[code - 1]):
                r.unsigned()


class Lines:
    """The lines of a library; none where it was compiled without."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as f:
            elf = Elf(f.read())
        strings = elf.named(".debug_str") or b"", elf.named(".debug_line_str") or b""
        self._rows: list[tuple[int, Line | None]] = []
        for unit in _units(elf.named(".debug_line") or b"", strings):
            for row in unit.rows:
                place = None if row.end else Line(unit.files[row.file], row.line, row.column)
                self._rows.append((row.address, place))
        # where one range ends and another begins, the beginning counts
        self._rows.sort(key=lambda row: (row[0], row[1] is not None))
        self._starts = [address for address, _ in self._rows]

    def at(self, address: int) -> Line | None:
        """The line that the byte at an address was made from."""
        at = bisect_right(self._starts, address) - 1
        return self._rows[at][1] if at >= 0 else None


def lines_of(path: str) -> Lines:
    """Return the lines of a library; they are read once for all of its kernels."""
    return _lines_of(path, os.stat(path).st_mtime_ns)


@lru_cache(maxsize=4)
def _lines_of(path: str, _changed: int) -> Lines:
    return Lines(path)
