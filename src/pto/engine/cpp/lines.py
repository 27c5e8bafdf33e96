"""Lines of addresses in a shared library: a reader of DWARF line tables (versions 2 to 5).

    lines_of(path).at(0x1234)  # -> Line("/home/u/k.cpp", 12, 5)

Compilers write such tables with -g1 (gcc) or -gline-tables-only (clang). A return address comes after its
call, so callers look up the byte before it. Counts, numbers and names are checked before their use: a damaged
table is refused in bounded time and memory.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ...image.elf import BadElf, Elf
from ...objects.contents import refusal

#: The longest number in bytes, and the limit of the bytes of all names as a multiple of the file size: names
#: may share bytes.
_LONGEST, _NAMES = 10, 4


class Line(NamedTuple):
    """A source location; column 0 if the compiler gives none."""

    file: str
    line: int
    column: int


#: The first address of a range of code, and its line; None at the end of code.
Row = tuple[int, Line | None]


class _DwarfReader:
    """Numbers and names of DWARF, one after another."""

    def __init__(self, data: bytes, strings: tuple[bytes, bytes]) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)  # the end of the current unit
        self._str, self._line_str = strings
        self._left = _NAMES * (len(data) + sum(map(len, strings)))

    def number(self, size: int) -> int:
        self.at += size
        if self.at > self.end:
            raise ValueError("a number extends beyond the end")
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def unsigned(self) -> int:
        value = 0
        if self.at >= self.end:
            raise ValueError("a number extends beyond the end")
        for shift in range(0, 7 * _LONGEST, 7):
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number is longer than 64 bits")

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> bits - 1 else value

    def _name(self, data: bytes, at: int) -> tuple[str, int]:
        """Return the name that begins at an offset, and its end."""
        end = data.index(b"\0", at, at + self._left + 1)
        self._left -= end - at
        return data[at:end].decode("utf-8", "surrogateescape"), end

    def text(self) -> str:
        found, end = self._name(self.data, self.at)
        self.at = end + 1
        if end >= self.end:
            raise ValueError("a name extends beyond the end")
        return found

    def form(self, form: int, wide: int) -> str | int:
        """Return a value of an attribute form, for entries of files and folders."""
        if form == 0x08:
            return self.text()
        if form in (0x0E, 0x1F):
            return self._name(self._str if form == 0x0E else self._line_str, self.number(wide))[0]
        if form == 0x0F:
            return self.unsigned()
        return self.number({0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}[form])

    def entries(self, wide: int) -> list[tuple[str, int]]:
        """Return folders or files of version 5: name, and number of the folder."""
        formats = [(self.unsigned(), self.unsigned()) for _ in range(self.number(1))]
        count = self.unsigned()
        if count > (self.end - self.at if formats else 0):  # an entry has at least one byte
            raise ValueError("there are more entries than bytes")
        found = [{kind: self.form(form, wide) for kind, form in formats} for _ in range(count)]
        return [(str(values.get(1, "")), int(values.get(2, 0))) for values in found]


def _rows(r: _DwarfReader) -> Iterator[Row]:
    """Return the rows of all translation units."""
    while r.at < len(r.data):
        r.end = len(r.data)
        length, wide = r.number(4), 4
        if length == 0xFFFFFFFF:
            length, wide = r.number(8), 8
        end = r.at + length
        if end > r.end:
            raise ValueError("a unit extends beyond the end")
        r.end = end
        version = r.number(2)
        if 2 <= version <= 5:
            yield from _unit(r, version, wide)
        r.at = end


def _unit(r: _DwarfReader, version: int, wide: int) -> Iterator[Row]:
    """Return the rows of one translation unit: its header, then the program that makes them."""
    r.at += 2 if version >= 5 else 0  # sizes of addresses and of segments
    header = r.number(wide)
    program = r.at + header
    least = r.number(1)
    r.at += 2 if version >= 4 else 1  # operations of a bundle; the initial is_stmt
    base = r.number(1)
    base -= 256 if base > 127 else 0
    span, special = r.number(1), r.number(1)
    lengths = [r.number(1) for _ in range(special - 1)]
    if version >= 5:
        folders = [name for name, _ in r.entries(wide)]
        files = r.entries(wide)
    else:
        folders, files = [""], [("", 0)]
        while folder := r.text():
            folders.append(folder)
        while name := r.text():
            files.append((name, r.unsigned()))
            r.unsigned(), r.unsigned()  # time and size
    top = folders[0] if folders else ""
    names = [
        os.path.normpath(os.path.join(top, folders[n] if n < len(folders) else "", name)) for name, n in files
    ]
    r.at = program
    address, file, line, column = start = 0, 1, 1, 0
    last = None
    while r.at < r.end:
        code = r.number(1)
        if code >= special or code == 1:
            if code != 1:
                steps, lines = divmod(code - special, span)
                address += steps * least
                line += base + lines
            if last != (file, line, column):
                last = file, line, column
                yield address, Line(names[file], line, column)
        elif code == 0:
            size = r.unsigned()
            after = r.at + size
            extended = r.number(1)
            if extended == 1:
                yield address, None
                address, file, line, column = start
                last = None
            elif extended == 2:
                address = r.number(size - 1)
            r.at = after
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


class LibraryLines:
    """The lines of a library; none if it was compiled without line tables."""

    def __init__(self, data: bytes) -> None:
        """Raise `BadElf` for a damaged file or table."""
        elf = Elf(data)
        strings = elf.named(".debug_str") or b"", elf.named(".debug_line_str") or b""
        try:
            self._rows = list(_rows(_DwarfReader(elf.named(".debug_line") or b"", strings)))
        except (IndexError, KeyError, ValueError, ZeroDivisionError):
            raise BadElf("its line table is damaged") from None
        # if one range ends where another begins, the beginning counts
        self._rows.sort(key=lambda row: (row[0], row[1] is not None))
        self._starts = [address for address, _ in self._rows]

    def at(self, address: int) -> Line | None:
        """Return the line of the byte at an address."""
        at = bisect_right(self._starts, address) - 1
        return self._rows[at][1] if at >= 0 else None


def lines_of(path: str) -> LibraryLines:
    """Return the lines of a library; they are read once for all of its kernels."""
    return _lines_of(path, os.stat(path).st_mtime_ns)


@lru_cache(maxsize=4)
def _lines_of(path: str, _changed: int) -> LibraryLines:
    with open(path, "rb") as f:
        data = f.read()
    try:
        return LibraryLines(data)
    except BadElf as e:
        raise refusal(path, str(e)) from None
