"""Source locations of calls: from return addresses to spans of C++, and to the texts of arguments."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ...diag import Source, Span
from .compiler import include_dir
from .handwritten import without_comments
from .lines import Line, lines_of

_NAME = re.compile(r"[A-Za-z_]\w*")


class _Info(ctypes.Structure):
    """`Dl_info` of the C library."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class SourceCall(NamedTuple):
    """A call in the source: its span, and the texts of its arguments, if they can be read."""

    span: Span | None
    arguments: tuple[str, ...] = ()


class LibraryPlaces:
    """The source locations in one library."""

    def __init__(
        self, path: str, known: Sequence[Source] = (), files: Sequence[str] = (), base: int | None = None
    ) -> None:
        """Read the line table of a library. `known` are sources that have been read, `files` the paths of its
        sources. A library with the same contents that was built elsewhere names files of that folder, which
        may be missing or changed. `base` is its load address in another process; None means this process."""
        self._base = base
        self._lines = lines_of(path)
        self._include = include_dir()
        self._ours: dict[str, bool] = {}
        self._process = ctypes.CDLL(None)
        self._sources: dict[str, Source | None] = {}
        #: A library that was built elsewhere has their relative names after the name of another folder.
        self._relative: dict[str, Source] = {}
        for source in known:
            self._sources[os.path.abspath(source.name)] = source
            if not os.path.isabs(source.name):
                self._relative[f"{os.sep}{os.path.normpath(source.name)}"] = source
        self._files = [os.path.normpath(file) for file in files]
        self._texts: dict[str, str] = {}

    def line(self, address: int) -> Line | None:
        """Return the line of a return address."""
        if self._base is not None:
            return self._lines.at(address - 1 - self._base)
        info = _Info()
        if not self._process.dladdr(ctypes.c_void_p(address), ctypes.byref(info)) or not info.base:
            return None
        return self._lines.at(address - 1 - info.base)

    def of(self, addresses: Sequence[int]) -> Line | None:
        """Return the innermost line that is not in our headers."""
        for address in addresses:
            line = self.line(address) if address else None
            if line is not None and not self._is_ours(line.file) and self.source(line.file):
                return line
        return None

    def _is_ours(self, file: str) -> bool:
        """Return whether a file is one of our headers. A library from the cache may have been built with
        identical headers in another folder."""
        found = self._ours.get(file)
        if found is None:
            _, _, within = file.rpartition(f"{os.sep}include{os.sep}pto")
            found = self._ours[file] = bool(within) and (self._include / f"pto{within}").is_file()
        return found

    def span(self, addresses: Sequence[int]) -> Span | None:
        """Return the innermost source location that is not in our headers."""
        line = self.of(addresses)
        source = self.source(line.file) if line is not None else None
        if line is None or source is None or line.line > source.lines:
            return None
        return source.at(line.line)

    def functions(self, addresses: Sequence[int]) -> list[tuple[str, Span]]:
        """Return the functions of user code in a chain of calls, innermost first, with their locations."""
        found: list[tuple[str, Span]] = []
        for address in addresses:
            line = self.line(address) if address else None
            if line is None or self._is_ours(line.file):
                continue
            source = self.source(line.file)
            if source is None or line.line > source.lines:
                continue
            span = source.at(line.line)
            name = next((f.name for f in functions_in(source) if f.start <= span.start < f.end), "")
            if name:
                found.append((name, span))
        return found

    def source(self, file: str) -> Source | None:
        if file not in self._sources:
            known = next((s for name, s in self._relative.items() if file.endswith(name)), None)
            if known is not None:
                self._sources[file] = known
                return known
            here = max(self._files, key=lambda path: _common_tail(path, file), default=file)
            here = here if _common_tail(here, file) else file
            try:
                with open(here, encoding="utf-8", errors="replace") as f:
                    text = f.read()
                shown = os.path.relpath(here)
                self._sources[file] = Source(here if shown.startswith("..") else shown, text)
            except OSError:
                self._sources[file] = None
        return self._sources[file]

    def call(self, addresses: Sequence[int], names: Sequence[str]) -> SourceCall:
        """Return the call, of a function with one of some names, that returns to an address."""
        line = self.of(addresses)
        if line is None:
            return SourceCall(None)
        source = self.source(line.file)
        assert source is not None
        if line.line > source.lines:
            return SourceCall(None)
        text = self._texts.get(line.file)
        if text is None:
            text = self._texts[line.file] = without_comments(source.text)
        begin, end = source.bounds(line.line)
        found = [m for m in _NAME.finditer(text, begin, end) if m[0] in names]
        if not found:
            return SourceCall(source.at(line.line))
        column = begin + line.column
        m = next((m for m in reversed(found) if line.column and m.start() < column), found[0])
        arguments, close = _arguments(text, m.end())
        return SourceCall(Span(source, m.start(), close), arguments)


