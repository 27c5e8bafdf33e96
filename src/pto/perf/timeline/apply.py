"""Advice that is followed by moving lines: a barrier that goes, a wait that comes later.

    edited = followed(timeline, text)
    edited.text, edited.cycles              # the program with it, and what is promised of that

The best of all advice is followed first, then what is the best with that done, as long as something helps.
A buffer more is more than lines: another tile, and flags that take turns. A slot more is memory that the
caller gives. Both are left to who wrote the program.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from .advice import Advice, advise

if TYPE_CHECKING:
    from .measures import Measures

#: So many changes at most.
_MOST = 16
_COMMENT = re.compile(r"//.*")
_PAIRS = ("()", "[]", "{}", "<>")


class Edited(NamedTuple):
    """A text with advice that was followed, the cycles of a launch that this promises, and advice that was
    not."""

    text: str
    done: list[Advice]
    left: list[Advice]
    cycles: float


def followed(timeline: Measures, text: str, file: str) -> Edited:
    """All advice of a timeline that lines of the source `file`, whose text this is, can follow."""
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
    """Lines, each with its number in the text, with advice followed; None where that takes more."""
    place = {number: at for at, (number, _) in enumerate(lines)}
    at = place.get(advice.lines[0])
    if at is None or not _whole(lines[at][1]) or (at + 1 < len(lines) and _goes_on(lines[at + 1][1])):
        return None
    if advice.kind == "barrier":
        return lines[:at] + lines[at + 1 :]
    below = place.get(advice.lines[-1])
    if advice.kind == "wait" and below is not None and below > at:
        between = lines[at + 1 : below + 1]
        if all(_even(line) for _, line in between):  # no block begins or ends there
            return lines[:at] + between + [lines[at]] + lines[below + 1 :]
    return None


def _whole(line: str) -> bool:
    """Whether a line is a statement, and nothing besides."""
    code = _COMMENT.sub("", line).strip()
    return bool(code) and _even(line) and code.count(";") in (0, int(code.endswith(";")))


def _goes_on(line: str) -> bool:
    """Whether a line is the rest of a statement."""
    return line.strip()[:1] in tuple("<[(:,{-")


def _even(line: str) -> bool:
    code = _COMMENT.sub("", line).replace("->", "")
    return all(code.count(a) == code.count(b) for a, b in _PAIRS)
