"""What sanitizers found, each problem once."""

from __future__ import annotations

from collections.abc import Hashable

from ...diag import Diagnostic

#: Problems shown of one run; the rest is counted.
MOST = 50


class Reports:
    def __init__(self) -> None:
        self.found: dict[Hashable, Diagnostic] = {}
        self.times: dict[Hashable, int] = {}

    def add(self, key: Hashable, diagnostic: Diagnostic) -> None:
        """Keep a problem; one with a key that is known counts only."""
        self.times[key] = self.times.get(key, 0) + 1
        if key not in self.found and len(self.found) < MOST:
            self.found[key] = diagnostic

    def all(self) -> list[Diagnostic]:
        for key, d in self.found.items():
            times = self.times[key]
            if times > 1:
                d.notes.append((f"seen {times} times; this is the first", None))
        left = len(self.times) - len(self.found)
        out = list(self.found.values())
        if left:
            out[-1].notes.append((f"{left} further problems are not shown", None))
        return out
