"""Positions of the protocol: line numbers from 0, and columns in units of the negotiated encoding."""

from __future__ import annotations

import re
from bisect import bisect_right

_BREAK = re.compile(r"\r\n|\n|\r")
#: Encoding of the protocol -> codec and bytes per unit.
ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}

Place = tuple[int, int]


class TextLines:
    """Converts character offsets of a text to positions and back."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self._codec, self._width = ENCODINGS[encoding]
        self._starts = [0, *(m.end() for m in _BREAK.finditer(text))]

    def place(self, offset: int) -> Place:
        """Return line and column of an offset."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        return line, self._units(self.text[self._starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a position. A position outside the text gives the nearest one in the text."""
        if line < 0 or line >= len(self._starts):
            return 0 if line < 0 else len(self.text)
        start, end = self.bounds(line)
        text = self.text[start:end]
        if text.isascii() or self._width == 4:
            return start + max(0, min(column, len(text)))
        at = 0
        while at < len(text) and column > 0:
            column -= self._units(text[at])
            at += 1
        return start + at

    def bounds(self, line: int) -> tuple[int, int]:
        """Return the offsets of the start of a line and of its end, without the line break."""
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        return start, start + len(self.text[start:end].rstrip("\r\n"))

    def line(self, offset: int) -> int:
        """Return the number of the line of an offset."""
        return bisect_right(self._starts, offset) - 1

    @property
    def count(self) -> int:
        return len(self._starts)

    def _units(self, text: str) -> int:
        return len(text) if text.isascii() else len(text.encode(self._codec, "surrogatepass")) // self._width
