"""The findings of sanitizers, each once, and the names of memory ranges in messages."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ...diag import Diagnostic, Span
from ..access import Place
from ..memory import Tile
from ..watch import Watcher

if TYPE_CHECKING:
    from ..result import LaunchResult

#: The number of problems that a run shows; it only counts further ones.
MOST = 50

#: The number of notes of one problem about further source locations of the same kind.
MOST_NOTES = 4


class Reports(Watcher):
    """The findings of all sanitizers of a launch; adds them to the result."""

    memory = False

    def __init__(self) -> None:
        self.found: dict[Hashable, Diagnostic] = {}
        self.times: dict[Hashable, int] = {}
        #: The flag of a problem: all consequences of one missing wait are one problem.
        self.flags: dict[Hashable, Hashable] = {}

    def add(self, key: Hashable, diagnostic: Diagnostic, flag: Hashable = None) -> None:
        """Keep a problem; a problem with a known key is only counted."""
        if flag is not None:
            self.flags.setdefault(key, flag)
        self.times[key] = self.times.get(key, 0) + 1
        if key not in self.found and len(self.found) < MOST:
            self.found[key] = diagnostic

    def again(self, key: Hashable, note: tuple[str, Span | None]) -> bool:
        """Return whether a problem is known; if so, count it, and keep a note with a new source location."""
        if key not in self.times:
            return False
        self.times[key] += 1
        known = self.found.get(key)
        if known is not None:
            spans = [span for _, span in known.notes]
            if note[1] is not None and note[1] not in spans and len(known.notes) < MOST_NOTES:
                known.notes.append(note)
        return True

    def launch_ended(self, result: LaunchResult) -> None:
        result.diagnostics.extend(self.all())

    def all(self) -> list[Diagnostic]:
        for key, d in self.found.items():
            times = self.times[key]
            if times > 1:
                d.notes.append((f"seen {times} times; this is the first", None))
        left = len(self.times) - len(self.found)
        out = list(self._merged().values())
        if left:
            out[-1].notes.append((f"{left} further problems are not shown", None))
        return out

    def _merged(self) -> dict[Hashable, Diagnostic]:
        """Return the problems, with all problems of one flag merged into one: a race, else a flag that is set
        twice, else a flag that is left set.
        """
        leaders: dict[Hashable, Diagnostic] = {}
        out = dict(self.found)
        for code in _CAUSES:
            for key, d in self.found.items():
                flag = self.flags.get(key)
                if d.code != code or flag is None:
                    continue
                leader = leaders.setdefault(flag, d)
                if code != _CAUSES[0] and leader is not d:
                    del out[key]
                    known = any(span == d.span for _, span in leader.notes)
                    leader.notes.append((f"so {d.message.partition(': ')[2]}", None if known else d.span))
        return out


#: The codes of the consequences of one missing wait, the most direct first.
_CAUSES = ("PTO-E2201", "PTO-E0804", "PTO-E0805")


def bytes_of(place: Place, low: int, high: int) -> str:
    """Return the text for a range of bytes: with addresses, or with offsets in a tile that was not placed."""
    buffer = place.buffer
    name = f"%{place.name}" if place.name else ""
    if buffer.space == "gm":
        return f"bytes {low}..{high} of {buffer.name}"
    if low < buffer.limit or not isinstance(place, Tile) or place.address is None:
        return f"bytes {low}..{high} of {buffer.name}" + (f" ({name})" if name else "")
    start = place.address
    if (low, high) == (start, start + place.size):
        return f"{name} ({buffer.name})"
    return f"bytes {low - start}..{high - start} of {name} ({buffer.name})"
