"""The DEBUGINFO section: files, value names, operation locations, snippets.

Debug information never changes what a program means: names that cannot be names of values are left out, and
locations are shown by `ptobc dump` only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..diag import Source
from ..ir.core import Operation, Value
from .constants import constant_name
from .file import File
from .leb import write_uleb
from .v0 import DEBUG

_NAME = re.compile(r"[\w$.\-]{1,256}(?:#\d{1,4})?")


def is_name(text: str) -> bool:
    """Whether `%text` is the name of a value."""
    return _NAME.fullmatch(text) is not None


@dataclass(slots=True)
class DebugInfo:
    files: list[str] = field(default_factory=lambda: [])
    names: dict[int, dict[int, str]] = field(default_factory=lambda: {})  # function -> value -> name
    locations: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=lambda: {})
    """(function, operation) -> (file, line, column)"""
    snippets: dict[tuple[int, int], str] = field(default_factory=lambda: {})


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
        r.uleb()  # the end of the range: a point range says nothing new
        r.uleb()
    for _ in range(r.count("snippets", 3)):
        function, op = r.uleb(), r.uleb()
        out.snippets[function, op] = strings[r.index("string", len(strings))]
    r.finish()
    return out


class DebugWriter:
    """Collects debug information while a module is written. `intern` gives the id of a string."""

    def __init__(self, source: Source, intern: Callable[[str], int], own_names: bool) -> None:
        self._source = source
        self._intern = intern
        self._own_names = own_names  # the program's names; else those of the field, which has lost them
        self._files: list[int] = []
        self._names: list[tuple[int, int, int]] = []
        self._locations: list[tuple[int, ...]] = []

    def location(self, function: int, id: int, op: Operation) -> None:
        place = _place(self._source, op)
        if place is None:
            return
        if not self._files:
            self._files.append(self._intern(self._source.name))
        line, column = place
        self._locations.append((function, id, 0, line, column, line, column + 1))

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
        for path in self._files:
            write_uleb(out, path)
            out.append(0)  # no hash
        for entries in (self._names, self._locations, ()):
            write_uleb(out, len(entries))
            for entry in entries:
                for number in entry:
                    write_uleb(out, number)
        return bytes(out)


def _place(source: Source, op: Operation) -> tuple[int, int] | None:
    """Line and column of an operation's name; a terminator that the text leaves out is at its parent."""
    text = source.text
    while text[op.start : op.start + 1] == "}":
        parent = op.parent.parent.parent if op.parent and op.parent.parent else None
        if parent is None:
            return None
        op = parent
    if op.end <= op.start or op.end > len(text):
        return None
    at = op.start
    if text[at] == "%":
        rest = text[at : op.end].partition("=")[2]
        at = op.end - len(rest.lstrip()) if rest else at  # a tile made for an SSA result is at its name
    return source.place(at)
