"""What would make a kernel faster, each tried on its timeline before it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .timeline import Timeline
    from .trace import Trace


class Advice(NamedTuple):
    """A change, in words; the cycles it saves, by simulation; and the trace with it."""

    text: str
    gain: float
    trace: Trace


def advise(timeline: Timeline) -> list[Advice]:
    return []
