"""Source lines of a program for readers without its text: the lines of its operations.

A place is the number of an operation, in the order of `Module.walk`. `lines_of` takes the lines from the
sources of a module; `Lines.span` gives source locations that diagnostics show like those of the full text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ..diag import Source, Span, Unread
from ..ir.core import Module
from ..ir.facts import provenance
from ..isa.record import Record
from .format import ImageReader

MAGIC = b"PTOLINES"
VERSION = 1
MOST_LINES = 1 << 20  # the largest line number; a text with that many lines is made for it


class Place(Record):
    """A source location: the number of a file, line and column from 1 on, and a length in characters."""

    file: int
    line: int
    column: int
    length: int


class Lines(Record):
    """Names of files, texts of their lines, and source locations by the number of the operation."""

    files: tuple[tuple[str, dict[int, str]], ...]
    places: dict[int, Place]

    def text(self, number: int) -> str:
        """Return the line of an operation; "" if it is unknown."""
        at = self.places.get(number)
        return self.files[at.file][1].get(at.line, "") if at else ""

    def name(self, number: int) -> str:
        """Return file, line and column of an operation; "" if they are unknown."""
        at = self.places.get(number)
        return f"{self.files[at.file][0]}:{at.line}:{at.column}" if at else ""

    def spans(self) -> dict[int, Span]:
        """Return the source locations for diagnostics."""
        sources = [_source(name, lines) for name, lines in self.files]
        found: dict[int, Span] = {}
        for number, at in self.places.items():
            source = sources[at.file]
            if isinstance(source, Unread):
                found[number] = source.at(at.line, at.column)
                continue
            first, last = source.bounds(at.line)
            start = min(first + at.column - 1, last)
            found[number] = Span(source, start, max(start + 1, min(start + at.length, last)))
        return found


NONE = Lines((), {})


def _source(name: str, lines: dict[int, str]) -> Source:
    """Return a text with these lines at their numbers."""
    if not lines:
        return Unread(name)
    out = [""] * max(lines)
    for number, text in lines.items():
        out[number - 1] = text
    return Source(name, "\n".join(out))


def lines_of(module: Module, numbers: Iterable[int]) -> Lines:
    """Return the lines of some operations of a module, and of the operations that made their pointers and
    windows."""
    files: dict[str, dict[int, str]] = {}
    places: dict[int, Place] = {}
    wanted, every = set(numbers), list(module.walk())
    made = {at for n in wanted if n < len(every) for v in every[n].operands for _, at in provenance(v)}
    order: list[str] = []
    for number, op in enumerate(every):
        span = op.loc if number in wanted or op in made else None
        if span is None:
            continue
        source, (line, column) = span.source, span.place
        if not (0 < line <= MOST_LINES and 0 < column < 1 << 32):
            continue
        if source.name not in files:
            files[source.name] = {}
            order.append(source.name)
        length = 1
        if not isinstance(source, Unread) and span.end <= len(source.text):
            length = max(1, min(span.end, source.bounds(line)[1]) - span.start)
            files[source.name][line] = source.line(line)
        places[number] = Place(order.index(source.name), line, column, length)
    return Lines(tuple((name, files[name]) for name in order), places)


def to_bytes(lines: Lines) -> bytes:
    parts = [MAGIC, struct.pack("<II", VERSION, len(lines.files))]
    for name, texts in lines.files:
        parts += [_text(name), struct.pack("<I", len(texts))]
        parts += [struct.pack("<I", number) + _text(text) for number, text in sorted(texts.items())]
    parts.append(struct.pack("<I", len(lines.places)))
    for number, at in sorted(lines.places.items()):
        parts.append(struct.pack("<5I", number, at.file, at.line, at.column, at.length))
    return b"".join(parts)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<I", len(data)) + data


def from_bytes(data: bytes, name: str, at: int, end: int) -> Lines:
    """Read a table of lines; raise `DiagnosticError` with a byte offset."""
    r = ImageReader(data, Source(name, ""), "the table of lines", at, end)
    if data[at : at + len(MAGIC)] != MAGIC or end - at < len(MAGIC):
        r.fail("PTO-E1221", "not a table of lines", expected=repr(MAGIC)[1:])
    r.at += len(MAGIC)
    version = r.u32()
    if version != VERSION:
        r.fail(
            "PTO-E1222",
            f"unsupported version {version} of a table of lines",
            r.at - 4,
            expected=f"version {VERSION}",
        )
    files: list[tuple[str, dict[int, str]]] = []
    for _ in range(r.many("files", 8)):
        file, texts = r.text("the name of a file"), dict[int, str]()
        for _ in range(r.many("lines", 8)):
            number = _line(r)
            texts[number] = r.text("a line").replace("\n", " ")
        files.append((file, texts))
    last = [max(texts, default=0) for _, texts in files]
    if sum(last) > MOST_LINES:
        r.fail("PTO-E1209", "too many lines", expected=f"at most {MOST_LINES} lines")
    places: dict[int, Place] = {}
    for _ in range(r.many("places", 20)):
        number, file, here = r.u32(), r.u32(), r.at
        place = Place(file, _line(r), r.u32(), r.u32())
        if file >= len(files) or not place.column or not place.length:
            r.fail("PTO-E1208", "invalid source location", here - 4, got=f"file {file}")
        if last[file] and place.line > last[file]:
            r.fail("PTO-E1208", "source location after the last line", here, got=f"line {place.line}")
        places[number] = place
    r.finish()
    return Lines(tuple(files), places)


def _line(r: ImageReader) -> int:
    at, number = r.at, r.u32()
    if not 0 < number <= MOST_LINES:
        r.fail("PTO-E1208", "line number out of range", at, expected=f"1 .. {MOST_LINES}", got=str(number))
    return number
