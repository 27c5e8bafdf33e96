"""Text between two tokens: comments, and blank lines around them."""

from __future__ import annotations

import re
from typing import NamedTuple

# Gaps have only white space and comments; a `#` begins a comment on a line of its own.
COMMENT = re.compile(r"(?://|#)[^\n]*")


class Comment(NamedTuple):
    text: str
    column: int
    behind: bool  # the comment is on the line of the token before it
    blank: bool  # the comment follows a blank line


class Gap:
    """`text[start:end]`, the characters between two tokens."""

    __slots__ = ("blank", "comments", "newline")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.comments: list[Comment] = []
        at = start
        newline = start == 0  # the first line follows no token
        if "/" in text[start:end] or "#" in text[start:end]:
            for m in COMMENT.finditer(text, start, end):
                breaks = text.count("\n", at, m.start())
                newline = newline or breaks > 0
                column = m.start() - text.rfind("\n", 0, m.start())
                self.comments.append(Comment(m[0].rstrip(), column, not newline, breaks > 1))
                at = m.end()
        breaks = text.count("\n", at, end)
        self.blank = breaks > 1
        self.newline = breaks > 0
