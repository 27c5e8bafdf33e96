"""Apply advice that moves lines: remove a barrier, or move a wait down.

    edited = followed(timeline, text)
    edited.text, edited.cycles              # the changed program, and its predicted time

The best advice is applied first, then the best advice for the result, as long as there is a gain. Another
buffer needs more than moved lines: a further tile, and alternating flags. Another slot is memory from the
caller. Both are left to the author of the program.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from .advice import Advice, advise

if TYPE_CHECKING:
    from .measures import Measures

#: Maximum number of changes.
_MOST = 16
_COMMENT = re.compile(r"//.*")
_PAIRS = ("()", "[]", "{}", "<>")


class Edited(NamedTuple):
    """A text with applied advice, the predicted cycles of a launch, and the advice that was not applied."""

    text: str
    done: list[Advice]
    left: list[Advice]
    cycles: float


def followed(timeline: Measures, text: str, file: str) -> Edited:
    """Apply all advice of a timeline that moves lines of the source `file`, whose content is `text`."""
    lines = list(enumerate(text.splitlines(keepends=True), 1))
    done: list[Advice] = []
    left: dict[str, Advice] = {}
    now = timeline
    while len(done) < _MOST:
        left.clear()
        for advice in advise(now):
            changed = _changed(lines, advice) if _same(advice.file, file) else None
            if changed is None:
                left[advice.text] = advice
                continue
            lines = changed
            done.append(advice)
            now = now.what_if(lambda _, best=advice.trace: best)
            break
        else:
            break
    return Edited("".join(line for _, line in lines), done, list(left.values()), now.cycles)


def _same(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def _changed(lines: list[tuple[int, str]], advice: Advice) -> list[tuple[int, str]] | None:
    """Return lines, each with its number in the text, after applying advice; None if moving lines is not
    sufficient."""
    place = {number: at for at, (number, _) in enumerate(lines)}
    at = place.get(advice.lines[0])
    if at is None or not _whole(lines[at][1]) or (at + 1 < len(lines) and _goes_on(lines[at + 1][1])):
        return None
    if advice.kind == "barrier":
        return lines[:at] + lines[at + 1 :]
    below = place.get(advice.lines[-1])
    if advice.kind == "wait" and below is not None and below > at:
        between = lines[at + 1 : below + 1]
        if all(_even(line) for _, line in between):  # no block begins or ends between the lines
            return lines[:at] + between + [lines[at]] + lines[below + 1 :]
    return None


def _whole(line: str) -> bool:
    """Return True if a line is exactly one statement."""
    code = _COMMENT.sub("", line).strip()
    return bool(code) and _even(line) and code.count(";") in (0, int(code.endswith(";")))


def _goes_on(line: str) -> bool:
    """Return True if a line continues a statement."""
    return line.strip()[:1] in tuple("<[(:,{-")


def _even(line: str) -> bool:
    code = _COMMENT.sub("", line).replace("->", "")
    return all(code.count(a) == code.count(b) for a, b in _PAIRS)
