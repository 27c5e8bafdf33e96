"""Single calls among records: the last call of a core, and its location in C++."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ...diag import Span
from ...isa import row as find_row
from ..cpp.places import LibraryPlaces
from .sites import spelled
from .types import FRAMES


def last_call(words: Sequence[int]) -> int | None:
    """Return the start of the last record."""
    at, last = 0, None
    while at < len(words):
        last = at
        at += words[at]
    return last


def place_of(places: LibraryPlaces, words: Sequence[int], at: int) -> Span | None:
    """Return the source location of the call of a record."""
    name = ctypes.string_at(words[at + 1]).decode().partition(":")[0].split()[0]
    row = find_row(name)
    return places.call(words[at + 2 : at + 2 + FRAMES], spelled(row) if row is not None else ()).span
