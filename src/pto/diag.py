"""Diagnostics: one record per problem of a user program, rendered as text or JSON.

Every stage collects `Diagnostic`s. This module does not depend on the IR. A source location is a `Span` of a
`Source`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from .shown import Shown


class Source:
    """A text and its name in reports."""

    __slots__ = ("_lines", "name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._lines: list[int] = []

    def place(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of a character offset."""
        from bisect import bisect_right

        starts = self._starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the offsets of the first character of a 1-based line and of its end, without the line
        break."""
        starts = self._starts()
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        while end > starts[number - 1] and self.text[end - 1] == "\r":
            end -= 1
        return starts[number - 1], end

    def line(self, number: int) -> str:
        """Return the text of a 1-based line, without its line break."""
        start, end = self.bounds(number)
        return self.text[start:end]

    def at(self, line: int, column: int = 0) -> Span:
        """Return the rest of a 1-based line from a 1-based column on; without a column, from the first
        character that is not a space."""
        start, end = self.bounds(line)
        if column:
            start = min(start + column - 1, end)
        else:
            start += len(self.text[start:end]) - len(self.text[start:end].lstrip())
        return Span(self, start, max(start + 1, end))

    @property
    def lines(self) -> int:
        """Return the number of lines."""
        return len(self._starts())

    def _starts(self) -> list[int]:
        if not self._lines:
            self._lines.append(0)
            at = self.text.find("\n")
            while at >= 0:
                self._lines.append(at + 1)
                at = self.text.find("\n", at + 1)
        return self._lines


class Unread(Source):
    """A file with known name and locations, but without its text. A location in a program text or in a
    bytecode file names such a file. An offset encodes line and column, so that offsets have the order of
    locations."""

    __slots__ = ()

    _SHIFT = 64  # bits of the largest number in a bytecode file

    def __init__(self, name: str) -> None:
        super().__init__(name, "")

    def place(self, offset: int) -> tuple[int, int]:
        return offset >> self._SHIFT, offset & (1 << self._SHIFT) - 1

    def at(self, line: int, column: int = 0) -> Span:
        start = line << self._SHIFT | (column or 1)
        return Span(self, start, start + 1)


class Span:
    """A range of characters of a source. Compared by value."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def place(self) -> tuple[int, int]:
        return self.source.place(self.start)

    @property
    def line(self) -> int:
        return self.place[0]

    @property
    def head(self) -> Span:
        """Return the part of the span on its first line."""
        newline = self.source.text.find("\n", self.start, self.end)
        return self if newline < 0 else Span(self.source, self.start, newline)

    def find(self, word: str, skip: int = 0) -> Span | None:
        """Return the occurrence of a name or number in the span after `skip` others, or the last
        occurrence."""
        import re

        if not self.source.text:
            return None
        pattern = re.compile(re.escape(word) + r"(?![\w$.\-])")
        found = list(pattern.finditer(self.source.text, self.start, self.end))
        return Span(self.source, *found[min(skip, len(found) - 1)].span()) if found else None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Span)
            and (self.start, self.end) == (other.start, other.end)
            and self.source is other.source
        )

    def __hash__(self) -> int:
        return hash((id(self.source), self.start, self.end))


class Diagnostic(Shown):
    """One problem. `severity` is error, warning or note; `notes` are further messages with their source
    locations."""

    __slots__ = ("code", "expected", "got", "help", "message", "notes", "severity", "span")

    def __init__(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        severity: str = "error",
        expected: str = "",
        got: str = "",
        help: str = "",
    ) -> None:
        self.code = code
        self.message = message
        self.span = span
        self.severity = severity
        self.expected = expected
        self.got = got
        self.help = help
        self.notes: list[tuple[str, Span | None]] = []

    def __repr__(self) -> str:
        return f"<Diagnostic {self.code}: {self.message}>"

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"code": self.code, "severity": self.severity, "message": self.message}
        out.update(_place_json(self.span))
        for key in ("expected", "got", "help"):
            if getattr(self, key):
                out[key] = getattr(self, key)
        if self.notes:
            out["notes"] = [{"message": m, **_place_json(s)} for m, s in self.notes]
        return out


class DiagnosticError(Exception):
    """Raised by the Python API, with all diagnostics of the failed stage."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__(render(self.diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy an error of any subclass. The default would pass the text to `__init__`."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(d.severity == "error" for d in diagnostics)


def render(diagnostics: Iterable[Diagnostic], color: bool = False) -> str:
    """Return all diagnostics as text, in source order."""
    return "\n".join(_render_one(d, color) for d in sorted_by_place(diagnostics))


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    import json

    text = json.dumps([d.as_json() for d in sorted_by_place(diagnostics)], indent=2, ensure_ascii=False)
    if text.isascii() and "\x7f" not in text:  # JSON itself escapes the other control characters
        return text
    return "".join(c if _is_shown(c) or c == "\n" else json.dumps(c)[1:-1] for c in text)


def visible(text: str, layout: bool = False) -> str:
    """Return text with escapes (`\\x1b`, `\\u202e`) instead of invisible characters, which may control a
    terminal, reorder the text, or be unencodable. `layout` keeps newlines and tabs."""
    if text.isprintable():
        return text
    kept = "\n\t" if layout else ""
    return "".join(
        c if _is_shown(c) or c in kept else c.encode("unicode_escape").decode("ascii") for c in text
    )


def _is_shown(char: str) -> bool:
    return char.isprintable() or char == "\N{IDEOGRAPHIC SPACE}"


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Encode diagnostics for another process, with the sources of their spans; `from_json` decodes them."""
    import json

    sources: dict[Source, int] = {}

    def place(span: Span | None) -> list[int] | None:
        if span is None:
            return None
        return [sources.setdefault(span.source, len(sources)), span.start, span.end]

    rows = [
        (d.code, d.message, place(d.span), d.severity, d.expected, d.got, d.help,
         [(message, place(span)) for message, span in d.notes])
        for d in diagnostics
    ]  # fmt: skip
    return json.dumps([[(s.name, None if isinstance(s, Unread) else s.text) for s in sources], rows])


