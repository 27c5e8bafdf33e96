"""Comments and blank lines of a source, handed out in order while its operations are printed."""

from __future__ import annotations

import re

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//[^\n]*)')


class Comments:
    """A cursor over the comments of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = [(m.start(1), m[1].rstrip()) for m in _COMMENT.finditer(text) if m[1]]
        self.at = 0

    def before(self, offset: int, pad: str, first: bool) -> list[str]:
        """Lines for what stands before an offset; one blank line is kept where there were any."""
        lines: list[str] = []
        begin = offset
        while self.at < len(self.found) and self.found[self.at][0] < offset:
            start, comment = self.found[self.at]
            if self._blank_above(start) and not (first and not lines):
                lines.append("")
            lines.append(pad + comment)
            self.at += 1
            begin = start + len(comment)
        if (
            self._blank_above(offset)
            and offset > begin - 1
            and not (first and not lines)
            and self.text[offset : offset + 1] != "}"
        ):
            lines.append("")
        return lines

    def behind(self, offset: int) -> str:
        """A comment on the line where an operation ended."""
        if self.at >= len(self.found):
            return ""
        start, comment = self.found[self.at]
        if start < offset or self.text[offset:start].strip(" \t;"):
            return ""
        self.at += 1
        return f"  {comment}"

    def rest(self) -> list[str]:
        return self.before(len(self.text) + 1, "", first=False)

    def _blank_above(self, offset: int) -> bool:
        """Whether an empty line precedes the line of an offset."""
        line = self.text.rfind("\n", 0, offset)
        if line < 0 or self.text[line + 1 : offset].strip():
            return False
        above = self.text.rfind("\n", 0, line)
        return above >= 0 and not self.text[above + 1 : line].strip()
