"""The DEBUGINFO section: files, value names, operation locations, snippets.

Debug information never changes the meaning of a program: invalid names of values are ignored. An operation
with a location points into a file whose text is not available; other operations have the offsets of their
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..diag import Span, Unread
from ..ir.core import Operation, Value
from .constants import constant_name
from .file import File
from .format import DEBUG
from .leb import write_uleb

_NAME = re.compile(r"[\w$.\-]{1,256}(?:#\d{1,4})?")


def is_name(text: str) -> bool:
    """Return True if `%text` is a valid name of a value."""
    return _NAME.fullmatch(text) is not None


@dataclass(slots=True)
class DebugInfo:
    files: list[str] = field(default_factory=lambda: [])
    names: dict[int, dict[int, str]] = field(default_factory=lambda: {})  # function -> value -> name
    locations: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=lambda: {})
    """(function, operation) -> (file, line, column)"""
    snippets: dict[tuple[int, int], str] = field(default_factory=lambda: {})

    def places(self) -> dict[tuple[int, int], Span]:
        """Return (function, operation) -> its source location."""
        files = [Unread(name) for name in self.files]
        return {key: files[file].at(line, column) for key, (file, line, column) in self.locations.items()}


def read_debuginfo(file: File) -> DebugInfo | None:
    if DEBUG not in file.sections:
        return None
    r = file.reader(DEBUG)
    out = DebugInfo()
    strings = file.strings
    for _ in range(r.count("files", 2)):
        out.files.append(strings[r.index("string", len(strings))])
        if r.u8():
            r.take(r.count("bytes of a hash"))
    for _ in range(r.count("value names", 3)):
        function, value = r.uleb(), r.uleb()
        out.names.setdefault(function, {})[value] = strings[r.index("string", len(strings))]
    for _ in range(r.count("locations", 7)):
        function, op = r.uleb(), r.uleb()
        source = r.index("file", len(out.files))
        out.locations[function, op] = (source, r.uleb(), r.uleb())
        r.uleb()  # end of the range; ranges of one point are equal to their start
        r.uleb()
    for _ in range(r.count("snippets", 3)):
        function, op = r.uleb(), r.uleb()
        out.snippets[function, op] = strings[r.index("string", len(strings))]
    r.finish()
    return out


class DebugWriter:
    """Collect debug information while a module is written. `intern` returns the id of a string."""

    def __init__(self, intern: Callable[[str], int], own_names: bool) -> None:
        self._intern = intern
        self._own_names = own_names  # names of the program; otherwise default names, as PTOAS writes them
        self._files: dict[str, int] = {}
        self._names: list[tuple[int, int, int]] = []
        self._locations: list[tuple[int, ...]] = []

    def location(self, function: int, id: int, op: Operation) -> None:
        at = _name_of(op)
        if at is None:
            return
        name, (line, column) = at.source.name, at.place
        file = self._files.setdefault(name, len(self._files))
        self._intern(name)
        self._locations.append((function, id, file, line, column, line, column + 1))

    def names(self, function: int, values: list[Value]) -> None:
        counts: dict[str, int] = {}
        for id, value in enumerate(values):
            name = value.name if self._own_names else self._default_name(value, counts) or str(id)
            if name:
                self._names.append((function, id, self._intern(name)))

    def _default_name(self, value: Value, counts: dict[str, int]) -> str:
        op = value.op
        if op is None or op.name != "arith.constant":
            return ""
        base = constant_name(op.attrs.get("value"))
        if not base:
            return ""
        count = counts[base] = counts.get(base, -1) + 1
        return f"{base}_{count}" if count else base

    def section(self) -> bytes:
        out = bytearray()
        write_uleb(out, len(self._files))
        for name in self._files:
            write_uleb(out, self._intern(name))
            out.append(0)  # no hash
        for entries in (self._names, self._locations, ()):
            write_uleb(out, len(entries))
            for entry in entries:
                for number in entry:
                    write_uleb(out, number)
        return bytes(out)


def _name_of(op: Operation) -> Span | None:
    """Return the source location of an operation's name. An implicit terminator has the location of its
    parent."""
    at: Operation | None = op
    loc = op.loc
    while at is not None and loc is not None and loc.source.text[loc.start : loc.start + 1] == "}":
        at = at.outer
        loc = at.loc if at is not None else None
    if loc is None or isinstance(loc.source, Unread):
        return loc
    text, end = loc.source.text, loc.end
    if end <= loc.start or end > len(text):  # read from bytecode, or built without a text
        return None
    if text[loc.start] == "%":
        rest = text[loc.start : end].partition("=")[2]
        if rest:  # a tile made for an SSA result points to the operation's name
            return Span(loc.source, end - len(rest.lstrip()), end)
    return loc
