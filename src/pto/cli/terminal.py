"""Text for a terminal: width, color, wrapped paragraphs and aligned tables, for verbs that print
information."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence

from .. import knobs
from ..diag import visible

_CODES = {"title": "1", "name": "1;36", "dim": "2", "good": "32", "bad": "1;31", "warn": "33"}


class Screen:
    """Standard output: its width, and whether it has colors."""

    def __init__(self, width: int | None = None, color: bool | None = None) -> None:
        self.width = _width() if width is None else width
        self.color = _color() if color is None else color

    def paint(self, text: str, kind: str) -> str:
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.color and text else text

    def paragraph(self, text: str, indent: int = 2, hang: int = 0) -> list[str]:
        """Return wrapped text; its line breaks stay."""
        first, rest = " " * indent, " " * (indent + hang)
        out: list[str] = []
        for line in text.splitlines():
            out += textwrap.wrap(
                line, self.width, initial_indent=first, subsequent_indent=rest,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        return out

    def pairs(self, pairs: Sequence[tuple[str, str]], indent: int = 2) -> list[str]:
        """Return `label  text` lines, with the text wrapped under itself."""
        if not pairs:
            return []
        column = max(len(label) for label, _ in pairs) + 2
        out: list[str] = []
        for label, text in pairs:
            lines = textwrap.wrap(text, self.width - indent - column, break_on_hyphens=False) or [""]
            out.append(" " * indent + self.paint(label, "dim") + " " * (column - len(label)) + lines[0])
            out += [" " * (indent + column) + line for line in lines[1:]]
        return out

    def code(self, label: str, line: str, indent: int = 2) -> list[str]:
        """Return a label and a line of code. The line keeps its indentation and is wrapped at spaces."""
        margin = " " * (indent + len(label) + len(line) - len(line.lstrip()))
        lines = textwrap.wrap(
            line.strip(), self.width, initial_indent=margin, subsequent_indent=margin + "    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        head = " " * indent + self.paint(label, "dim")
        return [head + lines[0][indent + len(label) :], *lines[1:]]

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], indent: int = 2) -> list[str]:
        """Return aligned columns. The widest columns shrink until the line fits, but words are never cut."""
        head, *rows = [[visible(text, layout=True) for text in row] for row in (head, *rows)]
        columns = [[r[i] for r in (head, *rows)] for i in range(len(head))]
        widths = [max(map(len, column)) for column in columns]
        least = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
        room = self.width - indent - 2 * (len(widths) - 1)
        while sum(widths) > room and widths != least:
            at = max((w, i) for i, w in enumerate(widths) if w > least[i])[1]
            widths[at] -= 1
        out = [self.paint(line, "dim") for line in _cells(head, widths, indent)]
        for row in rows:
            out += _cells(row, widths, indent)
        return out


def _cells(row: Sequence[str], widths: Sequence[int], indent: int) -> list[str]:
    wrapped = [textwrap.wrap(c, w, break_on_hyphens=False) or [""] for c, w in zip(row, widths, strict=True)]
    out: list[str] = []
    for k in range(max(map(len, wrapped))):
        parts = [lines[k] if k < len(lines) else "" for lines in wrapped]
        text = "  ".join(p.ljust(w) for p, w in zip(parts, widths, strict=True))
        out.append((" " * indent + text).rstrip())
    return out


def _width() -> int:
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 96
    return max(60, min(110, columns))


def _color() -> bool:
    choice = knobs.get("PTO_COLOR")
    if choice != "auto":
        return choice == "always"
    return not knobs.get("NO_COLOR") and sys.stdout.isatty()