def _common_tail(path: str, other: str) -> int:
    """Return the number of names that two paths share at their ends."""
    pairs = zip(reversed(path.split(os.sep)), reversed(other.split(os.sep)), strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs) if a != b), min(path.count(os.sep), other.count(os.sep)) + 1
    )


def _arguments(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the arguments of a call whose name ends at an offset, and the end of the call; none without a
    call."""
    name_ends = at
    while at < len(text) and text[at] in " \t\n":
        at += 1
    if at < len(text) and text[at] == "<":
        depth = 0
        for n in range(at, min(len(text), at + 2000)):
            depth += {"<": 1, ">": -1}.get(text[n], 0)
            if not depth:
                at = n + 1
                break
    while at < len(text) and text[at] in " \t\n":
        at += 1
    if at >= len(text) or text[at] != "(":
        return (), name_ends
    parts: list[str] = []
    depth, start = 0, at + 1
    for n in range(at, min(len(text), at + 4000)):
        c = text[n]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if not depth:
                parts.append(text[start:n])
                return tuple(" ".join(p.split()) for p in parts if p.strip()), n + 1
        elif c == "," and depth == 1:
            parts.append(text[start:n])
            start = n + 1
    return (), name_ends


class SourceFunction(NamedTuple):
    """The definition of a function: its name, and the begin and end of its body."""

    name: str
    start: int
    end: int


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_HOLDS = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()]*$")
_NAMED = re.compile(r"([A-Za-z_~]\w*)\s*\(")
_NO_FUNCTIONS = ("__attribute__", "__launch_bounds__", "alignas", "decltype", "requires", "noexcept")


@lru_cache(maxsize=64)
def functions_in(source: Source) -> tuple[SourceFunction, ...]:
    """Return the functions of a file; a lambda belongs to the function around it."""
    text = _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), without_comments(source.text))
    found: list[SourceFunction] = []
    at = 0
    while (m := re.compile(r"[{};]").search(text, at)) is not None:
        head, here = text[at : m.start()], m.start()
        at = m.end()
        if m[0] != "{" or _HOLDS.search(head):
            continue
        name = next((n[1] for n in _NAMED.finditer(head) if n[1] not in _NO_FUNCTIONS), "")
        at = _closed(text, here)
        if name:
            found.append(SourceFunction(name, here - len(head), at))
    return tuple(found)


_CLOSING = {"(": ")", "{": "}"}


def stands_inside(inner: Span, outer: Span) -> bool:
    """Return whether a location is in a block that does not contain an earlier location."""
    if inner.source is not outer.source:
        return False
    text = without_comments(inner.source.text)
    depth = 0
    for at in range(inner.start - 1, outer.end - 1, -1):
        depth += (text[at] == "}") - (text[at] == "{")
        if depth < 0:
            return True
    return False


def _closed(text: str, at: int) -> int:
    """Return the offset after the end of a parenthesis or block that opens at an offset."""
    opening, closing = text[at], _CLOSING[text[at]]
    depth = 0
    for n in range(at, len(text)):
        depth += (text[n] == opening) - (text[n] == closing)
        if not depth:
            return n + 1
    return len(text)