def from_json(text: str) -> list[Diagnostic]:
    """Decode the output of `to_json`."""
    import json

    names, rows = json.loads(text)
    sources = [Unread(name) if text is None else Source(name, text) for name, text in names]

    def span(place: list[int] | None) -> Span | None:
        return None if place is None else Span(sources[place[0]], place[1], place[2])

    found: list[Diagnostic] = []
    for code, message, place, severity, expected, got, help, notes in rows:
        d = Diagnostic(code, message, span(place), severity, expected, got, help)
        d.notes = [(note, span(at)) for note, at in notes]
        found.append(d)
    return found


def sorted_by_place(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort by file and location, else in the order of discovery. Diagnostics without a location come last."""
    return sorted(
        diagnostics,
        key=lambda d: (d.span is None, d.span.source.name if d.span else "", d.span.place if d.span else ()),
    )


_MOST_NAMES = 2000  # most names to search for a suggestion; a real program has fewer in one scope


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for a similar name, else an empty string."""
    from difflib import get_close_matches  # costly to import, and needed on errors only

    slack = max(2, len(name) // 3)
    names = list(islice(known, _MOST_NAMES))
    near = [k for k in names if abs(len(k) - len(name)) <= slack]
    close = get_close_matches(name, near, n=2, cutoff=0.6 if len(name) <= 4 else 0.72)
    stems = (name.removesuffix("_") + "_", name.removesuffix(".") + ".")
    longer = [k for k in names if k.startswith(stems)] if name else []
    close = longer[:3] or close  # prefer the members of a family whose common prefix was given
    return f"did you mean {' or '.join(repr(c) for c in close)}?" if close else ""


_COLORS = {"error": "31", "warning": "33", "note": "36", "help": "32"}


def _paint(text: str, kind: str, color: bool) -> str:
    return f"\x1b[1;{_COLORS[kind]}m{text}\x1b[0m" if color else text


def _render_one(d: Diagnostic, color: bool) -> str:
    head = _paint(f"{d.severity}[{d.code}]", d.severity, color)
    out = [f"{_at(d.span)}{head}: {visible(d.message, layout=True)}", *_excerpt(d.span, color)]
    for key, text in (("expected", d.expected), ("got", d.got)):
        if text:
            out.append(f"  {key}: {visible(text, layout=True)}")
    for message, span in d.notes:
        out.append(f"  {_at(span)}{_paint('note', 'note', color)}: {visible(message, layout=True)}")
        out.extend(_excerpt(span, color))
    if d.help:
        out.append(f"  {_paint('help', 'help', color)}: {visible(d.help, layout=True)}")
    return "\n".join(out)


def _at(span: Span | None) -> str:
    if span is None:
        return ""
    line, column = span.place
    return f"{_shown(span.source.name)}:{line}:{column}: "


def _shown(name: str) -> str:
    """Return the name of a file in reports. Python files below the current folder are shown by relative
    paths."""
    if name.endswith(".py"):
        name = name.removeprefix(os.path.join(os.getcwd(), ""))
    return visible(name)


_MAX = 120  # width of an excerpt; longer lines are cut around the location


def _excerpt(span: Span | None, color: bool) -> list[str]:
    if span is None or not span.source.text:
        return []
    number, column = span.place
    first, last = span.source.bounds(number)
    at = column - 1
    length = max(1, min(span.end, last) - span.start)
    prefix = suffix = ""
    if last - first > _MAX:  # cut first, because one line can be the whole file
        first += max(0, min(at - _MAX // 3, last - first - _MAX))
        prefix = "..." if first > span.start - at else ""
        suffix = "..." if first + _MAX < last else ""
        last = min(last, first + _MAX)
        at = span.start - first + len(prefix)
    shown = [*prefix, *map(visible, span.source.text[first:last].replace("\t", " ")), *suffix]
    pad = " " * sum(map(_width, shown[:at]))
    carets = "^" * max(1, sum(map(_width, shown[at : at + length])))
    gutter = f"{number:>5} | "
    return [
        gutter + "".join(shown),
        " " * (len(gutter) - 2) + "| " + pad + _paint(carets, "error", color),
    ]


def _width(shown: str) -> int:
    """Return the columns of a character or of its escape."""
    import unicodedata

    return 2 if len(shown) == 1 and unicodedata.east_asian_width(shown) in "WF" else len(shown)


def _place_json(span: Span | None) -> dict[str, Any]:
    if span is None:
        return {}
    line, column = span.place
    end_line, end_column = span.source.place(span.end)
    return {
        "file": span.source.name, "line": line, "column": column, "end_line": end_line,
        "end_column": end_column,
    }  # fmt: skip
