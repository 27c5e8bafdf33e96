"""The source location of an instruction in an image."""

from __future__ import annotations

from bisect import bisect_right

from ...image.format import Image
from ..compiled.library import LaunchOutcome


def place_of(image: Image, done: LaunchOutcome) -> int:
    """Return the location of the instruction at which a launch ended; -1 if it is not known."""
    word, code = done.mark & 0xFFFFFFF, done.mark >> 28
    if done.mark < 0 or code >= len(image.codes):
        return -1
    places = image.codes[code].places
    at = bisect_right(places, (word, 1 << 62)) - 1
    return places[at][1] if at >= 0 else -1
